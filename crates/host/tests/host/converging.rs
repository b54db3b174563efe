//! The data plane's side of a commit: what it is told, when, and that it cannot hold an answer
//! for ever.

use crate::bench::*;
use async_trait::async_trait;
use bytes::Bytes;
use notation_edge::{Exports, LedgerEntry, Uid};
use notation_host::{
    Ahead, BundleSource, ConvergeError, DataPlane, HostConfig, Snapshot, TenantSnapshot,
};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Writes down what it is told.
#[derive(Default)]
struct Recorder {
    seen: Mutex<Vec<String>>,
    stuck: bool,
    failing: Mutex<Option<usize>>,
    /// No version comes up.
    down: AtomicBool,
}

impl Recorder {
    fn note(&self, text: String) {
        self.seen.lock().unwrap().push(text);
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

#[async_trait]
impl DataPlane for Recorder {
    async fn inspect(&self, bundle: &BundleSource) -> Exports {
        let main = bundle.main_module().await.unwrap();
        self.note(format!("inspect {}", main.len()));
        if main.starts_with(b"broken") {
            Exports::Broken("unexpected token".to_owned())
        } else {
            Exports::Unknown
        }
    }

    async fn start_ahead(&self, next: &TenantSnapshot) -> Result<Ahead, ConvergeError> {
        if self.down.load(Ordering::SeqCst) {
            return Err(ConvergeError("its process ended".to_owned()));
        }
        let workers: Vec<_> = next.world.workers().collect();
        let weights: usize = workers
            .iter()
            .map(|worker| next.world.weights(&worker.uid).len())
            .sum();
        self.note(format!("start {weights}"));
        Ok(Box::new(()))
    }

    async fn converge(&self, snapshot: &Snapshot) -> Result<(), ConvergeError> {
        if self.stuck {
            std::future::pending::<()>().await;
        }
        let mut weights = Vec::new();
        for tenant in snapshot.tenants.values() {
            for worker in tenant.world.workers() {
                for (version, weight) in tenant.world.weights(&worker.uid) {
                    let version = tenant.world.version(&version).unwrap();
                    assert!(tenant.world.manifest(&version.manifest_digest).is_some());
                    weights.push(format!("{}={}", version.name, weight.0));
                }
            }
        }
        self.note(format!("converge [{}]", weights.join(" ")));
        Ok(())
    }

    async fn migrate(
        &self,
        _database: &Uid,
        files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)> {
        let paths: Vec<&str> = files.iter().map(|(entry, _)| &*entry.path).collect();
        self.note(format!("migrate {}", paths.join(" ")));
        match self.failing.lock().unwrap().take() {
            Some(at) => Err((at, "syntax error".to_owned())),
            None => Ok(()),
        }
    }
}

async fn start(plane: Arc<Recorder>, limit: Duration) -> (Bench, tempfile::TempDir) {
    let temp = tempfile::tempdir().unwrap();
    let config = HostConfig {
        converge_timeout: limit,
        ..config(&temp.path().join("data"))
    };
    (Bench::open_with(config, plane).await, temp)
}

#[tokio::test]
async fn an_answered_deployment_serves_already() {
    let plane = Arc::new(Recorder::default());
    let (bench, _temp) = start(plane.clone(), Duration::from_secs(30)).await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    assert_eq!(plane.taken(), Vec::<String>::new());
    client
        .create("WorkerVersion", "v1", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("v1", 10_000)]),
        )
        .await
        .created();
    assert_eq!(
        plane.taken(),
        [
            format!("inspect {}", FETCH_ONLY.len()),
            "converge []".to_owned(),
            "start 1".to_owned(),
            "converge [v1=10000]".to_owned()
        ]
    );
    // Nothing changed, so nothing is told.
    client
        .update(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("v1", 10_000)]),
        )
        .await
        .updated();
    assert_eq!(plane.taken(), Vec::<String>::new());
    client
        .create("WorkerVersion", "v2", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    client
        .update(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("v1", 2500), ("v2", 7500)]),
        )
        .await
        .updated();
    assert_eq!(plane.taken().last().unwrap(), "converge [v1=2500 v2=7500]");
    client.delete("WorkerDeployment", "d").await.is(204);
    assert_eq!(plane.taken(), ["converge []"]);
    bench.host.converge().await;
    assert_eq!(plane.taken(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deployment_whose_version_does_not_come_up_is_refused_and_nothing_changes() {
    let plane = Arc::new(Recorder::default());
    let (bench, _temp) = start(plane.clone(), Duration::from_secs(30)).await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let before = client
        .read("WorkerDeployment", "w-deployment")
        .await
        .updated();
    client
        .create(
            "WorkerVersion",
            "next",
            version_spec("w", "w-bundle", &["fetch"]),
        )
        .await
        .created();
    plane.taken();
    plane.down.store(true, Ordering::SeqCst);
    let next = deployment_spec("w", &[("next", 10_000)]);
    client
        .update("WorkerDeployment", "w-deployment", next.clone())
        .await
        .refused("backend_unavailable");
    assert_eq!(
        client
            .read("WorkerDeployment", "w-deployment")
            .await
            .updated()
            .spec,
        before.spec
    );
    assert_eq!(plane.taken(), Vec::<String>::new(), "nothing was told");
    plane.down.store(false, Ordering::SeqCst);
    client
        .update("WorkerDeployment", "w-deployment", next)
        .await
        .updated();
    assert_eq!(plane.taken(), ["start 1", "converge [next=10000]"]);
}

#[tokio::test]
async fn a_module_that_does_not_load_makes_no_version() {
    let plane = Arc::new(Recorder::default());
    let (bench, _temp) = start(plane.clone(), Duration::from_secs(30)).await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", "broken {").await;
    let refusal = client
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("unexpected token"));
    client.absent("WorkerVersion", "v").await;
}

#[tokio::test]
async fn a_stuck_data_plane_holds_no_answer_for_ever() {
    let plane = Arc::new(Recorder {
        stuck: true,
        ..Recorder::default()
    });
    let (bench, _temp) = start(plane, Duration::from_millis(50)).await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    assert_eq!(
        ready(&client.read("ModuleWorker", "w").await.updated()).0,
        "True"
    );
}

#[tokio::test]
async fn a_failing_migration_keeps_what_was_done_before_it() {
    let plane = Arc::new(Recorder::default());
    let (bench, _temp) = start(plane.clone(), Duration::from_secs(30)).await;
    let client = bench.t1();
    let files = [("1.sql", "a"), ("2.sql", "b"), ("3.sql", "c")];
    let digest = client
        .upload(
            &files_manifest("MigrationBundle", "application/sql", &files),
            &[b"a", b"b", b"c"],
        )
        .await;
    client
        .create("SQLiteMigrationSet", "s", json!({"manifestDigest": digest}))
        .await
        .created();
    client
        .create("SQLiteDatabase", "db", json!({}))
        .await
        .created();
    let spec = json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", "s")});
    *plane.failing.lock().unwrap() = Some(1);
    let refusal = client
        .create("SQLiteMigrationApplication", "m", spec.clone())
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("2.sql") && refusal.message.contains("syntax error"));
    client.absent("SQLiteMigrationApplication", "m").await;
    assert_eq!(plane.taken(), ["migrate 1.sql 2.sql 3.sql"]);
    assert_eq!(
        ready(
            &client
                .create("SQLiteMigrationApplication", "m", spec)
                .await
                .created()
        )
        .0,
        "True"
    );
    assert_eq!(plane.taken(), ["migrate 2.sql 3.sql"]);
}
