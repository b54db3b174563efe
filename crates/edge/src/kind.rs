//! The kinds the aggregate rules speak about.

use crate::Key;

/// Group of the edge platform family; rules apply to resources of this group only.
pub const FAMILY: &str = "edge.forms.takoform.com/v1beta1";

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A kind of the family (host API §6.3).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EdgeKind { $($(#[$doc])* $name,)* }

        impl EdgeKind {
            /// Every kind.
            pub const ALL: &'static [EdgeKind] = &[$(EdgeKind::$name,)*];
            /// The kind's name on the wire.
            pub fn as_str(self) -> &'static str { match self { $(EdgeKind::$name => stringify!($name),)* } }
            fn named(kind: &str) -> Option<EdgeKind> {
                match kind { $(stringify!($name) => Some(EdgeKind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// Long-lived identity of one worker.
    ModuleWorker,
    /// Modules of one worker build.
    WorkerBundle,
    /// Files served as they are.
    StaticAssetBundle,
    /// Immutable code revision of a worker.
    WorkerVersion,
    /// Selects which versions of a worker take traffic.
    WorkerDeployment,
    /// Attaches a hostname to a worker.
    WorkerCustomDomain,
    /// Makes a worker reachable at an address of the host.
    WorkerEndpoint,
    /// Invokes a worker on a schedule.
    WorkerCronTrigger,
    /// Key-value namespace.
    EdgeKVNamespace,
    /// Object bucket.
    ObjectBucket,
    /// SQLite database.
    SQLiteDatabase,
    /// Ordered migrations.
    SQLiteMigrationSet,
    /// Applies a set of migrations to a database.
    SQLiteMigrationApplication,
    /// Message queue.
    AtLeastOnceQueue,
    /// Drains a queue with a worker.
    QueueConsumer,
}

impl EdgeKind {
    /// The kind of a resource address; `None` outside the family.
    pub fn of(key: &Key) -> Option<EdgeKind> {
        EdgeKind::of_parts(&key.api_version, &key.kind)
    }

    /// The kind of a group and kind name; `None` outside the family.
    pub fn of_parts(api_version: &str, kind: &str) -> Option<EdgeKind> {
        (api_version == FAMILY)
            .then(|| EdgeKind::named(kind))
            .flatten()
    }
}
