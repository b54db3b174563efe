//! The only place of the runtime that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Moment for measuring how long something takes.
pub(crate) fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Wall clock, as time since 1970-01-01 UTC.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Wall clock in whole milliseconds, as stored beside data.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX)
}
