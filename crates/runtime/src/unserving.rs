//! What of a plan does not serve, and why.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::plan::Uid;
use crate::version::{StartFailure, Version, chain};

/// Versions that do not serve although the plan gives them traffic. What is drawn for them is
/// answered with 503, and the runtime goes on trying; a version that only has other sensitive
/// values than before answers with those until then.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ConvergeError(pub Vec<Unserving>);

/// One thing of a plan that does not serve.
#[derive(Clone, Debug)]
pub enum Unserving {
    /// A version does not come up.
    Version {
        /// The version.
        version: Uid,
        /// Name of its worker.
        worker: String,
        /// Why.
        failure: Arc<StartFailure>,
    },
    /// The plan weights a version it does not describe.
    Unknown {
        /// The version.
        version: Uid,
        /// Sensitive values nobody has set; empty when its manifest is not held.
        missing_values: BTreeSet<String>,
    },
    /// An endpoint has no address of its own.
    Address {
        /// What the system said.
        detail: String,
    },
    /// The host cannot make sockets for a version.
    Sockets {
        /// The version.
        version: Uid,
        /// What the system said.
        detail: String,
    },
}

impl Unserving {
    /// Why a version that should run does not.
    pub(crate) fn of(version: &Version) -> Unserving {
        let failure = version.phase.borrow().failure.clone();
        let unknown = || {
            Arc::new(StartFailure::Process {
                detail: "its process ended".into(),
            })
        };
        Unserving::Version {
            version: version.uid.clone(),
            worker: version.worker_name.clone(),
            failure: failure.unwrap_or_else(unknown),
        }
    }
}

impl std::fmt::Display for Unserving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unserving::Version {
                version,
                worker,
                failure,
            } => {
                write!(
                    f,
                    "version {version} of {worker} does not start: {}",
                    chain(&**failure)
                )
            }
            Unserving::Unknown {
                version,
                missing_values,
            } if missing_values.is_empty() => {
                write!(
                    f,
                    "version {version} takes traffic but its bundle is not held"
                )
            }
            Unserving::Unknown {
                version,
                missing_values,
            } => {
                let names = missing_values
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                write!(
                    f,
                    "version {version} takes traffic but has no value for {names}"
                )
            }
            Unserving::Address { detail } => write!(f, "an endpoint has no address: {detail}"),
            Unserving::Sockets { version, detail } => {
                write!(f, "version {version} has no sockets: {detail}")
            }
        }
    }
}
