//! Import and native identities.

use crate::bench::*;
use serde_json::json;

#[tokio::test]
async fn import_adopts_native_resource() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = client.document("EdgeKVNamespace", "kv", json!({}));
    let adopted = client.import_new(&document, "native-1").await.created();
    assert_eq!(
        (
            adopted.metadata.generation.as_str(),
            adopted.metadata.revision.as_str()
        ),
        ("1", "1")
    );
    assert_eq!(
        client.read("EdgeKVNamespace", "kv").await.updated(),
        adopted
    );
    client
        .import_new(
            &client.document("EdgeKVNamespace", "other", json!({})),
            "  ",
        )
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn import_validates_like_apply() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let spec = with(
        version_spec("w", "b", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", "absent")}]),
    );
    client
        .import_new(&client.document("WorkerVersion", "v", spec), "n")
        .await
        .refused("resource_not_found");
    client.absent("WorkerVersion", "v").await;
}

#[tokio::test]
async fn import_claims_its_native_identity() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let other = client.in_space(OTHER_SPACE);
    let held = client
        .import_new(&client.document("EdgeKVNamespace", "kv", json!({})), "id")
        .await
        .created();
    client
        .import_new(&client.document("EdgeKVNamespace", "kv2", json!({})), "id")
        .await
        .refused("import_conflict");
    other
        .import_new(&other.document("EdgeKVNamespace", "kv", json!({})), "id")
        .await
        .refused("import_conflict");
    let queue = client.document("AtLeastOnceQueue", "q", queue_spec(600));
    client
        .import_new(&queue, " id ")
        .await
        .refused("import_conflict");
    client.absent("AtLeastOnceQueue", "q").await;
    assert_eq!(client.read("EdgeKVNamespace", "kv").await.updated(), held);
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    client.import_new(&queue, "id").await.created();
}

#[tokio::test]
async fn import_records_its_native_identity() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let created = client.queue("q").await;
    let document = client.document("AtLeastOnceQueue", "q", queue_spec(345_600));
    let fenced = |generation: &'static str| {
        let (client, document) = (client.clone(), document.clone());
        move |native: &'static str| async move {
            client
                .import(
                    &document,
                    native,
                    &[
                        ("Idempotency-Key", &key()),
                        ("Takoform-Expected-Generation", generation),
                    ],
                )
                .await
        }
    };
    assert_eq!(
        fenced("1")("id").await.updated().metadata.uid,
        created.metadata.uid
    );
    let rival = client.document("EdgeKVNamespace", "kv", json!({}));
    client
        .import_new(&rival, "id")
        .await
        .refused("import_conflict");
    client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    client
        .import_new(&rival, "id")
        .await
        .refused("import_conflict");
    fenced("2")("other").await.refused("import_conflict");
    let again = fenced("2")("id").await.updated();
    assert_eq!(
        (again.metadata.uid, again.metadata.generation.as_str()),
        (created.metadata.uid, "3")
    );

    // The same for one that was adopted into being.
    let adopted = client.document("AtLeastOnceQueue", "adopted", queue_spec(345_600));
    let first = client.import_new(&adopted, "other-id").await.created();
    let fenced = |native: &'static str, generation: &'static str| {
        let (client, adopted) = (client.clone(), adopted.clone());
        async move {
            let headers = [
                ("Idempotency-Key", &*key()),
                ("Takoform-Expected-Generation", generation),
            ];
            client.import(&adopted, native, &headers).await
        }
    };
    client
        .import_new(&rival, "other-id")
        .await
        .refused("import_conflict");
    client
        .update("AtLeastOnceQueue", "adopted", queue_spec(600))
        .await
        .updated();
    client
        .import_new(&rival, "other-id")
        .await
        .refused("import_conflict");
    fenced("third-id", "2").await.refused("import_conflict");
    let again = fenced("other-id", "2").await.updated();
    assert_eq!(
        (again.metadata.uid, again.spec),
        (first.metadata.uid, queue_spec(345_600))
    );
    client.absent("EdgeKVNamespace", "kv").await;
}
