//! State of a deployment: records, journal, hold, secrets (`engine.md` §7).
//!
//! [`StateStore`] is the border; [`MemoryStore`] and [`SqliteStore`] keep it, and
//! [`contract::run`] says what keeping it means.

pub mod contract;
mod error;
mod format;
mod hold;
mod journal;
mod memory;
mod seal;
mod sqlite;
mod store;

pub use error::StoreError;
pub use hold::{Acquired, Claim, Fence, Hold, LEASE_MS, Machine, RENEW_MS, RunId};
pub use journal::{
    Call, Entry, Event, EventKind, IllegalEvent, Intent, OpenIntent, Outcome, StepStatus,
    open_intents,
};
pub use memory::MemoryStore;
pub use seal::{KeySource, Sealer};
pub use sqlite::{SqliteStore, Traffic};
pub use store::{Batch, Change, DeploymentState, StateStore, Summary};
