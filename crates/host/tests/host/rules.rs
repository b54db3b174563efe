//! Every rule, each in both directions, at apply, at import and at the commit of an accepted
//! operation: the same document is refused with the same code on all three ways, and its
//! neighbour is accepted on all three.

use crate::bench::*;
use crate::operations::{accept_create, finish};
use serde_json::{Value, json};

const ALL: [&str; 3] = ["fetch", "scheduled", "queue"];

/// A rule with a document that breaks it and the nearest one that keeps it.
struct Case {
    kind: &'static str,
    bad: Value,
    good: Value,
    code: &'static str,
    /// What the refusal names.
    names: &'static str,
}

async fn holds(client: &Client, case: Case) {
    let Case {
        kind,
        bad,
        good,
        code,
        names,
    } = case;
    let refusal = client.create(kind, "x", bad.clone()).await.refused(code);
    assert!(refusal.message.contains(names), "{}", refusal.message);
    let imported = client
        .import_new(&client.document(kind, "x", bad.clone()), "native")
        .await;
    assert_eq!(imported.refused(code).message, refusal.message);
    let id = accept_create(client, kind, "x", bad).await;
    let ended = finish(client, &id).await;
    assert_eq!(ended["error"]["code"], code);
    assert_eq!(ended["error"]["message"], refusal.message);
    client.absent(kind, "x").await;

    client.create(kind, "x", good.clone()).await.created();
    client.delete(kind, "x").await.is(204);
    client
        .import_new(&client.document(kind, "x", good.clone()), "native")
        .await
        .created();
    client.delete(kind, "x").await.is(204);
    let id = accept_create(client, kind, "x", good).await;
    let ended = finish(client, &id).await;
    assert!(ended["result"]["resource"].is_object(), "{ended}");
}

/// Worker `w` with versions `w-v1` (all handlers) and `w-fetch`, not deployed.
async fn undeployed(client: &Client) {
    client.worker("w").await;
    client.bundle("w-bundle", ALL_HANDLERS).await;
    client
        .create("WorkerVersion", "w-v1", version_spec("w", "w-bundle", &ALL))
        .await
        .created();
    client
        .create(
            "WorkerVersion",
            "w-fetch",
            version_spec("w", "w-bundle", &["fetch"]),
        )
        .await
        .created();
}

#[tokio::test]
async fn one_active_deployment_per_worker() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("taken", &["fetch"]).await;
    undeployed(&client).await;
    holds(
        &client,
        Case {
            kind: "WorkerDeployment",
            bad: deployment_spec("taken", &[("taken-v1", 10_000)]),
            good: deployment_spec("w", &[("w-v1", 10_000)]),
            code: "invalid_argument",
            names: "taken-deployment",
        },
    )
    .await;
}

#[tokio::test]
async fn weights_sum_to_the_whole() {
    let bench = Bench::start().await;
    let client = bench.t1();
    undeployed(&client).await;
    holds(
        &client,
        Case {
            kind: "WorkerDeployment",
            bad: deployment_spec("w", &[("w-v1", 5000), ("w-fetch", 5001)]),
            good: deployment_spec("w", &[("w-v1", 5000), ("w-fetch", 5000)]),
            code: "invalid_argument",
            names: "10001",
        },
    )
    .await;
}

#[tokio::test]
async fn a_deployment_weights_its_own_versions() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("other", &["fetch"]).await;
    undeployed(&client).await;
    holds(
        &client,
        Case {
            kind: "WorkerDeployment",
            bad: deployment_spec("w", &[("w-v1", 5000), ("other-v1", 5000)]),
            good: deployment_spec("w", &[("w-v1", 5000), ("w-fetch", 5000)]),
            code: "invalid_argument",
            names: "other-v1",
        },
    )
    .await;
}

#[tokio::test]
async fn a_deployment_weights_a_version_once() {
    let bench = Bench::start().await;
    let client = bench.t1();
    undeployed(&client).await;
    holds(
        &client,
        Case {
            kind: "WorkerDeployment",
            bad: deployment_spec("w", &[("w-v1", 1000), ("w-v1", 9000)]),
            good: deployment_spec("w", &[("w-v1", 1000), ("w-fetch", 9000)]),
            code: "invalid_argument",
            names: "w-v1",
        },
    )
    .await;
}

