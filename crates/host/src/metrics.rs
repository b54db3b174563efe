//! Counts for whoever runs the host.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the duration buckets, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

#[derive(Default)]
struct Counted {
    requests: BTreeMap<(String, u16), u64>,
    buckets: [u64; BOUNDS.len()],
    seconds: f64,
    count: u64,
}

/// Requests by method and status, and how long they took.
#[derive(Default)]
pub struct Metrics(Mutex<Counted>);

impl Metrics {
    /// Counts one answered request.
    pub fn answered(&self, method: &str, status: u16, took: Duration) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only methods of the contract get a row of their own, so that nobody can grow the table.
        let known = ["GET", "HEAD", "PUT", "POST", "DELETE"].contains(&method);
        let method = if known { method } else { "other" };
        *counted
            .requests
            .entry((method.to_owned(), status))
            .or_default() += 1;
        let seconds = took.as_secs_f64();
        for (bucket, bound) in counted.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        counted.seconds += seconds;
        counted.count += 1;
    }

    /// The counts in the text format of Prometheus.
    pub fn text(&self) -> String {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from("# TYPE notation_host_requests_total counter\n");
        let mut line = |args: std::fmt::Arguments<'_>| {
            writeln!(text, "{args}").expect("writing to a String does not fail");
        };
        for ((method, status), count) in &counted.requests {
            line(format_args!(
                "notation_host_requests_total{{method=\"{method}\",status=\"{status}\"}} {count}"
            ));
        }
        line(format_args!(
            "# TYPE notation_host_request_seconds histogram"
        ));
        for (count, bound) in counted.buckets.iter().zip(BOUNDS) {
            line(format_args!(
                "notation_host_request_seconds_bucket{{le=\"{bound}\"}} {count}"
            ));
        }
        line(format_args!(
            "notation_host_request_seconds_bucket{{le=\"+Inf\"}} {}",
            counted.count
        ));
        line(format_args!(
            "notation_host_request_seconds_sum {}",
            counted.seconds
        ));
        line(format_args!(
            "notation_host_request_seconds_count {}",
            counted.count
        ));
        text
    }
}
