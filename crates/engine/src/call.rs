//! One mutating call: announced, made, repeated as long as that may help, its answer understood.

use std::{sync::atomic::Ordering, time::Duration};

use notation_model::{Earlier, Look, Record, ResourceType, owner_tags};
use notation_planner::{StepKey, Transition, differing, fixed_among};
use notation_provider::{Found, Object, OpContext, OpError, Progress, Token, Update};
use notation_state::{Call, Entry, Event, Intent, Outcome};

use crate::{
    EngineEvent, StepError, StepEvent,
    asked::asked,
    draft,
    line::Line,
    look::{Looked, backoff, owner_text, owns},
    mask::Mask,
    world::TakenOver,
};

/// A call to make.
pub(crate) struct Job {
    /// Its step.
    pub key: StepKey,
    /// Its name in the journal.
    pub step: String,
    /// What it is to people.
    pub transition: Transition,
    /// What is called.
    pub call: Call,
    /// The record as it will be.
    pub draft: Record,
    /// The record as it is; `None` for a create.
    pub before: Option<Record>,
    /// What earlier runs left open for it.
    pub taken: TakenOver,
}

impl Job {
    /// What the object's tags may say before the call: former ids count, of the record and of the
    /// program, and whoever had what a person took over, until it is written.
    fn earlier(&self) -> Earlier<'_> {
        let before = self.before.as_ref();
        Earlier {
            taken_from: before.and_then(|record| record.taken_from.as_deref()),
            ..self.draft.earlier()
        }
    }
}

/// A call that was carried out. Its outcome is not recorded yet.
pub(crate) struct Carried {
    /// What there is now.
    pub now: Now,
    /// How many calls were made in all.
    pub attempt: u32,
}

/// What there is after a call.
pub(crate) enum Now {
    /// The object, as the call left it.
    Made(Record),
    /// An object that was there already and is ours: as it was found.
    Found(Record),
    /// Somebody else's object that a person takes over, as it was found: nothing is recorded of
    /// it before a write has made its tags ours.
    Taken(Record),
    /// Nothing.
    Gone,
}

/// Why a call was not carried out.
pub(crate) enum CallEnd {
    /// It failed.
    Failed { error: StepError, attempt: u32 },
    /// An object of ours is there that no record knows; nothing was made.
    Met(Box<Found>),
    /// It was not made, since the run stops.
    NotStarted,
    /// A person stopped waiting for it; its intent stays open.
    Interrupted,
}

/// What to do after an answer.
enum Next {
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
    /// Makes the call. On success its intent is still open: the caller records the outcome
    /// together with what changed.
    pub(crate) async fn carry_out(&self, ty: &ResourceType, job: Job) -> Result<Carried, CallEnd> {
        let repeats = job.taken.same.is_some();
        let (token, mut attempt, mut resume) = match &job.taken.same {
            Some(open) => (
                Token(open.intent.token.clone()),
                open.attempt,
                open.resume.clone(),
            ),
            None => (random_token(), 0, None),
        };
        self.announce(&job, &token, attempt + 1).await?;
        self.until_due(&job).await?;
        let started_ms = self.session.clock.now_ms();
        let before = job.before.as_ref().map(|record| &record.applied);
        let mask = Mask::of(before.into_iter().chain([&job.draft.applied]));
        let mut last = String::new();
        for times in 1..=self.options.max_attempts.max(1) {
            let slot = self.limits.slot(ty).await;
            if times == 1 && self.stops() {
                drop(slot);
                return self.not_started(&job, attempt + 1).await;
            }
            let held = self.still_held().await;
            held.map_err(|error| CallEnd::Failed { error, attempt })?;
            attempt += 1;
            let tell = |event: fn(StepEvent) -> EngineEvent, error: Option<String>| {
                self.session.sink.event(&event(StepEvent {
                    key: job.key.clone(),
                    resource: job.draft.incarnation.resource.clone(),
                    transition: job.transition,
                    attempt,
                    took_ms: self.session.clock.now_ms().saturating_sub(started_ms),
                    error,
                }));
            };
            if times == 1 {
                tell(EngineEvent::StepStarted, None);
            }
            let context = OpContext {
                token: token.clone(),
                attempt,
                resume: resume.clone(),
                owner: self.owner(&job.draft),
                earlier: job.earlier(),
                assets: &*self.session.assets,
            };
            let answer = self.make(ty, &job, &context).await;
            drop(slot);
            let next = match answer {
                Ok(Progress::Done(now)) => understood(now),
                Ok(Progress::Waiting {
                    after_ms,
                    resume: data,
                    reason,
                }) => {
                    let reason = mask.text(reason);
                    let event = Event::Waiting {
                        resume: data.clone(),
                        due_ms: self.session.clock.now_ms().saturating_add(after_ms),
                        reason: reason.clone(),
                    };
                    let entry = self.entry(&job.step, attempt, event);
                    self.append(vec![entry], Vec::new())
                        .await
                        .map_err(|error| CallEnd::Failed { error, attempt })?;
                    resume = Some(data);
                    Next::Again {
                        why: reason,
                        after: Duration::from_millis(after_ms),
                    }
                }
                Err(error) => {
                    let again = repeats || times > 1;
                    let error = mask.error(error);
                    self.understand(ty, &job, error, times, again, resume.is_some())
                        .await
                }
            };
            match next {
                Next::Done(now) => return Ok(Carried { now, attempt }),
                Next::Met(found) => {
                    self.met.store(true, Ordering::Relaxed);
                    let event = Event::Outcome(Outcome::Closed);
                    let entry = self.entry(&job.step, attempt, event);
                    return match self.append(vec![entry], Vec::new()).await {
                        Ok(()) => Err(CallEnd::Met(Box::new(found))),
                        Err(error) => Err(CallEnd::Failed { error, attempt }),
                    };
                }
                Next::LeaveOpen(error) => {
                    self.failed();
                    return Err(CallEnd::Failed { error, attempt });
                }
                Next::Fail(error) => {
                    self.failed();
                    let event = Event::Failed {
                        error: error.to_string(),
                    };
                    let entry = self.entry(&job.step, attempt, event);
                    let error = match self.append(vec![entry], Vec::new()).await {
                        Ok(()) => error,
                        Err(store) => store,
                    };
                    return Err(CallEnd::Failed { error, attempt });
                }
                Next::Again { why, after } => {
                    last.clone_from(&why);
                    if times < self.options.max_attempts {
                        tell(EngineEvent::StepWaiting, Some(why));
                        self.pause(after).await?;
                    }
                }
            }
        }
        self.failed();
        let error = StepError::Attempts {
            attempts: attempt,
            last,
        };
        Err(CallEnd::Failed { error, attempt })
    }

