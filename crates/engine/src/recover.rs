//! Recovery: intents without outcome are looked up and closed (`engine.md` §7).
//!
//! It belongs to the deployment: whatever runs next does it, then plans from state as always.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream::FuturesOrdered};
use notation_model::{
    Incarnation, Look, Owner, Record, ResourceId, ResourceType, Shape, TypeSet, Value,
};
use notation_planner::{Role, StepKey, Subject, Transition};
use notation_provider::{LookFor, OpError};
use notation_state::{Call, Change, DeploymentState, Event, OpenIntent, Outcome};

use crate::{
    AmbiguousCreate, EngineError, ObserveFailure,
    call::CallEnd,
    draft,
    job::{Job, Now},
    line::Line,
    look::{Looked, Looker},
    references::link,
    report::StepError,
    world::{TakenOver, changes_for, puts},
};

/// What the looks found. Nothing of it is recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Every record as it is now known, those found gone included.
    pub records: BTreeMap<Incarnation, Record>,
    /// What the entry exported at its last deploy.
    pub exports: BTreeMap<String, Value>,
    /// Intents that a step may take over.
    pub open: Vec<OpenIntent>,
    /// Intents whose outcome is known now.
    closed: Vec<(OpenIntent, Outcome)>,
    /// Record changes that go with it.
    changes: Vec<Change>,
    /// Creates that must be repeated to learn what became of them.
    unfinished: Vec<OpenIntent>,
    /// An object of ours was found where a create had begun that makes another one: no record
    /// knew it, and there may be more of the kind.
    pub met: bool,
}

/// How many intents are looked up side by side. Looks spend their time waiting for reads that lag;
/// the calls among them have limits of their own.
const AT_ONCE: usize = 64;

/// What became of one intent.
enum Fate {
    /// Made: the record of it.
    Made(Box<Record>),
    /// An update that may have happened.
    Doubt,
    /// The object is gone.
    Gone,
    /// Not carried out; may be taken over.
    NotDone,
    /// Nobody can take it over.
    Close,
    /// A create to repeat.
    Repeat,
    /// A create to ask a person about.
    Ask,
    /// Its type is not registered: left as it is.
    Leave,
}

/// Looks up every intent without outcome.
///
/// Errors: [`EngineError::Ambiguous`] with all creates that only a person can answer for;
/// [`EngineError::Look`] when providers cannot be asked.
pub(crate) async fn look(
    looker: &Looker<'_>,
    state: DeploymentState,
    former: &BTreeMap<ResourceId, Vec<ResourceId>>,
) -> Result<Recovered, EngineError> {
    let mut fates = Vec::with_capacity(state.open.len());
    let mut running = FuturesOrdered::new();
    for open in &state.open {
        if running.len() >= AT_ONCE {
            fates.extend(running.next().await);
        }
        running.push_back(fate(looker, &state, open, former));
    }
    while let Some(fate) = running.next().await {
        fates.push(fate);
    }
    drop(running);
    let mut recovered = Recovered {
        records: state.records,
        exports: state.exports,
        ..Recovered::default()
    };
    let mut ambiguous = Vec::new();
    let mut unread = Vec::new();
    for (open, fate) in state.open.into_iter().zip(fates) {
        match fate {
            Ok(Fate::Ask) => ambiguous.push(AmbiguousCreate {
                resource: open.incarnation().resource.clone(),
                ty: open.intent.draft.ty.clone(),
            }),
            Ok(fate) => recovered.take(open, fate, looker.session.registry.types()),
            Err(error) => unread.push(ObserveFailure {
                resource: open.incarnation().resource.clone(),
                key: open.intent.draft.key.to_string(),
                reason: error.to_string(),
            }),
        }
    }
    if !unread.is_empty() {
        return Err(EngineError::Look(unread));
    }
    if !ambiguous.is_empty() {
        return Err(EngineError::Ambiguous(ambiguous));
    }
    Ok(recovered)
}

