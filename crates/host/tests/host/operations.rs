//! Accepted operations, through the conformance adapter.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::{Value, json};

const ASYNC: (&str, &str) = ("Takoform-Conformance-Probe", "async");

/// Accepts a reviewed document under its fence; the operation's id.
pub async fn accept(client: &Client, reviewed: &Value, headers: &[(&str, &str)]) -> String {
    let answer = client
        .put(reviewed, &[headers, &[ASYNC]].concat())
        .await
        .is(202);
    assert_eq!(answer.etag, None);
    id_of(&answer)
}

/// Accepts a create; the operation's id.
pub async fn accept_create(client: &Client, kind: &str, name: &str, spec: Value) -> String {
    let document = client
        .reviewed(&client.document(kind, name, spec), None)
        .await;
    let headers = [("Idempotency-Key", &*key()), ("If-None-Match", "*")];
    accept(client, &document, &headers).await
}

pub async fn accept_delete(client: &Client, kind: &str, name: &str) -> String {
    let generation = client.read(kind, name).await.resource().metadata.generation;
    let headers = [
        ("Idempotency-Key", &*key()),
        ("Takoform-Expected-Generation", &*generation),
        ASYNC,
    ];
    id_of(&client.delete_with(kind, name, &headers).await.is(202))
}

fn id_of(answer: &Answer) -> String {
    let envelope: wire::OperationEnvelope = serde_json::from_value(answer.json()).unwrap();
    assert!(!envelope.operation.done && envelope.operation.id.starts_with("op_"));
    envelope.operation.id
}

pub async fn poll(client: &Client, id: &str) -> Answer {
    client.get(&format!("{API}/operations/{id}")).await
}

/// Polls without sleeping, at most four times, and wants to see a pending answer.
pub async fn finish(client: &Client, id: &str) -> Value {
    for pending in 0..4 {
        let answer = poll(client, id).await.is(200);
        let operation: wire::Operation = serde_json::from_value(answer.json()).unwrap();
        assert_eq!(
            (operation.id.as_str(), operation.kind.as_str()),
            (id, "Operation")
        );
        if operation.done {
            assert!(pending > 0 && operation.result.is_some() != operation.error.is_some());
            assert_eq!(answer.etag, None);
            return answer.json();
        }
        assert!(
            answer.retry_after.is_some() && operation.result.is_none() && operation.error.is_none()
        );
    }
    panic!("operation {id} does not end");
}

#[track_caller]
pub fn failed(document: &Value, code: &str) {
    assert_eq!(document["error"]["code"], code, "{document}");
    assert_eq!(document["error"]["retryable"], false);
}

#[tokio::test]
async fn async_operation_flow() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let id = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    client.absent("EdgeKVNamespace", "kv").await;
    let done = finish(&client, &id).await;
    let resource: wire::Resource =
        serde_json::from_value(done["result"]["resource"].clone()).unwrap();
    check(&resource);
    assert_eq!(
        client.read("EdgeKVNamespace", "kv").await.updated(),
        resource
    );
    let id = accept_delete(&client, "EdgeKVNamespace", "kv").await;
    client.read("EdgeKVNamespace", "kv").await.updated();
    assert_eq!(
        finish(&client, &id).await["result"],
        json!({"deleted": true})
    );
    client.absent("EdgeKVNamespace", "kv").await;
}

#[tokio::test]
async fn operation_replay_terminal() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let id = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    finish(&client, &id).await;
    let first = poll(&client, &id).await;
    assert_eq!(poll(&client, &id).await, first);
    assert_eq!(first.retry_after, None);
}

#[tokio::test]
async fn operation_cancel() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let id = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    let cancel = |id: String| {
        let client = client.clone();
        async move {
            client
                .send(
                    "POST",
                    &format!("{API}/operations/{id}/cancel"),
                    &[("Idempotency-Key", "c")],
                    "",
                )
                .await
        }
    };
    client
        .send("POST", &format!("{API}/operations/{id}/cancel"), &[], "")
        .await
        .refused("invalid_argument");
    let cancelled = cancel(id.clone()).await.is(200).json();
    failed(&cancelled, "operation_cancelled");
    assert_eq!(poll(&client, &id).await.json(), cancelled);
    assert_eq!(cancel(id).await.is(200).json(), cancelled);
    client.absent("EdgeKVNamespace", "kv").await;
    cancel("op_unknown".to_owned())
        .await
        .refused("operation_not_found");
    poll(&client, "op_unknown")
        .await
        .refused("operation_not_found");
}

#[tokio::test]
async fn operation_bound_to_its_creating_principal() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let id = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    for foreign in [bench.t1p2(), bench.t2()] {
        for _ in 0..3 {
            let refusal = poll(&foreign, &id).await.refused("operation_not_found");
            assert_eq!(
                refusal.message,
                poll(&foreign, "op_unknown")
                    .await
                    .refused("operation_not_found")
                    .message
            );
        }
        foreign
            .send(
                "POST",
                &format!("{API}/operations/{id}/cancel"),
                &[("Idempotency-Key", "c")],
                "",
            )
            .await
            .refused("operation_not_found");
    }
    assert!(finish(&client, &id).await["result"].is_object());
}

