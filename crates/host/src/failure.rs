//! Why the host as a whole could not do something; what a request is refused for is `error.rs`.

use crate::store::StoreError;
use std::net::SocketAddr;

/// Why something about the host itself failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place of the artifacts failed.
    #[error("the artifacts cannot be reached")]
    Artifacts(#[from] std::io::Error),
    /// The host says no.
    #[error("{0}")]
    Refused(String),
}

/// Why a host cannot serve on an address.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The conformance adapter is for loopback only.
    #[error("a host with the conformance adapter serves on loopback only, not on {0}")]
    NotLoopback(SocketAddr),
    /// Tokens would go over the network in the clear.
    #[error("without TLS the control plane is served on loopback only, not on {0}")]
    Clear(SocketAddr),
    /// The status page shows every tenant.
    #[error("the status page is served on loopback only, not on {0}")]
    Status(SocketAddr),
    /// Certificate or key cannot be used.
    #[error("TLS cannot be served with {path}: {reason}")]
    Tls {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        reason: String,
    },
    /// Serving ended.
    #[error("serving ended")]
    Io(#[from] std::io::Error),
}