async fn fate(
    looker: &Looker<'_>,
    state: &DeploymentState,
    open: &OpenIntent,
    former: &BTreeMap<ResourceId, Vec<ResourceId>>,
) -> Result<Fate, OpError> {
    let draft = &open.intent.draft;
    let Some(ty) = looker.session.registry.types().get(&draft.ty) else {
        return Ok(Fate::Leave);
    };
    let owner = Owner {
        deployment: looker.session.deployment.clone(),
        resource: draft.incarnation.resource.clone(),
        generation: draft.incarnation.generation,
    };
    // Those of the program that the draft was made for, and of the one of today, if any.
    let today = former.get(&owner.resource).into_iter().flatten();
    let former: Vec<ResourceId> = draft.former.iter().chain(today).cloned().collect();
    let recorded = state
        .records
        .get(&draft.incarnation)
        .is_some_and(|record| !record.gone);
    match open.intent.call {
        Call::Create if recorded => Ok(Fate::Close),
        Call::Create => {
            let looked = looker.for_created(ty, &owner, &draft.key, &former).await?;
            Ok(match looked {
                // Half made: it is finished, not taken for whole.
                Looked::Ours(_) if open.resume.is_some() => Fate::Repeat,
                Looked::Ours(found) => Fate::Made(Box::new(draft::found(ty, draft, found))),
                Looked::Absent => Fate::NotDone,
                // Had it been made it would be ours: it was not. Whoever has the name is told by
                // the step that wants it, if one still does.
                Looked::Foreign(_) => Fate::NotDone,
                // While the last answer is known it is gone on with by its data.
                Looked::Cannot if ty.look == Look::Never && !open.answered => Fate::Ask,
                Looked::Cannot => Fate::Repeat,
            })
        }
        Call::Update if recorded => Ok(Fate::Doubt),
        Call::Delete if recorded => {
            if matches!(ty.look, Look::Never | Look::IdempotentCreate) {
                return Ok(Fate::NotDone);
            }
            let look = LookFor::Key(&draft.key);
            Ok(match looker.present(ty, &owner, look).await? {
                None => Fate::Gone,
                Some(_) => Fate::NotDone,
            })
        }
        // The write that takes an object over, of which nothing is recorded before: with our tags
        // it was carried out.
        Call::Update => {
            let looked = looker.for_created(ty, &owner, &draft.key, &former).await?;
            Ok(match looked {
                Looked::Ours(found) => Fate::Made(Box::new(Record {
                    in_doubt: ty.updates,
                    ..draft::found(ty, draft, found)
                })),
                Looked::Absent | Looked::Foreign(_) | Looked::Cannot => Fate::Close,
            })
        }
        Call::Delete => Ok(Fate::Close),
    }
}

impl Recovered {
    fn take(&mut self, open: OpenIntent, fate: Fate, types: &TypeSet) {
        let incarnation = open.incarnation().clone();
        match fate {
            Fate::Made(record) => {
                // What that create did not write is not in its edges either.
                let differs = record.applied != open.intent.draft.applied;
                self.made(*record);
                if differs {
                    self.link(types, &incarnation);
                    self.met |= open.intent.call == Call::Create;
                }
                self.closed.push((open, Outcome::Done));
            }
            Fate::Doubt => {
                if let Some(record) = self.records.get_mut(&incarnation) {
                    let doubtful = in_doubt(record, &open.intent.draft);
                    if doubtful != *record {
                        *record = Record {
                            version: record.version + 1,
                            ..doubtful
                        };
                        self.changes.push(Change::put(record.clone()));
                    }
                }
                self.open.push(open);
            }
            Fate::Gone => {
                self.records.remove(&incarnation);
                self.changes.push(Change::Remove(incarnation));
                self.closed.push((open, Outcome::Done));
            }
            Fate::NotDone => self.open.push(open),
            Fate::Close => self.closed.push((open, Outcome::Closed)),
            Fate::Repeat => self.unfinished.push(open),
            Fate::Ask | Fate::Leave => {}
        }
    }

    fn made(&mut self, record: Record) {
        let changes = changes_for(&self.records, None, record);
        self.changes.extend(puts(&changes));
        for record in changes {
            self.records.insert(record.incarnation.clone(), record);
        }
    }

