//! What is done with the file, one job at a time.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    time::Duration,
};

use notation_model::{DeploymentId, Incarnation, SecretName, SecretValue, Value};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, params};

use super::{
    schema::{self, FORMAT, Kind, MIGRATIONS},
    writer::Append,
};
use crate::{
    Acquired, Batch, Change, Claim, DeploymentState, Entry, Event, Fence, Hold, LEASE_MS, Sealer,
    StepStatus, StoreError, Summary,
    format::{Format, ReadError, hold_back, hold_text},
    hold::fenced,
    open_intents,
    seal::{SALT_BYTES, fill},
    store::illegal,
};

/// How long to wait for another process that writes, before saying so.
const BUSY: Duration = Duration::from_secs(20);

/// The file, opened when first needed.
pub(super) struct File {
    path: PathBuf,
    sealer: Sealer,
    open: Option<Open>,
    /// What is known of the deployments that this process holds, as of the last commit.
    held: HashMap<DeploymentId, Held>,
}

struct Open {
    connection: Connection,
    salt: [u8; SALT_BYTES],
    /// Opened for writing: journal mode set, format brought forward.
    writable: bool,
}

/// Where rows are, so that a commit needs no index: valid under one fence.
#[derive(Clone)]
struct Held {
    row: i64,
    fence: Fence,
    records: HashMap<Incarnation, i64>,
    /// Steps that are open or waiting, with the journal row of their first intent.
    steps: HashMap<String, (StepStatus, i64)>,
}

impl File {
    pub(super) fn new(path: PathBuf, sealer: Sealer) -> File {
        File {
            path,
            sealer,
            open: None,
            held: HashMap::new(),
        }
    }

