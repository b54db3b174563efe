//! How a host is set up.

use crate::artifact_store::ArtifactStore;
use crate::clock::{Clock, FixedClock, SystemClock};
use crate::contracts::ContractErrors;
use crate::origin::Origin;
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
    pub public_origin: Option<Origin>,
    /// Certificate and key to serve with; plain HTTP is for loopback.
    pub tls: Option<Tls>,
    /// How long an answer waits for the data plane.
    pub converge_timeout: Duration,
    /// Where artifact bytes go; a folder of `data_dir` when absent.
    pub artifacts: Option<Arc<dyn ArtifactStore>>,
    /// Most requests at once; further ones are told to come again.
    pub max_requests: usize,
    /// Most connections at once; a request on a further one is told to come again.
    pub max_connections: usize,
    /// Largest JSON body, in bytes.
    pub max_body_bytes: usize,
    /// Largest target with all headers of a request, in bytes.
    pub max_head_bytes: usize,
    /// How long the head of a request, and every further part of its body, may take to arrive.
    pub read_timeout: Duration,
    /// How long a whole body may take to arrive.
    pub body_timeout: Duration,
    /// How long requests in flight may take once the host is to end.
    pub grace: Duration,
    /// How long idempotency records and unfinished uploads are kept; at least a day keeps every
    /// client's retries answerable (host API §14.3). What is older goes when the host collects.
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
            artifacts: None,
            max_requests: 1024,
            max_connections: 4096,
            max_body_bytes: 8_388_608,
            max_head_bytes: 65_536,
            read_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(600),
            grace: Duration::from_secs(15),
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

/// Whether endpoints can get host names under a domain: a dotted lower-case name that leaves room
/// for a label before it.
pub fn is_endpoint_domain(domain: &str) -> bool {
    domain.len() <= 200 && domain.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| word(byte) || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
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
    /// The key is missing, or is another one than the stored values were encrypted with.
    #[error("{count} encrypted values are stored, and {path} {}", if *.missing { "is missing" } else { "opens none of them" })]
    OtherKey {
        /// File of the key.
        path: PathBuf,
        /// How many values.
        count: usize,
        /// There is no key at all.
        missing: bool,
    },
    /// TLS cannot be served with the given files.
    #[error(transparent)]
    Tls(#[from] crate::failure::ServeError),
    /// The endpoint domain is no dotted lower-case name.
    #[error("endpoint domain {0:?} is no lower-case DNS name")]
    EndpointDomain(String),
}
