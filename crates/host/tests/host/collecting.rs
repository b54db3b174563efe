//! What nobody holds goes, also while the host serves; what somebody holds never does.

use crate::bench::*;
use crate::operations::{accept_create, finish, poll};
use notation_edge::Uid;
use notation_edge_api as wire;
use notation_host::{Clock, Collected, HostConfig};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A clock that a test turns.
struct Turned(Mutex<u64>);

impl Turned {
    fn day(&self, day: u64) {
        *self.0.lock().unwrap() = day;
    }

    fn written(day: u64) -> String {
        format!("2026-01-{day:02}T00:00:00Z")
    }
}

impl Clock for Turned {
    fn now(&self) -> String {
        Turned::written(*self.0.lock().unwrap())
    }

    fn before(&self, age: Duration) -> String {
        let now = *self.0.lock().unwrap();
        Turned::written(now.saturating_sub(age.as_secs() / 86_400).max(1))
    }
}

fn document(text: &str) -> Value {
    json!({
        "apiVersion": "artifacts.takoform.com/v1alpha1",
        "kind": "WorkerBundle",
        "mainModule": "index.js",
        "modules": [{
            "name": "index.js",
            "mediaType": "application/javascript+module",
            "size": text.len(),
            "digest": wire::blob_digest(text.as_bytes()),
        }],
    })
}

