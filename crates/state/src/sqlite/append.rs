//! Batches in the file: many in one commit, no index but what is in memory.

use std::{collections::HashMap, path::Path};

use notation_model::{DeploymentId, Incarnation};
use rusqlite::{Transaction, params};

use super::{
    failure::{Failure, cannot_read, cannot_write, damaged, why},
    file::{File, row_of},
    hold::hold_of,
    rows::Rows,
    traffic::Traffic,
    writer::Append,
};
use crate::{
    Batch, Change, Entry, Event, Fence, Hold, StepStatus, StoreError,
    format::{Format, ReadError},
    store::{fenced, illegal},
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
            path,
            sealer,
            open,
            traffic: counters,
            ..
        } = self;
        let open = open.as_mut().expect("opened just now");
        let failed = |error: &rusqlite::Error| Failure::Writing(path.clone(), why(error));
        let transaction = open
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| failed(&error))?;
        let mut results = Vec::new();
        let mut traffic = Traffic {
            commits: 1,
            ..Traffic::default()
        };
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
                    texts.count(&mut traffic);
                    results.push(Ok(()));
                }
            }
        }
        transaction.commit().map_err(|error| failed(&error))?;
        counters.add(traffic);
        Ok(results)
    }
}

/// Where rows are, so that a commit needs no index: valid under one fence.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) rows: Rows,
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
    let rows = match held.get(deployment) {
        Some(known) => known.rows,
        None => row_of(transaction, deployment).map_err(write)?,
    };
    let (present, fence) = hold_of(transaction, rows, path)?;
    fenced(deployment, hold, present.as_ref(), fence)?;
    let known = held
        .get(deployment)
        .is_some_and(|known| known.fence == hold.fence);
    if !known {
        let found = held_of(transaction, path, format, rows, hold.fence)?;
        held.insert(deployment.clone(), found);
    }
    Ok(held.get_mut(deployment).expect("put there just now"))
}

fn held_of(
    transaction: &Transaction<'_>,
    path: &Path,
    format: &Format<'_>,
    rows: Rows,
    fence: Fence,
) -> Result<Held, StoreError> {
    let read = |error: rusqlite::Error| cannot_read(path, &error);
    let mut records = HashMap::new();
    for place in rows.places(transaction).map_err(read)? {
        let (incarnation, id) = place.map_err(|error| damaged(path, ReadError::from(error)))?;
        records.insert(incarnation, id);
    }
    let open_from = transaction
        .query_row(
            "SELECT open_from FROM deployment WHERE id = ?1",
            [rows.0],
            |row| row.get(0),
        )
        .map_err(read)?;
    let mut steps = HashMap::new();
    for (seq, body) in rows.lines(transaction, open_from).map_err(read)? {
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
        rows,
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

impl Texts {
    fn count(&self, traffic: &mut Traffic) {
        let records = self.changes.iter().flatten();
        let bytes = |total: u64, text: &String| total + text.len() as u64;
        traffic.lines += self.entries.len() as u64 + records.clone().count() as u64;
        traffic.journal_bytes = self.entries.iter().fold(traffic.journal_bytes, bytes);
        traffic.record_bytes = records.fold(traffic.record_bytes, bytes);
    }
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
        let seq = held.rows.add_line(transaction, body)?;
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
                    held.rows.remove_record(transaction, id)?;
                }
            }
            Change::Exports(_) => {
                transaction
                    .prepare_cached("UPDATE deployment SET exports = ?2 WHERE id = ?1")?
                    .execute(params![held.rows.0, body])?;
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
        Some(id) => held.rows.rewrite_record(transaction, *id, body),
        None => {
            let id = held.rows.add_record(transaction, incarnation, body)?;
            held.records.insert(incarnation.clone(), id);
            Ok(())
        }
    }
}
