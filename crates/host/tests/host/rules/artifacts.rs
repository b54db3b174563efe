//! Manifests that a spec names, and the history of databases.

use super::{Case, Turn, turn};
use crate::bench::*;
use crate::operations::{accept_create, finish};
use serde_json::{Value, json};

fn naming(kind: &'static str, bad: &str, good: &str, code: &'static str, turn: Turn) -> Case {
    Case {
        kind,
        standing: None,
        bad: json!({"manifestDigest": bad}),
        good: json!({"manifestDigest": good}),
        code,
        names: "manifest",
        turn,
    }
}

/// Digests of a committed manifest of each kind: modules, assets, migrations.
async fn committed(client: &Client) -> [String; 3] {
    let module = module_manifest("index.js", FETCH_ONLY);
    let assets = files_manifest("StaticAssetBundle", "text/html", &[("a.html", "a")]);
    let migrations = files_manifest("MigrationBundle", "application/sql", &[("1.sql", "a")]);
    [
        client.upload(&module, &[FETCH_ONLY.as_bytes()]).await,
        client.upload(&assets, &[b"a"]).await,
        client.upload(&migrations, &[b"a"]).await,
    ]
}

pub async fn missing(client: &Client) -> Vec<Case> {
    let [module, assets, migrations] = committed(client).await;
    let unknown = format!("sha256:{}", "0".repeat(64));
    [
        ("WorkerBundle", module),
        ("StaticAssetBundle", assets),
        ("SQLiteMigrationSet", migrations),
    ]
    .map(|(kind, held)| {
        let never = Turn::Never("a committed manifest stays held");
        naming(kind, &unknown, &held, "artifact_missing", never)
    })
    .into()
}

pub async fn kind(client: &Client) -> Vec<Case> {
    let [module, assets, migrations] = committed(client).await;
    [
        ("WorkerBundle", &assets, &module),
        ("StaticAssetBundle", &migrations, &assets),
        ("SQLiteMigrationSet", &module, &migrations),
    ]
    .map(|(kind, bad, good)| {
        let never = Turn::Never("a digest names one manifest for all time");
        naming(kind, bad, good, "artifact_invalid", never)
    })
    .into()
}

/// The other direction of a world that moves: what was missing when the request was accepted is
/// there at the commit.
#[tokio::test]
async fn a_manifest_that_came_meanwhile_is_held() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let manifest = module_manifest("index.js", FETCH_ONLY);
    let spec = json!({"manifestDigest": notation_edge_api::digest(&manifest)});
    let id = accept_create(&client, "WorkerBundle", "x", spec).await;
    client.upload(&manifest, &[FETCH_ONLY.as_bytes()]).await;
    assert!(finish(&client, &id).await["result"].is_object());
}

async fn set(client: &Client, name: &str, files: &[(&str, &str)]) {
    let blobs: Vec<&[u8]> = files.iter().map(|(_, text)| text.as_bytes()).collect();
    let manifest = files_manifest("MigrationBundle", "application/sql", files);
    let digest = client.upload(&manifest, &blobs).await;
    let spec = json!({"manifestDigest": digest});
    client.make("SQLiteMigrationSet", name, spec).await;
}

fn applying(set: &str) -> Value {
    json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", set)})
}

pub async fn history(client: &Client) -> Vec<Case> {
    let three = [("1.sql", "a"), ("2.sql", "b"), ("3.sql", "c")];
    set(client, "one", &three[..1]).await;
    set(client, "two", &three[..2]).await;
    set(client, "three", &three).await;
    set(client, "edited", &[("1.sql", "b")]).await;
    client.make("SQLiteDatabase", "db", json!({})).await;
    let first = applying("one");
    client
        .make("SQLiteMigrationApplication", "first", first)
        .await;
    let overtaken = turn("migrations", |client| async move {
        let longer = applying("three");
        client
            .make("SQLiteMigrationApplication", "later", longer)
            .await;
    });
    vec![Case {
        kind: "SQLiteMigrationApplication",
        standing: None,
        bad: applying("edited"),
        good: applying("two"),
        code: "migration_required",
        names: "migrations",
        turn: overtaken,
    }]
}
