//! One run per deployment: whoever is late is fenced out, whatever clocks say (`engine.md` §7).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use notation_engine::{
    Clock, EngineError, EngineEvent, EventSink, HoldWait, RunOptions, RunStatus, Session,
    StepError, begin, deploy, destroy,
};
use notation_state::{KeySource, LEASE_MS, Machine, RENEW_MS, SqliteStore, StateStore, StoreError};
use support::{Bench, Cloud, Program, TestClock};
use tokio::sync::Notify;

fn no_wait() -> RunOptions {
    RunOptions {
        hold: HoldWait::GiveUp,
        ..RunOptions::default()
    }
}

/// A run from that machine; its process lives.
fn from(bench: &Bench, machine: &str, clock: &Arc<TestClock>) -> Session {
    Session {
        machine: Machine::here(machine),
        clock: clock.clone(),
        ..bench.session.clone()
    }
}

#[tokio::test]
async fn a_holder_whose_lease_ended_while_it_called_writes_nothing_more() {
    // The clock jumps while the first run waits for an answer: nobody renewed in time.
    let bench = Bench::new();
    let clock = Arc::new(TestClock::standing());
    let late = bench.cloud.gate("create", "a");
    let older = from(&bench, "older", &clock);
    let program = Arc::new(Program::pair().graph());
    let graph = program.clone();
    let first = tokio::spawn(async move { deploy(&older, graph, &no_wait()).await });
    late.came().await;

    clock.jump(LEASE_MS + 1);
    let newer = from(&bench, "newer", &clock);
    let report = deploy(&newer, program.clone(), &no_wait()).await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let writes = bench.cloud.writes();
    assert_eq!(writes, ["create a{}", "create b{a}", "update a{b}"]);

    // The older one's call arrives at last: with the token that the newer run took over, so the
    // cloud answers the object that is there. Its outcome is refused, and nothing follows.
    late.open();
    let report = first.await.unwrap().unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    let StepError::Store(error) = &report.failed[0].error else {
        panic!("{}", report.failed[0].error)
    };
    assert!(matches!(**error, StoreError::Fenced { .. }), "{error}");
    assert_eq!(bench.cloud.writes(), writes);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.consistent().await;
    let last = from(&bench, "newer", &clock);
    let report = deploy(&last, program, &no_wait()).await.unwrap();
    assert!(report.done.is_empty());
}

/// Names of the steps that were announced and did not end.
async fn open_steps(store: &Arc<dyn StateStore>) -> Vec<String> {
    let state = store.load(&support::shop()).await.unwrap();
    state.open.into_iter().map(|open| open.step).collect()
}

#[tokio::test]
async fn a_run_that_slept_while_its_hold_was_taken_begins_no_other_call() {
    let dir = tempfile::tempdir().unwrap();
    let key = KeySource::passphrase("correct horse");
    let store = SqliteStore::open(dir.path().join("state.db"), key);
    let bench = Bench::with(Cloud::new(), support::shop(), Arc::new(store));
    let clock = Arc::new(TestClock::standing());
    let late = bench.cloud.gate("create", "a");
    let older = from(&bench, "older", &clock);
    let one_call = RunOptions {
        parallelism: 1,
        ..no_wait()
    };
    let all = ["a", "b", "c"].map(support::program::worker);
    let graph = Arc::new(Program::new(all).graph());
    let first = tokio::spawn(async move { deploy(&older, graph, &one_call).await });
    late.came().await;
    // The others are announced, and wait for their turn.
    while open_steps(&bench.store).await.len() < 3 {
        tokio::task::yield_now().await;
    }

    clock.jump(1_000);
    bench.store.clear_hold(&support::shop()).await.unwrap();
    let report = destroy(&from(&bench, "newer", &clock), &no_wait()).await;
    assert_eq!(report.unwrap().status, RunStatus::Done);
    late.open();
    let report = first.await.unwrap().unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    // What was on its way arrives; nothing else was sent.
    assert_eq!(bench.cloud.writes(), ["create a{}"]);
    let error = report.failed.iter().find_map(|step| match &step.error {
        StepError::Store(error) => Some(error),
        _ => None,
    });
    let error = error.unwrap();
    assert!(matches!(**error, StoreError::Fenced { .. }), "{error}");
}

#[tokio::test]
async fn a_clock_that_jumps_back_gives_the_hold_to_nobody_else() {
    let bench = Bench::new();
    let now = Arc::new(TestClock::standing());
    let behind = Arc::new(TestClock::at(1));
    let program = Arc::new(Program::pair().graph());
    let held = begin(&from(&bench, "one", &now), program.clone(), &no_wait())
        .await
        .unwrap();
    let late = from(&bench, "two", &behind);
    let refused = deploy(&late, program.clone(), &no_wait()).await;
    assert!(matches!(refused, Err(EngineError::Held(_))));
    // Also the other way round: one who is behind holds, one who is ahead by more than a lease
    // takes over, and the one behind is fenced.
    held.give_up().await.unwrap();
    let behind_holds = begin(&late, program.clone(), &no_wait()).await.unwrap();
    let report = deploy(&from(&bench, "one", &now), program.clone(), &no_wait())
        .await
        .unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let writes = bench.cloud.writes();
    let fenced = behind_holds.run().await;
    assert!(fenced.is_err() || fenced.unwrap().status == RunStatus::Failed);
    assert_eq!(bench.cloud.writes(), writes);
    bench.consistent().await;
}

