//! A loopback address per endpoint.
//!
//! Names below `localhost` do not resolve with most HTTP clients, so each endpoint also has
//! a port of its own: given once per host name, written down, the same after a restart.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often a port that another program has is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// Ports remembered for host names that are not endpoints at the moment.
const MOST_REMEMBERED: usize = 1024;

/// Serves the endpoint of a host name on its listener until it is told to stop.
pub(crate) type Serve =
    dyn Fn(String, TcpListener, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync;

/// Ports of the endpoints, on disk and in use.
pub(crate) struct Addresses {
    file: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    book: Book,
    open: BTreeMap<String, Open>,
}

struct Open {
    port: u16,
    problem: Arc<Mutex<Option<String>>>,
    _stop: DropGuard,
}

/// The written form.
#[derive(Default, Serialize, Deserialize)]
struct Book {
    ports: BTreeMap<String, u16>,
}

/// One endpoint's address, for status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// For example `http://127.0.0.1:40123/`.
    pub url: String,
    /// Why it does not answer at the moment.
    pub problem: Option<String>,
}

impl Addresses {
    /// Reads the ports given so far.
    ///
    /// Errors: the file is there but cannot be read or understood.
    pub(crate) fn load(data_dir: &Path) -> io::Result<Addresses> {
        let file = data_dir.join("addresses.json");
        let book = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Book::default(),
            Err(error) => return Err(error),
        };
        Ok(Addresses {
            file,
            inner: Mutex::new(Inner {
                book,
                open: BTreeMap::new(),
            }),
        })
    }

    /// Address of the endpoint with this host name.
    pub(crate) fn url(&self, hostname: &str) -> Option<String> {
        self.lock().open.get(hostname).map(|open| url(open.port))
    }

    /// All addresses in use.
    pub(crate) fn all(&self) -> BTreeMap<String, Address> {
        let address = |open: &Open| Address {
            url: url(open.port),
            problem: open
                .problem
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        };
        self.lock()
            .open
            .iter()
            .map(|(hostname, open)| (hostname.clone(), address(open)))
            .collect()
    }

    /// Opens an address for each host name that has none and closes those of all others.
    ///
    /// Errors: a new port could not be had or written down; everything else is done.
    pub(crate) async fn set(&self, serve: &Arc<Serve>, hostnames: Vec<String>) -> io::Result<()> {
        let mut wanted = Vec::new();
        {
            let mut inner = self.lock();
            inner
                .open
                .retain(|hostname, _| hostnames.contains(hostname));
            for hostname in hostnames {
                if !inner.open.contains_key(&hostname) {
                    let known = inner.book.ports.get(&hostname).copied();
                    wanted.push((hostname, known));
                }
            }
        }
        let mut failed = None;
        let mut changed = false;
        for (hostname, known) in wanted {
            match listen(known).await {
                Ok((port, listener)) => {
                    changed |= known.is_none();
                    self.open(serve, hostname, port, listener);
                }
                Err(error) => failed = Some(error),
            }
        }
        if changed {
            self.write()?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Closes all addresses.
    pub(crate) fn close(&self) {
        self.lock().open.clear();
    }

    fn open(
        &self,
        serve: &Arc<Serve>,
        hostname: String,
        port: u16,
        listener: io::Result<TcpListener>,
    ) {
        let stop = CancellationToken::new();
        let problem = Arc::new(Mutex::new(None));
        let task = answer(
            serve.clone(),
            hostname.clone(),
            port,
            listener,
            problem.clone(),
            stop.clone(),
        );
        tokio::spawn(task);
        let mut inner = self.lock();
        inner.book.ports.insert(hostname.clone(), port);
        inner.open.insert(
            hostname,
            Open {
                port,
                problem,
                _stop: stop.drop_guard(),
            },
        );
        let Inner { book, open } = &mut *inner;
        let mut spare = book
            .ports
            .len()
            .saturating_sub(open.len() + MOST_REMEMBERED);
        book.ports.retain(|hostname, _| {
            let drop = spare > 0 && !open.contains_key(hostname);
            spare -= usize::from(drop);
            !drop
        });
    }

    /// Whole or not at all: a crash leaves the file as it was.
    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.lock().book)?;
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.file)?;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

/// The port and, when it is free, a listener on it. A known port that is taken is kept.
async fn listen(known: Option<u16>) -> io::Result<(u16, io::Result<TcpListener>)> {
    match known {
        Some(port) => Ok((port, bind(port).await)),
        None => {
            let listener = bind(0).await?;
            Ok((listener.local_addr()?.port(), Ok(listener)))
        }
    }
}

async fn answer(
    serve: Arc<Serve>,
    hostname: String,
    port: u16,
    mut listener: io::Result<TcpListener>,
    problem: Arc<Mutex<Option<String>>>,
    stop: CancellationToken,
) {
    let tell =
        |text: Option<String>| *problem.lock().unwrap_or_else(PoisonError::into_inner) = text;
    let listener = loop {
        match listener {
            Ok(listener) => break listener,
            Err(error) => {
                let text = format!(
                    "port {port} of {hostname} is taken by another program ({error}); \
                     the address answers again when it is free"
                );
                if problem
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .is_none()
                {
                    tracing::warn!("{text}");
                }
                tell(Some(text));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_EVERY) => {}
            () = stop.cancelled() => return,
        }
        listener = bind(port).await;
    };
    tell(None);
    serve(hostname, listener, stop).await;
}
