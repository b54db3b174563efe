//! Batches in the file: many in one commit, no index but what is in memory.

use std::{collections::HashMap, path::Path};

use notation_model::{DeploymentId, Incarnation};
use rusqlite::{Transaction, params};

use super::{
    failure::{Failure, cannot_read, cannot_write, damaged, why},
    file::{File, journal, row_of},
    hold::hold_of,
    writer::Append,
};
use crate::{
    Batch, Change, Entry, Event, Fence, Hold, StepStatus, StoreError,
    format::{Format, ReadError},
    hold::fenced,
    store::illegal,
};

impl File {
    /// Appends batches in one commit. A batch that is refused (fenced, illegal, no key) does not
    /// keep the others from being written; a commit that fails fails them all.
    pub(super) fn append(&mut self, group: &[Box<Append>]) -> Vec<Result<(), StoreError>> {
        let mut held = std::mem::take(&mut self.held);
        match self.append_all(group, &mut held) {
            Ok(results) => {
                self.held = held;
                results
            }
            // What is known of the rows may be ahead of the file now: forget it.
            Err(failure) => group.iter().map(|_| Err(failure.error())).collect(),
        }
    }

    fn append_all(
        &mut self,
        group: &[Box<Append>],
        held: &mut HashMap<DeploymentId, Held>,
    ) -> Result<Vec<Result<(), StoreError>>, Failure> {
        self.open_for_writing().map_err(Failure::Opening)?;
        let File {
            path, sealer, open, ..
        } = self;
        let open = open.as_mut().expect("opened just now");
        let failed = |error: &rusqlite::Error| Failure::Writing(path.clone(), why(error));
        let transaction = open
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| failed(&error))?;
        let mut results = Vec::new();
        for append in group {
            let Append {
                deployment,
                hold,
                batch,
            } = &**append;
            let bound_to = deployment.to_string();
            let format = Format {
                sealer,
                salt: &open.salt,
                bound_to: &bound_to,
            };
            let written = texts(&format, batch).and_then(|texts| {
                let held = held_under(&transaction, path, &format, deployment, hold, held)?;
                Ok((check(held, batch)?, held, texts))
            });
            match written {
                Err(refused) => results.push(Err(refused)),
                Ok((statuses, held, texts)) => {
                    write(&transaction, held, batch, &texts, statuses)
                        .map_err(|error| failed(&error))?;
                    results.push(Ok(()));
                }
            }
        }
        transaction.commit().map_err(|error| failed(&error))?;
        Ok(results)
    }
}

/// Where rows are, so that a commit needs no index: valid under one fence.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) row: i64,
    pub(super) fence: Fence,
    records: HashMap<Incarnation, i64>,
    /// Steps that are open or waiting, with the journal row of their first intent.
    pub(super) steps: HashMap<String, (StepStatus, i64)>,
}

/// What is known under this hold, read from the file when it is not known yet.
///
/// Errors: [`StoreError::Fenced`] when the hold is not the present one.
fn held_under<'h>(
    transaction: &Transaction<'_>,
    path: &Path,
    format: &Format<'_>,
    deployment: &DeploymentId,
    hold: &Hold,
    held: &'h mut HashMap<DeploymentId, Held>,
) -> Result<&'h mut Held, StoreError> {
    let write = |error: rusqlite::Error| cannot_write(path, &error);
    let row = match held.get(deployment) {
        Some(known) => known.row,
        None => row_of(transaction, deployment).map_err(write)?,
    };
    let (present, fence) = hold_of(transaction, row, path)?;
    fenced(deployment, hold, present.as_ref(), fence)?;
    let known = held
        .get(deployment)
        .is_some_and(|known| known.fence == hold.fence);
    if !known {
        let found = rows_of(transaction, path, format, row, hold.fence)?;
        held.insert(deployment.clone(), found);
    }
    Ok(held.get_mut(deployment).expect("put there just now"))
}

fn rows_of(
    transaction: &Transaction<'_>,
    path: &Path,
    format: &Format<'_>,
    row: i64,
    fence: Fence,
) -> Result<Held, StoreError> {
    let read = |error: rusqlite::Error| cannot_read(path, &error);
    let mut records = HashMap::new();
    let mut statement = transaction
        .prepare("SELECT id, resource, generation FROM record WHERE deployment = ?1")
        .map_err(read)?;
    let mut rows = statement.query([row]).map_err(read)?;
    while let Some(row) = rows.next().map_err(read)? {
        let id: i64 = row.get(0).map_err(read)?;
        let resource: String = row.get(1).map_err(read)?;
        let incarnation = Incarnation {
            resource: resource
                .parse()
                .map_err(|error| damaged(path, ReadError::from(error)))?,
            generation: row.get(2).map_err(read)?,
        };
        records.insert(incarnation, id);
    }
    let open_from = transaction
        .query_row(
            "SELECT open_from FROM deployment WHERE id = ?1",
            [row],
            |row| row.get(0),
        )
        .map_err(read)?;
    let mut steps = HashMap::new();
    for (seq, body) in journal(transaction, row, open_from).map_err(read)? {
        let entry = format
            .read_entry(&body)
            .map_err(|error| damaged(path, error))?;
        let (status, first) = steps
            .get(&entry.step)
            .copied()
            .unwrap_or((StepStatus::Idle, seq));
        let next = status
            .next(&entry.event)
            .map_err(|refused| illegal((entry.step.clone(), refused)))?;
        settle(&mut steps, entry.step, next, first);
    }
    Ok(Held {
        row,
        fence,
        records,
        steps,
    })
}

