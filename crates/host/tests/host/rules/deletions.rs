//! Decision 0016 rule 8 and the protection of relation targets: who depends blocks a delete, when
//! it is asked for, when it is accepted, and when an accepted one commits.

use crate::bench::*;
use crate::operations::{accept_delete, failed, finish};
use notation_edge::BreachKind;
use serde_json::{Value, json};

/// Breaches that a test below shows in both directions.
pub const SHOWN: &[BreachKind] = &[BreachKind::Unserved, BreachKind::Held];

/// One who depends on `target`, which nothing else depends on.
struct Dependent {
    target: (&'static str, &'static str),
    kind: &'static str,
    spec: Value,
}

async fn blocks(bench: &Bench, dependent: Dependent) {
    let client = bench.t1();
    let Dependent {
        target: (kind, name),
        kind: by,
        spec,
    } = dependent;
    client.make(by, "x", spec.clone()).await;
    let before = bench.rows();
    let asked = client.delete(kind, name).await.refused("dependency_in_use");
    assert!(
        asked.message.contains(&format!("{by} x")),
        "{}",
        asked.message
    );
    let generation = client.read(kind, name).await.resource().metadata.generation;
    let headers = [
        ("Idempotency-Key", &*key()),
        ("Takoform-Expected-Generation", &*generation),
        ("Takoform-Conformance-Probe", "async"),
    ];
    let accepted = client.delete_with(kind, name, &headers).await;
    assert_eq!(accepted.refused("dependency_in_use").message, asked.message);
    assert_eq!(bench.rows(), before, "a refusal left a trace");

    client.remove(by, "x").await;
    let id = accept_delete(&client, kind, name).await;
    client.make(by, "x", spec).await;
    let ended = finish(&client, &id).await;
    failed(&ended, "dependency_in_use");
    assert_eq!(ended["error"]["message"], asked.message);
    client.read(kind, name).await.updated();

    client.remove(by, "x").await;
    let id = accept_delete(&client, kind, name).await;
    assert_eq!(
        finish(&client, &id).await["result"],
        json!({"deleted": true})
    );
    client.absent(kind, name).await;
}

#[tokio::test]
async fn dependents_hold_the_deployment_they_rely_on() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    client.serving("caller", &["fetch"]).await;
    let attached: [(&'static str, Value); 5] = [
        ("WorkerCustomDomain", domain_spec("w", "a.example.com")),
        ("WorkerEndpoint", endpoint_spec("w")),
        ("WorkerCronTrigger", cron_spec("w", "* * * * *")),
        ("QueueConsumer", consumer_spec("w", "q", None)),
        (
            "WorkerVersion",
            service_spec("caller", "caller-bundle", "w"),
        ),
    ];
    client.bundled("w").await;
    client.version("w", "w-v1", &ALL).await;
    for (kind, spec) in attached {
        client.deploy("w", "w-v1").await;
        let target = ("WorkerDeployment", "w-deployment");
        blocks(&bench, Dependent { target, kind, spec }).await;
    }
}

/// Every relation protects its target; here those whose target nothing else holds. A version that
/// is weighted cannot be held again once it goes, which is a rule of its own.
#[tokio::test]
async fn holders_protect_what_they_are_pinned_to() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("peer", &["fetch"]).await;
    client.serving("all", &ALL).await;
    client.queue("other").await;
    let set = files_manifest("MigrationBundle", "application/sql", &[("1.sql", "a")]);
    let set = client.upload(&set, &[b"a"]).await;
    let assets = files_manifest("StaticAssetBundle", "text/html", &[("a.html", "a")]);
    let assets = client.upload(&assets, &[b"a"]).await;
    let module = module_manifest("index.js", ALL_HANDLERS);
    let module = client.upload(&module, &[ALL_HANDLERS.as_bytes()]).await;
    let manifest = |digest: &str| json!({"manifestDigest": digest});
    // What a target needs to exist, under the name `t`.
    let target_spec = |kind: &str| match kind {
        "AtLeastOnceQueue" => queue_spec(600),
        "WorkerBundle" => manifest(&module),
        "StaticAssetBundle" => manifest(&assets),
        "SQLiteMigrationSet" => manifest(&set),
        _ => json!({}),
    };
    let version = |member: &str, kind: &str| {
        with(
            version_spec("peer", "peer-bundle", &["fetch"]),
            member,
            json!([{"name": "B", "resource": to(kind, "t")}]),
        )
    };
    let asset_version = with(
        version_spec("peer", "peer-bundle", &["fetch"]),
        "assets",
        json!({"bundle": to("StaticAssetBundle", "t"), "runWorkerFirst": false, "notFoundHandling": "none"}),
    );
    client.make("SQLiteDatabase", "db", json!({})).await;
    client
        .make("SQLiteMigrationSet", "set", manifest(&set))
        .await;
    let application = |database: &str, set: &str| json!({"database": to("SQLiteDatabase", database), "migrationSet": to("SQLiteMigrationSet", set)});
    for (target, kind, spec) in [
        (
            "ModuleWorker",
            "WorkerVersion",
            version_spec("t", "peer-bundle", &["fetch"]),
        ),
        (
            "WorkerBundle",
            "WorkerVersion",
            version_spec("peer", "t", &["fetch"]),
        ),
        ("StaticAssetBundle", "WorkerVersion", asset_version),
        (
            "EdgeKVNamespace",
            "WorkerVersion",
            version("kvBindings", "EdgeKVNamespace"),
        ),
        (
            "ObjectBucket",
            "WorkerVersion",
            version("bucketBindings", "ObjectBucket"),
        ),
        (
            "SQLiteDatabase",
            "WorkerVersion",
            version("sqliteBindings", "SQLiteDatabase"),
        ),
        (
            "AtLeastOnceQueue",
            "WorkerVersion",
            version("queueProducerBindings", "AtLeastOnceQueue"),
        ),
        (
            "AtLeastOnceQueue",
            "QueueConsumer",
            consumer_spec("all", "t", None),
        ),
        (
            "AtLeastOnceQueue",
            "QueueConsumer",
            consumer_spec("all", "other", Some("t")),
        ),
        (
            "SQLiteDatabase",
            "SQLiteMigrationApplication",
            application("t", "set"),
        ),
        (
            "SQLiteMigrationSet",
            "SQLiteMigrationApplication",
            application("db", "t"),
        ),
    ] {
        client.make(target, "t", target_spec(target)).await;
        let target = (target, "t");
        blocks(&bench, Dependent { target, kind, spec }).await;
    }
}
