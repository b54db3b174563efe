//! The order of taking things apart is in the refusals: whoever reads them needs to know nothing
//! else.

use crate::bench::*;
use serde_json::json;
use std::collections::BTreeSet;

type Named = (String, String);

/// Who is named by a refused delete: `Kind name` at the beginning of each part.
fn dependents(message: &str) -> Vec<Named> {
    let list = message
        .strip_prefix("still referenced by ")
        .unwrap_or(message);
    list.split([';', ','])
        .map(|part| {
            let mut words = part.split_whitespace();
            let kind = words.next().unwrap_or_default().to_owned();
            let name = words.next().unwrap_or_default().to_owned();
            assert!(
                kind.starts_with(|c: char| c.is_ascii_uppercase()),
                "{message}"
            );
            (kind, name)
        })
        .collect()
}

/// Deletes something and first whoever the refusals name; what went, in order. `circular` is asked
/// when the way comes back to something that is being deleted already.
async fn take_apart(
    client: &Client,
    kind: &str,
    name: &str,
    mut circular: impl AsyncFnMut(&Named),
) -> Vec<Named> {
    let mut way = vec![(kind.to_owned(), name.to_owned())];
    let mut gone = Vec::new();
    for _ in 0..200 {
        let Some(last) = way.last().cloned() else {
            return gone;
        };
        let (kind, name) = &last;
        if client.read(kind, name).await.status == 404 {
            way.pop();
            continue;
        }
        let answer = client.delete(kind, name).await;
        if answer.status == 204 {
            gone.push(last);
            way.pop();
            continue;
        }
        let message = answer.refused("dependency_in_use").message;
        let named = dependents(&message);
        match named.iter().find(|next| !way.contains(next)) {
            Some(next) => way.push(next.clone()),
            None => circular(&named[0]).await,
        }
    }
    panic!("no end in {way:?}");
}

#[tokio::test]
async fn refusals_take_a_whole_worker_apart() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("peer", &["fetch"]).await;
    let manifest = |text: &'static str| {
        files_manifest("MigrationBundle", "application/sql", &[("1.sql", text)])
    };
    let sql = client.upload(&manifest("a"), &[b"a"]).await;
    let html = files_manifest("StaticAssetBundle", "text/html", &[("index.html", "h")]);
    let html = client.upload(&html, &[b"h"]).await;
    let mut made: BTreeSet<Named> = BTreeSet::new();
    let mut make = async |kind: &str, name: &str, spec| {
        client.make(kind, name, spec).await;
        made.insert((kind.to_owned(), name.to_owned()));
    };
    make("ModuleWorker", "w", json!({})).await;
    client.bundle("w-bundle", ALL_HANDLERS).await;
    for (kind, name, spec) in [
        ("EdgeKVNamespace", "kv", json!({})),
        ("ObjectBucket", "bucket", json!({})),
        ("SQLiteDatabase", "db", json!({})),
        ("AtLeastOnceQueue", "jobs", queue_spec(600)),
        ("AtLeastOnceQueue", "dead", queue_spec(600)),
        ("SQLiteMigrationSet", "set", json!({"manifestDigest": sql})),
        (
            "StaticAssetBundle",
            "assets",
            json!({"manifestDigest": html}),
        ),
    ] {
        client.make(kind, name, spec).await;
    }
    let mut full = version_spec("w", "w-bundle", &ALL);
    full["kvBindings"] = json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]);
    full["bucketBindings"] = json!([{"name": "FILES", "resource": to("ObjectBucket", "bucket")}]);
    full["sqliteBindings"] = json!([{"name": "DB", "resource": to("SQLiteDatabase", "db")}]);
    full["queueProducerBindings"] =
        json!([{"name": "JOBS", "resource": to("AtLeastOnceQueue", "jobs")}]);
    full["serviceBindings"] = json!([{"name": "PEER", "resource": to("ModuleWorker", "peer")}]);
    full["assets"] = json!({"bundle": to("StaticAssetBundle", "assets"), "runWorkerFirst": false, "notFoundHandling": "single_page_application"});
    let application = json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", "set")});
    client
        .make("SQLiteMigrationApplication", "migrated", application)
        .await;
    make("WorkerVersion", "w-v1", full).await;
    make("WorkerVersion", "w-v2", version_spec("w", "w-bundle", &ALL)).await;
    let split = deployment_spec("w", &[("w-v1", 1000), ("w-v2", 9000)]);
    make("WorkerDeployment", "w-deployment", split).await;
    make(
        "WorkerCustomDomain",
        "domain",
        domain_spec("w", "a.example.com"),
    )
    .await;
    make("WorkerEndpoint", "endpoint", endpoint_spec("w")).await;
    make("WorkerCronTrigger", "clock", cron_spec("w", "0 * * * *")).await;
    make(
        "QueueConsumer",
        "drain",
        consumer_spec("w", "jobs", Some("dead")),
    )
    .await;
    // Somebody else calls the worker, and is called in turn.
    client.bundled("caller").await;
    make(
        "WorkerVersion",
        "caller-v1",
        service_spec("caller", "caller-bundle", "w"),
    )
    .await;
    make(
        "WorkerDeployment",
        "caller-deployment",
        deployment_spec("caller", &[("caller-v1", 10_000)]),
    )
    .await;
    make("WorkerEndpoint", "caller-endpoint", endpoint_spec("caller")).await;

    let gone = take_apart(&client, "ModuleWorker", "w", async |named: &Named| {
        panic!("{named:?} is named twice");
    })
    .await;
    // Exactly what depended on the worker went, each thing after those that depended on it.
    assert_eq!(gone.iter().cloned().collect::<BTreeSet<_>>(), made);
    assert_eq!(gone.len(), made.len());
    assert_eq!(
        gone.last().unwrap(),
        &("ModuleWorker".to_owned(), "w".to_owned())
    );
    // And what it depended on is free now.
    for (kind, name) in [
        ("SQLiteMigrationApplication", "migrated"),
        ("EdgeKVNamespace", "kv"),
        ("ObjectBucket", "bucket"),
        ("SQLiteDatabase", "db"),
        ("SQLiteMigrationSet", "set"),
        ("AtLeastOnceQueue", "jobs"),
        ("AtLeastOnceQueue", "dead"),
        ("StaticAssetBundle", "assets"),
        ("WorkerBundle", "w-bundle"),
    ] {
        client.remove(kind, name).await;
    }
}

