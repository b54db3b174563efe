//! What an answer means: that the call is done, is to be made again, or failed.

use std::time::Duration;

use notation_model::{Look, Record, ResourceType, owner_tags};
use notation_planner::{differing, fixed_among};
use notation_provider::{Found, OpError};
use notation_state::Call;

use crate::{
    StepError, draft,
    job::{Job, Now},
    line::Line,
    look::{Looked, backoff, owner_text, owns},
};

/// What to do after an answer.
pub(crate) enum Next {
    Done(Now),
    /// Ours, and no record knows it.
    Met(Found),
    Fail(StepError),
    /// Fails without an end in the journal: the next run must look.
    LeaveOpen(StepError),
    Again {
        why: String,
        after: Duration,
    },
}

impl Line {
    /// What an answer that is not a success means (`engine.md` §7).
    pub(crate) async fn understand(
        &self,
        ty: &ResourceType,
        job: &Job,
        error: OpError,
        times: u32,
        again: bool,
        waits: bool,
    ) -> Next {
        let why = error.to_string();
        match (job.call, error) {
            (Call::Create, OpError::Exists { name, tags }) => {
                let ours = if ty.tags {
                    owns(&self.owner(&job.draft), &tags, &job.draft.former)
                } else {
                    // Without tags only our own earlier attempt can tell that it is ours.
                    again
                };
                let exists = Exists {
                    name: &name,
                    owner: owner_text(&tags),
                    ours,
                    again,
                };
                self.exists(ty, job, exists, times).await
            }
            (Call::Create, OpError::Transient { .. }) if ty.look == Look::Never => {
                Next::LeaveOpen(StepError::Ambiguous { last: why })
            }
            (Call::Create, OpError::Transient { after_ms, .. }) if !waits => {
                match self.look_for(ty, job).await {
                    Ok(Looked::Ours(found)) => ours_is_there(ty, job, found),
                    Ok(Looked::Foreign(found)) => {
                        taken(found.object.key.clone(), owner_text(&found.tags))
                    }
                    Ok(Looked::Absent | Looked::Cannot) | Err(_) => Next::Again {
                        why,
                        after: backoff(times, after_ms),
                    },
                }
            }
            (_, OpError::Transient { after_ms, .. }) => Next::Again {
                why,
                after: backoff(times, after_ms),
            },
            (Call::Delete, OpError::InUse { held_by }) => {
                if times < self.options.max_attempts {
                    Next::Again {
                        why,
                        after: backoff(times, None),
                    }
                } else {
                    Next::Fail(StepError::Provider(OpError::InUse { held_by }))
                }
            }
            (Call::Update, OpError::NotFound) => Next::Done(Now::Gone),
            (_, error @ OpError::Broke { .. }) => Next::LeaveOpen(StepError::from(error)),
            (
                Call::Create | Call::Update | Call::Delete,
                error @ (OpError::NotFound
                | OpError::Exists { .. }
                | OpError::InUse { .. }
                | OpError::Refused { .. }
                | OpError::Failed { .. }),
            ) => Next::Fail(StepError::Provider(error)),
        }
    }

    /// A create that is answered *exists already* goes through the look.
    async fn exists(&self, ty: &ResourceType, job: &Job, exists: Exists<'_>, times: u32) -> Next {
        let Exists {
            name,
            owner,
            ours,
            again,
        } = exists;
        let later = || Next::Again {
            why: format!("{name} exists already and cannot be read yet"),
            after: backoff(times, None),
        };
        let looked = self.look_for(ty, job).await;
        // What is taken and cannot be read as this type may be of another one.
        if matches!(looked, Ok(Looked::Absent)) {
            let owner = self.owner(&job.draft);
            let other = self.looker().of_another_type(ty, &owner, name).await;
            if let Some((other, found)) = other {
                return Next::Fail(StepError::OtherType {
                    name: name.to_owned(),
                    ty: other,
                    wanted: ty.name.clone(),
                    owner: owner_text(&found.tags),
                });
            }
        }
        match looked {
            // Nobody tried to make it before: it was there when this run began.
            Ok(Looked::Ours(found)) if ty.tags && !again => Next::Met(found),
            Ok(Looked::Ours(found)) if ty.tags || ours => ours_is_there(ty, job, found),
            Ok(Looked::Ours(found) | Looked::Foreign(found)) => {
                let owner = owner_text(&found.tags);
                if !self.adopts(job) {
                    return taken(name.to_owned(), owner);
                }
                adopted(ty, job, found)
            }
            Ok(Looked::Absent) | Err(_) if ours => later(),
            Ok(Looked::Absent) | Err(_) if self.adopts(job) => later(),
            Ok(Looked::Absent | Looked::Cannot) | Err(_) => taken(name.to_owned(), owner),
        }
    }

    fn adopts(&self, job: &Job) -> bool {
        let resource = &job.draft.incarnation.resource;
        self.options.plan.adopt.contains(resource)
    }

    async fn look_for(&self, ty: &ResourceType, job: &Job) -> Result<Looked, OpError> {
        let owner = self.owner(&job.draft);
        let Record { key, former, .. } = &job.draft;
        self.looker().for_created(ty, &owner, key, former).await
    }
}

/// A success. What was answered and cannot be recorded stays open: the next run looks.
pub(crate) fn understood(now: Now) -> Next {
    if let Now::Made(record) = &now
        && let Some(error) = StepError::too_deep(&record.incarnation.resource, &record.outputs)
    {
        return Next::LeaveOpen(error);
    }
    Next::Done(now)
}

/// Why a create was refused.
struct Exists<'a> {
    /// The name that is taken.
    name: &'a str,
    /// Whose it is, for people.
    owner: String,
    /// It is ours.
    ours: bool,
    /// The create was tried before.
    again: bool,
}

/// Ours, where a create was tried before: what that create makes, or an object that was there
/// before it and that no record knows.
fn ours_is_there(ty: &ResourceType, job: &Job, found: Found) -> Next {
    let record = draft::found(ty, &job.draft, found.clone());
    if ty.tags && record.applied != job.draft.applied {
        Next::Met(found)
    } else {
        Next::Done(Now::Found(record))
    }
}

/// Somebody else's object, taken because a person asked for it: written in full, so that its tags
/// become ours. One that no update can make ours, or can make what is asked for, is left alone.
fn adopted(ty: &ResourceType, job: &Job, found: Found) -> Next {
    let owner = owner_text(&found.tags);
    let tags = owner_tags(&found.tags);
    let mut record = draft::found(ty, &job.draft, found);
    let fixed = fixed_among(ty, &differing(ty, &record.applied, &job.draft.applied));
    let why = match (ty.updates, fixed.as_slice()) {
        (false, _) if ty.tags => format!("{} cannot be updated, so its tags stay", ty.name),
        (true, [_, ..]) => format!(
            "{} cannot be changed and {} not what is asked for",
            fixed.join(", "),
            if fixed.len() == 1 { "is" } else { "are" }
        ),
        (false, _) | (true, []) => String::new(),
    };
    if !why.is_empty() {
        let name = record.key.to_string();
        return Next::Fail(StepError::NotAdoptable { name, owner, why });
    }
    record.in_doubt = ty.updates;
    Next::Done(if ty.tags {
        record.taken_from = Some(tags.into());
        Now::Taken(record)
    } else {
        Now::Found(record)
    })
}

fn taken(name: String, owner: String) -> Next {
    Next::Fail(StepError::Taken { name, owner })
}