    pub(super) fn load(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<DeploymentState, StoreError> {
        let bound_to = deployment.to_string();
        let Some((connection, format, path)) = self.reading(&bound_to)? else {
            return Ok(DeploymentState::default());
        };
        let read = |error: rusqlite::Error| cannot_read(path, &error);
        // One transaction, so that records and journal are of one moment.
        let moment = connection.unchecked_transaction().map_err(read)?;
        let found = moment
            .query_row(
                "SELECT id, open_from, last_run_ms, exports FROM deployment WHERE name = ?1",
                [&bound_to],
                |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        row.get::<_, i64>(1)?,
                        row.get::<_, Option<u64>>(2)?,
                        row.get::<_, Option<String>>(3)?,
                    ))
                },
            )
            .optional()
            .map_err(read)?;
        let Some((row, open_from, last_run_ms, exports)) = found else {
            return Ok(DeploymentState::default());
        };
        let mut state = DeploymentState {
            last_run_ms,
            ..DeploymentState::default()
        };
        let back = |error| damaged(path, error);
        if let Some(exports) = exports {
            state.exports = format.read_values(&exports).map_err(back)?;
        }
        let mut records = moment
            .prepare("SELECT body FROM record WHERE deployment = ?1 ORDER BY id")
            .map_err(read)?;
        let mut rows = records.query([row]).map_err(read)?;
        while let Some(row) = rows.next().map_err(read)? {
            let body = row.get_ref(0).map_err(read)?;
            let body = body.as_str().map_err(|error| read(error.into()))?;
            let record = format.read_record(body).map_err(back)?;
            state.records.insert(record.incarnation.clone(), record);
        }
        let journal = journal(&moment, row, open_from).map_err(read)?;
        let mut entries = Vec::new();
        for (_, body) in &journal {
            entries.push(format.read_entry(body).map_err(back)?);
        }
        state.open = open_intents(&entries).map_err(illegal)?;
        Ok(state)
    }

    pub(super) fn acquire(
        &mut self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError> {
        self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let row = row_of(&transaction, deployment).map_err(write)?;
        let (hold, fence) = hold_of(&transaction, row, &path)?;
        let judged = claim.judge(hold.as_ref(), fence);
        if let Acquired::Free(hold) | Acquired::TakenOver { hold, .. } = &judged {
            transaction
                .execute(
                    "UPDATE deployment SET fence = ?2, hold = ?3, expires_ms = ?4, last_run_ms = ?5 \
                     WHERE id = ?1",
                    params![row, hold.fence.0, hold_text(hold), hold.expires_ms, claim.now_ms],
                )
                .map_err(write)?;
            // Journals of runs that ended are kept until the next one starts.
            transaction
                .execute(
                    "DELETE FROM journal WHERE deployment = ?1 AND seq < \
                     (SELECT open_from FROM deployment WHERE id = ?1)",
                    [row],
                )
                .map_err(write)?;
            transaction.commit().map_err(write)?;
        }
        Ok(judged)
    }

    pub(super) fn renew(
        &mut self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let row = row_of(&transaction, deployment).map_err(write)?;
        let (present, fence) = hold_of(&transaction, row, &path)?;
        fenced(deployment, hold, present.as_ref(), fence)?;
        transaction
            .execute(
                "UPDATE deployment SET expires_ms = ?2 WHERE id = ?1",
                params![row, now_ms + LEASE_MS],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)
    }

    pub(super) fn release(
        &mut self,
        deployment: &DeploymentId,
        hold: &Hold,
    ) -> Result<(), StoreError> {
        let held = self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let row = row_of(&transaction, deployment).map_err(write)?;
        let (present, fence) = hold_of(&transaction, row, &path)?;
        if fenced(deployment, hold, present.as_ref(), fence).is_err() {
            return Ok(());
        }
        transaction
            .execute("UPDATE deployment SET hold = NULL WHERE id = ?1", [row])
            .map_err(write)?;
        if let Some(held) = held.filter(|held| held.fence == hold.fence) {
            let next: i64 = transaction
                .query_row("SELECT coalesce(max(seq), 0) + 1 FROM journal", [], |row| {
                    row.get(0)
                })
                .map_err(write)?;
            carry_over(&transaction, &held).map_err(write)?;
            transaction
                .execute(
                    "UPDATE deployment SET open_from = ?2 WHERE id = ?1",
                    [row, next],
                )
                .map_err(write)?;
        }
        transaction.commit().map_err(write)
    }

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

    pub(super) fn hold(&mut self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(None);
        };
        let row = connection
            .query_row(
                "SELECT id FROM deployment WHERE name = ?1",
                [deployment.to_string()],
                |row| row.get(0),
            )
            .optional()
            .map_err(|error| cannot_read(path, &error))?;
        match row {
            None => Ok(None),
            Some(row) => Ok(hold_of(connection, row, path)?.0),
        }
    }

    pub(super) fn clear_hold(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<Option<Hold>, StoreError> {
        let Some(hold) = self.hold(deployment)? else {
            return Ok(None);
        };
        self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        transaction
            .execute(
                "UPDATE deployment SET hold = NULL WHERE name = ?1",
                [deployment.to_string()],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)?;
        Ok(Some(hold))
    }

    pub(super) fn deployments(&mut self) -> Result<Vec<Summary>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(Vec::new());
        };
        let read = |error: rusqlite::Error| cannot_read(path, &error);
        let mut statement = connection
            .prepare(
                "SELECT name, last_run_ms, hold, expires_ms,
                    (SELECT count(*) FROM record WHERE deployment = d.id),
                    (SELECT count(*) FROM secret WHERE deployment = d.id),
                    exports IS NOT NULL AND exports <> '{}'
                 FROM deployment d ORDER BY name",
            )
            .map_err(read)?;
        let mut rows = statement.query([]).map_err(read)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(read)? {
            let one = || -> rusqlite::Result<_> {
                let hold: Option<String> = row.get(2)?;
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, Option<u64>>(1)?,
                    hold,
                    row.get::<_, u64>(3)?,
                    row.get::<_, u64>(4)?,
                    row.get::<_, u64>(5)?,
                    row.get::<_, bool>(6)?,
                ))
            };
            let (name, last_run_ms, hold, expires_ms, records, secrets, exports) =
                one().map_err(read)?;
            if records == 0 && secrets == 0 && !exports {
                continue;
            }
            let deployment = name.parse();
            found.push(Summary {
                deployment: deployment.map_err(|error| damaged(path, ReadError::from(error)))?,
                records,
                secrets,
                last_run_ms,
                hold: hold
                    .map(|text| hold_back(&text, expires_ms))
                    .transpose()
                    .map_err(|error| damaged(path, error.into()))?,
            });
        }
        Ok(found)
    }

    pub(super) fn secrets(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError> {
        let bound_to = deployment.to_string();
        let Some((connection, format, path)) = self.reading(&bound_to)? else {
            return Ok(BTreeMap::new());
        };
        let rows =
            secret_rows(connection, deployment).map_err(|error| cannot_read(path, &error))?;
        let one = |(name, body): (String, String)| {
            let name: SecretName = name.parse()?;
            Ok((name, format.read_secret(&body)?))
        };
        rows.into_iter()
            .map(|row| one(row).map_err(|error| damaged(path, error)))
            .collect()
    }

    pub(super) fn secret_names(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<Vec<SecretName>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(Vec::new());
        };
        let rows =
            secret_rows(connection, deployment).map_err(|error| cannot_read(path, &error))?;
        rows.into_iter()
            .map(|(name, _)| {
                name.parse()
                    .map_err(|error| damaged(path, ReadError::from(error)))
            })
            .collect()
    }

    pub(super) fn set_secret(
        &mut self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError> {
        self.open_for_writing()?;
        let bound_to = deployment.to_string();
        let sealed = self
            .reading(&bound_to)?
            .expect("opened just now")
            .1
            .secret(value.reveal())?;
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let row = row_of(&transaction, deployment).map_err(write)?;
        transaction
            .execute(
                "INSERT INTO secret (deployment, name, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET body = excluded.body",
                params![row, name.as_str(), sealed],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)
    }

    pub(super) fn remove_secret(
        &mut self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError> {
        if !self.secret_names(deployment)?.contains(name) {
            return Ok(false);
        }
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let row = row_of(&transaction, deployment).map_err(write)?;
        let removed = transaction
            .execute(
                "DELETE FROM secret WHERE deployment = ?1 AND name = ?2",
                params![row, name.as_str()],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)?;
        Ok(removed > 0)
    }

    /// The connection for reading; `None` when there is nothing to read.
    fn reading<'a>(
        &'a mut self,
        bound_to: &'a str,
    ) -> Result<Option<(&'a Connection, Format<'a>, &'a Path)>, StoreError> {
        if self.open.is_none() {
            if !self.path.exists() {
                return Ok(None);
            }
            let connection = connect(&self.path)?;
            match schema::look(&connection, &self.path, FORMAT)? {
                Kind::Blank => return Ok(None),
                Kind::Ours(_) => {}
            }
            let salt = salt_of(&connection).map_err(|error| cannot_read(&self.path, &error))?;
            self.open = Some(Open {
                connection,
                salt,
                writable: false,
            });
        }
        let File {
            path, sealer, open, ..
        } = self;
        Ok(open.as_ref().map(|open| {
            let format = Format {
                sealer,
                salt: &open.salt,
                bound_to,
            };
            (&open.connection, format, path.as_path())
        }))
    }

    /// A transaction that takes the write lock at once.
    fn writing(&mut self) -> Result<Transaction<'_>, StoreError> {
        self.open_for_writing()?;
        let open = self.open.as_mut().expect("opened just now");
        open.connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| cannot_write(&self.path, &error))
    }

    fn open_for_writing(&mut self) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|open| open.writable) {
            return Ok(());
        }
        let path = self.path.clone();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| StoreError::CannotWrite {
                place: folder.to_owned(),
                why: error.to_string(),
            })?;
        }
        let mut connection = match self.open.take() {
            Some(open) => open.connection,
            None => connect(&path)?,
        };
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let kind = schema::look(&connection, &path, FORMAT)?;
        // The journal mode before the first table, so that the file never needs a rewrite.
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
            .map_err(write)?;
        must_be_wal(&mode, &path)?;
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(write)?;
        connection
            .pragma_update(None, "wal_autocheckpoint", 4000)
            .map_err(write)?;
        match kind {
            Kind::Blank => {
                let mut salt = [0u8; SALT_BYTES];
                fill(&mut salt);
                schema::make(&mut connection, &salt).map_err(write)?;
            }
            Kind::Ours(FORMAT) => {}
            Kind::Ours(older) => {
                schema::bring_forward(&mut connection, &path, older, MIGRATIONS).map_err(write)?;
            }
        }
        let salt = salt_of(&connection).map_err(|error| cannot_read(&path, &error))?;
        self.open = Some(Open {
            connection,
            salt,
            writable: true,
        });
        Ok(())
    }
}

