//! The file's tables, its format number, and how an older format is brought forward.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;

/// Marks the file as ours (`PRAGMA application_id`): "NTTN".
const APPLICATION_ID: i32 = 0x4E54_544E;

/// The newest format this version writes (`PRAGMA user_version`).
pub(super) const FORMAT: u32 = 1;

const TABLES: &str = "
CREATE TABLE store (salt BLOB NOT NULL);
CREATE TABLE deployment (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    fence INTEGER NOT NULL,
    hold TEXT,
    expires_ms INTEGER NOT NULL,
    open_from INTEGER NOT NULL,
    last_run_ms INTEGER,
    exports TEXT
);
CREATE TABLE record (
    id INTEGER PRIMARY KEY,
    deployment INTEGER NOT NULL,
    resource TEXT NOT NULL,
    generation INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    deployment INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE secret (
    deployment INTEGER NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (deployment, name)
) WITHOUT ROWID;
";

/// One step forward: from the format before it.
pub(super) struct Migration {
    /// The format it starts from.
    pub from: u32,
    /// What changes.
    pub sql: &'static str,
}

/// Every step from the first format to [`FORMAT`]. The first format has no predecessor.
pub(super) const MIGRATIONS: &[Migration] = &[];

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing in it yet.
    Blank,
    /// Our tables in this format.
    Ours(u32),
}

/// Looks at the file without changing it.
///
/// Errors: [`StoreError::Corrupt`] for somebody else's database, [`StoreError::Newer`].
pub(super) fn look(connection: &Connection, path: &Path, newest: u32) -> Result<Kind, StoreError> {
    let read = |error: rusqlite::Error| super::failure::cannot_read(path, &error);
    // One moment: another process may be making the tables right now.
    let connection = connection.unchecked_transaction().map_err(read)?;
    let format: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(read)?;
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(read)?;
    if application == APPLICATION_ID {
        return if format > newest {
            Err(StoreError::Newer {
                place: path.to_owned(),
                found: format,
                known: newest,
            })
        } else {
            Ok(Kind::Ours(format))
        };
    }
    let tables: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(read)?;
    if tables == 0 {
        Ok(Kind::Blank)
    } else {
        Err(StoreError::Corrupt {
            place: path.to_owned(),
            why: "it is a database of something else".into(),
        })
    }
}

/// Makes the tables, in one transaction with the format number.
pub(super) fn make(connection: &mut Connection, salt: &[u8]) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let tables: u32 =
        transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    // Another process may have made them meanwhile.
    if tables == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.execute("INSERT INTO store (salt) VALUES (?1)", [salt])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}

/// Brings an older format forward, after a copy beside the file (`state.db.format-1`).
/// Returns where the copy is.
pub(super) fn bring_forward(
    connection: &mut Connection,
    path: &Path,
    from: u32,
    steps: &[Migration],
) -> rusqlite::Result<PathBuf> {
    let copy = PathBuf::from(format!("{}.format-{from}", path.display()));
    if !copy.exists() {
        let target = copy.to_string_lossy().into_owned();
        connection.execute("VACUUM INTO ?1", [target])?;
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in steps.iter().filter(|step| step.from >= found) {
        transaction.execute_batch(step.sql)?;
        transaction.pragma_update(None, "user_version", step.from + 1)?;
    }
    transaction.commit()?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_format_is_brought_forward_after_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        make(&mut connection, &[1; 16]).unwrap();
        let step = Migration {
            from: 1,
            sql: "ALTER TABLE record ADD COLUMN extra TEXT",
        };
        let copy = bring_forward(&mut connection, &path, 1, &[step]).unwrap();
        assert_eq!(look(&connection, &path, 2).unwrap(), Kind::Ours(2));
        let old = Connection::open(copy).unwrap();
        assert_eq!(look(&old, &path, 2).unwrap(), Kind::Ours(1));
    }

    #[test]
    fn a_newer_format_and_a_foreign_database_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        assert_eq!(look(&connection, &path, 1).unwrap(), Kind::Blank);
        make(&mut connection, &[1; 16]).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        let error = look(&connection, &path, FORMAT).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 7, .. }));

        let other = Connection::open_in_memory().unwrap();
        other.execute_batch("CREATE TABLE songs (x)").unwrap();
        let error = look(&other, &path, FORMAT).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }));
    }
}
