//! A clock that moves when somebody sleeps.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use notation_engine::Clock;

/// Starts at an hour after 1970. Sleeping returns at once and moves the clock; whoever sleeps for
/// as long as a renewal of the hold takes sleeps for ever, so that renewing does not spin.
pub struct TestClock(AtomicU64, bool);

impl Default for TestClock {
    fn default() -> Self {
        TestClock(AtomicU64::new(3_600_000), true)
    }
}

impl TestClock {
    /// One that only jumps when told to.
    pub fn standing() -> TestClock {
        TestClock(AtomicU64::new(3_600_000), false)
    }

    /// One that shows this time and only jumps when told to.
    pub fn at(now_ms: u64) -> TestClock {
        TestClock(AtomicU64::new(now_ms), false)
    }

    pub fn jump(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    async fn sleep(&self, duration: Duration) {
        if duration >= Duration::from_millis(notation_state::RENEW_MS) {
            std::future::pending::<()>().await;
        }
        if self.1 {
            self.jump(u64::try_from(duration.as_millis()).unwrap());
        }
        tokio::task::yield_now().await;
    }
}