/// A file system that cannot share memory between processes cannot hold the state safely.
fn must_be_wal(mode: &str, path: &Path) -> Result<(), StoreError> {
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(StoreError::CannotWrite {
        place: path.to_owned(),
        why: "its file system does not support write-ahead logging".into(),
    })
}

/// A failure of a whole commit, told to everyone who took part.
enum Failure {
    Opening(StoreError),
    Writing(PathBuf, Why),
}

impl Failure {
    fn error(&self) -> StoreError {
        match self {
            Failure::Writing(path, why) => why.writing(path),
            Failure::Opening(StoreError::Newer {
                place,
                found,
                known,
            }) => StoreError::Newer {
                place: place.clone(),
                found: *found,
                known: *known,
            },
            Failure::Opening(StoreError::Corrupt { place, why }) => StoreError::Corrupt {
                place: place.clone(),
                why: why.clone(),
            },
            Failure::Opening(StoreError::CannotOpen { place, why }) => StoreError::CannotOpen {
                place: place.clone(),
                why: why.clone(),
            },
            Failure::Opening(StoreError::CannotWrite { place, why }) => StoreError::CannotWrite {
                place: place.clone(),
                why: why.clone(),
            },
            Failure::Opening(other) => StoreError::CannotOpen {
                place: PathBuf::new(),
                why: other.to_string(),
            },
        }
    }
}

