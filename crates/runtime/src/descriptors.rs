//! File descriptors of this process: room for connections, and knowing when there is none left.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Open files that are enough.
const FILES: u64 = 65_536;
/// An exchange at the ingress takes two, the client's connection and the one to the worker
/// process; one at the control plane takes one. So a sixth for each of the two leaves half of
/// all for the host's own files, worker processes and the calls of their bindings.
const SHARE: u64 = 6;

/// Connections that the ingress may have at a time, and the control plane as many again.
///
/// Raises the limit of open files first: many systems start programs with room for a thousand
/// and allow far more.
pub fn connections_that_fit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(FILES);
    usize::try_from(files / SHARE).unwrap_or(usize::MAX).max(1)
}

/// Whether something could not be opened because the host itself, or its system, has no
/// descriptor or no memory for it.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}
