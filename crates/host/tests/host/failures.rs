//! What goes wrong behind the host is told, ends one request, and leaves nothing half done.

use crate::bench::*;
use notation_edge::Exports;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

async fn application(client: &Client, name: &str, text: &str) -> Value {
    let files = [("1.sql", text)];
    let manifest = files_manifest("MigrationBundle", "application/sql", &files);
    let digest = client.upload(&manifest, &[text.as_bytes()]).await;
    let spec = json!({"manifestDigest": digest});
    client.make("SQLiteMigrationSet", name, spec).await;
    client.make("SQLiteDatabase", name, json!({})).await;
    json!({"database": to("SQLiteDatabase", name), "migrationSet": to("SQLiteMigrationSet", name)})
}

#[tokio::test]
async fn a_failure_inside_the_host_ends_one_request_only() {
    let bench = Bench::start_with(Arc::new(Plane::that_runs(|files| {
        Box::pin(async move {
            assert!(files.iter().all(|(_, bytes)| &**bytes != b"bug"), "a bug");
        })
    })))
    .await;
    let client = bench.t1();
    let bad = application(&client, "bad", "bug").await;
    let good = application(&client, "good", "select 1").await;
    let before = bench.rows();
    client
        .create("SQLiteMigrationApplication", "x", bad)
        .await
        .refused("internal_error");
    assert_eq!(bench.rows(), before);
    client.absent("SQLiteMigrationApplication", "x").await;
    client.make("SQLiteMigrationApplication", "x", good).await;
}

/// Removes the file with these bytes, wherever it is kept.
fn lose(dir: &Path, bytes: &[u8]) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lose(&path, bytes);
        } else if std::fs::read(&path).unwrap() == bytes {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn bytes_that_are_gone_are_told_and_nothing_is_half_done() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let lost = application(&client, "lost", "select 'lost'").await;
    let kept = application(&client, "kept", "select 'kept'").await;
    lose(&bench.dir, b"select 'lost'");
    let before = bench.rows();
    let answer = client.create("SQLiteMigrationApplication", "x", lost).await;
    answer.refused("backend_unavailable");
    assert!(answer.retry_after.is_some());
    assert_eq!(bench.rows(), before);
    client.make("SQLiteMigrationApplication", "x", kept).await;
}

/// Another program's hand in the store: what it does to the file makes commits fail.
fn store_of(bench: &Bench) -> rusqlite::Connection {
    rusqlite::Connection::open(bench.dir.join("host.sqlite")).unwrap()
}

fn name_of(n: usize) -> String {
    format!("{}{n}", if n.is_multiple_of(6) { "lost" } else { "some" })
}

#[tokio::test]
async fn after_a_commit_that_failed_memory_is_what_is_on_disk() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.make("EdgeKVNamespace", "kept", json!({})).await;
    let store = store_of(&bench);
    store
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON resource WHEN NEW.name LIKE 'lost%' \
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        )
        .unwrap();
    let before = bench.rows();
    let lost = client.document("EdgeKVNamespace", "lost", json!({}));
    client.reviewed(&lost, None).await;
    client
        .create_document(&lost)
        .await
        .refused("backend_unavailable");
    assert_eq!(bench.rows(), before);
    // Reads go on, and show nothing of what was refused.
    assert_eq!(client.read("EdgeKVNamespace", "kept").await.status, 200);
    client.absent("EdgeKVNamespace", "lost").await;

    // Whatever shared a transaction with it is there or is not, for reads as on disk.
    let mut creates = tokio::task::JoinSet::new();
    for n in 0..24 {
        let (client, name) = (bench.t1(), name_of(n));
        creates.spawn(async move {
            let answer = client.create("EdgeKVNamespace", &name, json!({})).await;
            (name, answer.status)
        });
    }
    for (name, status) in creates.join_all().await {
        assert!(status == 201 || status == 503, "{name}: {status}");
        let read = client.read("EdgeKVNamespace", &name).await.status;
        assert_eq!(read == 200, status == 201, "{name}: {status}, then {read}");
    }
    store.execute_batch("DROP TRIGGER full").unwrap();
    client.create_document(&lost).await.created();
    for name in (0..24).map(name_of) {
        if client.read("EdgeKVNamespace", &name).await.status == 404 {
            client.make("EdgeKVNamespace", &name, json!({})).await;
        }
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_written_is_read_and_found_writable_again() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.make("EdgeKVNamespace", "kept", json!({})).await;
    let store = store_of(&bench);
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let late = client.document("EdgeKVNamespace", "late", json!({}));
    client
        .create_document(&late)
        .await
        .refused("backend_unavailable");
    assert_eq!(client.read("EdgeKVNamespace", "kept").await.status, 200);
    assert_eq!(client.get("/readyz").await.status, 503);
    assert_eq!(client.get("/healthz").await.status, 200);
    store.execute_batch("ROLLBACK").unwrap();
    assert_eq!(client.get("/readyz").await.status, 200);
    client.create_document(&late).await.created();
}

/// Checks of modules that wait to be told, and how many do.
#[derive(Default)]
struct Checks {
    count: AtomicUsize,
    arrived: Notify,
    go: Notify,
}

#[tokio::test]
async fn endless_modules_of_one_tenant_leave_room_for_those_of_another() {
    let checks = Arc::new(Checks::default());
    let waiting = checks.clone();
    let plane = Plane::that_reads(move |text| {
        let checks = waiting.clone();
        Box::pin(async move {
            if text.starts_with(b"for(;;)") {
                checks.count.fetch_add(1, Ordering::SeqCst);
                checks.arrived.notify_one();
                checks.go.notified().await;
            }
            Some(Exports::Known(["fetch".to_owned()].into()))
        })
    });
    let bench = Bench::start_with(Arc::new(plane)).await;
    let mut creates = tokio::task::JoinSet::new();
    for n in 0..6 {
        let client = bench.t1();
        client.worker(&format!("w{n}")).await;
        let bundle = format!("b{n}");
        client.bundle(&bundle, &format!("for(;;); // {n}")).await;
        let spec = version_spec(&format!("w{n}"), &bundle, &["fetch"]);
        creates.spawn(async move { client.create("WorkerVersion", &bundle, spec).await.status });
    }
    checks.arrived.notified().await;
    let other = bench.t2();
    other.worker("w").await;
    other.bundle("b", FETCH_ONLY).await;
    other
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    let count = || checks.count.load(Ordering::SeqCst);
    assert!(count() <= 2, "{}", count());
    while let Some(status) = tokio::select! {
        status = creates.join_next() => status,
        () = async { loop { checks.go.notify_waiters(); tokio::task::yield_now().await } } => None,
    } {
        assert_eq!(status.unwrap(), 201);
    }
    assert_eq!(count(), 6);
}
