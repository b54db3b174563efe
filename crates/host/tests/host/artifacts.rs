//! Artifacts: sessions, blobs, manifests, and who holds what.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::{Value, json};

async fn start(client: &Client, manifest: &Value) -> (String, Vec<String>) {
    let started: wire::StartedUpload =
        serde_json::from_value(client.start_upload(manifest).await.is(201).json()).unwrap();
    assert!(started.upload_id.starts_with("up_"));
    (started.upload_id, started.missing_blobs)
}

fn blob(source: &str) -> String {
    wire::blob_digest(source.as_bytes())
}

async fn head(client: &Client, digest: &str) -> u16 {
    let answer = client
        .send("HEAD", &format!("{API}/artifacts/blobs/{digest}"), &[], "")
        .await;
    assert!(answer.body.is_empty());
    answer.status
}

async fn manifest(client: &Client, digest: &str) -> Answer {
    client.get(&format!("{API}/artifacts/{digest}")).await
}

#[tokio::test]
async fn artifact_upload_missing_blob() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let (upload, missing) = start(&client, &module_manifest("index.js", FETCH_ONLY)).await;
    assert_eq!(missing, [blob(FETCH_ONLY)]);
    client.commit(&upload).await.refused("artifact_missing");
    manifest(
        &client,
        &wire::digest(&module_manifest("index.js", FETCH_ONLY)),
    )
    .await
    .refused("artifact_missing");
}

#[tokio::test]
async fn artifact_digest_mismatch() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let (upload, _) = start(&client, &module_manifest("index.js", FETCH_ONLY)).await;
    client
        .put_blob(&upload, &blob(FETCH_ONLY), b"other bytes")
        .await
        .refused("artifact_invalid");
    client
        .put_blob(&upload, &blob("unnamed"), b"unnamed")
        .await
        .refused("artifact_invalid");
    assert_eq!(head(&client, &blob(FETCH_ONLY)).await, 404);
}

#[tokio::test]
async fn artifact_commit_idempotent() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let document = module_manifest("index.js", FETCH_ONLY);
    let (upload, _) = start(&client, &document).await;
    client
        .put_blob(&upload, &blob(FETCH_ONLY), FETCH_ONLY.as_bytes())
        .await
        .is(204);
    client
        .put_blob(&upload, &blob(FETCH_ONLY), FETCH_ONLY.as_bytes())
        .await
        .is(204);
    let first = client.commit(&upload).await.is(201).json();
    assert_eq!(first, json!({"manifestDigest": wire::digest(&document)}));
    assert_eq!(client.commit(&upload).await.is(200).json(), first);
    assert_eq!(
        wire::digest(
            &manifest(&client, &wire::digest(&document))
                .await
                .is(200)
                .json()
        ),
        wire::digest(&document)
    );
    assert_eq!(head(&client, &blob(FETCH_ONLY)).await, 200);
    assert_eq!(head(&client, &blob("unknown")).await, 404);
    assert_eq!(head(&client, "nonsense").await, 404);
}

#[tokio::test]
async fn artifact_then_bundle_apply() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let unknown = json!({"manifestDigest": blob("unknown")});
    client
        .create("WorkerBundle", "b2", unknown)
        .await
        .refused("artifact_missing");
    let assets = files_manifest("StaticAssetBundle", "text/html", &[("index.html", "<p>")]);
    let digest = client.upload(&assets, &[b"<p>"]).await;
    client
        .create("WorkerBundle", "b2", json!({"manifestDigest": digest}))
        .await
        .refused("artifact_invalid");
    client.absent("WorkerBundle", "b2").await;
}

#[tokio::test]
async fn artifact_manifest_reject_list() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let mut orphan = module_manifest("index.js", FETCH_ONLY);
    orphan["modules"].as_array_mut().unwrap().push(json!({"name": "other.js.map", "mediaType": "application/source-map+json", "size": 1, "digest": blob("m")}));
    let mut large = module_manifest("index.js", FETCH_ONLY);
    large["modules"][0]["size"] = 10_485_761.into();
    let mut unknown = module_manifest("index.js", FETCH_ONLY);
    unknown["extra"] = 1.into();
    for bad in [orphan, large, unknown] {
        client.start_upload(&bad).await.refused("artifact_invalid");
    }
    let beside =
        json!({"manifest": module_manifest("index.js", FETCH_ONLY), "extra": 1}).to_string();
    client
        .send(
            "POST",
            &format!("{API}/artifacts/uploads"),
            &[("Idempotency-Key", "k")],
            beside,
        )
        .await
        .refused("invalid_argument");
    let keyless = json!({"manifest": module_manifest("index.js", FETCH_ONLY)}).to_string();
    client
        .send("POST", &format!("{API}/artifacts/uploads"), &[], keyless)
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn artifact_commit_binds_declared_size() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let mut wrong = module_manifest("index.js", FETCH_ONLY);
    wrong["modules"][0]["size"] = (FETCH_ONLY.len() + 1).into();
    let (upload, missing) = start(&client, &wrong).await;
    assert_eq!(missing, Vec::<String>::new());
    client.commit(&upload).await.refused("artifact_invalid");
    assert_eq!(head(&client, &blob(FETCH_ONLY)).await, 200);
}

