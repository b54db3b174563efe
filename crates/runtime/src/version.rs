//! One version at run time, as everybody but its driver sees it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::life::{Event, State};
use crate::load::LoadError;
use crate::log::LogSink;
use crate::plan::{Blobs, Handler, Uid, VersionSpec};
use crate::spawner::Spawner;
use crate::traffic::Traffic;
use crate::upstream::Upstream;

/// What all versions of one runtime share.
pub(crate) struct Workshop {
    pub(crate) spawner: Spawner,
    pub(crate) workerd: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) log: Arc<dyn LogSink>,
    /// Longest wait for invocations and tasks of a version that left, while the host goes on.
    pub(crate) drain_deadline: Duration,
    /// When everything is to have ended, once the host ends.
    pub(crate) end: watch::Sender<Option<Instant>>,
    /// Processes that may be coming up at the same time: a host with many workers must not
    /// make each of them late.
    pub(crate) starts: Semaphore,
}

impl Workshop {
    /// Resolves when the host that ends has given its versions all the time it has.
    pub(crate) async fn ended(&self) {
        let mut end = self.end.subscribe();
        let known = end.wait_for(Option::is_some).await.map(|end| *end);
        match known {
            Ok(Some(end)) => tokio::time::sleep_until(end).await,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when what drains from now on is to be cut off.
    pub(crate) async fn overdue(&self) {
        if self.end.borrow().is_some() {
            return self.ended().await;
        }
        tokio::select! {
            () = tokio::time::sleep(self.drain_deadline) => {}
            () = self.ended() => {}
        }
    }
}

/// Starts at the same time when nothing else is said.
pub(crate) const MOST_STARTS: usize = 8;

/// Service calls one version may have in flight: workers can call each other in a circle.
pub(crate) const MOST_CALLS: usize = 256;

/// Handle of one version. The process ends when it was told to leave, or when every handle
/// is gone.
pub(crate) struct Version {
    pub(crate) uid: Uid,
    pub(crate) worker_name: String,
    pub(crate) spec: Arc<VersionSpec>,
    pub(crate) traffic: Traffic,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) http: Upstream,
    pub(crate) events: Upstream,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) mailbox: mpsc::UnboundedSender<Event>,
}

/// What is known about a version's process.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) state: State,
    pub(crate) pid: Option<u32>,
    /// Why the last start failed; gone once it serves.
    pub(crate) failure: Option<Arc<StartFailure>>,
}

/// Why a version does not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    /// Its code does not load.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A module's bytes are not to be had.
    #[error("module {module} cannot be read")]
    Blob {
        /// The module.
        module: String,
        /// What the store said.
        #[source]
        source: io::Error,
    },
    /// The process did not come up.
    #[error("{detail}")]
    Process {
        /// What is known.
        detail: String,
    },
}

/// Nothing can take this request now.
#[derive(Debug)]
pub(crate) struct NotReady;

impl Version {
    /// It takes traffic from now on.
    pub(crate) fn demand(&self) {
        let _ = self.mailbox.send(Event::Demanded);
    }

    /// It was routed away: finish what runs, then end.
    pub(crate) fn leave(&self) {
        self.traffic.close();
        let _ = self.mailbox.send(Event::Left);
    }

    /// Waits until requests can be sent.
    pub(crate) async fn ready(&self) -> Result<(), NotReady> {
        let mut phase = self.phase.clone();
        let decided = phase.wait_for(|phase| match phase.state {
            State::Warm { .. }
            | State::Draining
            | State::BackOff { .. }
            | State::Stopping
            | State::Stopped => true,
            State::Cold | State::Starting { .. } | State::LastStart => false,
        });
        match decided.await {
            Ok(phase) if matches!(phase.state, State::Warm { .. } | State::Draining) => Ok(()),
            _ => Err(NotReady),
        }
    }

    /// Resolves when no process of this version will answer for some time.
    pub(crate) async fn lost(&self) {
        let mut phase = self.phase.clone();
        let _ = phase
            .wait_for(|phase| matches!(phase.state, State::BackOff { .. } | State::Stopped))
            .await;
    }

    /// Resolves when the version is gone for good.
    pub(crate) async fn ended(&self) {
        let mut phase = self.phase.clone();
        let _ = phase.wait_for(|phase| phase.state == State::Stopped).await;
    }

    /// Whether `handler` may be invoked.
    pub(crate) fn handles(&self, handler: Handler) -> bool {
        self.spec.handlers.contains(&handler)
    }
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
