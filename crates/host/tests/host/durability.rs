//! What was answered is there after a restart: resources, counters, records, operations, claims.

use crate::bench::*;
use crate::operations::{accept_create, accept_delete, finish, poll};
use notation_host::{Host, HostConfig, NoDataPlane, OpenError};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_restart_changes_nothing() {
    let bench = Bench::start().await;
    let dir = bench.dir.clone();
    let client = bench.t1();
    client.serving("w", &["fetch", "scheduled", "queue"]).await;
    client.queue("q").await;
    client
        .create("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .created();
    client
        .create("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await
        .created();
    client
        .create("QueueConsumer", "c", consumer_spec("w", "q", None))
        .await
        .created();
    client.vanish("AtLeastOnceQueue", "q").await;
    client
        .import_new(
            &client.document("EdgeKVNamespace", "kv", json!({})),
            "native",
        )
        .await
        .created();
    let names = [
        ("ModuleWorker", "w"),
        ("WorkerVersion", "w-v1"),
        ("WorkerDeployment", "w-deployment"),
        ("WorkerEndpoint", "e"),
        ("QueueConsumer", "c"),
    ];
    let mut before = Vec::new();
    for (kind, name) in names {
        before.push(client.read(kind, name).await);
    }
    let document = client
        .reviewed(&client.document("ModuleWorker", "w2", json!({})), None)
        .await;
    let create = [("Idempotency-Key", "create"), ("If-None-Match", "*")];
    let created = client.put(&document, &create).await.is(201);
    let done = accept_create(&client, "EdgeKVNamespace", "kv2", json!({})).await;
    finish(&client, &done).await;
    let terminal = poll(&client, &done).await;
    let pending = accept_delete(&client, "EdgeKVNamespace", "kv2").await;

    let conformance = bench.t1();
    drop(conformance);
    let bench = bench.restart(adapter_config(&dir)).await;
    let client = bench.t1();
    for ((kind, name), before) in names.into_iter().zip(before) {
        assert_eq!(client.read(kind, name).await, before);
    }
    assert_eq!(client.put(&document, &create).await, created);
    assert_eq!(poll(&client, &done).await, terminal);
    finish(&client, &pending).await;
    client.absent("EdgeKVNamespace", "kv2").await;
    client
        .import_new(
            &client.document("EdgeKVNamespace", "kv3", json!({})),
            "native",
        )
        .await
        .refused("import_conflict");
    client
        .create(
            "WorkerCustomDomain",
            "d2",
            domain_spec("w", "a.example.com"),
        )
        .await
        .refused("invalid_argument");
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .refused("dependency_in_use");
}

fn adapter_config(dir: &std::path::Path) -> HostConfig {
    config(dir).with_conformance(adapter())
}

#[tokio::test]
async fn one_host_per_data_directory() {
    let bench = Bench::plain().await;
    let again = Host::open(config(&bench.dir), Arc::new(NoDataPlane)).await;
    assert!(matches!(again, Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn a_damaged_contract_set_is_refused_with_every_reason() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("set");
    copy(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts"),
        &set,
    );
    let config = |set: &std::path::Path| HostConfig {
        contracts: Some(set.to_owned()),
        ..HostConfig::new(temp.path().join("data"))
    };
    drop(
        Host::open(config(&set), Arc::new(NoDataPlane))
            .await
            .unwrap(),
    );
    let edit = |path: &str| {
        let path = set.join(path);
        let text = std::fs::read_to_string(&path).unwrap().replacen(
            "\"title\": \"",
            "\"title\": \"Edited ",
            1,
        );
        std::fs::write(path, text).unwrap();
    };
    edit("forms/candidates/edge/v1beta1/worker-version/definition.json");
    edit("interfaces/candidates/v1alpha1/edge.kv/definition.json");
    std::fs::remove_file(
        set.join("bindings/candidates/v1alpha1/module-worker.service/definition.json"),
    )
    .unwrap();
    let error = Host::open(config(&set), Arc::new(NoDataPlane))
        .await
        .err()
        .unwrap()
        .to_string();
    for wanted in [
        "worker-version/definition.json",
        "edge.kv/definition.json",
        "module-worker.service/definition.json",
    ] {
        assert!(error.contains(wanted), "{error}");
    }
}

pub fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn the_adapter_serves_on_loopback_only() {
    let bench = Bench::start().await;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = bench.host.serve(listener, std::future::pending()).await;
    assert!(matches!(
        refused,
        Err(notation_host::ServeError::NotLoopback(_))
    ));
}

#[tokio::test]
async fn health_and_readiness_need_no_token() {
    let bench = Bench::plain().await;
    let client = bench.t1().anonymous();
    client.get("/healthz").await.is(200);
    client.get("/readyz").await.is(200);
}

#[tokio::test]
async fn resources_of_other_contracts_are_told_at_the_start() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let bench = Bench::open(HostConfig::new(&data)).await;
    bench.t1().kv("kv").await;
    let set = temp.path().join("set");
    copy(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts"),
        &set,
    );
    let definition = set.join("forms/candidates/edge/v1beta1/edge-kv-namespace/definition.json");
    let before = std::fs::read(&definition).unwrap();
    let after = String::from_utf8(before.clone()).unwrap().replacen(
        "\"title\": \"",
        "\"title\": \"Other ",
        1,
    );
    std::fs::write(&definition, &after).unwrap();
    let digest =
        |bytes: &[u8]| notation_edge_api::digest(&notation_edge_api::parse(bytes).unwrap());
    let index = set.join("forms/candidates/edge/v1beta1/candidate-set.json");
    let text = std::fs::read_to_string(&index)
        .unwrap()
        .replace(&digest(&before), &digest(after.as_bytes()));
    std::fs::write(&index, text).unwrap();
    bench.stop().await;
    let other = HostConfig {
        contracts: Some(set),
        ..HostConfig::new(&data)
    };
    let error = Host::open(other, Arc::new(NoDataPlane))
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&error, OpenError::OtherContracts { count: 1, kind, .. } if kind == "EdgeKVNamespace"),
        "{error}"
    );
    drop(
        Host::open(HostConfig::new(&data), Arc::new(NoDataPlane))
            .await
            .unwrap(),
    );
}
