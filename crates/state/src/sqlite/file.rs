//! The file: opened when first needed, made and brought forward when first written.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notation_model::DeploymentId;
use rusqlite::{Connection, Transaction};

use super::{
    alone,
    append::Held,
    failure::{cannot_read, cannot_write},
    rows::Rows,
    schema::{self, FORMAT, Kind, MIGRATIONS},
    traffic::Counters,
};
use crate::{
    Sealer, StoreError,
    format::Format,
    seal::{SALT_BYTES, fill},
};

/// How long to wait for another process that writes, before saying so.
const BUSY: Duration = Duration::from_secs(20);

/// The file, opened when first needed.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) sealer: Sealer,
    pub(super) open: Option<Open>,
    /// What is known of the deployments that this process holds, as of the last commit.
    pub(super) held: HashMap<DeploymentId, Held>,
    pub(super) traffic: Arc<Counters>,
}

/// The open file.
pub(super) struct Open {
    pub(super) connection: Connection,
    pub(super) salt: [u8; SALT_BYTES],
    /// Opened for writing: journal mode set, format brought forward.
    writable: bool,
}

impl File {
    pub(super) fn new(path: PathBuf, sealer: Sealer, traffic: Arc<Counters>) -> File {
        File {
            path,
            sealer,
            open: None,
            held: HashMap::new(),
            traffic,
        }
    }

    /// The connection for reading; `None` when there is nothing to read.
    pub(super) fn reading<'a>(
        &'a mut self,
        bound_to: &'a str,
    ) -> Result<Option<(&'a Connection, Format<'a>, &'a Path)>, StoreError> {
        if self.open.is_none() {
            // Only a file that is certainly not there means that nothing was recorded yet.
            let there = self
                .path
                .try_exists()
                .map_err(|error| StoreError::CannotOpen {
                    place: self.path.clone(),
                    why: error.to_string(),
                })?;
            if !there {
                return Ok(None);
            }
            let shared = connect(&self.path).and_then(|shared| looked_at(shared, &self.path));
            self.open = match shared {
                Err(error @ (StoreError::CannotWrite { .. } | StoreError::CannotOpen { .. })) => {
                    let alone = alone::connect(&self.path);
                    let alone = alone.and_then(|alone| looked_at(alone, &self.path));
                    alone.map_err(|_| error)?
                }
                shared => shared?,
            };
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
    pub(super) fn writing(&mut self) -> Result<Transaction<'_>, StoreError> {
        self.open_for_writing()?;
        let open = self.open.as_mut().expect("opened just now");
        open.connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| cannot_write(&self.path, &error))
    }

    pub(super) fn open_for_writing(&mut self) -> Result<(), StoreError> {
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
        // A connection of its own: one that only read may show an older format as the newest.
        self.open = None;
        let mut connection = connect(&path)?;
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let kind = schema::look(&connection, &path, FORMAT)?;
        // The journal mode before the first table, so that the file never needs a rewrite.
        let mode = write_ahead(&connection).map_err(write)?;
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

/// A connection that only reads; `None` when nothing was recorded yet.
fn looked_at(connection: Connection, path: &Path) -> Result<Option<Open>, StoreError> {
    let read = |error: rusqlite::Error| cannot_read(path, &error);
    match schema::look(&connection, path, FORMAT)? {
        Kind::Blank => return Ok(None),
        Kind::Ours(FORMAT) => {}
        Kind::Ours(older) => {
            schema::show_as_newest(&connection, older, MIGRATIONS).map_err(read)?;
        }
    }
    let salt = salt_of(&connection).map_err(read)?;
    Ok(Some(Open {
        connection,
        salt,
        writable: false,
    }))
}

/// Switches to the write-ahead log and returns the mode there is now. SQLite does not wait for
/// others that switch at the same moment, as it does for other locks; so it is asked again.
fn write_ahead(connection: &Connection) -> rusqlite::Result<String> {
    let pause = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        let mode =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        let busy = mode
            .as_ref()
            .err()
            .and_then(rusqlite::Error::sqlite_error_code)
            == Some(rusqlite::ErrorCode::DatabaseBusy);
        if !busy || waited >= BUSY {
            return mode;
        }
        std::thread::sleep(pause);
        waited += pause;
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

/// Where a deployment's rows are; made when there is none.
pub(super) fn row_of(
    transaction: &Transaction<'_>,
    deployment: &DeploymentId,
) -> rusqlite::Result<Rows> {
    let name = deployment.to_string();
    let made = transaction
        .prepare_cached(
            "INSERT INTO deployment (name, fence, expires_ms, open_from) VALUES (?1, 0, 0, 0)
             ON CONFLICT DO NOTHING",
        )?
        .execute([&name])?;
    let row = transaction
        .prepare_cached("SELECT id FROM deployment WHERE name = ?1")?
        .query_row([&name], |row| row.get(0))
        .map(Rows)?;
    if made > 0 {
        row.make(transaction)?;
    }
    Ok(row)
}
