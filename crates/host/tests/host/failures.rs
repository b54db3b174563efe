//! What goes wrong behind the host is told, ends one request, and leaves nothing half done.

use crate::bench::*;
use async_trait::async_trait;
use bytes::Bytes;
use notation_edge::{Exports, LedgerEntry, Uid};
use notation_host::{BundleSource, ConvergeError, DataPlane, NoDataPlane, Snapshot};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A data plane with a bug: one file makes it fail.
struct Buggy;

#[async_trait]
impl DataPlane for Buggy {
    async fn inspect(&self, bundle: &BundleSource) -> Exports {
        NoDataPlane.inspect(bundle).await
    }

    async fn converge(&self, _snapshot: &Snapshot) -> Result<(), ConvergeError> {
        Ok(())
    }

    async fn migrate(
        &self,
        _database: &Uid,
        files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)> {
        assert!(files.iter().all(|(_, bytes)| &**bytes != b"bug"), "a bug");
        Ok(())
    }
}

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
    let bench = Bench::start_with(Arc::new(Buggy)).await;
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
