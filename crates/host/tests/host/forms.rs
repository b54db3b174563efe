//! Forms and definitions: exact identities, never a fallback.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::{Value, json};

const UPDATE: [&str; 6] = ["create", "read", "update", "delete", "import", "observe"];
const BASE: [&str; 5] = ["create", "read", "delete", "import", "observe"];

#[tokio::test]
async fn forms_exact_availability() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for form in client_forms(&bench) {
        let target = format!("{API}/forms?{}", client.query(&form));
        let reply: wire::FormsReply =
            serde_json::from_value(client.get(&target).await.is(200).json()).unwrap();
        let [entry] = reply.forms.as_slice() else {
            panic!("not one entry")
        };
        assert_eq!(entry.identity.form_ref, form);
        assert!(
            entry.definition_known
                && entry.installed
                && entry.executable
                && entry.activated
                && entry.available_to_principal
        );
        let updates = [
            "WorkerDeployment",
            "WorkerCronTrigger",
            "AtLeastOnceQueue",
            "QueueConsumer",
        ]
        .contains(&form.kind.as_str());
        let wanted: &[&str] = if updates { &UPDATE } else { &BASE };
        assert_eq!(entry.operations, wanted, "{}", form.kind);
        let catalog = &bench.host.contracts().catalog;
        let installed = catalog
            .forms()
            .find(|it| *it.form_ref.schema_digest == *form.schema_digest)
            .unwrap();
        assert_eq!(
            entry.identity.package_digest.as_deref(),
            installed.package_digest.as_deref()
        );
        assert_eq!(
            entry.identity.package_digest.is_some(),
            form.definition_version == "0.1.0" && form.api_version == EDGE
        );
    }
    let mut other = client.form("ModuleWorker");
    other.schema_digest = client.form("WorkerBundle").schema_digest;
    client
        .get(&format!("{API}/forms?{}", client.query(&other)))
        .await
        .refused("form_unknown");
}

fn client_forms(bench: &Bench) -> Vec<wire::FormRef> {
    bench
        .host
        .contracts()
        .catalog
        .forms()
        .map(|form| {
            bench.t1().form_at(
                &form.form_ref.api_version,
                &form.form_ref.kind,
                &form.form_ref.definition_version,
            )
        })
        .collect()
}

#[tokio::test]
async fn form_definition_exact() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let forms = client_forms(&bench);
    assert_eq!(forms.len(), 17);
    for form in forms {
        let target = format!(
            "{API}/form-definitions/{}/{}?{}",
            form.api_version,
            form.kind,
            client.query(&form)
        );
        let view: wire::FormDefinition =
            serde_json::from_value(client.get(&target).await.is(200).json()).unwrap();
        assert_eq!(view.identity.form_ref, form);
        let installed = bench
            .host
            .contracts()
            .catalog
            .forms()
            .find(|it| *it.form_ref.schema_digest == *form.schema_digest)
            .unwrap();
        assert_eq!(view.desired_schema, installed.desired_schema);
        assert_eq!(
            view.identity.package_digest.as_deref(),
            installed.package_digest.as_deref()
        );
        let other = format!(
            "{API}/form-definitions/{EDGE}/NoSuchKind?{}",
            client.query(&form)
        );
        client.get(&other).await.refused("invalid_argument");
    }
}

#[tokio::test]
async fn exact_form_ref_fails_closed_on_unknown_definition() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    let known = client.form("ModuleWorker");
    let zero = format!("sha256:{}", "0".repeat(64));
    for unknown in [
        wire::FormRef {
            definition_version: "99.99.99".to_owned(),
            ..known.clone()
        },
        wire::FormRef {
            schema_digest: zero,
            ..known.clone()
        },
    ] {
        let query = client.query(&unknown);
        client
            .get(&format!("{API}/forms?{query}"))
            .await
            .refused("form_unknown");
        client
            .get(&format!(
                "{API}/form-definitions/{EDGE}/ModuleWorker?{query}"
            ))
            .await
            .refused("form_unknown");
        client.read_of(&unknown, "w").await.refused("form_unknown");
    }
    client.read("ModuleWorker", "w").await.updated();
}

#[tokio::test]
async fn two_definition_versions_answer_independently() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let first = client.form("ModuleWorker");
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    let mut descriptions = Vec::new();
    for form in [&first, &second] {
        let query = client.query(form);
        client.get(&format!("{API}/forms?{query}")).await.is(200);
        let target = format!("{API}/form-definitions/{EDGE}/ModuleWorker?{query}");
        descriptions.push(client.get(&target).await.is(200).json()["description"].clone());
        let target = format!(
            "{API}/support/forms/{EDGE}/ModuleWorker/{}",
            form.definition_version
        );
        let profile = client.get(&target).await.is(200).json();
        assert_eq!(profile["formRef"], serde_json::to_value(form).unwrap());
        assert_eq!(profile.as_object().unwrap().len(), 4);
    }
    assert_ne!(descriptions[0], descriptions[1]);
    let mixed = wire::FormRef {
        schema_digest: second.schema_digest.clone(),
        ..first
    };
    client
        .get(&format!("{API}/forms?{}", client.query(&mixed)))
        .await
        .refused("form_unknown");
    client
        .get(&format!(
            "{API}/form-definitions/{EDGE}/ModuleWorker?{}",
            client.query(&mixed)
        ))
        .await
        .refused("form_unknown");
}