    /// Adds the edges that the object of an incarnation turned out to have.
    fn link(&mut self, types: &TypeSet, incarnation: &Incarnation) {
        let new = BTreeSet::from([incarnation.clone()]);
        let others = link(types, &mut self.records, &new);
        let changed = others.union(&new);
        let changed = changed.filter_map(|changed| self.records.get(changed));
        self.changes.extend(changed.cloned().map(Change::put));
    }

    /// Records what the looks found, and repeats the creates that cannot be looked up.
    pub(crate) async fn record(&mut self, line: &Line) -> Result<(), EngineError> {
        let closed = std::mem::take(&mut self.closed);
        let entries = closed
            .iter()
            .map(|(open, outcome)| line.entry(&open.step, open.attempt, Event::Outcome(*outcome)));
        let changes = std::mem::take(&mut self.changes);
        if !closed.is_empty() || !changes.is_empty() {
            let appended = line.append(entries.collect(), changes).await;
            appended.map_err(|error| not_recorded(&error))?;
        }
        for open in std::mem::take(&mut self.unfinished) {
            self.finish(line, open).await?;
        }
        Ok(())
    }

    /// Repeats a create with its token, which by the type's word, or by the data of the last
    /// answer, makes nothing new.
    async fn finish(&mut self, line: &Line, open: OpenIntent) -> Result<(), EngineError> {
        let draft = open.intent.draft.clone();
        let types = line.session.registry.types();
        let ty: &ResourceType = types.get(&draft.ty).expect("it was looked up by its type");
        let role = match draft.shape {
            Shape::Placeholder => Role::Placeholder,
            Shape::Complete => Role::Complete,
        };
        let job = Job {
            key: StepKey {
                subject: Subject::Incarnation(draft.incarnation.clone()),
                role,
            },
            step: open.step.clone(),
            transition: Transition::Create,
            call: Call::Create,
            draft,
            before: None,
            taken: TakenOver {
                same: Some(open.clone()),
                stale: Vec::new(),
            },
        };
        let step = job.step.clone();
        match line.carry_out(ty, job).await {
            Ok(carried) => {
                let (Now::Made(record) | Now::Found(record)) = carried.now else {
                    // Somebody else's: a step that still wants it takes it over.
                    self.open.push(open);
                    return Ok(());
                };
                self.made(record);
                let changes = std::mem::take(&mut self.changes);
                let done = line.entry(&step, carried.attempt, Event::Outcome(Outcome::Done));
                let appended = line.append(vec![done], changes).await;
                appended.map_err(|error| not_recorded(&error))
            }
            // It failed for good: nothing was made, and the plan asks for it again if it is
            // still wanted.
            Err(CallEnd::Failed {
                error: StepError::Provider(_),
                ..
            }) => Ok(()),
            Err(CallEnd::Failed {
                error: error @ StepError::Store(_),
                ..
            }) => Err(not_recorded(&error)),
            Err(CallEnd::Failed { error, .. }) => {
                let resource = open.incarnation().resource.clone();
                Err(EngineError::Unfinished {
                    code: error.code(),
                    why: error.to_string(),
                    help: error.help(&resource),
                    resource,
                })
            }
            Err(CallEnd::NotStarted | CallEnd::Met(_) | CallEnd::Interrupted) => {
                Err(EngineError::Interrupted)
            }
        }
    }
}

/// The record while an update may or may not have happened: with the edges of before and after.
fn in_doubt(record: &Record, draft: &Record) -> Record {
    let mut doubtful = record.clone();
    doubtful.in_doubt = true;
    for edge in &draft.edges {
        if !doubtful.edges.contains(edge) {
            doubtful.edges.push(edge.clone());
        }
    }
    doubtful
}

/// A store failure while recovering, as an error of the run.
pub(crate) fn not_recorded(error: &StepError) -> EngineError {
    let place = std::path::PathBuf::new();
    match error {
        StepError::Store(store) => EngineError::NotRecorded(store.clone()),
        other => EngineError::Store(notation_state::StoreError::CannotWrite {
            place,
            why: other.to_string(),
        }),
    }
}
