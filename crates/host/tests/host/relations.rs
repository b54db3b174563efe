//! Relations: resolved, verified, pinned, never silently re-bound.

use crate::bench::*;
use serde_json::{Value, json};

fn bound_to(kv: &str) -> Value {
    with(
        version_spec("w", "b", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", kv)}]),
    )
}

async fn worker_and_bundle(client: &Client) {
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
}

#[tokio::test]
async fn relation_target_missing_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let refusal = client
        .create(
            "WorkerVersion",
            "v",
            version_spec("absent", "b", &["fetch"]),
        )
        .await
        .refused("resource_not_found");
    assert!(refusal.message.contains("/worker"));
    client.absent("WorkerVersion", "v").await;
}

#[tokio::test]
async fn binding_target_missing_404_before_mutation() {
    let bench = Bench::start().await;
    let client = bench.t1();
    worker_and_bundle(&client).await;
    let refusal = client
        .create("WorkerVersion", "v", bound_to("absent"))
        .await
        .refused("resource_not_found");
    assert!(refusal.message.contains("/kvBindings/0/resource"));
    client.absent("WorkerVersion", "v").await;
}

#[tokio::test]
async fn dependency_in_use_on_bound_target_delete() {
    let bench = Bench::start().await;
    let client = bench.t1();
    worker_and_bundle(&client).await;
    client.kv("kv").await;
    client
        .create("WorkerVersion", "v", bound_to("kv"))
        .await
        .created();
    let refusal = client
        .delete("EdgeKVNamespace", "kv")
        .await
        .refused("dependency_in_use");
    assert!(refusal.message.contains("WorkerVersion v"));
    client.read("EdgeKVNamespace", "kv").await.updated();
    client.delete("WorkerVersion", "v").await.is(204);
    client.delete("EdgeKVNamespace", "kv").await.is(204);
}

#[tokio::test]
async fn relation_target_deletion_blocked() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client
        .delete("WorkerVersion", "w-v1")
        .await
        .refused("dependency_in_use");
    client
        .delete("WorkerBundle", "w-bundle")
        .await
        .refused("dependency_in_use");
    client
        .delete("ModuleWorker", "w")
        .await
        .refused("dependency_in_use");
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
    client.delete("WorkerVersion", "w-v1").await.is(204);
    client.delete("WorkerBundle", "w-bundle").await.is(204);
    client.delete("ModuleWorker", "w").await.is(204);
}

#[tokio::test]
async fn relation_incarnation_change_detected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    worker_and_bundle(&client).await;
    let old = client.kv("kv").await.metadata.uid;
    let created = client
        .create("WorkerVersion", "v", bound_to("kv"))
        .await
        .created();
    client.vanish("EdgeKVNamespace", "kv").await;
    let missing = client.read("WorkerVersion", "v").await.updated();
    assert_eq!(ready(&missing).1, "DependencyMissing");
    assert_eq!(
        ready(&missing).2,
        format!("relation /kvBindings/0/resource uid {old} no longer exists")
    );
    let new = client.kv("kv").await.metadata.uid;
    let changed = client.read("WorkerVersion", "v").await.updated();
    let (status, reason, text) = ready(&changed);
    assert_eq!((status, reason), ("False", "ExternalChange"));
    assert!(
        text.starts_with("relation /kvBindings/0/resource ")
            && text.contains(&format!("from uid {old} "))
            && text.contains(&format!(" to uid {new}"))
    );
    assert_eq!(changed.metadata.generation, created.metadata.generation);
    assert_eq!(client.read("WorkerVersion", "v").await.updated(), changed);
}

#[tokio::test]
async fn relation_reapply_repins() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch", "scheduled", "queue"]).await;
    client.queue("q").await;
    let spec = consumer_spec("w", "q", None);
    let first = client
        .create("QueueConsumer", "c", spec.clone())
        .await
        .created();
    client.vanish("AtLeastOnceQueue", "q").await;
    client.queue("q").await;
    assert_eq!(
        ready(&client.read("QueueConsumer", "c").await.updated()).1,
        "ExternalChange"
    );
    let repaired = client
        .update("QueueConsumer", "c", spec.clone())
        .await
        .updated();
    assert_eq!(ready(&repaired).0, "True");
    assert_eq!(repaired.metadata.generation, first.metadata.generation);
    assert_ne!(repaired.metadata.revision, first.metadata.revision);
    assert_eq!(
        client.update("QueueConsumer", "c", spec).await.updated(),
        repaired
    );
}

