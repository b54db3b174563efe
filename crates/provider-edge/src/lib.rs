//! Edge resources through the host API.
//!
//! One `edge/Worker` is a ModuleWorker with everything that makes it answer: bundle, version,
//! WorkerDeployment and, when asked for, an endpoint (`architecture.md` §5). Every call looks at
//! what is there, and does the next move until none is left: so a call that was cut off anywhere
//! is finished by calling again. The choice of moves is a pure function ([`moves`]).

mod address;
mod carry;
mod claim;
mod config;
mod host;
mod moves;
mod parts;
mod provider;
mod refusal;
mod report;
mod seen;
mod wanted;
mod worker_type;

pub use config::{Connect, ConnectError, EdgeConfig};
pub use provider::EdgeProvider;
pub use worker_type::types;
