//! A host on the network: its two surfaces, and how long each serves.

use crate::failure::ServeError;
use crate::host::Host;
use crate::http::Limits;
use crate::tls::Certificate;
use std::sync::Arc;

impl Host {
    /// The OpenAPI document of the API with the installed contract set.
    pub fn openapi(&self) -> serde_json::Value {
        crate::http::openapi(&self.inner.contracts.catalog)
    }

    /// The HTTP surface.
    pub fn router(&self) -> axum::Router {
        crate::http::router(self.clone())
    }

    /// Read-only routes for whoever runs the host: a status page and metrics, of every tenant.
    /// They answer to the `key` alone: as the password of any user, or as a bearer token.
    pub fn status_router(&self, key: &str) -> axum::Router {
        crate::status::router(self.clone(), key)
    }

    /// Serves [`Host::status_router`] until `shutdown` completes.
    ///
    /// Errors: `Status` for an address that is not loopback.
    pub async fn serve_status(
        &self,
        listener: tokio::net::TcpListener,
        key: &str,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(ServeError::Status(address));
        }
        let limits = Limits {
            connections: Arc::new(tokio::sync::Semaphore::new(64)),
            grace: std::time::Duration::from_secs(1),
            ..Limits::of(self)
        };
        crate::http::serve(listener, None, self.status_router(key), limits, shutdown).await;
        Ok(())
    }

    /// Serves on a listener until `shutdown` completes, then finishes what is in flight. Heads
    /// that take too long end their connection.
    ///
    /// Errors: `Clear` without TLS, and `NotLoopback` for a host with the conformance adapter, on
    /// an address that is not loopback.
    pub async fn serve(
        &self,
        listener: tokio::net::TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let address = listener.local_addr()?;
        if self.inner.config.conformance.is_some() && !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let config = &self.inner.config;
        if config.tls.is_none() && !address.ip().is_loopback() {
            return Err(ServeError::Clear(address));
        }
        let tls = config.tls.as_ref().map(Certificate::open).transpose()?;
        let tls = tls.map(|tls| (tls, config.read_timeout));
        crate::http::serve(listener, tls, self.router(), Limits::of(self), shutdown).await;
        self.flush().await.ok();
        Ok(())
    }
}