#[tokio::test]
async fn a_deployment_weights_ready_versions() {
    let bench = Bench::start().await;
    let client = bench.t1();
    undeployed(&client).await;
    client.kv("kv").await;
    let bound = with(
        version_spec("w", "w-bundle", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]),
    );
    client
        .create("WorkerVersion", "drifted", bound)
        .await
        .created();
    client.vanish("EdgeKVNamespace", "kv").await;
    holds(
        &client,
        Case {
            kind: "WorkerDeployment",
            bad: deployment_spec("w", &[("drifted", 10_000)]),
            good: deployment_spec("w", &[("w-v1", 10_000)]),
            code: "invalid_argument",
            names: "drifted",
        },
    )
    .await;
}

#[tokio::test]
async fn attachments_need_what_the_deployment_serves() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("idle").await;
    client.serving("w", &ALL).await;
    client.queue("q").await;
    for (kind, bad, good, names) in [
        (
            "WorkerCustomDomain",
            domain_spec("idle", "a.example.com"),
            domain_spec("w", "a.example.com"),
            "fetch",
        ),
        (
            "WorkerEndpoint",
            endpoint_spec("idle"),
            endpoint_spec("w"),
            "fetch",
        ),
        (
            "WorkerCronTrigger",
            cron_spec("idle", "* * * * *"),
            cron_spec("w", "* * * * *"),
            "scheduled",
        ),
        (
            "QueueConsumer",
            consumer_spec("idle", "q", None),
            consumer_spec("w", "q", None),
            "queue",
        ),
    ] {
        holds(
            &client,
            Case {
                kind,
                bad,
                good,
                code: "unsupported_capability",
                names,
            },
        )
        .await;
    }
}

#[tokio::test]
async fn service_bindings_reach_serving_workers_only() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("idle").await;
    client.serving("w", &["fetch"]).await;
    let service = |target: &str| {
        let binding = json!([{"name": "PEER", "resource": to("ModuleWorker", target)}]);
        with(
            version_spec("w", "w-bundle", &["fetch"]),
            "serviceBindings",
            binding,
        )
    };
    holds(
        &client,
        Case {
            kind: "WorkerVersion",
            bad: service("idle"),
            good: service("w"),
            code: "unsupported_capability",
            names: "idle",
        },
    )
    .await;
}

#[tokio::test]
async fn the_environment_is_one_namespace() {
    let bench = Bench::start().await;
    let client = bench.t1();
    undeployed(&client).await;
    let vars = with(
        version_spec("w", "w-bundle", &["fetch"]),
        "vars",
        json!({"NAME": 1}),
    );
    holds(
        &client,
        Case {
            kind: "WorkerVersion",
            bad: with(vars.clone(), "requiredSensitiveVars", json!(["NAME"])),
            good: with(vars, "requiredSensitiveVars", json!(["NAME_2"])),
            code: "invalid_argument",
            names: "NAME",
        },
    )
    .await;
}

#[tokio::test]
async fn declared_handlers_are_exported() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("one", FETCH_ONLY).await;
    holds(
        &client,
        Case {
            kind: "WorkerVersion",
            bad: version_spec("w", "one", &["fetch", "queue"]),
            good: version_spec("w", "one", &["fetch"]),
            code: "invalid_argument",
            names: "queue",
        },
    )
    .await;
}

#[tokio::test]
async fn manifests_are_held_and_of_the_right_kind() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let module = client
        .upload(
            &module_manifest("index.js", FETCH_ONLY),
            &[FETCH_ONLY.as_bytes()],
        )
        .await;
    let assets = client
        .upload(
            &files_manifest("StaticAssetBundle", "text/html", &[("a.html", "a")]),
            &[b"a"],
        )
        .await;
    let names = |digest: &str| json!({"manifestDigest": digest});
    let unknown = format!("sha256:{}", "0".repeat(64));
    for (kind, bad, good, code) in [
        ("WorkerBundle", &unknown, &module, "artifact_missing"),
        ("WorkerBundle", &assets, &module, "artifact_invalid"),
        ("StaticAssetBundle", &module, &assets, "artifact_invalid"),
    ] {
        holds(
            &client,
            Case {
                kind,
                bad: names(bad),
                good: names(good),
                code,
                names: "manifest",
            },
        )
        .await;
        client.delete(kind, "x").await.is(204);
    }
}

