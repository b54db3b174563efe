//! The host's one look at the clock.

use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Tells the time conditions carry: RFC 3339 in UTC, whole seconds.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> String;
    /// The time that was `age` ago.
    fn before(&self, age: Duration) -> String;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

fn written(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Clock for SystemClock {
    fn now(&self) -> String {
        written(Timestamp::now())
    }

    fn before(&self, age: Duration) -> String {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        written(
            Timestamp::now()
                .saturating_sub(age)
                .unwrap_or(Timestamp::MIN),
        )
    }
}

/// A clock that stands still; part of the conformance adapter and of tests (host API §8.7).
#[derive(Debug, Clone)]
pub struct FixedClock(pub Arc<str>);

impl Clock for FixedClock {
    fn now(&self) -> String {
        self.0.to_string()
    }

    /// Nothing ages while the clock stands still.
    fn before(&self, _age: Duration) -> String {
        self.0.to_string()
    }
}
