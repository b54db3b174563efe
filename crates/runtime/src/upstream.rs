//! Connections from the host to one socket of a worker process.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

use crate::body::{self, OutBody};
use crate::clock;
use crate::descriptors::is_shortage;
use crate::patient::Patient;

/// The runtime closes a connection that was idle for 5 seconds; one that is nearly that old
/// could be closed just while a request is written to it.
const FRESH: Duration = Duration::from_secs(2);
/// Idle connections kept per socket.
const MOST_IDLE: usize = 64;
/// Header fields and bytes accepted from a worker; far above the contract's floors.
const MOST_HEADERS: usize = 512;
const MOST_HEAD_BYTES: usize = 4 << 20;

/// A pool of connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<Pool>);

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<(tokio::time::Instant, Connection)>>,
}

/// A connection that can take one request at a time.
pub(crate) struct Connection {
    sender: SendRequest<OutBody>,
    driver: AbortHandle,
}

impl Connection {
    /// Ends it now, and with it what is still being sent.
    pub(crate) fn end(self) {
        self.driver.abort();
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Nobody listens; no byte was sent.
    #[error("the worker process cannot be reached")]
    Connect(#[source] io::Error),
    /// The host cannot open a connection; no byte was sent, and it says nothing of the process.
    #[error("the host has no file descriptor left to reach the worker process")]
    Shortage(#[source] io::Error),
    /// The connection ended before a response head. The request may have had effects.
    #[error("the worker process ended the connection before it answered")]
    NoHead(#[source] hyper::Error),
}

impl Upstream {
    pub(crate) fn new(path: PathBuf) -> Upstream {
        Upstream(Arc::new(Pool {
            path,
            idle: Mutex::new(Vec::new()),
        }))
    }

    /// Sends one request; gives the response head and the connection its body comes on.
    ///
    /// Repeats only on a connection that turned out closed before it took any byte.
    pub(crate) async fn send(
        &self,
        mut request: Request<OutBody>,
    ) -> Result<(Response<Incoming>, Connection), UpstreamError> {
        loop {
            let (mut connection, reused) = match self.idle() {
                Some(connection) => (connection, true),
                None => (self.connect().await?, false),
            };
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if reused => request = unsent,
                    _ => return Err(UpstreamError::NoHead(error.into_error())),
                },
            }
        }
    }

    /// Whole body of a small GET on the events socket.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes, UpstreamError> {
        self.call(path, None).await
    }

    /// Whole answer to a small document on the events socket.
    pub(crate) async fn post(&self, path: &str, document: Vec<u8>) -> Result<Bytes, UpstreamError> {
        self.call(path, Some(document.into())).await
    }

    async fn call(&self, path: &str, document: Option<Bytes>) -> Result<Bytes, UpstreamError> {
        let (method, body) = match document {
            None => ("GET", body::empty()),
            Some(document) => ("POST", body::whole(document)),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "host")
            .header("content-type", "application/json")
            .body(body)
            .expect("a path of ours is a valid target");
        let (response, connection) = self.send(request).await?;
        let collected = response
            .into_body()
            .collect()
            .await
            .map_err(UpstreamError::NoHead)?;
        self.give_back(connection);
        Ok(collected.to_bytes())
    }

    /// Keeps a connection whose response body has ended, once it can take a request again.
    pub(crate) fn give_back(&self, mut connection: Connection) {
        let pool = self.0.clone();
        tokio::spawn(async move {
            if matches!(
                tokio::time::timeout(FRESH, connection.sender.ready()).await,
                Ok(Ok(()))
            ) {
                let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MOST_IDLE {
                    idle.push((clock::now(), connection));
                }
            }
        });
    }

    /// Forgets all connections: their process has ended.
    pub(crate) fn forget(&self) {
        self.0
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn idle(&self) -> Option<Connection> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, connection)) = idle.pop() {
            if connection.sender.is_ready() && since.elapsed() < FRESH {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Connection, UpstreamError> {
        let stream = UnixStream::connect(&self.0.path)
            .await
            .map_err(|error| match is_shortage(&error) {
                true => UpstreamError::Shortage(error),
                false => UpstreamError::Connect(error),
            })?;
        let (sender, driver) = http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_buf_size(MOST_HEAD_BYTES)
            .handshake(TokioIo::new(Patient::new(stream)))
            .await
            .map_err(UpstreamError::NoHead)?;
        let driver = tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection to a worker process broke");
            }
        });
        let driver = driver.abort_handle();
        Ok(Connection { sender, driver })
    }
}
