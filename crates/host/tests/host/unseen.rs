//! Points a conformance run does not see.

use crate::bench::*;
use crate::operations::{accept_delete, poll};
use serde_json::{Value, json};

#[tokio::test]
async fn defaults_are_filled_in_for_whoever_leaves_them_out() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let created = client
        .create(
            "AtLeastOnceQueue",
            "q",
            json!({"messageRetentionSeconds": 600}),
        )
        .await
        .created();
    assert_eq!(created.spec, queue_spec(600));
    assert_eq!(
        client
            .update("AtLeastOnceQueue", "q", queue_spec(600))
            .await
            .updated()
            .metadata,
        created.metadata
    );
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let short = json!({"worker": to("ModuleWorker", "w"), "bundle": to("WorkerBundle", "b"), "handlers": ["fetch"]});
    let version = client.create("WorkerVersion", "v", short).await.created();
    assert_eq!(version.spec, version_spec("w", "b", &["fetch"]));
}

#[tokio::test]
async fn vars_keep_type_and_spelling() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let vars = json!({"retries": 3, "enabled": true, "ratio": 0.5, "label": "x", "none": null, "big": 9_007_199_254_740_993_u64, "list": [1, {"a": "/ü"}]});
    client
        .create(
            "WorkerVersion",
            "v",
            with(version_spec("w", "b", &["fetch"]), "vars", vars.clone()),
        )
        .await
        .created();
    let read = client.read("WorkerVersion", "v").await;
    assert_eq!(read.json()["spec"]["vars"], vars);
    assert!(read.text().contains("\"retries\":3,") && read.text().contains("/ü"));
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let good = client.document("ModuleWorker", "w", json!({}));
    let text = good.to_string();
    let mut bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{} {}".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        text.replacen("{\"apiVersion\"", "{\"kind\":\"x\",\"apiVersion\"", 1)
            .into_bytes(),
        [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat(),
        [text.as_bytes(), b"\xff"].concat(),
    ];
    for (pointer, value) in [
        ("/extra", json!(1)),
        ("/Spec", json!({})),
        ("/review", json!({"prepareDigest": "x"})),
        ("/nativeId", json!("x")),
        ("/metadata", json!(["w", SPACE])),
        (
            "/metadata",
            json!({"name": "w", "space": SPACE, "labels": {}}),
        ),
        ("/metadata", json!({"name": 1, "space": SPACE})),
        ("/spec", json!([])),
        ("/spec", json!("x")),
        ("/form", Value::Null),
        ("/metadata", json!({"name": "Upper", "space": SPACE})),
    ] {
        let mut bad = good.clone();
        bad[&pointer[1..]] = value;
        bodies.push(bad.to_string().into_bytes());
    }
    for body in bodies {
        let answer = client
            .send("POST", &format!("{API}/resources/validate"), &[], body)
            .await;
        answer.refused("invalid_argument");
    }
    let mut null_spec = good.clone();
    null_spec["spec"] = Value::Null;
    client.validate(&null_spec).await.is(200);
    let mut counters = good;
    counters["metadata"] =
        json!({"name": "w", "space": SPACE, "uid": "x", "generation": "9", "revision": "9"});
    client.validate(&counters).await.is(200);
}

#[tokio::test]
async fn a_name_is_one_name_for_all_definition_versions() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    let second = client.form_at(EDGE, "ModuleWorker", "0.2.0");
    let document = client.document_of(&second, "w", json!({}));
    client
        .create_document(&document)
        .await
        .refused("generation_conflict");
    client
        .import(
            &document,
            "n",
            &[
                ("Idempotency-Key", "i"),
                ("Takoform-Expected-Generation", "1"),
            ],
        )
        .await
        .refused("resource_not_found");
}

#[tokio::test]
async fn a_version_that_is_not_ready_or_leaving_takes_no_traffic() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    client.kv("kv").await;
    let bound = with(
        version_spec("w", "b", &["fetch"]),
        "kvBindings",
        json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]),
    );
    client
        .create("WorkerVersion", "drifted", bound)
        .await
        .created();
    client.vanish("EdgeKVNamespace", "kv").await;
    let refusal = client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("drifted", 10_000)]),
        )
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("/kvBindings/0/resource"));
    client
        .create(
            "WorkerVersion",
            "leaving",
            version_spec("w", "b", &["fetch"]),
        )
        .await
        .created();
    let id = accept_delete(&client, "WorkerVersion", "leaving").await;
    let spec = deployment_spec("w", &[("leaving", 10_000)]);
    client
        .create("WorkerDeployment", "d", spec.clone())
        .await
        .refused("invalid_argument");
    client
        .send(
            "POST",
            &format!("{API}/operations/{id}/cancel"),
            &[("Idempotency-Key", "c")],
            "",
        )
        .await
        .is(200);
    assert_eq!(poll(&client, &id).await.json()["done"], true);
    client.create("WorkerDeployment", "d", spec).await.created();
}

