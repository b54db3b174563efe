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

/// Applies the files that come next, each in one transaction with its ledger entry.
///
/// Whether they may come next is the control plane's decision. Files it has not heard of as
/// applied, because it ended in between, are at the end of the ledger already and skipped.
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
    let applied = already(&ledger, files);
    for (index, file) in files.iter().enumerate().skip(applied) {
        let failed = |message: String| MigrationError::File {
            done: index,
            path: file.path.clone(),
            message,
        };
        let sql = std::str::from_utf8(&file.sql).map_err(|error| failed(error.to_string()))?;
        let position = ledger.len() - applied + index;
        let insert = format!("INSERT INTO {LEDGER} (position, path, digest) VALUES (?1, ?2, ?3)");
        migrate_file(connection, sql, |connection| {
            let entry = rusqlite::params![position as i64, file.path, file.digest];
            connection.execute(&insert, entry)
        })
        .map_err(|Refusal { message, .. }| failed(message))?;
    }
    Ok(())
}

/// How many of the first files are the last entries of the ledger.
fn already(ledger: &[(String, String)], files: &[MigrationFile]) -> usize {
    let most = ledger.len().min(files.len());
    let same = |(path, digest): &(String, String), file: &MigrationFile| {
        *path == file.path && *digest == file.digest
    };
    (0..=most)
        .rev()
        .find(|count| {
            let end = &ledger[ledger.len() - count..];
            end.iter().zip(files).all(|(entry, file)| same(entry, file))
        })
        .unwrap_or(0)
}

fn ledger(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut query = connection.prepare(&format!(
        "SELECT path, digest FROM {LEDGER} ORDER BY position"
    ))?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
