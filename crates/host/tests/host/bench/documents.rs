//! Specs and manifests.

use super::EDGE;
use notation_edge_api as wire;
use serde_json::{Value, json};

/// A reference of the family.
pub fn to(kind: &str, name: &str) -> Value {
    json!({"apiVersion": EDGE, "kind": kind, "name": name})
}

pub fn module_manifest(name: &str, source: &str) -> Value {
    json!({
        "apiVersion": "artifacts.takoform.com/v1alpha1", "kind": "WorkerBundle", "mainModule": name,
        "modules": [{
            "name": name, "mediaType": "application/javascript+module",
            "size": source.len(), "digest": wire::blob_digest(source.as_bytes())
        }]
    })
}

pub fn files_manifest(kind: &str, media_type: &str, files: &[(&str, &str)]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, text)| {
            json!({"path": path, "mediaType": media_type, "size": text.len(), "digest": wire::blob_digest(text.as_bytes())})
        })
        .collect();
    json!({"apiVersion": "artifacts.takoform.com/v1alpha1", "kind": kind, "files": files})
}

pub fn queue_spec(retention: u64) -> Value {
    json!({"messageRetentionSeconds": retention, "deliveryDelaySeconds": 0})
}

pub fn version_spec(worker: &str, bundle: &str, handlers: &[&str]) -> Value {
    json!({
        "worker": to("ModuleWorker", worker), "bundle": to("WorkerBundle", bundle), "handlers": handlers,
        "vars": {}, "requiredSensitiveVars": [], "kvBindings": [], "bucketBindings": [],
        "sqliteBindings": [], "queueProducerBindings": [], "serviceBindings": []
    })
}

pub fn with(mut spec: Value, member: &str, value: Value) -> Value {
    spec[member] = value;
    spec
}

/// A version with one service binding.
pub fn service_spec(worker: &str, bundle: &str, target: &str) -> Value {
    with(
        version_spec(worker, bundle, &["fetch"]),
        "serviceBindings",
        json!([{"name": "PEER", "resource": to("ModuleWorker", target)}]),
    )
}

/// A version with one binding to a key-value namespace.
pub fn kv_spec(worker: &str, bundle: &str, kv: &str) -> Value {
    with(
        version_spec(worker, bundle, &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", kv)}]),
    )
}

pub fn deployment_spec(worker: &str, versions: &[(&str, u64)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, weight)| json!({"workerVersion": to("WorkerVersion", version), "weight": weight}))
        .collect();
    json!({"worker": to("ModuleWorker", worker), "versions": versions})
}

pub fn consumer_spec(worker: &str, queue: &str, dead: Option<&str>) -> Value {
    let mut spec = json!({
        "worker": to("ModuleWorker", worker), "queue": to("AtLeastOnceQueue", queue),
        "maxBatchSize": 10, "maxBatchTimeoutSeconds": 5, "maxConcurrency": 1, "maxRetries": 3,
        "retryDelaySeconds": 0
    });
    if let Some(dead) = dead {
        spec["deadLetterQueue"] = to("AtLeastOnceQueue", dead);
    }
    spec
}

pub fn domain_spec(worker: &str, hostname: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker), "hostname": hostname})
}

pub fn endpoint_spec(worker: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker)})
}

pub fn cron_spec(worker: &str, cron: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker), "cron": cron})
}
