//! Counting the invocations of one version, so that it is stopped only when the last one
//! has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use tokio::sync::Notify;

/// In-flight count of one version. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Traffic(Arc<Counts>);

#[derive(Default)]
struct Counts {
    in_flight: AtomicUsize,
    closed: AtomicBool,
    emptied: Notify,
}

/// One invocation; it has ended when this is dropped.
pub(crate) struct InFlight(Arc<Counts>);

impl Traffic {
    /// Counts one invocation in, or refuses because the version was routed away.
    ///
    /// The count goes up before the flag is looked at, and [`Traffic::drained`] raises the flag
    /// before it looks at the count: whoever is let in is waited for.
    pub(crate) fn enter(&self) -> Option<InFlight> {
        self.0.in_flight.fetch_add(1, SeqCst);
        let entered = InFlight(self.0.clone());
        (!self.0.closed.load(SeqCst)).then_some(entered)
    }

    /// Refuses new invocations from now on.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, SeqCst);
    }

    /// Resolves when no invocation is left; to be called after [`Traffic::close`].
    pub(crate) async fn drained(&self) {
        loop {
            let emptied = self.0.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// Invocations that have not ended.
    pub(crate) fn count(&self) -> usize {
        self.0.in_flight.load(SeqCst)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, SeqCst) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_enters_after_closing_and_the_last_one_out_ends_the_wait() {
        let traffic = Traffic::default();
        let first = traffic.enter().expect("open");
        traffic.close();
        assert!(traffic.enter().is_none());
        assert_eq!(traffic.count(), 1);
        let wait = tokio::spawn({
            let traffic = traffic.clone();
            async move { traffic.drained().await }
        });
        drop(first);
        wait.await.expect("ends");
    }
}