/// What SQLite said, in our words.
struct Why {
    damaged: bool,
    cannot_open: bool,
    text: String,
}

fn why(error: &rusqlite::Error) -> Why {
    let code = error.sqlite_error_code();
    let said = match (code, error) {
        (Some(ErrorCode::DiskFull), _) => "there is no room left".to_owned(),
        (Some(ErrorCode::ReadOnly), _) => "it is read-only for this user".to_owned(),
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => {
            "another process keeps it locked".to_owned()
        }
        (Some(ErrorCode::CannotOpen), _) => "the file or its folder cannot be opened".to_owned(),
        (Some(ErrorCode::SystemIoFailure), rusqlite::Error::SqliteFailure(failure, said)) => {
            let said = said.clone().unwrap_or_else(|| failure.to_string());
            format!("{said} (code {})", failure.extended_code)
        }
        (_, error) => error.to_string(),
    };
    Why {
        damaged: matches!(
            code,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        ),
        cannot_open: code == Some(ErrorCode::CannotOpen),
        text: said,
    }
}

impl Why {
    fn writing(&self, path: &Path) -> StoreError {
        let (place, why) = (path.to_owned(), self.text.clone());
        match self {
            Why { damaged: true, .. } => StoreError::Corrupt { place, why },
            Why {
                cannot_open: true, ..
            } => StoreError::CannotOpen { place, why },
            Why { .. } => StoreError::CannotWrite { place, why },
        }
    }
}

pub(super) fn cannot_write(path: &Path, error: &rusqlite::Error) -> StoreError {
    why(error).writing(path)
}

