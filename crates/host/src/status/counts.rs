//! What is counted and what is there, in the text format of Prometheus.

use crate::host::Host;
use crate::metrics::{counted, family, label, line};
use std::collections::BTreeMap;

/// Everything at this moment.
pub async fn text(host: &Host) -> String {
    let mut text = String::new();
    counted(&mut text, &host.inner.metrics);
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
