//! The data plane of a host: worker processes, their life, and the traffic to them.
//!
//! The host process owns every socket, all data and all choices; a worker process is
//! disposable. One process per version, so that a broken one breaks nothing else.

mod derive;
mod places;
mod plan;
pub mod workerd;

mod config;
mod wire;

mod log;
mod process;
mod sockets;
mod spawner;
mod sweep;

mod bundle;
mod driver;
mod life;
mod load;
mod version;

mod body;
mod clock;
mod descriptors;
mod forward;
mod patient;
mod router;
mod served;
mod traffic;
mod upstream;

mod address;
mod asset;
mod capability;
mod cron;
mod crowd;
mod data;
mod delivery;
mod event;
mod ingress;
mod runtime;
mod scheme;
mod status;
mod unserving;

pub use address::Address;
pub use bundle::{Bundle, BundleModule};
pub use data::{MigrationError, MigrationFile};
pub use derive::{SealedValues, derive};
pub use descriptors::connections_that_fit;
pub use life::State;
pub use load::{Exports, InspectError, LoadError};
pub use log::{LogLevel, LogLine, LogSink, LogSource, TracingLog};
pub use plan::{
    AssetFile, AssetsOrder, AssetsSpec, Blobs, Capability, ConsumerSpec, CronSpec, Handler,
    ModuleSource, NotFound, QueueSpec, Secret, Uid, VersionSpec, WorkerPlan, WorkerSpec,
};
pub use runtime::{Ahead, DRAIN_DEADLINE, Runtime, RuntimeConfig, StartError};
pub use scheme::Scheme;
pub use status::{Status, VersionStatus};
pub use unserving::{ConvergeError, Unserving};
pub use version::StartFailure;