/// Keeps what is open, forgets what ended: `Done` and `Failed` allow what `Idle` allows.
fn settle(
    steps: &mut HashMap<String, (StepStatus, i64)>,
    step: String,
    status: StepStatus,
    first: i64,
) {
    match status {
        StepStatus::Open | StepStatus::Waiting => drop(steps.insert(step, (status, first))),
        StepStatus::Idle | StepStatus::Done | StepStatus::Failed => drop(steps.remove(&step)),
    }
}

/// A batch as it is written.
struct Texts {
    entries: Vec<String>,
    changes: Vec<Option<String>>,
}

fn texts(format: &Format<'_>, batch: &Batch) -> Result<Texts, StoreError> {
    let entries = batch.entries.iter().map(|entry| format.entry(entry));
    let changes = batch.changes.iter().map(|change| match change {
        Change::Put(record) => format.record(record).map(Some),
        Change::Exports(exports) => format.values(exports).map(Some),
        Change::Remove(_) => Ok(None),
    });
    Ok(Texts {
        entries: entries.collect::<Result<_, _>>()?,
        changes: changes.collect::<Result<_, _>>()?,
    })
}

/// The status of every step of the batch after it.
///
/// Errors: [`StoreError::Illegal`] when the journal's law refuses an event.
fn check(held: &Held, batch: &Batch) -> Result<Vec<StepStatus>, StoreError> {
    let mut moved: HashMap<&str, StepStatus> = HashMap::new();
    let status_after = |entry: &Entry, moved: &HashMap<&str, StepStatus>| {
        let before = moved
            .get(entry.step.as_str())
            .copied()
            .or_else(|| held.steps.get(&entry.step).map(|(status, _)| *status));
        before
            .unwrap_or(StepStatus::Idle)
            .next(&entry.event)
            .map_err(|refused| illegal((entry.step.clone(), refused)))
    };
    let mut statuses = Vec::new();
    for entry in &batch.entries {
        let status = status_after(entry, &moved)?;
        moved.insert(&entry.step, status);
        statuses.push(status);
    }
    Ok(statuses)
}

fn write(
    transaction: &Transaction<'_>,
    held: &mut Held,
    batch: &Batch,
    texts: &Texts,
    statuses: Vec<StepStatus>,
) -> rusqlite::Result<()> {
    let entries = batch.entries.iter().zip(&texts.entries).zip(statuses);
    for ((entry, body), status) in entries {
        let seq = transaction
            .prepare_cached("INSERT INTO journal (deployment, body) VALUES (?1, ?2)")?
            .insert(params![held.row, body])?;
        let first = match (&entry.event, held.steps.get(&entry.step)) {
            (_, Some((_, first))) => *first,
            (Event::Intent(_) | Event::Waiting { .. }, None) => seq,
            (Event::Outcome(_) | Event::Failed { .. }, None) => seq,
        };
        settle(&mut held.steps, entry.step.clone(), status, first);
    }
    for (change, body) in batch.changes.iter().zip(&texts.changes) {
        match change {
            Change::Put(record) => put(transaction, held, &record.incarnation, body.as_deref())?,
            Change::Remove(incarnation) => {
                if let Some(id) = held.records.remove(incarnation) {
                    transaction
                        .prepare_cached("DELETE FROM record WHERE id = ?1")?
                        .execute([id])?;
                }
            }
            Change::Exports(_) => {
                transaction
                    .prepare_cached("UPDATE deployment SET exports = ?2 WHERE id = ?1")?
                    .execute(params![held.row, body])?;
            }
        }
    }
    Ok(())
}

fn put(
    transaction: &Transaction<'_>,
    held: &mut Held,
    incarnation: &Incarnation,
    body: Option<&str>,
) -> rusqlite::Result<()> {
    match held.records.get(incarnation) {
        Some(id) => {
            transaction
                .prepare_cached("UPDATE record SET body = ?2 WHERE id = ?1")?
                .execute(params![id, body])?;
        }
        None => {
            let id = transaction
                .prepare_cached(
                    "INSERT INTO record (deployment, resource, generation, body)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .insert(params![
                    held.row,
                    incarnation.resource.as_str(),
                    incarnation.generation,
                    body
                ])?;
            held.records.insert(incarnation.clone(), id);
        }
    }
    Ok(())
}
