//! Replay records: byte for byte, per principal, space and incarnation.

use crate::bench::*;
use serde_json::json;

const CREATE: [(&str, &str); 2] = [("Idempotency-Key", "the-key"), ("If-None-Match", "*")];

#[tokio::test]
async fn apply_idempotency_replay() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    let first = client.put(&document, &CREATE).await.is(201);
    assert_eq!(client.put(&document, &CREATE).await, first);
    let other = client
        .reviewed(&client.document("ModuleWorker", "w2", json!({})), None)
        .await;
    client
        .put(&other, &CREATE)
        .await
        .refused("invalid_argument");
    client.absent("ModuleWorker", "w2").await;
}

#[tokio::test]
async fn cross_principal_idempotency_isolation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    client.put(&document, &CREATE).await.created();
    bench
        .t1p2()
        .put(&document, &CREATE)
        .await
        .refused("generation_conflict");
    bench
        .t2()
        .put(&document, &CREATE)
        .await
        .refused("invalid_argument");
    bench.t2().absent("ModuleWorker", "w").await;
}

#[tokio::test]
async fn idempotency_is_tenant_scoped() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let document = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    let first = client.put(&document, &CREATE).await.created();
    let document = other
        .reviewed(&other.document("ModuleWorker", "w", json!({})), None)
        .await;
    let second = other.put(&document, &CREATE).await;
    assert_eq!(other.put(&document, &CREATE).await, second);
    assert_eq!(
        other.read("ModuleWorker", "w").await.updated(),
        second.created()
    );
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), first);
}

#[tokio::test]
async fn replay_record_retires_with_its_incarnation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = client
        .reviewed(&client.document("ModuleWorker", "w", json!({})), None)
        .await;
    let first = client.put(&document, &CREATE).await;
    assert_eq!(client.put(&document, &CREATE).await, first);
    let delete = [
        ("Idempotency-Key", "delete"),
        ("Takoform-Expected-Generation", "1"),
    ];
    client
        .delete_with("ModuleWorker", "w", &delete)
        .await
        .is(204);
    let second = client.put(&document, &CREATE).await.created();
    assert_ne!(second.metadata.uid, first.created().metadata.uid);
    client
        .delete_with("ModuleWorker", "w", &delete)
        .await
        .is(204);
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), second);

    let accepted = [
        ("Idempotency-Key", "async"),
        ("If-None-Match", "*"),
        ("Takoform-Conformance-Probe", "async"),
    ];
    let document = client
        .reviewed(&client.document("EdgeKVNamespace", "kv", json!({})), None)
        .await;
    let one = client.put(&document, &accepted).await.is(202);
    assert_eq!(client.put(&document, &accepted).await.json(), one.json());
    let id = one.json()["operation"]["id"].as_str().unwrap().to_owned();
    let done = crate::operations::finish(&client, &id).await;
    assert_eq!(client.put(&document, &accepted).await.json(), one.json());
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    let two = client.put(&document, &accepted).await.is(202).json();
    assert_ne!(two["operation"]["id"], one.json()["operation"]["id"]);
    let again = crate::operations::finish(&client, two["operation"]["id"].as_str().unwrap()).await;
    assert_ne!(
        again["result"]["resource"]["metadata"]["uid"],
        done["result"]["resource"]["metadata"]["uid"]
    );
}

#[tokio::test]
async fn refusals_are_never_recorded() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let spec = with(
        version_spec("w", "b", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]),
    );
    let document = client
        .reviewed(&client.document("WorkerVersion", "v", spec), None)
        .await;
    client
        .put(&document, &CREATE)
        .await
        .refused("resource_not_found");
    client.kv("kv").await;
    client.put(&document, &CREATE).await.created();
}
