//! What people do beside deploying and importing: refresh, resolve, forget.

use notation_model::{DesiredGraph, Incarnation, Record, ResourceId, SecretValue, TypeName, Value};
use notation_planner::Observation;
use notation_state::{Call, Change, Event, OpenIntent, Outcome};

use crate::{
    EngineError, RunOptions, Session, draft,
    hold::{self, Held},
    line::Line,
    look::Looked,
    observe::observe,
    prepare::{line, recovered},
    recover::not_recorded,
    world::{changes_for, recorded_as},
};

/// What a refresh found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Objects that are gone.
    pub gone: Vec<Incarnation>,
    /// Objects that differ from what was recorded.
    pub changed: Vec<Incarnation>,
    /// How many are as recorded.
    pub unchanged: usize,
    /// Those that nobody could look at: no read of their types exists, or nobody knows the type.
    pub unread: Vec<Incarnation>,
}

/// How a person answers for an ambiguous create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It happened; the object has this key.
    Created {
        /// The key at the provider.
        key: String,
    },
    /// It did not happen.
    Absent,
}

/// Records what the providers say, and changes nothing there.
///
/// Errors: [`EngineError::Interrupted`] when the person broke it off; nothing of it is recorded.
pub async fn refresh(session: &Session, options: &RunOptions) -> Result<Refreshed, EngineError> {
    let (held, line) = hold_line(session, options, &DesiredGraph::default()).await?;
    let done = refresh_held(&line).await;
    finished(held, done).await
}

async fn refresh_held(line: &Line) -> Result<Refreshed, EngineError> {
    let session = &line.session;
    let state = session.store.load(&session.deployment).await?;
    let recovered = session.interrupt.or(recovered(line, state)).await?;
    // What lost its tags is looked at like anything else: nothing is changed.
    let looker = line.looker();
    let looking = observe(&looker, &recovered.records, line.options.parallelism);
    // There is no refresh without it.
    let looking = async {
        looking.await.map_err(|error| match error {
            EngineError::Observe(failures) => EngineError::Look(failures),
            error => error,
        })
    };
    let (observed, _) = session.interrupt.or(looking).await?;
    let types = session.registry.types();
    let mut refreshed = Refreshed::default();
    let mut changes = Vec::new();
    for (incarnation, record) in &recovered.records {
        let now = match (observed.0.get(incarnation), types.get(&record.ty)) {
            (Some(Observation::Gone | Observation::Foreign { .. }), _) => Record {
                gone: true,
                ..record.clone()
            },
            (Some(Observation::There { params, outputs }), Some(ty)) => {
                draft::observed(ty, record, params, outputs)
            }
            (None, _) | (Some(Observation::There { .. }), None) => {
                refreshed.unread.push(incarnation.clone());
                continue;
            }
        };
        if now == *record {
            refreshed.unchanged += 1;
            continue;
        }
        if now.gone {
            refreshed.gone.push(incarnation.clone());
        } else {
            refreshed.changed.push(incarnation.clone());
        }
        changes.push(Change::put(Record {
            version: record.version + 1,
            ..now
        }));
    }
    if !changes.is_empty() {
        let appended = line.append(Vec::new(), changes).await;
        appended.map_err(|error| not_recorded(&error))?;
    }
    Ok(refreshed)
}

/// Answers for a create whose outcome nobody can tell.
pub async fn resolve(
    session: &Session,
    id: &ResourceId,
    answer: &Answer,
    options: &RunOptions,
) -> Result<(), EngineError> {
    let (held, line) = hold_line(session, options, &DesiredGraph::default()).await?;
    let done = resolve_held(&line, id, answer).await;
    finished(held, done).await
}

async fn resolve_held(line: &Line, id: &ResourceId, answer: &Answer) -> Result<(), EngineError> {
    let session = &line.session;
    let state = session.store.load(&session.deployment).await?;
    let open: Vec<&OpenIntent> = state
        .open
        .iter()
        .filter(|open| open.intent.call == Call::Create && open.incarnation().resource == *id)
        .collect();
    let Some(last) = open.last() else {
        return Err(EngineError::NothingToResolve {
            resource: id.clone(),
        });
    };
    let (outcome, changes) = match answer {
        Answer::Absent => (Outcome::Closed, Vec::new()),
        Answer::Created { key } => {
            let mut record = last.intent.draft.clone();
            if let Some(other) = recorded_as(&state.records, &record.ty, key) {
                return Err(EngineError::already_recorded(other));
            }
            record.key = key.as_str().into();
            let types = session.registry.types();
            let key_field = types.get(&record.ty).and_then(|ty| ty.key_field());
            if let Some((name, field)) = key_field {
                let value = Value::text(key.clone());
                let value = match field.sensitive {
                    true => Value::Secret(SecretValue::new(value)),
                    false => value,
                };
                record.outputs.insert(name.to_owned(), value);
            }
            let changes = changes_for(&state.records, None, record);
            (
                Outcome::Done,
                changes.into_iter().map(Change::put).collect(),
            )
        }
    };
    let entries = open
        .iter()
        .map(|open| line.entry(&open.step, open.attempt, Event::Outcome(outcome)));
    let appended = line.append(entries.collect(), changes).await;
    appended.map_err(|error| not_recorded(&error))
}

