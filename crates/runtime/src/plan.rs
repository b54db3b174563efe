//! What should run, as plain data: the runtime's only input.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroize;

/// Identity of one incarnation of a host resource. Opaque to the runtime.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

impl Uid {
    /// The text the host knows this resource by.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Uid {
        Uid(text.into())
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Uid {
        Uid(text.into())
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that should serve on this host, of all tenants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerPlan {
    /// Workers by uid, each with its active deployment.
    pub workers: BTreeMap<Uid, WorkerSpec>,
    /// Versions by uid. Only those with weight in some active deployment are started.
    pub versions: BTreeMap<Uid, VersionSpec>,
    /// Canonical host name (lower case, no trailing dot, no port) to worker.
    pub endpoints: BTreeMap<String, Uid>,
    /// Cron triggers by uid.
    pub crons: BTreeMap<Uid, CronSpec>,
    /// Queues by uid, each with its consumer when it has one.
    pub queues: BTreeMap<Uid, QueueSpec>,
    /// Versions that are not described because the operator has not set a sensitive value.
    pub missing_values: BTreeMap<Uid, BTreeSet<String>>,
}

/// One worker and the versions its active `WorkerDeployment` selects.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerSpec {
    /// Name for people: logs and status show it.
    pub name: String,
    /// Version uid and its weight in basis points; they sum to 10 000. Empty when the
    /// worker has no active deployment.
    pub weights: Vec<(Uid, u16)>,
}

/// One immutable `WorkerVersion`, with everything its process is told.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionSpec {
    /// Worker this version belongs to.
    pub worker: Uid,
    /// Name of the module whose default export holds the handlers.
    pub main_module: String,
    /// Modules of the bundle in manifest order.
    pub modules: Vec<ModuleSource>,
    /// Declared handlers; a handler that is not declared is never invoked.
    pub handlers: BTreeSet<Handler>,
    /// The single environment namespace: property name of `env` to what it is.
    pub environment: BTreeMap<String, Capability>,
    /// Static files served beside the code.
    pub assets: Option<AssetsSpec>,
}

/// A module whose bytes are read from [`Blobs`] when the version starts.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleSource {
    /// Relative slash path.
    pub name: String,
    /// Media type of the manifest, for example `application/javascript+module`.
    pub media_type: String,
    /// Digest the bytes are stored under, as the host writes it (`sha256:...`).
    pub digest: String,
}

/// Handler vocabulary of `worker.runtime@1.0.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handler {
    /// HTTP requests and service calls.
    Fetch,
    /// Cron matches.
    Scheduled,
    /// Queue batches.
    Queue,
}

impl Handler {
    /// All handlers in the order of the contract.
    pub const ALL: [Handler; 3] = [Handler::Fetch, Handler::Scheduled, Handler::Queue];

    /// Name of the member of the default export.
    pub fn name(self) -> &'static str {
        match self {
            Handler::Fetch => "fetch",
            Handler::Scheduled => "scheduled",
            Handler::Queue => "queue",
        }
    }

    /// The handler of this name, if the vocabulary has it.
    pub fn parse(name: &str) -> Option<Handler> {
        Handler::ALL
            .into_iter()
            .find(|handler| handler.name() == name)
    }
}

/// What one property of `env` is.
#[derive(Clone, Debug, PartialEq)]
pub enum Capability {
    /// A JSON value, given as it is.
    Var(serde_json::Value),
    /// A sensitive value supplied by the operator.
    Secret(Secret),
    /// `worker.service@1.0.0` of another worker.
    Service {
        /// Worker that is called.
        worker: Uid,
    },
    /// `edge.kv@1.0.0` of a namespace.
    Kv {
        /// The `EdgeKVNamespace`.
        namespace: Uid,
    },
    /// `edge.objects@1.0.0` of a bucket.
    Objects {
        /// The `ObjectBucket`.
        bucket: Uid,
    },
    /// `edge.sql@1.0.0` of a database.
    Sql {
        /// The `SQLiteDatabase`.
        database: Uid,
    },
    /// `send` and `sendBatch` of `edge.queue@1.0.0`.
    QueueProducer {
        /// The `AtLeastOnceQueue`.
        queue: Uid,
    },
}

/// Static assets of a version. Source: `WorkerVersion.assets`.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetsSpec {
    /// Manifest path to file.
    pub files: BTreeMap<String, AssetFile>,
    /// Which side is asked first.
    pub order: AssetsOrder,
    /// What a valid path without a file means.
    pub not_found: NotFound,
}

/// One file of an asset bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetFile {
    /// Digest the bytes are stored under.
    pub digest: String,
    /// Media type of the manifest, sent as it is written.
    pub media_type: String,
    /// Length in bytes.
    pub size_bytes: u64,
}

/// `runWorkerFirst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssetsOrder {
    /// `false`: the asset stage, then `fetch`.
    AssetsFirst,
    /// `true`: `fetch`; a 404 of it goes to the asset stage.
    WorkerFirst,
}

/// `notFoundHandling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// A miss.
    None,
    /// `index.html` of the bundle.
    SinglePageApplication,
}

/// One `WorkerCronTrigger`.
#[derive(Clone, Debug, PartialEq)]
pub struct CronSpec {
    /// Worker whose `scheduled` is invoked.
    pub worker: Uid,
    /// The stored expression, byte for byte.
    pub expression: String,
}

/// One `AtLeastOnceQueue`.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// Resource name, shown to the handler as `batch.queue`.
    pub name: String,
    /// Delay of a message that names none, in seconds.
    pub delivery_delay_seconds: u32,
    /// An undelivered message older than this is dropped, in seconds.
    pub retention_seconds: u32,
    /// The one consumer.
    pub consumer: Option<ConsumerSpec>,
}

/// One `QueueConsumer`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerSpec {
    /// Worker whose `queue` is invoked.
    pub worker: Uid,
    /// Most messages in a batch, 1 to 100.
    pub max_batch_size: u32,
    /// Longest wait to fill a batch, in seconds.
    pub max_batch_timeout_seconds: u32,
    /// Redeliveries after the first delivery.
    pub max_retries: u32,
    /// Delay before a failed message is deliverable again, in seconds.
    pub retry_delay_seconds: u32,
    /// Most batches in flight.
    pub max_concurrency: u32,
    /// Where exhausted messages go.
    pub dead_letter_queue: Option<Uid>,
}

/// A sensitive value. Never printed, wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a value into custody.
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// The value itself, for the process that may see it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Where the bytes of modules and assets come from.
///
/// Owes the runtime: the exact bytes stored under `digest`, or `NotFound`. May be called
/// from many tasks at once.
#[async_trait::async_trait]
pub trait Blobs: Send + Sync + 'static {
    /// Reads one blob whole.
    async fn read(&self, digest: &str) -> io::Result<Bytes>;
}

impl WorkerPlan {
    /// Versions that take traffic now: those with weight in an active deployment.
    pub fn serving(&self) -> BTreeSet<&Uid> {
        self.workers
            .values()
            .flat_map(|worker| worker.weights.iter().map(|(version, _)| version))
            .collect()
    }
}
