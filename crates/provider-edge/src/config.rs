//! Where the host is, asked for as late as possible.

use std::fmt;

use async_trait::async_trait;
use url::Url;

/// A host and who we are there.
#[derive(Clone, PartialEq, Eq)]
pub struct EdgeConfig {
    /// Origin of the host API, e.g. `http://127.0.0.1:8787`.
    pub endpoint: Url,
    /// Space that everything goes to.
    pub space: String,
    /// Bearer token; with the scope for sealed values when workers have secrets.
    pub token: String,
    /// Where the real address of an endpoint can be asked for (the local host, whose
    /// host names resolve nowhere). `None` takes the address as the host gives it.
    pub addresses: Option<Url>,
}

impl fmt::Debug for EdgeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeConfig")
            .field("endpoint", &self.endpoint.as_str())
            .field("space", &self.space)
            .field("token", &"(secret)")
            .field("addresses", &self.addresses.as_ref().map(Url::as_str))
            .finish()
    }
}

/// Yields the host when the first call needs it, and again after a connection broke; so that
/// judging a program needs no host, and a local one can be started only then.
#[async_trait]
pub trait Connect: Send + Sync {
    /// The host, ready to be called.
    async fn connect(&self) -> Result<EdgeConfig, ConnectError>;
}

/// Why there is no host. The text is for people: what failed, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// A host that is known already.
#[async_trait]
impl Connect for EdgeConfig {
    async fn connect(&self) -> Result<EdgeConfig, ConnectError> {
        Ok(self.clone())
    }
}
