//! A newer program over the data of an older one, and the other way round.

use crate::bench::*;
use notation_edge_api as wire;
use notation_host::{Host, HostConfig, NoDataPlane, OpenError, StoreError};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store as the first format wrote it: a worker with a version, its deployment and endpoint, an
/// upload session, an operation that ended and one that did not, a token. `{digest:KIND}` stands
/// for the digest of an installed Form.
const FORMAT_1: &str = include_str!("../fixtures/format-1.sql");

/// The store of the first format in a data directory of its own.
async fn written_long_ago(dir: &Path) {
    let temp = tempfile::tempdir().unwrap();
    let host = Host::open(config(&temp.path().join("data")), Arc::new(NoDataPlane));
    let host = host.await.unwrap();
    let mut sql = FORMAT_1.to_owned();
    for form in host.contracts().catalog.forms() {
        let id = &form.form_ref;
        if &*id.api_version == EDGE && &*id.definition_version == "0.1.0" {
            sql = sql.replace(&format!("{{digest:{}}}", id.kind), &id.schema_digest);
        }
    }
    assert!(!sql.contains("{digest:"));
    std::fs::create_dir_all(dir).unwrap();
    let connection = rusqlite::Connection::open(dir.join("host.sqlite")).unwrap();
    connection.execute_batch(&sql).unwrap();
}

fn format_of(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn a_store_of_the_first_format_opens_and_a_copy_of_it_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    written_long_ago(&dir).await;
    let bench = Bench::open(config(&dir)).await;
    let client = bench.t1();
    let worker = client.read("ModuleWorker", "w").await.updated();
    assert_eq!(ready(&worker).0, "True");
    client
        .read("WorkerDeployment", "w-deployment")
        .await
        .updated();
    client.read("WorkerEndpoint", "e").await.updated();
    assert!(bench.host.tokens().iter().any(|it| it.grant.label == "old"));
    // It is of today: what is written now is there after another start.
    client.worker("new").await;
    let bench = bench.restart(config(&dir)).await;
    bench.t1().read("ModuleWorker", "new").await.updated();
    bench.stop().await;
    assert!(format_of(&dir.join("host.sqlite")) > 1);
    let copy = dir.join("host.format-1.sqlite");
    assert_eq!(format_of(&copy), 1);
    // The way back: the copy is a whole store.
    let back = temp.path().join("back");
    std::fs::create_dir_all(&back).unwrap();
    std::fs::copy(copy, back.join("host.sqlite")).unwrap();
    let bench = Bench::open(config(&back)).await;
    bench.t1().read("ModuleWorker", "w").await.updated();
    bench.t1().absent("ModuleWorker", "new").await;
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused_untouched() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let bench = Bench::open(config(&dir)).await;
    bench.t1().worker("w").await;
    bench.stop().await;
    let path = dir.join("host.sqlite");
    let today = format_of(&path);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "user_version", today + 1)
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let error = Host::open(config(&dir), Arc::new(NoDataPlane)).await;
    let error = error.err().unwrap();
    assert!(
        matches!(&error, OpenError::Store(StoreError::Newer { found, known, .. })
            if *found == today + 1 && *known == today),
        "{error}"
    );
    assert!(error.to_string().contains("host.sqlite"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// A set whose Form of namespaces is another one.
fn other_set(at: &Path) -> PathBuf {
    let set = at.join("set");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts");
    crate::durability::copy(&own, &set);
    let definition = set.join("forms/candidates/edge/v1beta1/edge-kv-namespace/definition.json");
    let before = std::fs::read_to_string(&definition).unwrap();
    let after = before.replacen("\"title\": \"", "\"title\": \"Older ", 1);
    std::fs::write(&definition, &after).unwrap();
    let digest = |text: &str| wire::digest(&wire::parse(text.as_bytes()).unwrap());
    let index = set.join("forms/candidates/edge/v1beta1/candidate-set.json");
    let text = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, text.replace(&digest(&before), &digest(&after))).unwrap();
    set
}

#[tokio::test]
async fn data_made_under_older_contracts_goes_on_working_until_it_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let older = other_set(temp.path());
    // The older program had `older` built in: it kept it beside its data.
    let own = HostConfig::new(&dir);
    let bench = Bench::open(HostConfig {
        contracts: Some(older.clone()),
        ..own.clone()
    })
    .await;
    bench.t1().kv("kv").await;
    let digest = bench.t1().form("EdgeKVNamespace").schema_digest;
    bench.stop().await;
    let kept = dir.join("contracts");
    assert!(!kept.exists(), "a set that was given is not ours to keep");
    crate::durability::copy(&older, &kept);

    // The newer one serves on with it: read, made, deleted.
    let bench = Bench::open(own.clone()).await;
    let client = bench.t1();
    assert_eq!(client.form("EdgeKVNamespace").schema_digest, digest);
    client.read("EdgeKVNamespace", "kv").await.updated();
    client
        .create("EdgeKVNamespace", "more", json!({}))
        .await
        .created();
    let bench = bench.restart(own.clone()).await;
    let client = bench.t1();
    for name in ["kv", "more"] {
        client.delete("EdgeKVNamespace", name).await.is(204);
    }
    // Nothing is left that belongs to the older set.
    let bench = bench.restart(own.clone()).await;
    assert_ne!(bench.t1().form("EdgeKVNamespace").schema_digest, digest);
    bench.t1().kv("kv").await;
    let bench = bench.restart(own).await;
    bench.t1().read("EdgeKVNamespace", "kv").await.updated();
    bench.stop().await;
    let definition = "forms/candidates/edge/v1beta1/edge-kv-namespace/definition.json";
    let read = |set: &Path| std::fs::read(set.join(definition)).unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts");
    assert_eq!(read(&kept), read(&ours));
}
