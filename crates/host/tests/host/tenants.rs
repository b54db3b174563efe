//! Tenants: what belongs to another one does not exist.

use crate::bench::*;
use serde_json::json;

/// The answer with the name and everything that may differ taken out.
fn alike(answer: &Answer, name: &str) -> (u16, String) {
    let mut document = answer.json();
    if let Some(error) = document.get_mut("error") {
        error["requestId"] = "".into();
    }
    (answer.status, document.to_string().replace(name, "NAME"))
}

#[tokio::test]
async fn resource_address_is_tenant_scoped() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let first = client.kv("kv").await;
    client
        .update("EdgeKVNamespace", "kv", json!({}))
        .await
        .updated();
    let second = other.kv("kv").await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!(
        (
            second.metadata.generation.as_str(),
            second.metadata.revision.as_str()
        ),
        ("1", "1")
    );
    assert_eq!(client.read("EdgeKVNamespace", "kv").await.updated(), first);
    assert_eq!(other.read("EdgeKVNamespace", "kv").await.updated(), second);
}

#[tokio::test]
async fn resource_read_is_tenant_isolated() {
    let bench = Bench::start().await;
    bench.t1().kv("held").await;
    let held = bench.t2().read("EdgeKVNamespace", "held").await;
    let unused = bench.t2().read("EdgeKVNamespace", "free").await;
    held.refused("resource_not_found");
    assert_eq!(alike(&held, "held"), alike(&unused, "free"));
}

#[tokio::test]
async fn resource_observe_is_tenant_isolated() {
    let bench = Bench::start().await;
    bench.t1().kv("held").await;
    let headers = [
        ("Idempotency-Key", "o"),
        ("Takoform-Expected-Generation", "1"),
    ];
    let held = bench
        .t2()
        .observe("EdgeKVNamespace", "held", &headers)
        .await;
    let unused = bench
        .t2()
        .observe("EdgeKVNamespace", "free", &headers)
        .await;
    held.refused("resource_not_found");
    assert_eq!(alike(&held, "held"), alike(&unused, "free"));
    bench
        .t1()
        .observe("EdgeKVNamespace", "held", &headers)
        .await
        .is(200);
}

#[tokio::test]
async fn resource_update_is_tenant_isolated() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let worker = client.worker("w").await;
    let document = other.document("ModuleWorker", "w", json!({}));
    other
        .prepare(&document, Some("1"))
        .await
        .refused("resource_not_found");
    let reviewed = other.reviewed(&document, None).await;
    other
        .put(
            &reviewed,
            &[
                ("Idempotency-Key", "u"),
                ("Takoform-Expected-Generation", "1"),
            ],
        )
        .await
        .refused("resource_not_found");
    assert_eq!(client.read("ModuleWorker", "w").await.updated(), worker);
    assert_eq!(
        client
            .update("ModuleWorker", "w", json!({}))
            .await
            .updated(),
        worker
    );
}

#[tokio::test]
async fn resource_import_is_tenant_isolated() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let held = client
        .import_new(
            &client.document("EdgeKVNamespace", "held", json!({})),
            "native",
        )
        .await
        .created();
    let fenced = [
        ("Idempotency-Key", "i"),
        ("Takoform-Expected-Generation", "1"),
    ];
    let document = |name: &str| other.document("EdgeKVNamespace", name, json!({}));
    let one = other.import(&document("held"), "n1", &fenced).await;
    let two = other.import(&document("free"), "n1", &fenced).await;
    one.refused("resource_not_found");
    assert_eq!(alike(&one, "held"), alike(&two, "free"));
    let one = other.import_new(&document("held"), "native").await;
    let two = other.import_new(&document("free"), "n2").await;
    let normal = |answer: &Answer, name: &str| {
        let resource = answer.created();
        (
            answer.etag.clone(),
            answer
                .text()
                .replace(&resource.metadata.uid, "UID")
                .replace(name, "NAME"),
        )
    };
    assert_eq!(normal(&one, "held"), normal(&two, "free"));
    assert_eq!(client.read("EdgeKVNamespace", "held").await.updated(), held);
    other
        .import_new(&document("third"), "native")
        .await
        .refused("import_conflict");
}

#[tokio::test]
async fn resource_delete_is_tenant_isolated() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    client.kv("kv").await;
    let headers = [
        ("Idempotency-Key", "d"),
        ("Takoform-Expected-Generation", "1"),
        ("If-Match", "\"1\""),
    ];
    other
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .refused("resource_not_found");
    client.read("EdgeKVNamespace", "kv").await.updated();
    client
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .is(204);
}

#[tokio::test]
async fn each_tenant_mutates_its_own_plane() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let first = client.queue("q").await;
    other.queue("q").await;
    let moved = other
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    assert_eq!(moved.metadata.generation, "2");
    assert_eq!(other.read("AtLeastOnceQueue", "q").await.updated(), moved);
    other.delete("AtLeastOnceQueue", "q").await.is(204);
    assert_eq!(client.read("AtLeastOnceQueue", "q").await.updated(), first);
}