/// Keeps what a waiting run is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EventSink for Told {
    fn event(&self, event: &EngineEvent) {
        let text = match event {
            EngineEvent::HoldWaiting(hold) => format!("waits for {}", hold.machine.name),
            EngineEvent::HoldTakenOver(hold) => format!("takes over from {}", hold.machine.name),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test]
async fn a_run_waits_for_the_lease_of_a_holder_on_another_machine_to_end() {
    let bench = Bench::new();
    let clock = Arc::new(TestClock::default());
    let program = Arc::new(Program::pair().graph());
    let mut dead = from(&bench, "there", &clock);
    dead.machine = Machine {
        name: "there".into(),
        ..support::dead_machine()
    };
    let _lost = begin(&dead, program.clone(), &no_wait()).await.unwrap();
    let started_ms = clock.now_ms();
    let told = Arc::new(Told::default());
    let here = Session {
        sink: told.clone(),
        ..from(&bench, "here", &clock)
    };
    // Asking again moves this clock by a second.
    let report = deploy(&here, program, &RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let waited_ms = clock.now_ms() - started_ms;
    assert!(
        (LEASE_MS..LEASE_MS + 2000).contains(&waited_ms),
        "{waited_ms}"
    );
    let told = told.0.lock().unwrap();
    assert_eq!(*told, ["waits for there", "takes over from there"]);
}

#[tokio::test]
async fn a_file_opened_twice_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let open = || -> Arc<dyn StateStore> {
        Arc::new(SqliteStore::open(
            &path,
            KeySource::passphrase("correct horse"),
        ))
    };
    let one = Bench::with(Cloud::new(), support::shop(), open());
    let other = Bench::with(one.cloud.clone(), support::shop(), open());
    let clock = Arc::new(TestClock::standing());
    let program = Arc::new(Program::pair().graph());
    let older = begin(&from(&one, "one", &clock), program.clone(), &no_wait())
        .await
        .unwrap();
    let refused = deploy(&from(&other, "other", &clock), program.clone(), &no_wait()).await;
    assert!(matches!(refused, Err(EngineError::Held(_))));
    clock.jump(LEASE_MS);
    let newer = begin(&from(&other, "other", &clock), program.clone(), &no_wait())
        .await
        .unwrap();
    // Neither knows of the other's appends; the file does.
    let fenced = older.run().await;
    assert!(fenced.is_err() || fenced.unwrap().status == RunStatus::Failed);
    assert_eq!(one.cloud.writes(), Vec::<String>::new());
    let report = newer.run().await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    other.consistent().await;
}

/// A clock that stands still until it is moved; then whoever has slept enough wakes up.
struct MovedClock {
    now_ms: AtomicU64,
    moved: Notify,
}

impl MovedClock {
    fn jump(&self, by_ms: u64) {
        self.now_ms.fetch_add(by_ms, Ordering::Relaxed);
        self.moved.notify_waiters();
    }
}

#[async_trait]
impl Clock for MovedClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    async fn sleep(&self, duration: Duration) {
        let until_ms = self.now_ms() + u64::try_from(duration.as_millis()).unwrap();
        loop {
            let moved = self.moved.notified();
            if self.now_ms() >= until_ms {
                return;
            }
            moved.await;
        }
    }
}

#[tokio::test]
async fn a_holder_that_lives_renews_its_lease_every_15_seconds_and_keeps_it() {
    let bench = Bench::new();
    let clock = Arc::new(MovedClock {
        now_ms: AtomicU64::new(1_000),
        moved: Notify::new(),
    });
    let with = |machine: &str| Session {
        machine: Machine::here(machine),
        clock: clock.clone(),
        ..bench.session.clone()
    };
    let late = bench.cloud.gate("create", "a");
    let older = with("older");
    let program = Arc::new(Program::pair().graph());
    let graph = program.clone();
    let first = tokio::spawn(async move { deploy(&older, graph, &no_wait()).await });
    late.came().await;
    // Ten minutes in one call.
    for _ in 0..40 {
        clock.jump(RENEW_MS);
        let renewed_ms = clock.now_ms() + LEASE_MS;
        let deployment = &bench.session.deployment;
        while bench
            .store
            .hold(deployment)
            .await
            .unwrap()
            .unwrap()
            .expires_ms
            != renewed_ms
        {
            tokio::task::yield_now().await;
        }
        let refused = deploy(&with("other"), program.clone(), &no_wait()).await;
        assert!(matches!(refused, Err(EngineError::Held(_))));
    }
    late.open();
    let report = first.await.unwrap().unwrap();
    assert_eq!(report.status, RunStatus::Done);
    assert_eq!((RENEW_MS, LEASE_MS), (15_000, 60_000));
}
