//! Every store keeps the contract; the SQLite file keeps it across processes and says what is
//! wrong with it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "its helpers are test code"
)]

use std::{path::Path, sync::Arc};

use notation_model::{DeploymentId, SecretValue, Value};
use notation_state::{
    Acquired, Batch, Change, Claim, Hold, KeySource, Machine, MemoryStore, RunId, SqliteStore,
    StateStore, StoreError, contract,
};

fn store(dir: &Path) -> SqliteStore {
    SqliteStore::open(
        dir.join("sub/state.db"),
        KeySource::File(dir.join("config/key")),
    )
}

fn shop() -> DeploymentId {
    "shop:dev:main".parse().unwrap()
}

async fn hold(store: &dyn StateStore) -> Hold {
    let claim = Claim {
        run: RunId::random(),
        machine: Machine::here("m"),
        now_ms: 1,
        over: None,
    };
    match store.acquire(&shop(), &claim).await.unwrap() {
        Acquired::Free(hold) | Acquired::TakenOver { hold, .. } => hold,
        Acquired::Taken(hold) => panic!("held: {hold:?}"),
    }
}

fn puts(id: &str) -> Batch {
    Batch {
        entries: Vec::new(),
        changes: vec![Change::put(contract::sample(id, 0))],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract() {
    contract::run(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::run(Arc::new(store(dir.path()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract_under_a_passphrase() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let store = SqliteStore::open(&path, KeySource::passphrase("correct horse"));
    contract::run(Arc::new(store)).await;
}

#[tokio::test]
async fn reading_makes_no_file_and_writing_makes_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.load(&shop()).await.unwrap();
    store.deployments().await.unwrap();
    store.secret_names(&shop()).await.unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    hold(&store).await;
    assert!(dir.path().join("sub/state.db").exists());
    // Nothing was sealed yet: no key.
    assert!(!dir.path().join("config/key").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_starts_at_once_on_a_file_that_is_not_there_yet_gets_in() {
    for _ in 0..15 {
        let dir = tempfile::tempdir().unwrap();
        let mut all = tokio::task::JoinSet::new();
        for number in 0..8 {
            // A connection each, as processes have.
            let store = store(dir.path());
            let deployment: DeploymentId = format!("shop:s{number}:main").parse().unwrap();
            all.spawn(async move {
                let claim = Claim {
                    run: RunId::random(),
                    machine: Machine::here("m"),
                    now_ms: 1,
                    over: None,
                };
                store.load(&deployment).await.unwrap();
                let acquired = store.acquire(&deployment, &claim).await.unwrap();
                assert!(matches!(acquired, Acquired::Free(_)), "{acquired:?}");
            });
        }
        while let Some(one) = all.join_next().await {
            one.unwrap();
        }
    }
}

#[tokio::test]
async fn another_process_reads_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let one = store(dir.path());
    let other = store(dir.path());
    let held = hold(&one).await;
    one.append(&shop(), &held, puts("a")).await.unwrap();
    let state = other.load(&shop()).await.unwrap();
    assert_eq!(state.records.len(), 1);
    // And takes over: the first is fenced out, whatever it knows of the rows.
    other.clear_hold(&shop()).await.unwrap();
    let new = hold(&other).await;
    other.append(&shop(), &new, puts("b")).await.unwrap();
    let refused = one.append(&shop(), &held, puts("c")).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })));
    other.release(&shop(), &new).await.unwrap();
    let again = hold(&one).await;
    one.append(&shop(), &again, puts("b")).await.unwrap();
    let state = one.load(&shop()).await.unwrap();
    assert_eq!(state.records.len(), 2);
}

#[tokio::test]
async fn nothing_secret_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let held = hold(&store).await;
    store.append(&shop(), &held, puts("a")).await.unwrap();
    let secret = SecretValue::new(Value::text("hunter2"));
    let name = "KEY".parse().unwrap();
    store.set_secret(&shop(), &name, &secret).await.unwrap();
    for file in ["state.db", "state.db-wal"] {
        let bytes = std::fs::read(dir.path().join("sub").join(file)).unwrap();
        let found = bytes.windows(7).any(|window| window == b"hunter2");
        assert!(!found, "{file}");
    }
}

#[tokio::test]
async fn another_key_is_told_from_a_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    let held_store = store(dir.path());
    let held = hold(&held_store).await;
    held_store.append(&shop(), &held, puts("a")).await.unwrap();
    drop(held_store);
    std::fs::write(dir.path().join("config/key"), [9; 32]).unwrap();
    let error = store(dir.path()).load(&shop()).await.unwrap_err();
    assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
    std::fs::remove_file(dir.path().join("config/key")).unwrap();
    let error = store(dir.path()).load(&shop()).await.unwrap_err();
    assert!(matches!(error, StoreError::Key { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_a_foreign_and_an_impossible_file_are_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let path = dir.path().join("sub/state.db");
    std::fs::write(
        &path,
        "this is not a database, and long enough to tell".repeat(50),
    )
    .unwrap();
    let error = store(dir.path()).load(&shop()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("state.db"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sub"), "a file where a folder should be").unwrap();
    let one = store(dir.path());
    let claim = Claim {
        run: RunId::random(),
        machine: Machine::here("m"),
        now_ms: 1,
        over: None,
    };
    let error = one.acquire(&shop(), &claim).await.unwrap_err();
    assert!(matches!(error, StoreError::CannotWrite { .. }), "{error}");
    assert!(error.to_string().contains("sub"), "{error}");
}

/// Takes away the memory that processes share, as a full disk does.
fn nothing_is_shared(dir: &Path) {
    std::os::unix::fs::symlink("/nowhere/at/all", dir.join("sub/state.db-shm")).unwrap();
}

#[tokio::test]
async fn what_cannot_be_written_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let held = hold(&first).await;
    first.append(&shop(), &held, puts("a")).await.unwrap();
    first.release(&shop(), &held).await.unwrap();
    drop(first);
    nothing_is_shared(dir.path());
    let second = store(dir.path());
    let state = second.load(&shop()).await.unwrap();
    assert_eq!(state.records.len(), 1);
    let claim = Claim {
        run: RunId::random(),
        machine: Machine::here("m"),
        now_ms: 2,
        over: None,
    };
    second.acquire(&shop(), &claim).await.unwrap_err();
    // Once there is room again the next one writes.
    drop(second);
    std::fs::remove_file(dir.path().join("sub/state.db-shm")).unwrap();
    hold(&store(dir.path())).await;
}

#[tokio::test]
async fn what_cannot_be_written_is_read_with_what_its_log_has() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let first = store(&whole);
    let held = hold(&first).await;
    first.append(&shop(), &held, puts("a")).await.unwrap();
    // A process that was killed leaves its log.
    let left = dir.path().join("left");
    std::fs::create_dir_all(left.join("sub")).unwrap();
    std::fs::create_dir_all(left.join("config")).unwrap();
    for file in ["sub/state.db", "sub/state.db-wal", "config/key"] {
        std::fs::copy(whole.join(file), left.join(file)).unwrap();
    }
    drop(first);
    nothing_is_shared(&left);
    for _ in 0..2 {
        let state = store(&left).load(&shop()).await.unwrap();
        assert_eq!(state.records.len(), 1);
    }
}

#[tokio::test]
async fn the_journal_of_a_run_that_ended_goes_with_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for _ in 0..3 {
        let held = hold(&store).await;
        for number in 0..100 {
            store
                .append(&shop(), &held, puts(&format!("r{number}")))
                .await
                .unwrap();
        }
        store.release(&shop(), &held).await.unwrap();
    }
    let state = store.load(&shop()).await.unwrap();
    assert_eq!((state.records.len(), state.open.len()), (100, 0));
}

/// The role of the child process: writes until the limit is hit, and says how far it came.
async fn write_until_refused(dir: &Path) {
    let store = store(dir);
    let held = hold(&store).await;
    for number in 0..10_000 {
        let written = store
            .append(&shop(), &held, puts(&format!("r{number}")))
            .await;
        if let Err(error) = written {
            assert!(matches!(error, StoreError::CannotWrite { .. }), "{error}");
            println!("acknowledged {number}: {error}");
            return;
        }
    }
    panic!("the limit was not hit");
}

#[cfg(unix)]
#[tokio::test]
async fn a_limit_on_file_sizes_is_an_error_and_loses_nothing() {
    const ROLE: &str = "NOTATION_TEST_FOLDER";
    if let Some(dir) = std::env::var_os(ROLE) {
        return write_until_refused(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let test = "a_limit_on_file_sizes_is_an_error_and_loses_nothing";
    let script = format!("trap '' XFSZ; ulimit -f 300; exec \"$0\" --exact {test} --nocapture");
    let child = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(&this)
        .env(ROLE, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let number = said
        .lines()
        .find_map(|line| line.split("acknowledged ").nth(1)?.split(':').next())
        .unwrap_or_else(|| panic!("{child:?}"));
    let acknowledged: usize = number.parse().unwrap();
    assert!(acknowledged > 10, "{said}");
    assert!(said.contains("state.db"), "{said}");
    let state = store(dir.path()).load(&shop()).await.unwrap();
    assert_eq!(state.records.len(), acknowledged);
}
