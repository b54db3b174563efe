//! The Unix sockets between host and worker processes.
//!
//! The host creates every listener and keeps it open for the life of a version: a request
//! that arrives while the process starts or restarts waits in the kernel.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::Inherited;

/// Longest path of a Unix socket on all supported systems, less what names need.
const LONGEST_DIRECTORY: usize = 80;

/// Directory of the sockets, readable by its owner only. Removed when dropped.
pub(crate) struct SocketDirectory {
    path: PathBuf,
    // Another place when the wanted one is too long for a socket address.
    _elsewhere: Option<tempfile::TempDir>,
}

impl SocketDirectory {
    /// Empties and prepares `wanted`, or a temporary directory when its path is too long.
    pub(crate) fn prepare(wanted: &Path) -> io::Result<SocketDirectory> {
        if wanted.as_os_str().len() > LONGEST_DIRECTORY {
            let elsewhere = tempfile::Builder::new().prefix("notation-").tempdir()?;
            return Ok(SocketDirectory {
                path: elsewhere.path().to_owned(),
                _elsewhere: Some(elsewhere),
            });
        }
        match std::fs::remove_dir_all(wanted) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(parent) = wanted.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // Fails when somebody else was faster, which matters in a directory all users share.
        std::fs::DirBuilder::new().mode(0o700).create(wanted)?;
        Ok(SocketDirectory {
            path: wanted.to_owned(),
            _elsewhere: None,
        })
    }

    /// Where sockets are made.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A number no other socket of this host process has.
fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A listener and its file, which is removed with it.
pub(crate) struct Bound {
    listener: UnixListener,
    path: PathBuf,
}

impl Bound {
    /// Binds a new socket in `directory`; `role` is one letter.
    pub(crate) fn open(directory: &Path, role: char) -> io::Result<Bound> {
        let path = directory.join(format!("{}{role}", fresh()));
        let listener = UnixListener::bind(&path)?;
        // The standard backlog of 128 would refuse a burst that arrives during a restart.
        rustix::net::listen(&listener, 4096)?;
        Ok(Bound { listener, path })
    }

    /// Where to connect.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The listener, for the host's own accept loop.
    pub(crate) fn accepting(&self) -> io::Result<tokio::net::UnixListener> {
        let listener = self.listener.try_clone()?;
        listener.set_nonblocking(true)?;
        tokio::net::UnixListener::from_std(listener)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The two sockets a worker process serves.
pub(crate) struct Listening {
    http: Bound,
    events: Bound,
}

impl Listening {
    /// Binds both.
    pub(crate) fn open(directory: &Path) -> io::Result<Listening> {
        Ok(Listening {
            http: Bound::open(directory, 'h')?,
            events: Bound::open(directory, 'e')?,
        })
    }

    /// Where requests go.
    pub(crate) fn http_path(&self) -> &Path {
        self.http.path()
    }

    /// Where events go.
    pub(crate) fn events_path(&self) -> &Path {
        self.events.path()
    }

    /// Handles for a process to inherit.
    pub(crate) fn inherited(&self) -> io::Result<Inherited> {
        Ok(Inherited {
            http: self.http.listener.as_fd().try_clone_to_owned()?,
            events: self.events.listener.as_fd().try_clone_to_owned()?,
        })
    }
}