/// An object that stays at its provider and is no longer known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// What it was.
    pub incarnation: Incarnation,
    /// Its type.
    pub ty: TypeName,
    /// Its key at the provider; empty when only the provider knows it.
    pub key: String,
    /// Whether it is there.
    pub there: There,
}

/// Whether an object that is left behind is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    /// It was recorded.
    Recorded,
    /// An earlier run was cut off while it made it, and it was found.
    Found,
    /// An earlier run was cut off while it made it, and its provider cannot tell.
    Perhaps,
}

/// Forgets a resource without deleting its objects. Returns all of them, also what an earlier run
/// was cut off while making.
pub async fn forget(
    session: &Session,
    id: &ResourceId,
    options: &RunOptions,
) -> Result<Vec<LeftBehind>, EngineError> {
    let (held, line) = hold_line(session, options, &DesiredGraph::default()).await?;
    let done = forget_held(&line, id).await;
    finished(held, done).await
}

async fn forget_held(line: &Line, id: &ResourceId) -> Result<Vec<LeftBehind>, EngineError> {
    let session = &line.session;
    let state = session.store.load(&session.deployment).await?;
    let of_resource = |record: &&Record| record.incarnation.resource == *id;
    let recorded: Vec<&Record> = state.records.values().filter(of_resource).collect();
    let open = state
        .open
        .iter()
        .filter(|open| open.incarnation().resource == *id);
    let entries: Vec<_> = open.clone().map(|open| line.closed(open)).collect();
    if recorded.is_empty() && entries.is_empty() {
        return Err(EngineError::NoSuchResource {
            resource: id.clone(),
            place: "the state",
        });
    }
    let left = |record: &Record, there: There| LeftBehind {
        incarnation: record.incarnation.clone(),
        ty: record.ty.clone(),
        key: record.key.to_string(),
        there,
    };
    let there = recorded.iter().filter(|record| !record.gone);
    let mut behind: Vec<LeftBehind> = there.map(|record| left(record, There::Recorded)).collect();
    for open in open {
        let draft = &open.intent.draft;
        let known = state.records.get(&draft.incarnation);
        if known.is_some_and(|record| !record.gone) || open.intent.call == Call::Delete {
            continue;
        }
        match session.interrupt.or(made_by(line, draft)).await? {
            Made::No => {}
            Made::Yes(key) => behind.push(LeftBehind {
                key,
                ..left(draft, There::Found)
            }),
            Made::Unknown => behind.push(left(draft, There::Perhaps)),
        }
    }
    let changes = recorded.iter().map(|record| record.incarnation.clone());
    let changes = changes.map(Change::Remove).collect();
    let appended = line.append(entries, changes).await;
    appended.map_err(|error| not_recorded(&error))?;
    Ok(behind)
}

/// What a call that was cut off made.
enum Made {
    No,
    /// The object with this key.
    Yes(String),
    /// Nobody can tell.
    Unknown,
}

/// Looks for what a call without outcome made. A provider that cannot be asked does not keep
/// anybody from forgetting.
async fn made_by(line: &Line, draft: &Record) -> Result<Made, EngineError> {
    let types = line.session.registry.types();
    let Some(ty) = types.get(&draft.ty) else {
        return Ok(Made::Unknown);
    };
    let owner = line.owner(draft);
    let looked = line
        .looker()
        .for_created(ty, &owner, &draft.key, &draft.former)
        .await;
    Ok(match looked {
        Ok(Looked::Ours(found)) => Made::Yes(found.object.key),
        Ok(Looked::Absent | Looked::Foreign(_)) => Made::No,
        Ok(Looked::Cannot) | Err(_) => Made::Unknown,
    })
}

pub(crate) async fn hold_line(
    session: &Session,
    options: &RunOptions,
    desired: &DesiredGraph,
) -> Result<(Held, Line), EngineError> {
    let held = hold::take(session, options.hold).await?;
    let line = line(session, &held, options, desired);
    Ok((held, line))
}

pub(crate) async fn finished<T>(
    held: Held,
    done: Result<T, EngineError>,
) -> Result<T, EngineError> {
    let released = held.release().await;
    let done = done?;
    released?;
    Ok(done)
}
