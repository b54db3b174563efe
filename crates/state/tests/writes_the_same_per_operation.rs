//! What one operation writes does not grow with what is recorded already (`engine.md` §7). Alone
//! in its file: the count is the process's.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "its helpers are test code, and it says what it counted"
)]

use notation_model::DeploymentId;
use notation_state::{
    Acquired, Batch, Change, Claim, Hold, KeySource, Machine, RunId, SqliteStore, StateStore,
    contract,
};

const OPERATIONS: u32 = 300;

/// Bytes that this process handed to the system to write, so far.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

async fn take(store: &SqliteStore, deployment: &DeploymentId) -> Hold {
    let claim = Claim {
        run: RunId::random(),
        machine: Machine::here("m"),
        now_ms: 1,
        over: None,
    };
    match store.acquire(deployment, &claim).await.unwrap() {
        Acquired::Free(hold) | Acquired::TakenOver { hold, .. } => hold,
        Acquired::Taken(hold) => panic!("held: {hold:?}"),
    }
}

fn puts(name: &str, numbers: std::ops::Range<u32>) -> Batch {
    let records = numbers.map(|number| contract::sample(&format!("{name}{number}"), 0));
    Batch {
        entries: Vec::new(),
        changes: records.map(Change::put).collect(),
    }
}

/// Bytes per append of one record.
async fn per_operation(store: &SqliteStore, deployment: &DeploymentId, name: &str) -> u64 {
    let hold = take(store, deployment).await;
    // The first append reads where everything is.
    let first = puts(name, OPERATIONS..OPERATIONS + 1);
    store.append(deployment, &hold, first).await.unwrap();
    let before = written();
    for number in 0..OPERATIONS {
        let one = puts(name, number..number + 1);
        store.append(deployment, &hold, one).await.unwrap();
    }
    let bytes = (written() - before) / u64::from(OPERATIONS);
    store.release(deployment, &hold).await.unwrap();
    bytes
}

#[tokio::test]
async fn an_operation_writes_the_same_whatever_is_recorded_already() {
    let dir = tempfile::tempdir().unwrap();
    let key = KeySource::File(dir.path().join("key"));
    let store = SqliteStore::open(dir.path().join("state.db"), key);
    let deployment: DeploymentId = "shop:dev:main".parse().unwrap();
    let few = per_operation(&store, &deployment, "few").await;
    let hold = take(&store, &deployment).await;
    for start in (0..6000).step_by(500) {
        let many = puts("many", start..start + 500);
        store.append(&deployment, &hold, many).await.unwrap();
    }
    store.release(&deployment, &hold).await.unwrap();
    let many = per_operation(&store, &deployment, "last").await;
    println!("{few} bytes per operation with few records, {many} with 6000");
    assert!(many < few + few / 3, "{few} with few, {many} with 6000");
}
