//! What SQLite says, in our words.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::{StoreError, format::ReadError};

/// A failure of a whole commit, told to everyone who took part.
pub(super) enum Failure {
    Opening(StoreError),
    Writing(PathBuf, Why),
}

impl Failure {
    pub(super) fn error(&self) -> StoreError {
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
pub(super) struct Why {
    damaged: bool,
    cannot_open: bool,
    /// Also reading needs room, for the memory that processes share.
    cannot_grow: bool,
    text: String,
}

pub(super) fn why(error: &rusqlite::Error) -> Why {
    let code = error.sqlite_error_code();
    let said = match (code, error) {
        (Some(ErrorCode::DiskFull), _) => "there is no room left".to_owned(),
        (Some(ErrorCode::ReadOnly), _) => "it is read-only for this user".to_owned(),
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => {
            "another process keeps it locked".to_owned()
        }
        (Some(ErrorCode::CannotOpen), _) => "the file or its folder cannot be opened".to_owned(),
        (Some(ErrorCode::SystemIoFailure), _) if cannot_grow(error) => {
            "its files cannot grow: the disk is full, or a limit on file sizes is reached"
                .to_owned()
        }
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
        cannot_grow: cannot_grow(error),
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
        Why {
            cannot_grow: true, ..
        } => StoreError::CannotWrite { place, why: text },
        Why { .. } => StoreError::CannotRead { place, why: text },
    }
}

pub(super) fn damaged(path: &Path, error: ReadError) -> StoreError {
    match error {
        ReadError::Store(error) => error,
        ReadError::Damaged(why) => StoreError::Corrupt {
            place: path.to_owned(),
            why,
        },
    }
}

/// Whether writing, syncing or extending a file failed (SQLite's extended codes of the operation).
fn cannot_grow(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    const GROWING: [i32; 6] = [
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_FSYNC,
        ffi::SQLITE_IOERR_TRUNCATE,
        ffi::SQLITE_IOERR_SHMOPEN,
        ffi::SQLITE_IOERR_SHMSIZE,
        ffi::SQLITE_IOERR_SHMMAP,
    ];
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => GROWING.contains(&failure.extended_code),
        _ => false,
    }
}
