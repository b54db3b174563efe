//! The database format and its migrations.

use super::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// One entry per format, in order; applied ones never change.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE token (
  id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, tenant TEXT NOT NULL, principal TEXT NOT NULL,
  scopes TEXT NOT NULL, label TEXT NOT NULL, created TEXT NOT NULL) STRICT;
CREATE TABLE resource (
  uid TEXT PRIMARY KEY, tenant TEXT NOT NULL, space TEXT NOT NULL, api_version TEXT NOT NULL,
  kind TEXT NOT NULL, name TEXT NOT NULL, definition_version TEXT NOT NULL,
  schema_digest TEXT NOT NULL, generation INTEGER NOT NULL, revision INTEGER NOT NULL,
  spec TEXT NOT NULL, spec_digest TEXT NOT NULL, pins TEXT NOT NULL, native_id TEXT,
  touches INTEGER NOT NULL, condition TEXT NOT NULL,
  UNIQUE (tenant, space, api_version, kind, name)) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX resource_native ON resource (tenant, native_id) WHERE native_id IS NOT NULL;
CREATE TABLE ledger (
  tenant TEXT NOT NULL, database_uid TEXT NOT NULL, position INTEGER NOT NULL,
  path TEXT NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (database_uid, position)) STRICT, WITHOUT ROWID;
CREATE TABLE sealed (
  tenant TEXT NOT NULL, worker_uid TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (worker_uid, name)) STRICT, WITHOUT ROWID;
CREATE TABLE replay (
  tenant TEXT NOT NULL, principal TEXT NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL,
  fingerprint BLOB NOT NULL, status INTEGER NOT NULL, etag TEXT, body BLOB,
  bound_kind TEXT NOT NULL, bound_id TEXT NOT NULL, created TEXT NOT NULL,
  PRIMARY KEY (tenant, principal, space, key)) STRICT, WITHOUT ROWID;
CREATE TABLE operation (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL, request TEXT NOT NULL,
  bound_uid TEXT, polls INTEGER NOT NULL, terminal BLOB, result_uid TEXT,
  failed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE upload (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL,
  manifest BLOB NOT NULL, created TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE blob (
  tenant TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (tenant, digest)) STRICT, WITHOUT ROWID;
CREATE TABLE manifest (
  tenant TEXT NOT NULL, digest TEXT NOT NULL, document BLOB NOT NULL,
  PRIMARY KEY (tenant, digest)) STRICT, WITHOUT ROWID;
",
    // Operations of before have no age; they count from here.
    "
ALTER TABLE operation ADD COLUMN created TEXT NOT NULL DEFAULT '';
UPDATE operation SET created = strftime('%Y-%m-%dT%H:%M:%SZ', 'now');
CREATE INDEX replay_created ON replay (created);
",
    // Resources of before are older than any that follow; among them nobody is.
    "
ALTER TABLE resource ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
",
];

/// Sets the connection up and applies missing migrations.
pub fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<i64> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // An acknowledged mutation survives a power cut.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.query_row("PRAGMA user_version", [], |row| row.get(0))
    };
    let database = |error: rusqlite::Error| StoreError::Database {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let found = run(connection).map_err(database)?;
    let known = i64::try_from(MIGRATIONS.len()).expect("a handful of formats");
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if found > 0 && found < known {
        keep_copy(connection, path, found).map_err(database)?;
    }
    for (format, migration) in (1..).zip(MIGRATIONS).filter(|(format, _)| *format > found) {
        let apply = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "user_version", format)?;
            transaction.commit()
        };
        apply(connection).map_err(database)?;
    }
    Ok(())
}

/// Writes what is there once more: a page goes to disk and nothing changes.
pub fn touch(connection: &Connection) -> rusqlite::Result<()> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", format)
}

/// Where a store is copied to before its format moves on from `format`.
pub fn copy_of(path: &Path, format: i64) -> PathBuf {
    path.with_extension(format!("format-{format}.sqlite"))
}

/// Keeps the store as it is, for the way back to the program that wrote it.
fn keep_copy(connection: &Connection, path: &Path, format: i64) -> rusqlite::Result<()> {
    let copy = copy_of(path, format);
    // What an interrupted copy left behind, or one from before a way back.
    let _ = std::fs::remove_file(&copy);
    connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
    tracing::info!(format, copy = %copy.display(), "the store is brought up to date; a copy is kept");
    Ok(())
}
