//! Decision 0016 rules 5 and 7, and what a version's code must have.

use super::{Case, Turn, turn};
use crate::bench::*;
use notation_edge::Exports;
use serde_json::{Value, json};
use std::sync::Arc;

const BROKEN: &str = "broken {";

/// A host with the conformance adapter that can tell a module that does not load.
pub async fn bench() -> Bench {
    let plane = Plane::that_reads(|text| {
        let broken = *text == *BROKEN.as_bytes();
        let exports = broken.then(|| Exports::Broken("unexpected end".to_owned()));
        Box::pin(std::future::ready(exports))
    });
    Bench::start_with(Arc::new(plane)).await
}

fn declaring(bad: Value, good: Value, names: &'static str, turn: Turn) -> Case {
    Case {
        kind: "WorkerVersion",
        standing: None,
        bad,
        good,
        code: "invalid_argument",
        names,
        turn,
    }
}

pub async fn service(client: &Client) -> Vec<Case> {
    client.worker("idle").await;
    client.serving("peer", &["fetch"]).await;
    client.bundled("w").await;
    let goes = turn("handler fetch of ModuleWorker peer", |client| async move {
        client.remove("WorkerDeployment", "peer-deployment").await;
    });
    let service = |target| service_spec("w", "w-bundle", target);
    vec![Case {
        code: "unsupported_capability",
        ..declaring(
            service("idle"),
            service("peer"),
            "handler fetch of ModuleWorker idle",
            goes,
        )
    }]
}

pub async fn environment(client: &Client) -> Vec<Case> {
    client.bundled("w").await;
    client.kv("kv").await;
    client.make("ObjectBucket", "bucket", json!({})).await;
    let never = || Turn::Never("all names are in the document");
    let bound = |vars: Value, sensitive: Value, bucket: &str| {
        let mut spec = kv_spec("w", "w-bundle", "kv");
        spec["vars"] = vars;
        spec["requiredSensitiveVars"] = sensitive;
        spec["bucketBindings"] =
            json!([{"name": bucket, "resource": to("ObjectBucket", "bucket")}]);
        spec
    };
    let good = || bound(json!({"KV_NAME": 1}), json!(["KV_KEY"]), "KV_FILES");
    vec![
        declaring(
            bound(json!({"KV": 1}), json!([]), "F"),
            good(),
            "KV",
            never(),
        ),
        declaring(bound(json!({}), json!(["KV"]), "F"), good(), "KV", never()),
        declaring(
            bound(json!({"A": 1}), json!(["A"]), "F"),
            good(),
            "name A ",
            never(),
        ),
        declaring(bound(json!({}), json!([]), "KV"), good(), "KV", never()),
    ]
}

/// Another bundle takes the name of one that vanished.
fn replaced(bundle: &'static str, source: &'static str, names: &'static str) -> Turn {
    turn(names, move |client| async move {
        client.vanish("WorkerBundle", bundle).await;
        client.bundle(bundle, source).await;
    })
}

pub async fn exported(client: &Client) -> Vec<Case> {
    client.worker("w").await;
    client.bundle("one", FETCH_ONLY).await;
    client.bundle("all", ALL_HANDLERS).await;
    let bad = version_spec("w", "one", &["fetch", "queue"]);
    let good = version_spec("w", "all", &["fetch", "queue"]);
    let turn = replaced("all", FETCH_ONLY, "handler queue");
    vec![declaring(bad, good, "handler queue", turn)]
}

pub async fn broken(client: &Client) -> Vec<Case> {
    client.worker("w").await;
    client.bundle("torn", BROKEN).await;
    client.bundle("sound", FETCH_ONLY).await;
    let bad = version_spec("w", "torn", &["fetch"]);
    let good = version_spec("w", "sound", &["fetch"]);
    let turn = replaced("sound", BROKEN, "unexpected end");
    vec![declaring(bad, good, "unexpected end", turn)]
}

async fn assets(client: &Client, bundle: &str, path: &str) {
    let manifest = files_manifest("StaticAssetBundle", "text/html", &[(path, "a")]);
    let digest = client.upload(&manifest, &[b"a"]).await;
    let spec = json!({"manifestDigest": digest});
    client.make("StaticAssetBundle", bundle, spec).await;
}

pub async fn index(client: &Client) -> Vec<Case> {
    client.bundled("w").await;
    assets(client, "without", "app/index.html").await;
    assets(client, "with", "index.html").await;
    let version = |bundle: &str| {
        let assets = json!({"bundle": to("StaticAssetBundle", bundle), "runWorkerFirst": true, "notFoundHandling": "single_page_application"});
        with(version_spec("w", "w-bundle", &["fetch"]), "assets", assets)
    };
    let goes = turn("index.html", |client| async move {
        client.vanish("StaticAssetBundle", "with").await;
        assets(&client, "with", "other.html").await;
    });
    vec![declaring(
        version("without"),
        version("with"),
        "index.html",
        goes,
    )]
}
