//! How a host is set up.

use crate::clock::{Clock, FixedClock, SystemClock};
use crate::contracts::ContractErrors;
use crate::store::StoreError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Set-up of a host.
#[derive(Clone)]
pub struct HostConfig {
    /// Where everything is stored; made readable for its owner only.
    pub data_dir: PathBuf,
    /// A published contract set instead of the embedded one.
    pub contracts: Option<PathBuf>,
    /// Suffix of endpoint hostnames, e.g. `endpoints.localhost`.
    pub endpoint_domain: String,
    /// Origin that discovery advertises; the request's own authority when absent.
    pub public_origin: Option<String>,
    /// Certificate and key to serve with; plain HTTP is for loopback.
    pub tls: Option<Tls>,
    /// How long an answer waits for the data plane.
    pub converge_timeout: Duration,
    /// Most requests at once; further ones are told to come again.
    pub max_requests: usize,
    /// How long the head of a request, and every further part of its body, may take to arrive.
    pub read_timeout: Duration,
    /// How long idempotency records and unfinished uploads are kept; at least a day keeps every
    /// client's retries answerable (host API §14.3). What is older goes when the host starts.
    pub keep_records: Duration,
    /// Turns the test-only conformance adapter on: a directory with `contract.json`. Such a host
    /// serves on loopback only (host API §25).
    pub conformance: Option<PathBuf>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl HostConfig {
    /// A host with everything at its default, storing in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> HostConfig {
        HostConfig {
            data_dir: data_dir.into(),
            contracts: None,
            endpoint_domain: "endpoints.localhost".to_owned(),
            public_origin: None,
            tls: None,
            converge_timeout: Duration::from_secs(60),
            max_requests: 1024,
            read_timeout: Duration::from_secs(30),
            keep_records: Duration::from_secs(7 * 24 * 60 * 60),
            conformance: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// The same host with the conformance adapter and a clock that stands still.
    pub fn with_conformance(mut self, contract: impl Into<PathBuf>) -> HostConfig {
        self.conformance = Some(contract.into());
        self.clock = Arc::new(FixedClock("2026-01-01T00:00:00Z".into()));
        self
    }
}

/// Files to serve TLS with, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain, the host's own first.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// Why a host cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be used.
    #[error("the data directory {path} cannot be used")]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another host uses the data directory.
    #[error("the data directory {path} is used by another host process")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The contract set cannot be installed.
    #[error(transparent)]
    Contracts(#[from] ContractErrors),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Stored resources were created under contracts that are not installed; served with this set
    /// they could be neither read nor replaced.
    #[error(
        "{count} stored resources, the first of them {kind} {version} at {digest}, were created \
         under contracts that are not installed"
    )]
    OtherContracts {
        /// How many resources.
        count: usize,
        /// Kind of the first one.
        kind: String,
        /// Definition version it was created under.
        version: String,
        /// Schema digest it was created under.
        digest: String,
    },
    /// The endpoint domain is no dotted lower-case name.
    #[error("endpoint domain {0:?} is no lower-case DNS name")]
    EndpointDomain(String),
}