#[tokio::test]
async fn operation_resumable_after_settlement() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let id = accept_create(&client, "AtLeastOnceQueue", "q", queue_spec(345_600)).await;
    let done = finish(&client, &id).await;
    let created = client.read("AtLeastOnceQueue", "q").await.updated();
    assert_eq!(
        done["result"]["resource"]["metadata"]["uid"],
        created.metadata.uid
    );
    let first = poll(&client, &id).await;
    client
        .update("AtLeastOnceQueue", "q", queue_spec(600))
        .await
        .updated();
    let other = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    finish(&client, &other).await;
    assert_eq!(poll(&client, &id).await, first);
    assert_eq!(
        first.json()["result"]["resource"]["metadata"]["generation"],
        "1"
    );
}

#[tokio::test]
async fn async_commit_revalidates() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    client.kv("kv").await;
    let bound = |kv: &str| {
        with(
            version_spec("w", "b", &["fetch"]),
            "kvBindings",
            json!([{"name": "KV", "resource": to("EdgeKVNamespace", kv)}]),
        )
    };
    let id = accept_create(&client, "WorkerVersion", "v", bound("kv")).await;
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    failed(&finish(&client, &id).await, "resource_not_found");
    client.absent("WorkerVersion", "v").await;

    client.kv("kv2").await;
    let id = accept_delete(&client, "EdgeKVNamespace", "kv2").await;
    client
        .create("WorkerVersion", "v2", bound("kv2"))
        .await
        .created();
    failed(&finish(&client, &id).await, "dependency_in_use");
    client.read("EdgeKVNamespace", "kv2").await.updated();
}

#[tokio::test]
async fn async_commit_binds_the_accepted_identity() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    client.worker("a").await;
    let id = accept_delete(&client, "ModuleWorker", "a").await;
    client.vanish("ModuleWorker", "a").await;
    let newcomer = client
        .create_document(&client.document_of(&second, "a", json!({})))
        .await
        .created();
    failed(&finish(&client, &id).await, "uid_mismatch");
    assert_eq!(client.read_of(&second, "a").await.updated(), newcomer);

    client.worker("b").await;
    let id = accept_delete(&client, "ModuleWorker", "b").await;
    client.vanish("ModuleWorker", "b").await;
    let newcomer = client.worker("b").await;
    failed(&finish(&client, &id).await, "uid_mismatch");
    assert_eq!(client.read("ModuleWorker", "b").await.updated(), newcomer);

    client.worker("c").await;
    let id = accept_delete(&client, "ModuleWorker", "c").await;
    client.vanish("ModuleWorker", "c").await;
    failed(&finish(&client, &id).await, "resource_not_found");
}

/// What the conformance run shows for deletes holds for updates.
#[tokio::test]
async fn an_accepted_update_commits_on_the_accepted_incarnation_or_not_at_all() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let accepted = async |name: &str| {
        let document = client.document("AtLeastOnceQueue", name, queue_spec(700));
        let reviewed = client.reviewed(&document, Some("1")).await;
        let headers = [
            ("Idempotency-Key", &*key()),
            ("Takoform-Expected-Generation", "1"),
        ];
        accept(&client, &reviewed, &headers).await
    };
    for name in ["kept", "replaced", "gone", "moved", "cancelled"] {
        client.queue(name).await;
    }
    let id = accepted("kept").await;
    let done = finish(&client, &id).await;
    assert_eq!(done["result"]["resource"]["metadata"]["generation"], "2");

    let id = accepted("replaced").await;
    client.vanish("AtLeastOnceQueue", "replaced").await;
    let newcomer = client.queue("replaced").await;
    failed(&finish(&client, &id).await, "uid_mismatch");
    let read = client.read("AtLeastOnceQueue", "replaced").await;
    assert_eq!(read.updated(), newcomer);

    let id = accepted("gone").await;
    client.remove("AtLeastOnceQueue", "gone").await;
    failed(&finish(&client, &id).await, "resource_not_found");
    client.absent("AtLeastOnceQueue", "gone").await;

    let id = accepted("moved").await;
    let changed = client.update("AtLeastOnceQueue", "moved", queue_spec(900));
    let changed = changed.await.updated();
    failed(&finish(&client, &id).await, "generation_conflict");
    let read = client.read("AtLeastOnceQueue", "moved").await;
    assert_eq!(read.updated(), changed);

    let before = client.read("AtLeastOnceQueue", "cancelled").await.updated();
    let id = accepted("cancelled").await;
    let target = format!("{API}/operations/{id}/cancel");
    let cancel = client.send("POST", &target, &[("Idempotency-Key", "c")], "");
    failed(&cancel.await.is(200).json(), "operation_cancelled");
    failed(&poll(&client, &id).await.json(), "operation_cancelled");
    let read = client.read("AtLeastOnceQueue", "cancelled").await;
    assert_eq!(read.updated(), before);
}

#[tokio::test]
async fn a_failed_operation_does_not_answer_for_ever() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let headers = [
        ("Idempotency-Key", "d"),
        ("Takoform-Expected-Generation", "1"),
        ASYNC,
    ];
    let first = client
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .is(202)
        .json();
    client
        .send(
            "POST",
            &format!(
                "{API}/operations/{}/cancel",
                first["operation"]["id"].as_str().unwrap()
            ),
            &[("Idempotency-Key", "c")],
            "",
        )
        .await
        .is(200);
    let second = client
        .delete_with("EdgeKVNamespace", "kv", &headers)
        .await
        .is(202)
        .json();
    assert_ne!(first["operation"]["id"], second["operation"]["id"]);
}
