//! Reading where nothing can be written: a full disk, a folder that is read-only.
//!
//! Whoever reads shares memory with other processes, in a file beside the state. Where that file
//! cannot be made nobody can write the state either, so it is read without sharing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::failure::cannot_read;
use crate::StoreError;

/// A connection for reading that shares nothing.
///
/// Errors: `CannotOpen` and its like, as SQLite says it of this way to read.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let open = |error: rusqlite::Error| cannot_read(path, &error);
    let log = std::fs::metadata(log_of(path)).map_or(0, |log| log.len());
    if log == 0 {
        return as_it_lies(path).map_err(open);
    }
    // What the log has counts too: the file is locked instead of shared, and the log is left.
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(open)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(open)?;
    connection
        .pragma_update(None, "locking_mode", "exclusive")
        .map_err(open)?;
    Ok(connection)
}

/// The file alone, which has everything when there is no log.
fn as_it_lies(path: &Path) -> rusqlite::Result<Connection> {
    let escaped: String = path
        .to_string_lossy()
        .chars()
        .map(|c| match c {
            '%' => "%25".to_owned(),
            '?' => "%3f".to_owned(),
            '#' => "%23".to_owned(),
            c => c.to_string(),
        })
        .collect();
    Connection::open_with_flags(
        format!("file:{escaped}?immutable=1"),
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

/// The write-ahead log of a file.
fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
