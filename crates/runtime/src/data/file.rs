//! One SQLite file per stored resource, opened on first use.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use rusqlite::Connection;
use rusqlite::limits::Limit;

use super::operation::Refusal;
use crate::plan::Uid;

/// Longest value a statement may make on its way to a shorter one.
const MOST_SQL_VALUE_BYTES: i32 = 8_000_000;
const MOST_SQL_VARIABLES: i32 = 100;

/// What a file holds; also the name of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// `edge.kv` namespaces.
    Kv,
    /// `edge.sql` databases.
    Sql,
    /// Messages of all queues.
    Queue,
    /// Indexes of `edge.objects` buckets.
    Objects,
}

impl Family {
    /// Those with a file per resource.
    const OWN: [Family; 3] = [Family::Kv, Family::Sql, Family::Objects];

    fn directory(self) -> &'static str {
        match self {
            Family::Kv => "kv",
            Family::Sql => "sql",
            Family::Queue => "queue",
            Family::Objects => "objects",
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Family::Kv => super::kv::SCHEMA,
            Family::Sql => super::sql::SCHEMA,
            Family::Queue => super::queue::SCHEMA,
            Family::Objects => super::objects::SCHEMA,
        }
    }
}

/// All files that are open.
pub(crate) struct Files {
    directory: PathBuf,
    open: Mutex<BTreeMap<(Family, Uid), Database>>,
}

impl Files {
    pub(crate) fn open(directory: &Path) -> io::Result<Files> {
        std::fs::create_dir_all(directory)?;
        Ok(Files {
            directory: directory.to_owned(),
            open: Mutex::default(),
        })
    }

    /// Directory of a resource's bytes that are too large for its file.
    pub(crate) fn bytes_of(&self, family: Family, uid: &Uid) -> PathBuf {
        self.directory
            .join(family.directory())
            .join(format!("{}.bytes", file_name(uid)))
    }

    /// The file of one resource, made when it is not there yet.
    pub(crate) fn database(&self, family: Family, uid: &Uid) -> Result<Database, Refusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = open.get(&(family, uid.clone())) {
            return Ok(database.clone());
        }
        let directory = self.directory.join(family.directory());
        // Not what is above it: a folder that was moved away is not made again where it was.
        match std::fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let file = directory.join(format!("{}.sqlite", file_name(uid)));
        let database = Database::open(&file, family)?;
        open.insert((family, uid.clone()), database.clone());
        Ok(database)
    }

    /// The resources that have files of their own.
    pub(crate) fn kept(&self) -> io::Result<BTreeSet<Uid>> {
        let mut kept = BTreeSet::new();
        for family in Family::OWN {
            let entries = match std::fs::read_dir(self.directory.join(family.directory())) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let name = entry?.file_name();
                let stem = name.to_str().and_then(|name| name.split_once('.'));
                kept.extend(stem.and_then(|(stem, _)| uid_of(stem)));
            }
        }
        Ok(kept)
    }

    /// Removes the files of a resource; none are made while that goes on.
    pub(crate) fn forget(&self, uid: &Uid) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for family in Family::OWN {
            open.remove(&(family, uid.clone()));
            let bytes = self.bytes_of(family, uid);
            absent(std::fs::remove_dir_all(&bytes))?;
            for extension in ["sqlite-wal", "sqlite-shm", "sqlite"] {
                absent(std::fs::remove_file(bytes.with_extension(extension)))?;
            }
        }
        Ok(())
    }
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The uid that a file name was made of; none for a name of another making.
fn uid_of(name: &str) -> Option<Uid> {
    let text = match name.strip_prefix('_') {
        None => name.to_owned(),
        Some(hex) => String::from_utf8(hex::decode(hex).ok()?).ok()?,
    };
    let uid = Uid::from(text);
    (file_name(&uid) == name).then_some(uid)
}

/// A uid as a file name: as it is when it is harmless, else its bytes in hex.
pub(crate) fn file_name(uid: &Uid) -> String {
    let text = uid.as_str();
    let harmless = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match !text.is_empty() && text.len() <= 64 && text.bytes().all(harmless) {
        true => text.to_owned(),
        false => format!("_{}", hex::encode(text)),
    }
}

/// The one connection to a file. What a call wrote is durable when it returns.
#[derive(Clone)]
pub(crate) struct Database(Arc<tokio::sync::Mutex<Connection>>);

impl Database {
    fn open(path: &Path, family: Family) -> rusqlite::Result<Database> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        if family == Family::Sql {
            // Statements there are not ours.
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_SQL_VALUE_BYTES)?;
            connection.set_limit(Limit::SQLITE_LIMIT_VARIABLE_NUMBER, MOST_SQL_VARIABLES)?;
        }
        connection.execute_batch(family.schema())?;
        Ok(Database(Arc::new(tokio::sync::Mutex::new(connection))))
    }

    /// Runs `work` with the connection, away from the threads that serve requests.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        blocking(self.0.clone().lock_owned().await, work).await
    }

    /// The same, unless earlier calls take longer than `patience`.
    pub(crate) async fn with_patience<T: Send + 'static>(
        &self,
        patience: Duration,
        busy: impl FnOnce() -> Refusal,
        work: impl FnOnce(&mut Connection) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let connection = tokio::time::timeout(patience, self.0.clone().lock_owned()).await;
        blocking(connection.map_err(|_| busy())?, work).await
    }
}

async fn blocking<T: Send + 'static>(
    mut connection: OwnedMutexGuard<Connection>,
    work: impl FnOnce(&mut Connection) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(move || work(&mut connection)).await;
    done.unwrap_or_else(|error| Err(Refusal::unavailable(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_uid_leaves_its_directory() {
        assert_eq!(file_name(&"01jd-9x".into()), "01jd-9x");
        assert_eq!(file_name(&"../x".into()), "_2e2e2f78");
        assert_eq!(file_name(&"A".into()), "_41");
        assert_eq!(file_name(&"".into()), "_");
        for uid in ["01jd-9x", "../x", "A", "", "r1.x"] {
            assert_eq!(uid_of(&file_name(&uid.into())), Some(uid.into()));
        }
        for other in ["Cargo", "_zz", "_6", "a b"] {
            assert_eq!(uid_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_folder_that_was_moved_away_is_not_made_again() {
        let temp = tempfile::tempdir().unwrap();
        let (before, after) = (temp.path().join("before"), temp.path().join("after"));
        let files = Files::open(&before).unwrap();
        std::fs::rename(&before, &after).unwrap();
        assert!(files.database(Family::Kv, &"kv".into()).is_err());
        assert!(!before.exists());
        std::fs::rename(&after, &before).unwrap();
        assert!(files.database(Family::Kv, &"kv".into()).is_ok());
    }
}