/// Two workers that call each other cannot be built in one go, nor taken apart in one: one of
/// them first goes back to a version that calls nobody, and the refusals show where.
#[tokio::test]
async fn refusals_tell_the_order_of_taking_a_pair_apart() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundled("a").await;
    client.version("a", "a-bare", &["fetch"]).await;
    client.deploy("a", "a-bare").await;
    client.bundled("b").await;
    client
        .make("WorkerVersion", "b-v1", service_spec("b", "b-bundle", "a"))
        .await;
    client.deploy("b", "b-v1").await;
    client
        .make("WorkerVersion", "a-v1", service_spec("a", "a-bundle", "b"))
        .await;
    client.weigh("a", &[("a-v1", 10_000)]).await.updated();
    client.make("WorkerEndpoint", "e", endpoint_spec("a")).await;

    let mut reverted = false;
    take_apart(&client, "ModuleWorker", "a", async |named: &Named| {
        assert!(!reverted, "{named:?} is named again");
        reverted = true;
        client.weigh("a", &[("a-bare", 10_000)]).await.updated();
        client.remove("WorkerVersion", "a-v1").await;
    })
    .await;
    assert!(reverted);
    client.remove("ModuleWorker", "b").await;
}

#[tokio::test]
async fn a_deployment_follows_its_worker_s_name_though_attachments_hold_the_one_that_is_gone() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch", "scheduled"]).await;
    client.make("WorkerEndpoint", "e", endpoint_spec("w")).await;
    let url = client.read("WorkerEndpoint", "e").await.resource();
    client
        .make("WorkerCronTrigger", "c", cron_spec("w", "* * * * *"))
        .await;
    client.vanish("ModuleWorker", "w").await;
    client.worker("w").await;
    client.version("w", "new", &["fetch", "scheduled"]).await;
    // The plan of a client: the deployment first, then what is attached to the worker.
    client.weigh("w", &[("new", 10_000)]).await.updated();
    client
        .update("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .updated();
    client
        .update("WorkerCronTrigger", "c", cron_spec("w", "* * * * *"))
        .await
        .updated();
    let now = client.read("WorkerEndpoint", "e").await.resource();
    assert_eq!(ready(&now).0, "True");
    assert_eq!(now.metadata.uid, url.metadata.uid, "its address stays");
    // From here on they are the new worker's own and protect it again.
    client.version("w", "less", &["fetch"]).await;
    client
        .weigh("w", &[("less", 10_000)])
        .await
        .refused("unsupported_capability");
}