async fn start(client: &Client, text: &str) -> String {
    let started = client.start_upload(&document(text)).await.is(201).json();
    started["uploadId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn data_goes_once_its_resource_is_gone_and_not_before() {
    let plane = Arc::new(Plane::default());
    let bench = Bench::start_with(plane.clone()).await;
    let mut kept = Vec::new();
    for client in [bench.t1(), bench.t1().in_space(OTHER_SPACE), bench.t2()] {
        kept.push(client.kv("kv").await.metadata.uid);
    }
    kept.push("rnobodyknows".to_owned());
    *plane.kept.lock().unwrap() = kept.iter().map(|uid| Uid::new(&**uid)).collect();
    let collected = bench.host.collect_garbage().await.unwrap();
    assert_eq!(collected.data, 1);
    bench.t1().delete("EdgeKVNamespace", "kv").await.is(204);
    // Another life under the same name has another uid.
    bench.t1().kv("kv").await;
    assert_eq!(bench.host.collect_garbage().await.unwrap().data, 1);
    assert_eq!(
        bench.host.collect_garbage().await.unwrap(),
        Collected::default()
    );
    let left: Vec<String> = plane
        .kept
        .lock()
        .unwrap()
        .iter()
        .map(Uid::to_string)
        .collect();
    assert_eq!(left, kept[1..3]);
}

#[tokio::test]
async fn a_collection_takes_nothing_from_uploads_that_go_on_meanwhile() {
    const CLIENTS: u64 = 6;
    const UPLOADS: u64 = 12;
    let bench = Bench::plain().await;
    let going = Arc::new(AtomicBool::new(true));
    let collector = tokio::spawn({
        let (host, going) = (bench.host.clone(), going.clone());
        async move {
            let mut rounds = 0u64;
            while going.load(Ordering::SeqCst) {
                host.collect_garbage().await.unwrap();
                rounds += 1;
                tokio::task::yield_now().await;
            }
            rounds
        }
    });
    let abandoned = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let client = if number % 2 == 0 {
            bench.t1()
        } else {
            bench.t2()
        };
        let abandoned = abandoned.clone();
        clients.push(tokio::spawn(async move {
            for upload in 0..UPLOADS {
                // Clients of both tenants send the same bytes; every third time nobody keeps them.
                let text = format!(
                    "export default {{ fetch() {{ return {}; }} }};\n",
                    upload / 2
                );
                let session = start(&client, &text).await;
                let digest = wire::blob_digest(text.as_bytes());
                client
                    .put_blob(&session, &digest, text.as_bytes())
                    .await
                    .is(204);
                if upload % 3 == 2 {
                    client.abandon(&session).await.is(204);
                    abandoned.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                let committed = client.commit(&session).await;
                // Another client of the tenant may have let go of the blob in between.
                if committed.status == 404 {
                    client
                        .put_blob(&session, &digest, text.as_bytes())
                        .await
                        .is(204);
                    continue;
                }
                assert!(
                    [200, 201].contains(&committed.status),
                    "{}",
                    committed.text()
                );
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    going.store(false, Ordering::SeqCst);
    let rounds = collector.await.unwrap();
    bench.host.collect_garbage().await.unwrap();
    assert!(rounds > 0 && abandoned.load(Ordering::SeqCst) > 0);
    // Whatever a tenant holds can be read.
    let mut held = 0;
    for client in [bench.t1(), bench.t2()] {
        for text in (0..UPLOADS).map(|upload| {
            format!(
                "export default {{ fetch() {{ return {}; }} }};\n",
                upload / 2
            )
        }) {
            let digest = wire::blob_digest(text.as_bytes());
            let target = format!("{API}/artifacts/blobs/{digest}");
            if client.send("HEAD", &target, &[], "").await.status == 200 {
                held += 1;
                let bytes = bench.host.blob(&digest).await;
                assert_eq!(bytes.unwrap(), text.as_bytes(), "a held artifact is lost");
            }
        }
    }
    assert!(held >= UPLOADS / 2, "{held}");
}

#[tokio::test]
async fn sessions_that_nobody_finishes_end_with_their_blobs() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let clock = Arc::new(Turned(Mutex::new(1)));
    let config = || HostConfig {
        clock: clock.clone(),
        keep_records: Duration::from_secs(7 * 86_400),
        ..config(&dir)
    };
    let bench = Bench::open(config()).await;
    let client = bench.t1();
    let (loose, kept) = ("export const a = 1;\n", "export const b = 2;\n");
    let session = start(&client, loose).await;
    let digest = wire::blob_digest(loose.as_bytes());
    client
        .put_blob(&session, &digest, loose.as_bytes())
        .await
        .is(204);
    let digest_kept = wire::blob_digest(kept.as_bytes());
    client.upload(&document(kept), &[kept.as_bytes()]).await;

    clock.day(8);
    assert_eq!(
        bench.host.collect_garbage().await.unwrap(),
        Collected::default()
    );
    // A younger session of the same tenant names the same bytes: they stay with it.
    let younger = start(&client, loose).await;
    clock.day(9);
    let collected = bench.host.collect_garbage().await.unwrap();
    assert_eq!(
        (collected.uploads, collected.holds, collected.artifacts),
        (2, 0, 0)
    );
    client.commit(&session).await.refused("artifact_missing");
    client.abandon(&younger).await.is(204);
    let collected = bench.host.collect_garbage().await.unwrap();
    assert_eq!(collected.artifacts, 1);
    assert!(bench.host.blob(&digest).await.is_err());
    assert!(bench.host.blob(&digest_kept).await.is_ok());
    // It is the same after a restart.
    let bench = bench.restart(config()).await;
    let client = bench.t1();
    client.commit(&session).await.refused("artifact_missing");
    assert_eq!(
        bench.host.collect_garbage().await.unwrap(),
        Collected::default()
    );
    assert!(bench.host.blob(&digest_kept).await.is_ok());
}

#[tokio::test]
async fn operations_that_ended_long_ago_are_forgotten_and_pending_ones_are_not() {
    let temp = tempfile::tempdir().unwrap();
    let clock = Arc::new(Turned(Mutex::new(1)));
    let adapter = match published() {
        Some(root) => root.join("conformance/portable-host-v1beta1"),
        None => std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapter"),
    };
    let bench = Bench::open(HostConfig {
        clock: clock.clone(),
        ..config(&temp.path().join("data")).with_conformance(adapter)
    })
    .await;
    let client = bench.t1();
    let done = accept_create(&client, "EdgeKVNamespace", "kv", json!({})).await;
    finish(&client, &done).await;
    let pending = accept_create(&client, "EdgeKVNamespace", "kv2", json!({})).await;
    clock.day(20);
    assert_eq!(bench.host.collect_garbage().await.unwrap().operations, 1);
    poll(&client, &done).await.refused("operation_not_found");
    finish(&client, &pending).await;
    client.read("EdgeKVNamespace", "kv2").await.updated();
    client.read("EdgeKVNamespace", "kv").await.updated();
}
