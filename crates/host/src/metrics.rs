//! Counts for whoever runs the host, in the text format of Prometheus.

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
    collected: u64,
}

/// Requests by method and status, how long they took, and what was collected.
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

    /// Counts removed artifacts.
    pub fn collected(&self, artifacts: usize) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.collected += artifacts as u64;
    }
}

/// One family: its name, its type, what it means.
pub fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    line(
        text,
        format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"),
    );
}

/// One line.
pub fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    writeln!(text, "{args}").expect("writing to a String does not fail");
}

/// A value between the quotes of a label.
pub fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// What was counted.
pub fn counted(text: &mut String, metrics: &Metrics) {
    let counted = metrics.0.lock().unwrap_or_else(PoisonError::into_inner);
    let name = "notation_host_requests_total";
    family(text, name, "counter", "Answered requests.");
    for ((method, status), count) in &counted.requests {
        line(
            text,
            format_args!("{name}{{method=\"{method}\",status=\"{status}\"}} {count}"),
        );
    }
    let name = "notation_host_request_seconds";
    family(text, name, "histogram", "How long answers took.");
    for (count, bound) in counted.buckets.iter().zip(BOUNDS) {
        line(
            text,
            format_args!("{name}_bucket{{le=\"{bound}\"}} {count}"),
        );
    }
    let all = counted.count;
    line(text, format_args!("{name}_bucket{{le=\"+Inf\"}} {all}"));
    line(text, format_args!("{name}_sum {}", counted.seconds));
    line(text, format_args!("{name}_count {all}"));
    let name = "notation_host_artifacts_collected_total";
    family(
        text,
        name,
        "counter",
        "Artifacts that nobody held, removed.",
    );
    line(text, format_args!("{name} {}", counted.collected));
}
