//! The process is killed at instants that nobody chose, on real files: nothing that was
//! acknowledged is lost, nothing is made twice, and the state always opens.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]
#![cfg(unix)]

mod support;

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use notation_engine::{DriftCheck, RunOptions, RunStatus, Session, deploy, destroy};
use notation_model::DesiredGraph;
use notation_provider::Registry;
use notation_provider_sim::{CallLog, SimProvider, dump};
use notation_state::{KeySource, Machine, SqliteStore};
use support::{
    Program,
    program::{out, resource, worker},
    shop,
};

const FOLDER: &str = "NOTATION_TEST_FOLDER";
const PAIRS: usize = 10;
const THINGS: usize = 30;
const KILLS: u64 = 20;

fn graph() -> DesiredGraph {
    let pairs = (0..PAIRS).flat_map(|number| {
        let (a, b) = (format!("a{number}"), format!("b{number}"));
        [worker(&a).binds(&b), worker(&b).binds(&a)]
    });
    let things = (0..THINGS).map(|number| {
        let parent = out(&format!("a{}", number % PAIRS), "Name");
        resource("sim/Thing", &format!("t{number}")).set("parent", parent)
    });
    Program::new(pairs.chain(things)).graph()
}

fn session(dir: &Path) -> Session {
    let store = SqliteStore::open(dir.join("state.db"), KeySource::File(dir.join("key")));
    let cloud = SimProvider::with_log(dir.join("cloud"), CallLog::On);
    Session {
        machine: Machine::here("test"),
        ..Session::new(
            shop(),
            Arc::new(store),
            Registry::new(vec![Arc::new(cloud)]).unwrap(),
        )
    }
}

fn deploying(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_at_random_instants", "--nocapture"])
        .env(FOLDER, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Objects of the cloud: name to how often it was written.
fn objects(dir: &Path) -> BTreeMap<String, serde_json::Value> {
    serde_json::from_str(&dump(&dir.join("cloud")).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_instants() {
    if let Some(dir) = std::env::var_os(FOLDER) {
        let session = session(Path::new(&dir));
        deploy(&session, Arc::new(graph()), &RunOptions::default())
            .await
            .unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut seed = u64::from(std::process::id());
    for kill in 0..KILLS {
        let mut child = deploying(dir);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Later and later, so that the kills fall on the whole of the run.
        let after = Duration::from_millis(kill * 8 + (seed >> 33) % 60);
        tokio::time::sleep(after).await;
        child.kill().unwrap();
        child.wait().unwrap();
        session(dir).store.load(&shop()).await.unwrap();
    }
    let session = session(dir);
    let options = RunOptions::default();
    let report = deploy(&session, Arc::new(graph()), &options).await.unwrap();
    assert_eq!(report.status, RunStatus::Done, "{:?}", report.failed);
    let state = session.store.load(&shop()).await.unwrap();
    let keys: Vec<String> = state
        .records
        .values()
        .map(|record| record.key.to_string())
        .collect();
    let mut sorted = keys.clone();
    sorted.sort();
    let live: Vec<String> = objects(dir).into_keys().collect();
    assert_eq!(sorted, live);
    assert_eq!(live.len(), PAIRS * 2 + THINGS);
    assert_eq!(state.open, Vec::new());

    let quiet = RunOptions {
        drift: DriftCheck::Read,
        ..RunOptions::default()
    };
    let report = deploy(&session, Arc::new(graph()), &quiet).await.unwrap();
    assert_eq!(report.done, Vec::new());
    let calls = std::fs::read_to_string(dir.join("cloud/calls.ndjson")).unwrap();
    for call in calls
        .lines()
        .filter(|call| !call.contains("\"op\":\"read\""))
    {
        let refused = ["refused", "in_use", "not_found", "failed", "exists"]
            .iter()
            .any(|result| call.contains(&format!("\"result\":\"{result}\"")));
        assert!(!refused, "{call}");
    }
    let report = destroy(&session, &options).await.unwrap();
    assert_eq!(report.status, RunStatus::Done, "{:?}", report.failed);
    assert!(objects(dir).is_empty());
}
