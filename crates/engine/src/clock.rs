//! The one place where the engine reads the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

/// Time, as the engine sees it. Tests bring their own.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970. May jump.
    fn now_ms(&self) -> u64;
    /// Returns after so long.
    async fn sleep(&self, duration: Duration);
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