#[tokio::test]
async fn resource_answers_only_under_its_recorded_form_ref() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let uid = client.worker("w").await.metadata.uid;
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    client
        .read_of(&second, "w")
        .await
        .refused("resource_not_found");
    let fenced = || {
        [
            ("Idempotency-Key", key()),
            ("Takoform-Expected-Generation", "1".to_owned()),
        ]
    };
    let headers = fenced();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    client
        .send(
            "POST",
            &client.resource_target(&second, "w", "/observe"),
            &headers,
            "",
        )
        .await
        .refused("resource_not_found");
    client
        .send(
            "DELETE",
            &client.resource_target(&second, "w", ""),
            &headers,
            "",
        )
        .await
        .refused("resource_not_found");
    let mut document = client.document_of(&second, "w", json!({}));
    document["review"] = json!({"prepareDigest": format!("sha256:{}", "0".repeat(64))});
    client
        .put(&document, &headers)
        .await
        .refused("resource_not_found");
    let other = client
        .create_document(&client.document_of(&second, "w2", json!({})))
        .await
        .created();
    assert_eq!(
        client.read_of(&second, "w2").await.updated().metadata.uid,
        other.metadata.uid
    );
    assert_eq!(
        client
            .read("ModuleWorker", "w")
            .await
            .updated()
            .metadata
            .uid,
        uid
    );
}

#[tokio::test]
async fn same_kind_two_groups() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let other = client.form_at(
        "other.forms.takoform.com/v1alpha1",
        "EdgeKVNamespace",
        "0.1.0",
    );
    let first = client.kv("kv").await;
    let second = client
        .create_document(&client.document_of(&other, "kv", json!({})))
        .await
        .created();
    assert_ne!(first.metadata.uid, second.metadata.uid);
    client.delete("EdgeKVNamespace", "kv").await.is(204);
    assert_eq!(
        client.read_of(&other, "kv").await.updated().metadata.uid,
        second.metadata.uid
    );
}

#[tokio::test]
async fn package_digest_not_identity() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let created = client.kv("kv").await;
    let form = client.form("EdgeKVNamespace");
    let foreign = format!("sha256:{}", "a".repeat(64));
    let target = format!(
        "{}&packageDigest={foreign}",
        client.resource_target(&form, "kv", "")
    );
    client.get(&target).await.refused("invalid_argument");
    let mut document = client.document("EdgeKVNamespace", "kv", json!({}));
    document["form"]["packageDigest"] = foreign.clone().into();
    let prepared = client.prepare(&document, Some("1")).await.is(200).json();
    document["review"] = json!({"prepareDigest": prepared["review"]["prepareDigest"]});
    let updated = client
        .put(
            &document,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", "1"),
            ],
        )
        .await
        .updated();
    assert_eq!(updated.metadata, created.metadata);
    assert_ne!(updated.form.package_digest, Some(foreign));
    document["form"]["packageDigest"] = Value::String("sha256:short".to_owned());
    client
        .prepare(&document, Some("1"))
        .await
        .refused("invalid_argument");
}

/// The relations of the family, derived from the installed schemas: source, pointer, target,
/// contract, binding.
#[tokio::test]
async fn relations_are_derived_from_the_schemas() {
    let bench = Bench::plain().await;
    let mut found = Vec::new();
    for form in bench.host.contracts().catalog.forms() {
        for relation in &form.relations {
            let contract = match &relation.contract {
                notation_edge::Contract::Forms(_) => "form".to_owned(),
                notation_edge::Contract::Interface(interface) => interface.name.to_string(),
            };
            let binding = relation.binding.as_deref().unwrap_or("-");
            found.push(format!(
                "{} {} {} {contract} {binding}",
                form.form_ref.kind, relation.pointer, relation.kind
            ));
        }
    }
    found.sort();
    assert_eq!(
        found,
        [
            "QueueConsumer /deadLetterQueue AtLeastOnceQueue edge.queue -",
            "QueueConsumer /queue AtLeastOnceQueue edge.queue -",
            "QueueConsumer /worker ModuleWorker worker.runtime -",
            "SQLiteMigrationApplication /database SQLiteDatabase form -",
            "SQLiteMigrationApplication /migrationSet SQLiteMigrationSet form -",
            "WorkerCronTrigger /worker ModuleWorker worker.runtime -",
            "WorkerCustomDomain /worker ModuleWorker worker.runtime -",
            "WorkerDeployment /versions/*/workerVersion WorkerVersion form -",
            "WorkerDeployment /worker ModuleWorker form -",
            "WorkerEndpoint /worker ModuleWorker worker.runtime -",
            "WorkerVersion /assets/bundle StaticAssetBundle form -",
            "WorkerVersion /bucketBindings/*/resource ObjectBucket edge.objects module-worker.object-bucket",
            "WorkerVersion /bundle WorkerBundle form -",
            "WorkerVersion /kvBindings/*/resource EdgeKVNamespace edge.kv module-worker.edge-kv",
            "WorkerVersion /queueProducerBindings/*/resource AtLeastOnceQueue edge.queue module-worker.queue-producer",
            "WorkerVersion /serviceBindings/*/resource ModuleWorker worker.service module-worker.service",
            "WorkerVersion /sqliteBindings/*/resource SQLiteDatabase edge.sql module-worker.sqlite",
            "WorkerVersion /worker ModuleWorker worker.runtime -",
        ]
    );
}
