//! The host's one look at the clock.

use std::sync::Arc;

/// Tells the time conditions carry: RFC 3339 in UTC, whole seconds.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> String;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> String {
        jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string()
    }
}

/// A clock that stands still; part of the conformance adapter and of tests (host API §8.7).
#[derive(Debug, Clone)]
pub struct FixedClock(pub Arc<str>);

impl Clock for FixedClock {
    fn now(&self) -> String {
        self.0.to_string()
    }
}