    /// A wait that an earlier run did not end goes on.
    async fn until_due(&self, job: &Job) -> Result<(), CallEnd> {
        let due_ms = job.taken.same.as_ref().map_or(0, |open| open.due_ms);
        match due_ms.checked_sub(self.session.clock.now_ms()) {
            Some(left_ms) if left_ms > 0 => self.pause(Duration::from_millis(left_ms)).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Makes the intent durable; what nobody takes over is closed with it.
    async fn announce(&self, job: &Job, token: &Token, attempt: u32) -> Result<(), CallEnd> {
        let closed = job.taken.stale.iter().map(|open| self.closed(open));
        let mut entries: Vec<Entry> = closed.collect();
        // An intent that is taken over goes on under this step's name.
        if let Some(open) = &job.taken.same
            && open.step != job.step
        {
            entries.push(self.closed(open));
        }
        let intent = Intent {
            call: job.call,
            token: token.0.clone(),
            draft: job.draft.clone(),
        };
        entries.push(self.entry(&job.step, attempt, Event::Intent(Box::new(intent))));
        self.append(entries, Vec::new())
            .await
            .map_err(|error| CallEnd::Failed { error, attempt })
    }

    /// The run stops before the call: the intent is closed, unless it is an earlier run's, whose
    /// outcome is still not known.
    async fn not_started(&self, job: &Job, attempt: u32) -> Result<Carried, CallEnd> {
        if job.taken.same.is_none() && !self.lost.load(Ordering::Relaxed) {
            let event = Event::Outcome(Outcome::Closed);
            let entry = self.entry(&job.step, attempt, event);
            self.append(vec![entry], Vec::new())
                .await
                .map_err(|error| CallEnd::Failed { error, attempt })?;
        }
        Err(CallEnd::NotStarted)
    }

    async fn make(
        &self,
        ty: &ResourceType,
        job: &Job,
        context: &OpContext<'_>,
    ) -> Result<Progress<Now>, OpError> {
        let provider = self
            .session
            .registry
            .provider(&ty.name)
            .expect("the type came from the registry");
        let key = job.draft.key.as_str();
        let made = |progress: Progress<Object>| {
            progress.map(|object| Now::Made(draft::answered(ty, &job.draft, object)))
        };
        match (job.call, &job.before) {
            (Call::Update, Some(before)) => {
                let update = Update {
                    params: &job.draft.applied,
                    prior: &before.applied,
                    outputs: &before.outputs,
                };
                let answer = asked(|| provider.update(context, &ty.name, key, update));
                answer.await.map(made)
            }
            (Call::Create, _) | (Call::Update, None) => {
                let params = &job.draft.applied;
                let answer = asked(|| provider.create(context, &ty.name, params));
                answer.await.map(made)
            }
            (Call::Delete, _) => {
                let outputs = &job.draft.outputs;
                match asked(|| provider.delete(context, &ty.name, key, outputs)).await {
                    Ok(progress) => Ok(progress.map(|()| Now::Gone)),
                    Err(OpError::NotFound) => Ok(Progress::Done(Now::Gone)),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// What an answer that is not a success means (`engine.md` §7).
    async fn understand(
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
            (Call::Create, OpError::Transient { after_ms, .. }) if !waits => {
                match self.look_for(ty, job).await {
                    Ok(Looked::Ours(found)) => ours_is_there(ty, job, found),
                    Ok(Looked::Foreign(found)) => {
                        taken(found.object.key.clone(), owner_text(&found.tags))
                    }
                    Ok(Looked::Cannot) if ty.look == Look::Never => {
                        Next::LeaveOpen(StepError::Ambiguous { last: why })
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

    /// Waits, unless a person stops it: what is waited for is in the journal.
    async fn pause(&self, after: Duration) -> Result<(), CallEnd> {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        self.moved.notify_one();
        let waited = tokio::select! {
            () = self.session.clock.sleep(after) => Ok(()),
            () = self.session.interrupt.given(1) => Err(CallEnd::Interrupted),
        };
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        waited
    }
}

/// A success. What was answered and cannot be recorded stays open: the next run looks.
fn understood(now: Now) -> Next {
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

/// A token that was never used: 32 lower-case hex digits.
fn random_token() -> Token {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