#[tokio::test]
async fn binding_contract_verified() {
    let bench = Bench::start().await;
    let client = bench.t1();
    worker_and_bundle(&client).await;
    let form = client.form("WorkerVersion");
    let target = format!(
        "{API}/form-definitions/{EDGE}/WorkerVersion?{}",
        client.query(&form)
    );
    let view = client.get(&target).await.is(200).json();
    assert_eq!(
        view["desiredSchema"]["properties"]["kvBindings"]["x-takoform-binding"],
        "module-worker.edge-kv"
    );
    client
        .get(&format!(
            "{API}/support/bindings/module-worker.edge-kv/1.0.0"
        ))
        .await
        .is(200);
    let foreign = json!([{"name": "KV", "resource": {"apiVersion": "other.forms.takoform.com/v1alpha1", "kind": "EdgeKVNamespace", "name": "kv"}}]);
    let spec = with(version_spec("w", "b", &["fetch"]), "kvBindings", foreign);
    client
        .prepare(&client.document("WorkerVersion", "v", spec), None)
        .await
        .refused("invalid_argument");
    client.absent("WorkerVersion", "v").await;
}

#[tokio::test]
async fn relation_target_form_ref_verified() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("own", &["fetch"]).await;
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    client
        .create_document(&client.document_of(&second, "w2", json!({})))
        .await
        .created();
    let answer = client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w2", &[("own-v1", 10_000)]),
        )
        .await;
    answer.refused("invalid_argument");
    let text = answer.text();
    for wanted in [
        "/worker",
        "0.2.0",
        client.form("ModuleWorker").schema_digest.as_str(),
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[tokio::test]
async fn relation_target_interface_verified() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    client
        .create_document(&client.document_of(&second, "w2", json!({})))
        .await
        .created();
    let answer = client
        .create("WorkerVersion", "v", version_spec("w2", "b", &["fetch"]))
        .await;
    answer.refused("invalid_argument");
    for wanted in ["/worker", "worker.runtime", "1.0.0"] {
        assert!(
            answer.text().contains(wanted),
            "{wanted} in {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn relation_pin_records_target_form_ref() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let old = client.worker("w").await;
    let version = client
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    client.vanish("ModuleWorker", "w").await;
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    let new = client
        .create_document(&client.document_of(&second, "w", json!({})))
        .await
        .created();
    let changed = client.read("WorkerVersion", "v").await.updated();
    let (_, reason, text) = ready(&changed);
    assert_eq!(reason, "ExternalChange");
    for wanted in [
        "/worker",
        &old.metadata.uid,
        &new.metadata.uid,
        "0.1.0",
        "0.2.0",
        &client.form("ModuleWorker").schema_digest,
        &second.schema_digest,
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert_eq!(changed.metadata.generation, version.metadata.generation);
}

#[tokio::test]
async fn relation_resolution_is_tenant_scoped() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    client.worker("w").await;
    other.bundle("b", FETCH_ONLY).await;
    let answer = other
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await;
    assert!(
        answer
            .refused("resource_not_found")
            .message
            .contains("/worker")
    );
    other.worker("w").await;
    other
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    client.delete("ModuleWorker", "w").await.is(204);
    assert_eq!(
        ready(&other.read("WorkerVersion", "v").await.updated()).0,
        "True"
    );
    other
        .delete("ModuleWorker", "w")
        .await
        .refused("dependency_in_use");
}

#[tokio::test]
async fn binding_name_collision_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    worker_and_bundle(&client).await;
    client.kv("kv").await;
    for (member, value) in [
        ("vars", json!({"KV": 1})),
        ("requiredSensitiveVars", json!(["KV"])),
        (
            "kvBindings",
            json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}, {"name": "KV", "resource": to("EdgeKVNamespace", "kv2")}]),
        ),
    ] {
        if member == "kvBindings" {
            client.kv("kv2").await;
        }
        client
            .create("WorkerVersion", "v", with(bound_to("kv"), member, value))
            .await
            .refused("invalid_argument");
    }
    let spec = with(bound_to("kv"), "vars", json!({"KV_NAME": 1}));
    client
        .create(
            "WorkerVersion",
            "v",
            with(spec, "requiredSensitiveVars", json!(["KV_TOKEN"])),
        )
        .await
        .created();
}
