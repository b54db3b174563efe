//! Migrations take as long as they take: what else a tenant does goes on meanwhile, and what a
//! migration was for is judged in the world as it is at its end.

use crate::bench::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Migrations that take until they are let on.
struct Slow {
    begun: Semaphore,
    let_on: Semaphore,
    /// Every file that ran, in order.
    ran: Mutex<Vec<String>>,
}

struct Scene {
    slow: Arc<Slow>,
    bench: Bench,
}

impl Scene {
    async fn new() -> Scene {
        let slow = Arc::new(Slow {
            begun: Semaphore::new(0),
            let_on: Semaphore::new(0),
            ran: Mutex::default(),
        });
        let running = slow.clone();
        let plane = Plane::that_runs(move |files| {
            let slow = running.clone();
            Box::pin(async move {
                slow.begun.add_permits(1);
                slow.let_on.acquire().await.unwrap().forget();
                let paths = files.into_iter().map(|(path, _)| path);
                slow.ran.lock().unwrap().extend(paths);
            })
        });
        let bench = Bench::start_with(Arc::new(plane)).await;
        let client = bench.t1();
        client.make("SQLiteDatabase", "db", json!({})).await;
        for (name, files) in [
            ("one", vec![("1.sql", "select 1")]),
            ("two", vec![("1.sql", "select 1"), ("2.sql", "select 2")]),
        ] {
            let manifest = files_manifest("MigrationBundle", "application/sql", &files);
            let blobs: Vec<&[u8]> = files.iter().map(|(_, text)| text.as_bytes()).collect();
            let digest = client.upload(&manifest, &blobs).await;
            let spec = json!({"manifestDigest": digest});
            client.make("SQLiteMigrationSet", name, spec).await;
        }
        Scene { slow, bench }
    }

    /// Starts to apply a set, and returns once its files run.
    async fn begin(&self, name: &'static str, set: &str) -> tokio::task::JoinHandle<Answer> {
        let client = self.bench.t1();
        let spec = application(set);
        let asked = tokio::spawn(async move {
            client
                .create("SQLiteMigrationApplication", name, spec)
                .await
        });
        self.slow.begun.acquire().await.unwrap().forget();
        asked
    }

    fn ran(&self) -> Vec<String> {
        self.slow.ran.lock().unwrap().clone()
    }
}

fn application(set: &str) -> Value {
    json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", set)})
}

#[tokio::test]
async fn what_else_a_tenant_does_goes_on_while_files_run() {
    let scene = Scene::new().await;
    let client = scene.bench.t1();
    let asked = scene.begin("app", "one").await;
    client.make("EdgeKVNamespace", "kv", json!({})).await;
    client.in_space(OTHER_SPACE).worker("w").await;
    let text = "select 3";
    let manifest = files_manifest("MigrationBundle", "application/sql", &[("3.sql", text)]);
    scene
        .bench
        .t1p2()
        .upload(&manifest, &[text.as_bytes()])
        .await;
    client.absent("SQLiteMigrationApplication", "app").await;
    assert!(!asked.is_finished());
    scene.slow.let_on.add_permits(1);
    let made = asked.await.unwrap().created();
    assert_eq!(ready(&made).0, "True");
    assert_eq!(scene.ran(), ["1.sql"]);
}

#[tokio::test]
async fn a_second_application_waits_and_runs_only_what_is_still_due() {
    let scene = Scene::new().await;
    let first = scene.begin("first", "one").await;
    let client = scene.bench.t1();
    let second = tokio::spawn(async move {
        client
            .create("SQLiteMigrationApplication", "second", application("two"))
            .await
    });
    let client = scene.bench.t1();
    let same = tokio::spawn(async move {
        client
            .create("SQLiteMigrationApplication", "same", application("one"))
            .await
    });
    scene.slow.let_on.add_permits(8);
    first.await.unwrap().created();
    second.await.unwrap().created();
    // It may come before the second one or after it.
    let same = same.await.unwrap();
    assert!([201, 409].contains(&same.status), "{}", same.text());
    assert_eq!(scene.ran(), ["1.sql", "2.sql"]);
}

#[tokio::test]
async fn the_change_is_judged_in_the_world_at_its_end() {
    let scene = Scene::new().await;
    let client = scene.bench.t1();
    let asked = scene.begin("app", "one").await;
    client.delete("SQLiteMigrationSet", "one").await.is(204);
    scene.slow.let_on.add_permits(8);
    asked.await.unwrap().refused("resource_not_found");
    client.absent("SQLiteMigrationApplication", "app").await;
    // What ran stays in the ledger, and is not run again.
    let second = scene.begin("next", "two").await;
    second.await.unwrap().created();
    assert_eq!(scene.ran(), ["1.sql", "2.sql"]);
}

#[tokio::test]
async fn the_ledger_goes_with_its_database_also_while_files_run() {
    let scene = Scene::new().await;
    let client = scene.bench.t1();
    let asked = scene.begin("app", "one").await;
    client.delete("SQLiteDatabase", "db").await.is(204);
    client.make("SQLiteDatabase", "db", json!({})).await;
    scene.slow.let_on.add_permits(8);
    // The name leads to another database now, which has none of the files.
    asked.await.unwrap().created();
    assert_eq!(scene.ran(), ["1.sql", "1.sql"]);
}

#[tokio::test]
async fn one_request_sent_twice_while_its_files_run_is_done_once() {
    let scene = Scene::new().await;
    let client = scene.bench.t1();
    let document = client.document("SQLiteMigrationApplication", "app", application("two"));
    let document = client.reviewed(&document, None).await;
    let asked = || {
        let (client, document) = (client.clone(), document.clone());
        tokio::spawn(async move {
            let headers = [("Idempotency-Key", "the-key"), ("If-None-Match", "*")];
            client.put(&document, &headers).await
        })
    };
    let first = asked();
    scene.slow.begun.acquire().await.unwrap().forget();
    let second = asked();
    scene.slow.let_on.add_permits(8);
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    first.created();
    assert_eq!(first, second);
    assert_eq!(scene.ran(), ["1.sql", "2.sql"]);
}

#[tokio::test]
async fn an_accepted_application_runs_its_files_once() {
    let scene = Scene::new().await;
    scene.slow.let_on.add_permits(8);
    let client = scene.bench.t1();
    let kind = "SQLiteMigrationApplication";
    let id = crate::operations::accept_create(&client, kind, "app", application("two")).await;
    let done = loop {
        let operation = client
            .get(&format!("{API}/operations/{id}"))
            .await
            .is(200)
            .json();
        if operation["done"] == true {
            break operation;
        }
    };
    assert_eq!(
        done["result"]["resource"]["metadata"]["name"], "app",
        "{done}"
    );
    client
        .read("SQLiteMigrationApplication", "app")
        .await
        .updated();
    assert_eq!(scene.ran(), ["1.sql", "2.sql"]);
}