#[tokio::test]
async fn members_that_never_change_are_held() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("a", &["fetch", "scheduled", "queue"]).await;
    client.serving("b", &["fetch", "scheduled", "queue"]).await;
    client
        .create("WorkerCronTrigger", "t", cron_spec("a", "0 * * * *"))
        .await
        .created();
    client
        .update("WorkerCronTrigger", "t", cron_spec("b", "0 * * * *"))
        .await
        .refused("invalid_argument");
    client
        .update("WorkerCronTrigger", "t", cron_spec("a", "5 * * * *"))
        .await
        .updated();
    client
        .update(
            "WorkerDeployment",
            "a-deployment",
            deployment_spec("b", &[("b-v1", 10_000)]),
        )
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn everything_that_is_pinned_is_protected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    client
        .create("ObjectBucket", "bucket", json!({}))
        .await
        .created();
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    client.queue("q").await;
    let mut spec = version_spec("w", "b", &["fetch"]);
    spec["bucketBindings"] = json!([{"name": "BUCKET", "resource": to("ObjectBucket", "bucket")}]);
    spec["sqliteBindings"] = json!([{"name": "DB", "resource": to("SQLiteDatabase", "db")}]);
    spec["queueProducerBindings"] = json!([{"name": "Q", "resource": to("AtLeastOnceQueue", "q")}]);
    client.create("WorkerVersion", "v", spec).await.created();
    let held = [
        ("ObjectBucket", "bucket"),
        ("SQLiteDatabase", "db"),
        ("AtLeastOnceQueue", "q"),
        ("WorkerBundle", "b"),
        ("ModuleWorker", "w"),
    ];
    for (kind, name) in held {
        client.delete(kind, name).await.refused("dependency_in_use");
    }
    client.delete("WorkerVersion", "v").await.is(204);
    for (kind, name) in held {
        client.delete(kind, name).await.is(204);
    }
}

#[tokio::test]
async fn which_of_two_wrong_fences_is_told() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.queue("q").await;
    let reviewed = client
        .reviewed(
            &client.document("AtLeastOnceQueue", "q", queue_spec(345_600)),
            Some("1"),
        )
        .await;
    let wrong = with(reviewed, "expectedUid", "other".into());
    client
        .put(
            &wrong,
            &[
                ("Idempotency-Key", "k"),
                ("Takoform-Expected-Generation", "9"),
            ],
        )
        .await
        .refused("uid_mismatch");
}

#[tokio::test]
async fn a_large_body_is_refused_and_the_connection_lives_on() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let body = vec![b' '; 8_388_609];
    client
        .send(
            "POST",
            &format!("{API}/resources/validate"),
            &[],
            body.clone(),
        )
        .await
        .refused("invalid_argument");
    client
        .anonymous()
        .send("POST", &format!("{API}/resources/validate"), &[], body)
        .await
        .refused("unauthenticated");
    client.kv("kv").await;
}

#[tokio::test]
async fn two_repairs_at_one_generation_are_two_requests() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch", "scheduled", "queue"]).await;
    client.queue("q").await;
    let document = client.document("QueueConsumer", "c", consumer_spec("w", "q", None));
    client.create_document(&document).await.created();
    let mut reviews = Vec::new();
    for _ in 0..2 {
        client.vanish("AtLeastOnceQueue", "q").await;
        client.queue("q").await;
        let reviewed = client.reviewed(&document, Some("1")).await;
        client
            .put(
                &reviewed,
                &[
                    ("Idempotency-Key", &key()),
                    ("Takoform-Expected-Generation", "1"),
                ],
            )
            .await
            .updated();
        reviews.push(reviewed["review"]["prepareDigest"].clone());
    }
    assert_ne!(reviews[0], reviews[1]);
}

#[tokio::test]
async fn an_import_does_nothing_an_update_may_not() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let fence = |generation: &'static str| {
        [
            ("Idempotency-Key", "i"),
            ("Takoform-Expected-Generation", generation),
        ]
    };
    let version = client.document(
        "WorkerVersion",
        "w-v1",
        version_spec("w", "w-bundle", &["fetch"]),
    );
    client
        .import(&version, "n", &fence("1"))
        .await
        .refused("invalid_argument");
    let worker = client.document("ModuleWorker", "w", json!({}));
    client.import(&worker, "n", &fence("1")).await.updated();
}
