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
    StepError, begin, deploy,
};
use notation_model::{Owner, Params, ResourceType, TypeName};
use notation_provider::{
    Found, LookFor, Object, OpContext, OpError, Progress, Provider, Registry, Update,
};
use notation_state::{KeySource, LEASE_MS, Machine, RENEW_MS, SqliteStore, StateStore, StoreError};
use support::{Bench, Cloud, Program, TestClock};
use tokio::sync::Notify;

/// A cloud whose first create arrives when told to.
#[derive(Clone)]
struct SlowCloud {
    cloud: Cloud,
    called: Arc<Notify>,
    arrives: Arc<Notify>,
    waits: Arc<Mutex<bool>>,
}

impl SlowCloud {
    fn new(cloud: Cloud) -> SlowCloud {
        SlowCloud {
            cloud,
            called: Arc::default(),
            arrives: Arc::default(),
            waits: Arc::new(Mutex::new(true)),
        }
    }
}

#[async_trait]
impl Provider for SlowCloud {
    fn name(&self) -> &str {
        "sim"
    }
    fn types(&self) -> Vec<ResourceType> {
        self.cloud.types()
    }
    async fn create(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        let waits = std::mem::take(&mut *self.waits.lock().unwrap());
        if waits {
            self.called.notify_one();
            self.arrives.notified().await;
        }
        self.cloud.create(ctx, ty, params).await
    }
    async fn read(
        &self,
        owner: &Owner,
        ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        self.cloud.read(owner, ty, look).await
    }
    async fn update(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        self.cloud.update(ctx, ty, key, update).await
    }
    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        outputs: &Params,
    ) -> Result<Progress<()>, OpError> {
        self.cloud.delete(ctx, ty, key, outputs).await
    }
}

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
    let slow = SlowCloud::new(bench.cloud.clone());
    let mut older = from(&bench, "older", &clock);
    older.registry = Registry::new(vec![Arc::new(slow.clone())]).unwrap();
    let program = Arc::new(Program::pair().graph());
    let graph = program.clone();
    let first = tokio::spawn(async move { deploy(&older, graph, &no_wait()).await });
    slow.called.notified().await;

    clock.jump(LEASE_MS + 1);
    let newer = from(&bench, "newer", &clock);
    let report = deploy(&newer, program.clone(), &no_wait()).await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let writes = bench.cloud.writes();
    assert_eq!(writes, ["create a{}", "create b{a}", "update a{b}"]);

    // The older one's call arrives at last: with the token that the newer run took over, so the
    // cloud answers the object that is there. Its outcome is refused, and nothing follows.
    slow.arrives.notify_one();
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
    let slow = SlowCloud::new(bench.cloud.clone());
    let mut older = with("older");
    older.registry = Registry::new(vec![Arc::new(slow.clone())]).unwrap();
    let program = Arc::new(Program::pair().graph());
    let graph = program.clone();
    let first = tokio::spawn(async move { deploy(&older, graph, &no_wait()).await });
    slow.called.notified().await;
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
    slow.arrives.notify_one();
    let report = first.await.unwrap().unwrap();
    assert_eq!(report.status, RunStatus::Done);
    assert_eq!((RENEW_MS, LEASE_MS), (15_000, 60_000));
}
