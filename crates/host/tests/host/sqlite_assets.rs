//! Static assets and SQLite migrations.

use crate::bench::*;
use serde_json::{Value, json};

fn with_assets(mode: &str) -> Value {
    let assets = json!({"bundle": to("StaticAssetBundle", "assets"), "runWorkerFirst": false, "notFoundHandling": mode});
    with(version_spec("w", "b", &["fetch"]), "assets", assets)
}

/// What a version with one page at `path` as its assets needs.
async fn a_page(client: &Client, path: &str) {
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let manifest = files_manifest("StaticAssetBundle", "text/html", &[(path, "<p>")]);
    let digest = client.upload(&manifest, &[b"<p>"]).await;
    let spec = json!({"manifestDigest": digest});
    client
        .create("StaticAssetBundle", "assets", spec)
        .await
        .created();
}

#[tokio::test]
async fn static_asset_spa_paths() {
    let bench = Bench::start().await;
    let client = bench.t1();
    a_page(&client, "index.html").await;
    let created = client
        .create("WorkerVersion", "v", with_assets("single_page_application"))
        .await
        .created();
    assert_eq!(ready(&created).0, "True");
    client
        .delete("StaticAssetBundle", "assets")
        .await
        .refused("dependency_in_use");
    client.delete("WorkerVersion", "v").await.is(204);
    client.delete("StaticAssetBundle", "assets").await.is(204);
}

#[tokio::test]
async fn single_page_mode_needs_an_index() {
    let bench = Bench::start().await;
    let client = bench.t1();
    a_page(&client, "app/index.html").await;
    client
        .create("WorkerVersion", "v", with_assets("single_page_application"))
        .await
        .refused("invalid_argument");
    client
        .create("WorkerVersion", "v", with_assets("none"))
        .await
        .created();
}

const ONE: (&str, &str) = ("0001.sql", "create table a (x);");
const TWO: (&str, &str) = ("0002.sql", "create table b (x);");

async fn set(client: &Client, name: &str, files: &[(&str, &str)]) {
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

async fn apply(client: &Client, name: &str, set: &str) -> Answer {
    let spec = json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", set)});
    client
        .create("SQLiteMigrationApplication", name, spec)
        .await
}

#[tokio::test]
async fn sqlite_migration_ledger_readiness() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    set(&client, "one", &[ONE]).await;
    set(&client, "two", &[ONE, TWO]).await;
    let older = apply(&client, "older", "one").await.created();
    assert_eq!(ready(&older).0, "True");
    assert_eq!(
        ready(&apply(&client, "newer", "two").await.created()).0,
        "True"
    );
    let overtaken = client
        .read("SQLiteMigrationApplication", "older")
        .await
        .updated();
    let (status, reason, text) = ready(&overtaken);
    assert_eq!((status, reason), ("False", "Reconciling"));
    assert!(!text.contains("one live"));
    assert_eq!(
        (
            overtaken.metadata.revision.as_str(),
            overtaken.metadata.generation.as_str()
        ),
        ("2", "1")
    );
    for (kind, name) in [("SQLiteDatabase", "db"), ("SQLiteMigrationSet", "two")] {
        client.delete(kind, name).await.refused("dependency_in_use");
    }
    for (kind, name) in [
        ("SQLiteMigrationApplication", "newer"),
        ("SQLiteMigrationApplication", "older"),
        ("SQLiteMigrationSet", "two"),
        ("SQLiteMigrationSet", "one"),
        ("SQLiteDatabase", "db"),
    ] {
        client.delete(kind, name).await.is(204);
    }
}

#[tokio::test]
async fn applied_migrations_stay_the_beginning_of_every_list() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    set(&client, "two", &[ONE, TWO]).await;
    set(&client, "one", &[ONE]).await;
    set(
        &client,
        "edited",
        &[ONE, ("0002.sql", "create table c (x);")],
    )
    .await;
    set(&client, "swapped", &[TWO, ONE]).await;
    apply(&client, "first", "two").await.created();
    for refused in ["one", "edited", "swapped"] {
        apply(&client, "next", refused)
            .await
            .refused("migration_required");
        client.absent("SQLiteMigrationApplication", "next").await;
    }
    apply(&client, "same", "two").await.created();
    // The ledger belongs to the incarnation, not to applications or names.
    client
        .delete("SQLiteMigrationApplication", "first")
        .await
        .is(204);
    client
        .delete("SQLiteMigrationApplication", "same")
        .await
        .is(204);
    apply(&client, "next", "one")
        .await
        .refused("migration_required");
    client.delete("SQLiteDatabase", "db").await.is(204);
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    apply(&client, "next", "one").await.created();
}