#[tokio::test]
async fn artifact_manifest_kind_exclusive() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let mut worker = module_manifest("index.js", FETCH_ONLY);
    worker["files"] = json!([]);
    let mut assets = module_manifest("index.js", FETCH_ONLY);
    assets["kind"] = "StaticAssetBundle".into();
    assets.as_object_mut().unwrap().remove("mainModule");
    let mut migrations = files_manifest(
        "MigrationBundle",
        "application/sql",
        &[("1.sql", "select 1")],
    );
    migrations["mainModule"] = "1.sql".into();
    for bad in [worker, assets, migrations] {
        client.start_upload(&bad).await.refused("artifact_invalid");
        manifest(&client, &wire::digest(&bad))
            .await
            .refused("artifact_missing");
    }
}

#[tokio::test]
async fn bundle_main_module_is_loadable() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let mut document = module_manifest("index.js", FETCH_ONLY);
    document["modules"].as_array_mut().unwrap().push(json!({"name": "index.js.map", "mediaType": "application/source-map+json", "size": 2, "digest": blob("{}")}));
    let led = with(document.clone(), "mainModule", "index.js.map".into());
    client.start_upload(&led).await.refused("artifact_invalid");
    client
        .upload(&document, &[FETCH_ONLY.as_bytes(), b"{}"])
        .await;
}

#[tokio::test]
async fn artifact_retention_while_referenced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundle("b", FETCH_ONLY).await;
    let mut document = module_manifest("index.js", ALL_HANDLERS);
    document["modules"].as_array_mut().unwrap().push(json!({"name": "one.js", "mediaType": "application/javascript+module", "size": FETCH_ONLY.len(), "digest": blob(FETCH_ONLY)}));
    let (upload, missing) = start(&client, &document).await;
    assert_eq!(missing, [blob(ALL_HANDLERS)]);
    client
        .put_blob(&upload, &blob(ALL_HANDLERS), ALL_HANDLERS.as_bytes())
        .await
        .is(204);
    client.abandon(&upload).await.is(204);
    client.abandon(&upload).await.refused("artifact_missing");
    assert_eq!(head(&client, &blob(ALL_HANDLERS)).await, 404);
    assert_eq!(head(&client, &blob(FETCH_ONLY)).await, 200);
    manifest(
        &client,
        &wire::digest(&module_manifest("index.js", FETCH_ONLY)),
    )
    .await
    .is(200);
    client.read("WorkerBundle", "b").await.updated();
    assert_eq!(bench.host.collect_garbage().await.unwrap().artifacts, 1);
    assert!(bench.host.blob(&blob(FETCH_ONLY)).await.is_ok());
}

#[tokio::test]
async fn upload_session_bound_to_its_creating_principal() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let (upload, _) = start(&client, &module_manifest("index.js", FETCH_ONLY)).await;
    for foreign in [bench.t1p2(), bench.t2()] {
        foreign
            .put_blob(&upload, &blob(FETCH_ONLY), FETCH_ONLY.as_bytes())
            .await
            .refused("artifact_missing");
        foreign.commit(&upload).await.refused("artifact_missing");
        let refusal = foreign.abandon(&upload).await.refused("artifact_missing");
        assert_eq!(
            refusal.message,
            foreign
                .abandon("up_unknown")
                .await
                .refused("artifact_missing")
                .message
        );
    }
    client
        .put_blob(&upload, &blob(FETCH_ONLY), FETCH_ONLY.as_bytes())
        .await
        .is(204);
    client.commit(&upload).await.is(201);
}

#[tokio::test]
async fn artifact_digest_is_not_a_capability() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let document = module_manifest("index.js", FETCH_ONLY);
    let digest = client.upload(&document, &[FETCH_ONLY.as_bytes()]).await;
    manifest(&other, &digest).await.refused("artifact_missing");
    assert_eq!(head(&other, &blob(FETCH_ONLY)).await, 404);
    manifest(&bench.t1p2(), &digest).await.is(200);
    assert_eq!(head(&bench.t1p2(), &blob(FETCH_ONLY)).await, 200);
    let (upload, missing) = start(&other, &document).await;
    assert_eq!(missing, [blob(FETCH_ONLY)]);
    other
        .put_blob(&upload, &blob(FETCH_ONLY), FETCH_ONLY.as_bytes())
        .await
        .is(204);
    assert_eq!(
        other.commit(&upload).await.is(201).json()["manifestDigest"],
        digest
    );
    manifest(&other, &digest).await.is(200);
    manifest(&client, &digest).await.is(200);
}

#[tokio::test]
async fn manifest_reference_is_not_a_capability() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    let document = module_manifest("index.js", FETCH_ONLY);
    let digest = client.upload(&document, &[FETCH_ONLY.as_bytes()]).await;
    let spec = json!({"manifestDigest": digest});
    bench
        .t1p2()
        .create("WorkerBundle", "b", spec.clone())
        .await
        .created();
    let foreign = other
        .create("WorkerBundle", "b", spec.clone())
        .await
        .refused("artifact_missing");
    let unknown = other
        .create("WorkerBundle", "b", json!({"manifestDigest": blob("x")}))
        .await
        .refused("artifact_missing");
    assert_eq!(foreign.message, unknown.message);
    other
        .import_new(&other.document("WorkerBundle", "b", spec.clone()), "n")
        .await
        .refused("artifact_missing");
    other.upload(&document, &[FETCH_ONLY.as_bytes()]).await;
    other.create("WorkerBundle", "b", spec).await.created();
}
