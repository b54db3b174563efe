//! What runs, for people.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::address::Address;
use crate::life::State;
use crate::plan::Uid;
use crate::version::{Version, chain};

/// A picture of what runs.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Where the ingress listens.
    pub listen: Option<SocketAddr>,
    /// Versions that run or should run, including those that are draining.
    pub versions: Vec<VersionStatus>,
    /// Host name to address.
    pub addresses: BTreeMap<String, Address>,
}

/// One version of a [`Status`].
#[derive(Clone, Debug)]
pub struct VersionStatus {
    /// The version.
    pub version: Uid,
    /// Its worker.
    pub worker: Uid,
    /// Name of the worker.
    pub worker_name: String,
    /// Where it is in its life.
    pub state: State,
    /// Its process.
    pub pid: Option<u32>,
    /// Invocations that have not ended.
    pub in_flight: usize,
    /// Why its last start failed.
    pub failure: Option<String>,
}

/// The line of one version.
pub(crate) fn status(version: &Version) -> VersionStatus {
    let phase = version.phase.borrow().clone();
    VersionStatus {
        version: version.uid.clone(),
        worker: version.spec.worker.clone(),
        worker_name: version.worker_name.clone(),
        state: phase.state,
        pid: phase.pid,
        in_flight: version.traffic.count(),
        failure: phase.failure.map(|failure| chain(&*failure)),
    }
}
