//! Connections: accept, serve, end in good order.

use super::unread::{self, Wire};
use crate::error::ApiError;
use crate::host::Host;
use crate::reply;
use crate::tls::Certificate;
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use notation_edge_api::ErrorCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// Connections beyond the limit that are told so; further ones are closed at once.
const TURNED_AWAY: usize = 64;
/// Header fields of one request.
const MAX_FIELDS: usize = 128;

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

    /// What is read of a head. One of up to twice the limit is read, and refused by the host with
    /// who asked; what is larger is refused at the connection.
    fn buffer(&self) -> usize {
        self.max_head_bytes.saturating_mul(2).max(16_384)
    }

    fn http1(&self) -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_headers(MAX_FIELDS)
            .max_buf_size(self.buffer());
        builder
    }

    fn http2(&self) -> http2::Builder<TokioExecutor> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(self.patience)
            .keep_alive_timeout(self.patience)
            .max_concurrent_streams(100)
            .max_header_list_size(u32::try_from(self.buffer()).unwrap_or(u32::MAX));
        builder
    }
}

/// Serves a router until `shutdown` completes; then idle connections end at once and busy ones
/// with their request. With TLS, a handshake has the time that is given with it.
pub async fn serve(
    listener: TcpListener,
    tls: Option<(Certificate, Duration)>,
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
        let tls = tls.as_ref();
        let tls = tls.map(|(certificate, patience)| (certificate.acceptor(), *patience));
        let (watcher, limits) = (graceful.watcher(), limits.clone());
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

/// Speaks HTTP on a connection. The protocol is known beforehand: a client that is asked to show
/// it could keep the host waiting.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http2: bool,
    router: Router,
    limits: &Limits,
    watcher: Watcher,
) {
    let service = TowerToHyperService::new(router);
    if http2 {
        let connection = limits
            .http2()
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
        return;
    }
    let wire = Wire::new(stream);
    let connection = limits
        .http1()
        .serve_connection(TokioIo::new(wire.clone()), service);
    let ended = watcher.watch(connection).await;
    let answer = ended.err().and_then(|error| {
        tracing::debug!(%error, "a connection ended early");
        let refusal = unread::reason(&error, limits.max_head_bytes, MAX_FIELDS)?;
        let id = super::request_id();
        tracing::info!(
            request = id,
            status = refusal.code.status(),
            code = refusal.code.as_str(),
            reason = refusal.message,
            "a request could not be read"
        );
        Some(reply::refusal(&refusal, &id))
    });
    let ended = wire.end(answer).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection did not end in good order");
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
