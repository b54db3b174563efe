//! Read, observe, delete and renderings that move.

use crate::bench::*;
use serde_json::json;

#[tokio::test]
async fn observe_fence_exact() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    let observe = |generation: &'static str| {
        let client = client.clone();
        async move {
            client
                .observe(
                    "AtLeastOnceQueue",
                    "q",
                    &[
                        ("Idempotency-Key", &key()),
                        ("Takoform-Expected-Generation", generation),
                    ],
                )
                .await
        }
    };
    observe("1").await.refused("generation_conflict");
    observe("").await.refused("invalid_argument");
    let seen = observe("2").await.is(200);
    assert_eq!(seen.json()["resource"]["metadata"]["generation"], "2");
    assert_eq!(seen.etag.as_deref(), Some("\"2\""));
    client
        .observe(
            "AtLeastOnceQueue",
            "q",
            &[("Takoform-Expected-Generation", "2")],
        )
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn status_change_bumps_revision_not_generation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    let touch = [
        ("Idempotency-Key", "t"),
        ("Takoform-Expected-Generation", "1"),
        ("Takoform-Conformance-Probe", "touch-status"),
    ];
    let seen = client
        .observe("AtLeastOnceQueue", "q", &touch)
        .await
        .is(200)
        .json();
    assert_eq!(seen["resource"]["metadata"]["revision"], "2");
    assert_eq!(seen["resource"]["metadata"]["generation"], "1");
    assert_eq!(
        serde_json::to_value(client.read("AtLeastOnceQueue", "q").await.updated()).unwrap(),
        seen["resource"]
    );
    // The record answers, nothing is touched again.
    assert_eq!(
        client
            .observe("AtLeastOnceQueue", "q", &touch)
            .await
            .is(200)
            .json(),
        seen
    );
    assert_eq!(
        client
            .read("AtLeastOnceQueue", "q")
            .await
            .updated()
            .metadata
            .revision,
        "2"
    );
}

#[tokio::test]
async fn delete_generation_fence() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    for (fence, code) in [("", "invalid_argument"), ("7", "generation_conflict")] {
        client
            .delete_with(
                "EdgeKVNamespace",
                "kv",
                &[
                    ("Idempotency-Key", &key()),
                    ("Takoform-Expected-Generation", fence),
                ],
            )
            .await
            .refused(code);
        client.read("EdgeKVNamespace", "kv").await.updated();
    }
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    client.absent("EdgeKVNamespace", "kv").await;
}

#[tokio::test]
async fn delete_revision_fence() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let headers = [
        ("Idempotency-Key", "d"),
        ("Takoform-Expected-Generation", "1"),
        ("If-Match", "\"1\""),
    ];
    client
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .is(204);
    client.absent("EdgeKVNamespace", "kv").await;
}

#[tokio::test]
async fn stale_revision_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let headers = [
        ("Idempotency-Key", "d"),
        ("Takoform-Expected-Generation", "1"),
        ("If-Match", "\"9\""),
    ];
    client
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .refused("revision_conflict");
    let both = [
        ("Idempotency-Key", "e"),
        ("Takoform-Expected-Generation", "9"),
        ("If-Match", "\"9\""),
    ];
    client
        .delete_with("EdgeKVNamespace", "kv", &both)
        .await
        .refused("generation_conflict");
    client.read("EdgeKVNamespace", "kv").await.updated();
}

#[tokio::test]
async fn delete_then_recreate_uid_changes() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let first = client.kv("kv").await;
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    let second = client.kv("kv").await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!(second.metadata.generation, "1");
}

#[tokio::test]
async fn delete_fence_survives_derived_rendering() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let worker = client.read("ModuleWorker", "w").await;
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
    client.delete("WorkerVersion", "w-v1").await.is(204);
    let etag = worker.etag.unwrap();
    let old = [
        ("Idempotency-Key", "a"),
        ("Takoform-Expected-Generation", "1"),
        ("If-Match", etag.as_str()),
    ];
    client
        .delete_with("ModuleWorker", "w", &old)
        .await
        .refused("revision_conflict");
    client
        .delete_with(
            "ModuleWorker",
            "w",
            &[
                ("Idempotency-Key", "b"),
                ("Takoform-Expected-Generation", "1"),
            ],
        )
        .await
        .is(204);
}

#[tokio::test]
async fn dependent_revision_advances_with_rendering() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.kv("kv").await;
    client.bundle("w-bundle", FETCH_ONLY).await;
    let spec = with(
        version_spec("w", "w-bundle", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]),
    );
    client.create("WorkerVersion", "w-v1", spec).await.created();
    assert_eq!(
        ready(&client.read("ModuleWorker", "w").await.updated()).1,
        "Provisioning"
    );
    client.deploy("w", "w-v1").await;
    let after = client.read("ModuleWorker", "w").await.updated();
    assert_eq!(ready(&after), ("True", "Available", ""));
    assert_eq!(
        (
            after.metadata.generation.as_str(),
            after.metadata.revision.as_str()
        ),
        ("1", "2")
    );
    client
        .update(
            "WorkerDeployment",
            "w-deployment",
            deployment_spec("w", &[("w-v1", 10_000)]),
        )
        .await
        .updated();
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), after);
    let before = client.read("WorkerVersion", "w-v1").await.updated();
    client.vanish("EdgeKVNamespace", "kv").await;
    let version = client.read("WorkerVersion", "w-v1").await.updated();
    assert_eq!(ready(&version).1, "DependencyMissing");
    assert_eq!(version.metadata.generation, before.metadata.generation);
    assert_eq!(version.metadata.revision, "2");
}

#[tokio::test]
async fn cross_space_isolation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let other = client.in_space(OTHER_SPACE);
    let headers = [("Idempotency-Key", "shared"), ("If-None-Match", "*")];
    let document = client
        .reviewed(&client.document("EdgeKVNamespace", "kv", json!({})), None)
        .await;
    let first = client.put(&document, &headers).await.created();
    let document = other
        .reviewed(&other.document("EdgeKVNamespace", "kv", json!({})), None)
        .await;
    let second = other.put(&document, &headers).await.created();
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!(client.read("EdgeKVNamespace", "kv").await.updated(), first);
    client.queue("only-here").await;
    other.absent("AtLeastOnceQueue", "only-here").await;
}
