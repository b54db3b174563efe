//! What people do beside deploying and importing: refresh, resolve, forget.

use notation_model::{DesiredGraph, Incarnation, Record, ResourceId, SecretValue, Value};
use notation_planner::Observation;
use notation_state::{Call, Change, Event, OpenIntent, Outcome};

use crate::{
    EngineError, RunOptions, Session,
    call::Line,
    draft,
    hold::{self, Held},
    observe::observe,
    prepare::{line, recovered},
    recover::not_recorded,
    world::changes_for,
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
            (None, _) | (Some(Observation::There { .. }), None) => record.clone(),
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

/// Forgets a resource without deleting its objects. Returns what was forgotten.
pub async fn forget(
    session: &Session,
    id: &ResourceId,
    options: &RunOptions,
) -> Result<Vec<Incarnation>, EngineError> {
    let (held, line) = hold_line(session, options, &DesiredGraph::default()).await?;
    let done = forget_held(&line, id).await;
    finished(held, done).await
}

async fn forget_held(line: &Line, id: &ResourceId) -> Result<Vec<Incarnation>, EngineError> {
    let session = &line.session;
    let state = session.store.load(&session.deployment).await?;
    let of_resource = |incarnation: &&Incarnation| incarnation.resource == *id;
    let recorded: Vec<Incarnation> = state.records.keys().filter(of_resource).cloned().collect();
    let open = state
        .open
        .iter()
        .filter(|open| open.incarnation().resource == *id);
    let entries: Vec<_> = open.map(|open| line.closed(open)).collect();
    if recorded.is_empty() && entries.is_empty() {
        return Err(EngineError::NoSuchResource {
            resource: id.clone(),
            place: "the state",
        });
    }
    let changes = recorded.iter().cloned().map(Change::Remove).collect();
    let appended = line.append(entries, changes).await;
    appended.map_err(|error| not_recorded(&error))?;
    Ok(recorded)
}

pub(crate) async fn hold_line(
    session: &Session,
    options: &RunOptions,
    desired: &DesiredGraph,
) -> Result<(Held, Line), EngineError> {
    let held = hold::take(session, options.hold).await?;
    let line = line(session, &held.hold, options, desired);
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
