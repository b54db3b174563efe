//! Counts for whoever runs the host, in the text format of Prometheus.

use crate::collect::Collected;
use crate::host::Host;
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
    pub fn collected(&self, collected: &Collected) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.collected += collected.artifacts as u64;
    }
}

/// One family: its name, its type, what it means.
fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    line(
        text,
        format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"),
    );
}

fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    writeln!(text, "{args}").expect("writing to a String does not fail");
}

/// A value between the quotes of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Everything at this moment.
pub async fn text(host: &Host) -> String {
    let mut text = String::new();
    requests(&mut text, &host.inner.metrics);
    let config = &host.inner.config;
    let gauges = [
        (
            "notation_host_requests_in_flight",
            "Requests that are being answered.",
            config
                .max_requests
                .saturating_sub(host.inner.requests.available_permits()),
        ),
        (
            "notation_host_connections",
            "Connections of the control plane.",
            config
                .max_connections
                .saturating_sub(host.inner.connections.available_permits()),
        ),
        (
            "notation_host_store_failed",
            "1 while the store cannot be written.",
            usize::from(host.inner.store.is_doubtful()),
        ),
    ];
    for (name, help, value) in gauges {
        family(&mut text, name, "gauge", help);
        line(&mut text, format_args!("{name} {value}"));
    }
    let mut rows: [Vec<String>; 4] = Default::default();
    for plane in host.planes() {
        let tenant = label(&plane.tenant);
        let state = plane.state.lock().await;
        let mut kinds: BTreeMap<(&str, bool), usize> = BTreeMap::new();
        for resource in state.world.resources() {
            let ready = resource.condition.is_ready();
            *kinds.entry((&resource.key.kind, ready)).or_default() += 1;
        }
        for ((kind, ready), count) in kinds {
            let kind = label(kind);
            rows[0].push(format!(
                "notation_host_resources{{tenant=\"{tenant}\",kind=\"{kind}\",ready=\"{ready}\"}} {count}"
            ));
        }
        let pending = state.operations.values();
        let pending = pending.filter(|it| it.terminal.is_none()).count();
        let bytes: u64 = state.blobs.values().sum();
        rows[1].push(format!(
            "notation_host_operations_pending{{tenant=\"{tenant}\"}} {pending}"
        ));
        rows[2].push(format!(
            "notation_host_uploads_open{{tenant=\"{tenant}\"}} {}",
            state.uploads.len()
        ));
        rows[3].push(format!(
            "notation_host_artifact_bytes{{tenant=\"{tenant}\"}} {bytes}"
        ));
    }
    let families = [
        ("notation_host_resources", "Stored resources."),
        (
            "notation_host_operations_pending",
            "Accepted operations that have not ended.",
        ),
        ("notation_host_uploads_open", "Upload sessions."),
        (
            "notation_host_artifact_bytes",
            "Bytes of the artifacts a tenant holds.",
        ),
    ];
    for ((name, help), rows) in families.into_iter().zip(rows) {
        family(&mut text, name, "gauge", help);
        for row in rows {
            line(&mut text, format_args!("{row}"));
        }
    }
    text
}

fn requests(text: &mut String, metrics: &Metrics) {
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
