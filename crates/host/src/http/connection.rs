//! Connections: accept, serve, end in good order.

use super::reply;
use crate::error::ApiError;
use crate::host::Host;
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use notation_edge_api::ErrorCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// Connections beyond the limit that are told so; further ones are closed at once.
const TURNED_AWAY: usize = 64;

/// What protects a listener from its clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// One permit per connection.
    pub connections: Arc<Semaphore>,
    /// How long a head may take to arrive, and how long a client may take nothing of an answer.
    pub patience: Duration,
    /// Largest target with all headers, in bytes.
    pub max_head_bytes: usize,
    /// How long what is in flight may take once the listener is to end.
    pub grace: Duration,
}

impl Limits {
    /// The limits of a host's control plane.
    pub fn of(host: &Host) -> Limits {
        let config = &host.inner.config;
        Limits {
            connections: host.inner.connections.clone(),
            patience: config.read_timeout,
            max_head_bytes: config.max_head_bytes,
            grace: config.grace,
        }
    }

    /// What speaks HTTP on a connection. The protocol is known beforehand: a client that is asked
    /// to show it could keep the host waiting.
    fn builder(&self, http2: bool) -> Builder<TokioExecutor> {
        // A head of up to twice the limit is refused in words; what is larger, without.
        let buffer = self.max_head_bytes.saturating_mul(2).max(16_384);
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(buffer);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(self.patience)
            .keep_alive_timeout(self.patience)
            .max_concurrent_streams(100)
            .max_header_list_size(u32::try_from(buffer).unwrap_or(u32::MAX));
        if http2 {
            builder.http2_only()
        } else {
            builder.http1_only()
        }
    }
}

/// Serves a router until `shutdown` completes; then idle connections end at once and busy ones
/// with their request. With TLS, a handshake has the time that is given with it.
pub async fn serve(
    listener: TcpListener,
    tls: Option<(TlsAcceptor, Duration)>,
    router: Router,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let full = Router::new().fallback(turned_away);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: let some connections end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (permit, router) = match limits.connections.clone().try_acquire_owned() {
            Ok(permit) => (permit, router.clone()),
            Err(_) => match turned_away.clone().try_acquire_owned() {
                Ok(permit) => (permit, full.clone()),
                Err(_) => continue,
            },
        };
        // Answers are small; waiting for more bytes would cost every one of them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.patience));
        let stream = Box::pin(stream);
        let (watcher, tls, limits) = (graceful.watcher(), tls.clone(), limits.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match tls {
                None => converse(stream, false, router, &limits, watcher).await,
                Some((tls, patience)) => {
                    let handshake = tokio::time::timeout(patience, tls.accept(stream)).await;
                    let Ok(Ok(stream)) = handshake else {
                        tracing::debug!("a TLS handshake did not come to its end");
                        return;
                    };
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    converse(stream, http2, router, &limits, watcher).await;
                }
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.grace, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests that did not end in time were cut off");
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http2: bool,
    router: Router,
    limits: &Limits,
    watcher: Watcher,
) {
    let service = TowerToHyperService::new(router);
    let builder = limits.builder(http2);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(error, "a connection ended early");
    }
}

/// The answer to every request on a connection beyond the limit.
async fn turned_away() -> axum::response::Response {
    let error = ApiError::new(
        ErrorCode::BackendUnavailable,
        "the host has as many connections as it takes",
    );
    let mut response = reply::refusal(&error, &super::request_id());
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
