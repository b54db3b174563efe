//! The durable store: SQLite, written by one thread that commits in groups.
//!
//! Everything one accepted mutation changes - resources, renderings of others, ledger, replay
//! record, operation - goes into one transaction. Writes are durable in the order they were
//! submitted, so an empty submission is a barrier.

mod read;
mod row;
mod schema;
mod write;

pub use read::{Loaded, LoadedTenant};
pub use row::{Bound, OperationRow, Replay, ReplayKey, UploadRow};
pub use write::Write;

use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Most submissions in one transaction.
const GROUP: usize = 256;

/// Why the store cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened or read.
    #[error("the store {path} cannot be used: {reason}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The database is of a newer version of this program.
    #[error("the store {path} has format {found}; this program knows formats up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest known format.
        known: i64,
    },
    /// A write failed; nothing is accepted any more.
    #[error("the store failed and accepts no writes until the host starts again: {0}")]
    Failed(Arc<str>),
}

struct Job {
    writes: Vec<Write>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// The store. Dropping it ends the writer after everything submitted is durable.
pub struct Store {
    path: PathBuf,
    jobs: Option<Sender<Job>>,
    reader: Mutex<Connection>,
    failed: Arc<AtomicBool>,
    writer: Option<std::thread::JoinHandle<()>>,
}

/// A submitted write; durable when awaited to its end.
pub struct Pending(oneshot::Receiver<Result<(), StoreError>>);

impl Pending {
    /// Waits until the write is on disk.
    pub async fn durable(self) -> Result<(), StoreError> {
        match self.0.await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Failed("the writer ended".into())),
        }
    }
}

impl Store {
    /// Opens or creates the database at `path` and brings its format up to date.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let database = |error: rusqlite::Error| StoreError::Database {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let mut connection = Connection::open(path).map_err(database)?;
        schema::prepare(&mut connection, path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(path, flags).map_err(database)?;
        let (jobs, queue) = channel();
        let failed = Arc::new(AtomicBool::new(false));
        let flag = failed.clone();
        let writer = std::thread::Builder::new()
            .name("host-store".to_owned())
            .spawn(move || run(connection, &queue, &flag))
            .map_err(|error| StoreError::Database {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Store {
            path: path.to_owned(),
            jobs: Some(jobs),
            reader: Mutex::new(reader),
            failed,
            writer: Some(writer),
        })
    }

    /// Whether a write failed. What memory believes and what is on disk may differ then, so nothing
    /// may be answered from memory either.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Submits writes that belong together. An empty list is a barrier.
    pub fn submit(&self, writes: Vec<Write>) -> Pending {
        let (done, receiver) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // A dead writer drops the job, and awaiting it says so.
            let _ = jobs.send(Job { writes, done });
        }
        Pending(receiver)
    }

    fn with_reader<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        read(&reader).map_err(|error| StoreError::Database {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Commits submissions in groups. After a failed commit nothing is accepted: what memory believes
/// and what is on disk may differ.
fn run(mut connection: Connection, queue: &Receiver<Job>, flag: &AtomicBool) {
    let mut failed: Option<Arc<str>> = None;
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        let result = match &failed {
            Some(reason) => Err(StoreError::Failed(reason.clone())),
            None => commit(&mut connection, &group).map_err(|error| {
                let reason: Arc<str> = error.to_string().into();
                flag.store(true, Ordering::SeqCst);
                failed = Some(reason.clone());
                StoreError::Failed(reason)
            }),
        };
        for job in group {
            // Nobody waits any more when the client went away.
            let _ = job.done.send(result.clone());
        }
    }
    // The reader closes last and cannot do this; the file alone is the whole store from here on.
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    if let Err(error) = connection.query_row(checkpoint, [], |_| Ok(())) {
        tracing::debug!(%error, "the log of the store stays beside it");
    }
}

fn commit(connection: &mut Connection, group: &[Job]) -> rusqlite::Result<()> {
    if group.iter().all(|job| job.writes.is_empty()) {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for job in group {
        for write in &job.writes {
            write.run(&transaction)?;
        }
    }
    transaction.commit()
}
