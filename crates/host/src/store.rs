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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// A write failed, or follows from one that did: nothing of it is stored.
    #[error("the store could not be written: {0}")]
    Failed(Arc<str>),
}

/// One reading of the store. What a write that failed had changed in memory is on no disk, so a
/// failed commit begins a new one: writes that follow from an older reading are refused, and
/// whoever holds one reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u64);

struct Job {
    epoch: Epoch,
    what: What,
    done: oneshot::Sender<Result<(), StoreError>>,
}

enum What {
    /// All of them or none. None at all is a barrier.
    Writes(Vec<Write>),
    /// A commit that changes nothing, to find out whether one can be made.
    Trial,
}

/// The store. Dropping it ends the writer after everything submitted is durable.
pub struct Store {
    path: PathBuf,
    jobs: Option<Sender<Job>>,
    reader: Mutex<Connection>,
    health: Arc<Health>,
    writer: Option<std::thread::JoinHandle<()>>,
}

/// What the writer lets others see.
#[derive(Default)]
struct Health {
    epoch: AtomicU64,
    /// The last commit failed.
    doubtful: AtomicBool,
}

impl Health {
    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::SeqCst))
    }
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
        let health = Arc::new(Health::default());
        let seen = health.clone();
        let writer = std::thread::Builder::new()
            .name("host-store".to_owned())
            .spawn(move || run(connection, &queue, &seen))
            .map_err(|error| StoreError::Database {
                path: path.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Store {
            path: path.to_owned(),
            jobs: Some(jobs),
            reader: Mutex::new(reader),
            health,
            writer: Some(writer),
        })
    }

    /// The reading that what is loaded from now on belongs to.
    pub fn epoch(&self) -> Epoch {
        self.health.epoch()
    }

    /// Whether the last commit failed, or nobody is there to make another.
    pub fn is_doubtful(&self) -> bool {
        let writes = |writer: &std::thread::JoinHandle<()>| !writer.is_finished();
        self.health.doubtful.load(Ordering::SeqCst) || !self.writer.as_ref().is_some_and(writes)
    }

    /// Submits writes that belong together and follow from a reading. An empty list is a barrier.
    pub fn submit(&self, epoch: Epoch, writes: Vec<Write>) -> Pending {
        self.send(epoch, What::Writes(writes))
    }

    /// Finds out whether a commit can be made, by making one.
    pub async fn try_commit(&self) -> Result<(), StoreError> {
        self.send(self.epoch(), What::Trial).durable().await
    }

    fn send(&self, epoch: Epoch, what: What) -> Pending {
        let (done, receiver) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            // A dead writer drops the job, and awaiting it says so.
            let _ = jobs.send(Job { epoch, what, done });
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

/// Commits submissions in groups, each group whole or not at all.
fn run(mut connection: Connection, queue: &Receiver<Job>, health: &Health) {
    let mut failure: Arc<str> = "nothing".into();
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        let epoch = health.epoch();
        let (group, late): (Vec<Job>, Vec<Job>) =
            group.into_iter().partition(|job| job.epoch == epoch);
        answer(late, &Err(StoreError::Failed(failure.clone())));
        let result = commit(&mut connection, &group);
        match &result {
            Ok(Committed::Nothing) => {}
            Ok(Committed::Something) => health.doubtful.store(false, Ordering::SeqCst),
            Err(error) => {
                failure = error.to_string().into();
                health.doubtful.store(true, Ordering::SeqCst);
                // Before anybody hears of it.
                health.epoch.fetch_add(1, Ordering::SeqCst);
                tracing::error!(%error, "a commit failed");
            }
        }
        let result = result.map(drop);
        answer(
            group,
            &result.map_err(|_| StoreError::Failed(failure.clone())),
        );
    }
    // The reader closes last and cannot do this; the file alone is the whole store from here on.
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    if let Err(error) = connection.query_row(checkpoint, [], |_| Ok(())) {
        tracing::debug!(%error, "the log of the store stays beside it");
    }
}

fn answer(jobs: Vec<Job>, result: &Result<(), StoreError>) {
    for job in jobs {
        // Nobody waits any more when the client went away.
        let _ = job.done.send(result.clone());
    }
}

enum Committed {
    Nothing,
    Something,
}

fn commit(connection: &mut Connection, group: &[Job]) -> rusqlite::Result<Committed> {
    let barrier = |job: &Job| matches!(&job.what, What::Writes(writes) if writes.is_empty());
    if group.iter().all(barrier) {
        return Ok(Committed::Nothing);
    }
    let transaction = connection.transaction()?;
    for job in group {
        match &job.what {
            What::Writes(writes) => {
                for write in writes {
                    write.run(&transaction)?;
                }
            }
            What::Trial => schema::touch(&transaction)?,
        }
    }
    transaction.commit()?;
    Ok(Committed::Something)
}
