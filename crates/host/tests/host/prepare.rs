//! Validate and prepare.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::json;

#[tokio::test]
async fn validate_accepts_canonical() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for (kind, spec) in [
        ("ModuleWorker", json!({})),
        ("EdgeKVNamespace", json!({})),
        ("AtLeastOnceQueue", queue_spec(345_600)),
    ] {
        let answer = client
            .validate(&client.document(kind, "probe", spec))
            .await
            .is(200)
            .json();
        assert_eq!(answer, json!({"valid": true, "diagnostics": []}));
    }
}

#[tokio::test]
async fn validate_rejects_negative_fixtures() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for (kind, spec) in [
        ("ModuleWorker", json!({"unexpected": true})),
        ("AtLeastOnceQueue", queue_spec(59)),
    ] {
        let answer = client
            .validate(&client.document(kind, "probe", spec))
            .await
            .is(200);
        let reply: wire::ValidateReply = serde_json::from_value(answer.json()).unwrap();
        assert!(!reply.valid && !reply.diagnostics.is_empty());
    }
}

#[tokio::test]
async fn validate_tells_at_most_256_problems() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let handlers: Vec<String> = (0..2000).map(|number| format!("h{number}")).collect();
    let document = client.document("WorkerVersion", "v", json!({ "handlers": handlers }));
    let answer = client.validate(&document).await.is(200);
    let reply: wire::ValidateReply = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(reply.diagnostics.len(), 256);
}

#[tokio::test]
async fn prepare_binds_exact_spec() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = client.document(
        "AtLeastOnceQueue",
        "q",
        json!({"messageRetentionSeconds": 345_600}),
    );
    let reply: wire::PreparedReply =
        serde_json::from_value(client.prepare(&document, None).await.is(200).json()).unwrap();
    assert_eq!(reply.resource.spec, queue_spec(345_600));
    assert_eq!(reply.review.spec_digest, wire::digest(&queue_spec(345_600)));
    assert_eq!(
        serde_json::to_value(&reply.resource).unwrap(),
        with(document.clone(), "spec", queue_spec(345_600)),
        "the document is echoed with its defaults, and nothing is added"
    );
    assert!(notation_edge::is_digest(&reply.review.prepare_digest));
    let again: wire::PreparedReply =
        serde_json::from_value(client.prepare(&document, None).await.is(200).json()).unwrap();
    assert_eq!(
        again.review, reply.review,
        "a create review is a function of the document"
    );
    client.absent("AtLeastOnceQueue", "q").await;
}

#[tokio::test]
async fn prepare_substitution_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let reviewed = client
        .reviewed(
            &client.document("AtLeastOnceQueue", "q", queue_spec(345_600)),
            None,
        )
        .await;
    let substituted = with(reviewed, "spec", queue_spec(600));
    client
        .put(
            &substituted,
            &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
        )
        .await
        .refused("invalid_argument");
    client.absent("AtLeastOnceQueue", "q").await;
}

#[tokio::test]
async fn prepare_requires_update_fence() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    let document = client.document("AtLeastOnceQueue", "q", queue_spec(600));
    client
        .prepare(&document, None)
        .await
        .refused("invalid_argument");
    client
        .prepare(&document, Some("07"))
        .await
        .refused("invalid_argument");
    client
        .prepare(&document, Some("7"))
        .await
        .refused("generation_conflict");
    client.prepare(&document, Some("1")).await.is(200);
}

#[tokio::test]
async fn stale_prepare_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    let document = client.document("AtLeastOnceQueue", "q", queue_spec(600));
    let early = client.reviewed(&document, Some("1")).await;
    client
        .update("AtLeastOnceQueue", "q", queue_spec(900))
        .await
        .updated();
    let before = client.read("AtLeastOnceQueue", "q").await.updated();
    client
        .put(
            &early,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", "2"),
            ],
        )
        .await
        .refused("invalid_argument");
    assert_eq!(client.read("AtLeastOnceQueue", "q").await.updated(), before);
}

#[tokio::test]
async fn prepare_is_tenant_scoped() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let reviewed = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    let create = || {
        [
            ("Idempotency-Key", key()),
            ("If-None-Match", "*".to_owned()),
        ]
    };
    let headers = create();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    other
        .put(&reviewed, &headers)
        .await
        .refused("invalid_argument");
    client.absent("ModuleWorker", "w").await;
    other.worker("w").await;
    bench.t1p2().put(&reviewed, &headers).await.created();
}

#[tokio::test]
async fn prepare_looks_at_nothing_but_the_document_and_the_fence() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for (kind, spec) in [
        (
            "WorkerVersion",
            version_spec("no-worker", "no-bundle", &["fetch"]),
        ),
        (
            "WorkerDeployment",
            deployment_spec("no-worker", &[("a", 1), ("a", 2)]),
        ),
        (
            "WorkerBundle",
            json!({"manifestDigest": format!("sha256:{}", "0".repeat(64))}),
        ),
        ("QueueConsumer", consumer_spec("no-worker", "q", Some("q"))),
    ] {
        client
            .prepare(&client.document(kind, "x", spec), None)
            .await
            .is(200);
    }
    client
        .prepare(&client.document("ModuleWorker", "x", json!({})), Some("1"))
        .await
        .refused("resource_not_found");
}