#[tokio::test]
async fn single_page_mode_has_an_index() {
    let bench = Bench::start().await;
    let client = bench.t1();
    undeployed(&client).await;
    for (name, path) in [("without", "a.html"), ("with", "index.html")] {
        let digest = client
            .upload(
                &files_manifest("StaticAssetBundle", "text/html", &[(path, "a")]),
                &[b"a"],
            )
            .await;
        client
            .create("StaticAssetBundle", name, json!({"manifestDigest": digest}))
            .await
            .created();
    }
    let assets = |bundle: &str| {
        let assets = json!({"bundle": to("StaticAssetBundle", bundle), "runWorkerFirst": true, "notFoundHandling": "single_page_application"});
        with(version_spec("w", "w-bundle", &["fetch"]), "assets", assets)
    };
    holds(
        &client,
        Case {
            kind: "WorkerVersion",
            bad: assets("without"),
            good: assets("with"),
            code: "invalid_argument",
            names: "index.html",
        },
    )
    .await;
}

#[tokio::test]
async fn hostnames_are_claimed_once() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client
        .create(
            "WorkerCustomDomain",
            "holder",
            domain_spec("w", "a.example.com"),
        )
        .await
        .created();
    holds(
        &client,
        Case {
            kind: "WorkerCustomDomain",
            bad: domain_spec("w", "A.example.com."),
            good: domain_spec("w", "b.example.com"),
            code: "invalid_argument",
            names: "holder",
        },
    )
    .await;
}

#[tokio::test]
async fn queues_have_one_consumer_and_dead_letters_come_to_rest() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    for queue in ["a", "b", "c"] {
        client.queue(queue).await;
    }
    client
        .create(
            "QueueConsumer",
            "holder",
            consumer_spec("w", "a", Some("b")),
        )
        .await
        .created();
    let good = consumer_spec("w", "b", Some("c"));
    for (bad, names) in [
        (consumer_spec("w", "a", None), "holder"),
        (consumer_spec("w", "b", Some("a")), "AtLeastOnceQueue b"),
    ] {
        holds(
            &client,
            Case {
                kind: "QueueConsumer",
                bad,
                good: good.clone(),
                code: "invalid_argument",
                names,
            },
        )
        .await;
        client.delete("QueueConsumer", "x").await.is(204);
    }
}

#[tokio::test]
async fn workers_have_one_endpoint() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client.serving("other", &["fetch"]).await;
    client
        .create("WorkerEndpoint", "holder", endpoint_spec("w"))
        .await
        .created();
    holds(
        &client,
        Case {
            kind: "WorkerEndpoint",
            bad: endpoint_spec("w"),
            good: endpoint_spec("other"),
            code: "invalid_argument",
            names: "holder",
        },
    )
    .await;
}

#[tokio::test]
async fn applied_history_is_kept() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for (name, files) in [
        ("one", &[("1.sql", "a")][..]),
        ("two", &[("1.sql", "a"), ("2.sql", "b")]),
        ("other", &[("1.sql", "b")]),
    ] {
        let blobs: Vec<&[u8]> = files.iter().map(|(_, text)| text.as_bytes()).collect();
        let digest = client
            .upload(
                &files_manifest("MigrationBundle", "application/sql", files),
                &blobs,
            )
            .await;
        client
            .create(
                "SQLiteMigrationSet",
                name,
                json!({"manifestDigest": digest}),
            )
            .await
            .created();
    }
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    let apply = |set: &str| json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", set)});
    client
        .create("SQLiteMigrationApplication", "first", apply("one"))
        .await
        .created();
    holds(
        &client,
        Case {
            kind: "SQLiteMigrationApplication",
            bad: apply("other"),
            good: apply("two"),
            code: "migration_required",
            names: "migrations",
        },
    )
    .await;
}

#[tokio::test]
async fn a_commit_judges_the_world_as_it_is_then() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    let id = accept_create(&client, "WorkerEndpoint", "late", endpoint_spec("w")).await;
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
    assert_eq!(
        finish(&client, &id).await["error"]["code"],
        "unsupported_capability"
    );
    let first = accept_create(
        &client,
        "WorkerDeployment",
        "first",
        deployment_spec("w", &[("w-v1", 10_000)]),
    )
    .await;
    let second = accept_create(
        &client,
        "WorkerDeployment",
        "second",
        deployment_spec("w", &[("w-v1", 10_000)]),
    )
    .await;
    assert!(finish(&client, &first).await["result"].is_object());
    assert_eq!(
        finish(&client, &second).await["error"]["code"],
        "invalid_argument"
    );
    client.absent("WorkerDeployment", "second").await;
}
