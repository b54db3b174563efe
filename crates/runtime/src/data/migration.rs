//! Migrations of a database: its ledger and the files that extend it.
//!
//! Source: edge runtime contract, "Migrations"; host API §22.

use super::file::Database;
use super::operation::Refusal;
use super::policy::LEDGER;
use super::sql::migrate_file;

/// One file of a migration bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationFile {
    /// Manifest path.
    pub path: String,
    /// Blob digest.
    pub digest: String,
    /// The statements, UTF-8.
    pub sql: Vec<u8>,
}

/// Why migrations stopped. Everything before is applied and stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// What was applied is not a prefix of the files.
    #[error("the database has had other migrations: file {position} is {applied}")]
    Diverged {
        /// Index of the first difference.
        position: usize,
        /// Path of what was applied there.
        applied: String,
    },
    /// A file failed and changed nothing.
    #[error("{path}: {message}")]
    File {
        /// Files of the list that are applied.
        done: usize,
        /// The file that failed.
        path: String,
        /// What SQLite said.
        message: String,
    },
    /// The database cannot be used.
    #[error("the database cannot be used: {0}")]
    Unavailable(String),
}

/// Applies the files the ledger does not have yet, each in one transaction with its entry.
/// The check and the run are one critical section of the database.
pub(super) async fn migrate(
    database: &Database,
    files: Vec<MigrationFile>,
) -> Result<(), MigrationError> {
    let outcome = database
        .with(move |connection| Ok(run(connection, &files)))
        .await;
    outcome.unwrap_or_else(|refusal| Err(MigrationError::Unavailable(refusal.message)))
}

fn run(
    connection: &mut rusqlite::Connection,
    files: &[MigrationFile],
) -> Result<(), MigrationError> {
    let ledger =
        ledger(connection).map_err(|error| MigrationError::Unavailable(error.to_string()))?;
    for (position, (path, digest)) in ledger.iter().enumerate() {
        let same = files
            .get(position)
            .is_some_and(|file| file.path == *path && file.digest == *digest);
        if !same {
            return Err(MigrationError::Diverged {
                position,
                applied: path.clone(),
            });
        }
    }
    for (position, file) in files.iter().enumerate().skip(ledger.len()) {
        let failed = |message: String| MigrationError::File {
            done: position,
            path: file.path.clone(),
            message,
        };
        let sql = std::str::from_utf8(&file.sql).map_err(|error| failed(error.to_string()))?;
        let insert = format!("INSERT INTO {LEDGER} (position, path, digest) VALUES (?1, ?2, ?3)");
        migrate_file(connection, sql, |connection| {
            connection.execute(
                &insert,
                rusqlite::params![position as i64, file.path, file.digest],
            )
        })
        .map_err(|Refusal { message, .. }| failed(message))?;
    }
    Ok(())
}

fn ledger(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut query = connection.prepare(&format!(
        "SELECT path, digest FROM {LEDGER} ORDER BY position"
    ))?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
