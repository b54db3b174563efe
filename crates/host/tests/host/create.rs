//! Create, update and the counters.

use crate::bench::*;
use serde_json::json;

#[tokio::test]
async fn apply_create_uid_minted() {
    let bench = Bench::start().await;
    let created = bench.t1().worker("module-worker-probe").await;
    assert_eq!(
        (
            created.metadata.generation.as_str(),
            created.metadata.revision.as_str()
        ),
        ("1", "1")
    );
    assert!(
        created
            .metadata
            .uid
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric())
    );
    assert_eq!(ready(&created).1, "Provisioning");
}

#[tokio::test]
async fn apply_headers_required() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let reviewed = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    client
        .put(&reviewed, &[("If-None-Match", "*")])
        .await
        .refused("invalid_argument");
    client
        .put(&reviewed, &[("Idempotency-Key", "")])
        .await
        .refused("invalid_argument");
    client
        .put(&reviewed, &[("Idempotency-Key", &key())])
        .await
        .refused("invalid_argument");
    client
        .put(
            &reviewed,
            &[("Idempotency-Key", &key()), ("If-None-Match", "\"1\"")],
        )
        .await
        .refused("invalid_argument");
    let both = [
        ("Idempotency-Key", "k"),
        ("If-None-Match", "*"),
        ("Takoform-Expected-Generation", "1"),
    ];
    client
        .put(&reviewed, &both)
        .await
        .refused("invalid_argument");
    let with_uid = with(reviewed, "expectedUid", "uid".into());
    client
        .put(
            &with_uid,
            &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
        )
        .await
        .refused("uid_mismatch");
    client.absent("ModuleWorker", "w").await;
}

#[tokio::test]
async fn create_conflict_when_exists() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let reviewed = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    let create = [("Idempotency-Key", "first"), ("If-None-Match", "*")];
    let created = client.put(&reviewed, &create).await.created();
    client
        .put(
            &reviewed,
            &[("Idempotency-Key", "second"), ("If-None-Match", "*")],
        )
        .await
        .refused("generation_conflict");
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), created);
}

#[tokio::test]
async fn update_generation_fence() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let created = client.queue("q").await;
    let updated = client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    assert_eq!(updated.metadata.uid, created.metadata.uid);
    assert_eq!(
        (
            updated.metadata.generation.as_str(),
            updated.metadata.revision.as_str()
        ),
        ("2", "2")
    );
}

#[tokio::test]
async fn spec_change_bumps_generation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    let same = client
        .update("AtLeastOnceQueue", "q", queue_spec(345_600))
        .await
        .updated();
    assert_eq!(
        (
            same.metadata.generation.as_str(),
            same.metadata.revision.as_str()
        ),
        ("1", "1")
    );
    let changed = client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    assert_eq!(changed.metadata.generation, "2");
    assert_eq!(changed.spec, queue_spec(600));
}

#[tokio::test]
async fn stale_generation_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    let reviewed = client
        .reviewed(
            &client.document("AtLeastOnceQueue", "q", queue_spec(900)),
            Some("2"),
        )
        .await;
    client
        .put(
            &reviewed,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", "1"),
            ],
        )
        .await
        .refused("generation_conflict");
    let differing = with(reviewed, "expectedGeneration", "1".into());
    client
        .put(
            &differing,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", "2"),
            ],
        )
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn revision_etag_exact() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    client.queue("q").await;
    client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    assert_eq!(
        client.read("EdgeKVNamespace", "kv").await.etag.as_deref(),
        Some("\"1\"")
    );
    assert_eq!(
        client.read("AtLeastOnceQueue", "q").await.etag.as_deref(),
        Some("\"2\"")
    );
}

#[tokio::test]
async fn expected_uid_mismatch_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let created = client.queue("q").await;
    let reviewed = client
        .reviewed(
            &client.document("AtLeastOnceQueue", "q", queue_spec(345_600)),
            Some("1"),
        )
        .await;
    let fence = || [("Takoform-Expected-Generation", "1")];
    let never = with(reviewed.clone(), "expectedUid", "uid-never-issued".into());
    let headers = [&[("Idempotency-Key", "a")][..], &fence()[..]].concat();
    client.put(&never, &headers).await.refused("uid_mismatch");
    let right = with(reviewed, "expectedUid", created.metadata.uid.clone().into());
    let headers = [&[("Idempotency-Key", "b")][..], &fence()[..]].concat();
    assert_eq!(
        client.put(&right, &headers).await.updated().metadata,
        created.metadata
    );
}

#[tokio::test]
async fn revision_role_update_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let spec = version_spec("w", "w-bundle", &["fetch"]);
    let before = client.read("WorkerVersion", "w-v1").await.updated();
    client
        .update("WorkerVersion", "w-v1", spec)
        .await
        .refused("invalid_argument");
    assert_eq!(client.read("WorkerVersion", "w-v1").await.updated(), before);
    // Another Form without update takes an identical apply.
    client
        .update("ModuleWorker", "w", json!({}))
        .await
        .updated();
}

#[tokio::test]
async fn no_update_spec_change_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let before = client.read("WorkerVersion", "w-v1").await.updated();
    let changed = with(
        version_spec("w", "w-bundle", &["fetch"]),
        "vars",
        json!({"LOG_LEVEL": "debug"}),
    );
    client
        .update("WorkerVersion", "w-v1", changed)
        .await
        .refused("invalid_argument");
    assert_eq!(client.read("WorkerVersion", "w-v1").await.updated(), before);
}

#[tokio::test]
async fn concurrent_unrelated_mutation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let (kv, queue) = tokio::join!(client.kv("kv"), client.queue("q"));
    assert_ne!(kv.metadata.uid, queue.metadata.uid);
    client.read("EdgeKVNamespace", "kv").await.updated();
    client.read("AtLeastOnceQueue", "q").await.updated();
}

#[tokio::test]
async fn condition_reason_closed() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    client.queue("q").await;
    let worker = client.worker("w").await;
    assert_eq!(ready(&worker).0, "False");
    assert!(ready(&worker).2.contains("worker w "));
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), worker);
    for (kind, name) in [("EdgeKVNamespace", "kv"), ("AtLeastOnceQueue", "q")] {
        assert_eq!(
            ready(&client.read(kind, name).await.updated()),
            ("True", "Available", "")
        );
    }
}