pub(super) fn cannot_read(path: &Path, error: &rusqlite::Error) -> StoreError {
    let why = why(error);
    let (place, text) = (path.to_owned(), why.text.clone());
    match why {
        Why { damaged: true, .. } => StoreError::Corrupt { place, why: text },
        Why {
            cannot_open: true, ..
        } => StoreError::CannotOpen { place, why: text },
        Why { .. } => StoreError::CannotRead { place, why: text },
    }
}

fn damaged(path: &Path, error: ReadError) -> StoreError {
    match error {
        ReadError::Store(error) => error,
        ReadError::Damaged(why) => StoreError::Corrupt {
            place: path.to_owned(),
            why,
        },
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let open = |error: rusqlite::Error| cannot_read(path, &error);
    let connection = Connection::open(path).map_err(open)?;
    connection.busy_timeout(BUSY).map_err(open)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn salt_of(connection: &Connection) -> rusqlite::Result<[u8; SALT_BYTES]> {
    connection.query_row("SELECT salt FROM store", [], |row| row.get(0))
}

fn row_of(transaction: &Transaction<'_>, deployment: &DeploymentId) -> rusqlite::Result<i64> {
    let name = deployment.to_string();
    transaction
        .prepare_cached(
            "INSERT INTO deployment (name, fence, expires_ms, open_from) VALUES (?1, 0, 0, 0)
             ON CONFLICT DO NOTHING",
        )?
        .execute([&name])?;
    transaction
        .prepare_cached("SELECT id FROM deployment WHERE name = ?1")?
        .query_row([&name], |row| row.get(0))
}

fn hold_of(
    connection: &Connection,
    row: i64,
    path: &Path,
) -> Result<(Option<Hold>, Fence), StoreError> {
    let (fence, text, expires_ms) = connection
        .prepare_cached("SELECT fence, hold, expires_ms FROM deployment WHERE id = ?1")
        .and_then(|mut statement| {
            statement.query_row([row], |row| {
                Ok((
                    row.get::<_, u64>(0)?,
                    row.get::<_, Option<String>>(1)?,
                    row.get::<_, u64>(2)?,
                ))
            })
        })
        .map_err(|error| cannot_read(path, &error))?;
    let hold = text
        .map(|text| hold_back(&text, expires_ms))
        .transpose()
        .map_err(|error| damaged(path, error.into()))?;
    Ok((hold, Fence(fence)))
}

fn journal(
    connection: &Connection,
    row: i64,
    open_from: i64,
) -> rusqlite::Result<Vec<(i64, String)>> {
    connection
        .prepare("SELECT seq, body FROM journal WHERE seq >= ?2 AND deployment = ?1 ORDER BY seq")?
        .query_map([row, open_from], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn secret_rows(
    connection: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Vec<(String, String)>> {
    connection
        .prepare(
            "SELECT s.name, s.body FROM secret s JOIN deployment d ON d.id = s.deployment
             WHERE d.name = ?1 ORDER BY s.name",
        )?
        .query_map([deployment.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect()
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

/// Writes the lines of open steps once more at the end, so that everything before can go.
fn carry_over(transaction: &Transaction<'_>, held: &Held) -> rusqlite::Result<()> {
    let Some(oldest) = held.steps.values().map(|(_, seq)| *seq).min() else {
        return Ok(());
    };
    /// The one field that is looked at.
    #[derive(serde::Deserialize)]
    struct Line {
        step: String,
    }
    for (seq, body) in journal(transaction, held.row, oldest)? {
        let step = serde_json::from_str(&body).map(|line: Line| line.step);
        let open = step.ok().and_then(|step| held.steps.get(&step));
        if open.is_some_and(|(_, first)| seq >= *first) {
            transaction
                .prepare_cached("INSERT INTO journal (deployment, body) VALUES (?1, ?2)")?
                .execute(params![held.row, body])?;
        }
    }
    Ok(())
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
