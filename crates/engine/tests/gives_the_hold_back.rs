//! However a run ends, also by a provider that panics or a future that is dropped, nobody waits
//! for its lease.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::{Arc, Mutex};

use notation_engine::{
    EngineError, EngineEvent, EventSink, HoldWait, RunOptions, RunStatus, StepError, begin, deploy,
    import, plan, refresh,
};
use notation_planner::Transition;
use support::{
    Bench, Fault, Program, TestClock,
    cloud::What,
    program::{id, worker},
};

fn no_wait() -> RunOptions {
    RunOptions {
        hold: HoldWait::GiveUp,
        ..RunOptions::default()
    }
}

/// Returns once nobody holds the deployment.
async fn free(bench: &Bench) {
    while bench.store.hold(&support::shop()).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

#[derive(Default)]
struct Failures(Mutex<Vec<(Transition, u32)>>);

impl EventSink for Failures {
    fn event(&self, event: &EngineEvent) {
        if let EngineEvent::StepFailed(step) = event {
            let mut failures = self.0.lock().unwrap();
            failures.push((step.transition, step.attempt));
        }
    }
}

#[tokio::test]
async fn a_provider_that_panics_fails_its_step_only_which_says_what_was_tried() {
    let mut bench = Bench::new();
    let failures = Arc::new(Failures::default());
    bench.session.sink = failures.clone();
    bench.cloud.fault(Fault::new("create", "a", What::Panic, 1));
    let program = Program::new([worker("a"), worker("b")]);
    let report = bench.deploy(&program).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert!(matches!(failed.error, StepError::Panicked(_)));
    assert_eq!(failed.transition, Transition::Create);
    assert_eq!(failed.attempt, 1);
    assert_eq!(*failures.0.lock().unwrap(), [(Transition::Create, 1)]);
    assert_eq!(bench.cloud.names(), ["shop-dev-b"]);
    // Nobody knows what the call did: its intent is open, and the next run looks.
    let state = bench.store.load(&support::shop()).await.unwrap();
    assert_eq!(state.open.len(), 1);
    assert_eq!(bench.done(&program).await, ["create a{}"]);
    bench.consistent().await;
}

#[tokio::test]
async fn a_provider_that_panics_in_a_read_ends_the_run_with_an_error() {
    let bench = Bench::new();
    let program = Program::new([worker("a"), worker("b")]);
    bench.done(&program).await;
    let graph = Arc::new(program.graph());
    let broke = |what: &str, error: EngineError| {
        let text = error.to_string();
        // Who only looks has no records to believe instead.
        assert!(
            match &error {
                EngineError::Observe(_) => error.help().contains("--no-refresh"),
                EngineError::Look(_) => !error.help().contains("--no-refresh"),
                _ => false,
            },
            "{what}: {text}"
        );
        let said = "cannot be read: the provider broke: the provider is broken";
        assert!(text.contains(said), "{what}: {text}");
    };
    let faulty = || bench.cloud.fault(Fault::new("read", "a", What::Panic, 1));
    faulty();
    let ended = plan(&bench.session, &graph, &no_wait()).await;
    broke("plan", ended.unwrap_err());
    faulty();
    let ended = deploy(&bench.session, graph.clone(), &no_wait()).await;
    broke("deploy", ended.unwrap_err());
    assert_eq!(bench.store.hold(&support::shop()).await.unwrap(), None);
    faulty();
    let ended = refresh(&bench.session, &no_wait()).await;
    broke("refresh", ended.unwrap_err());
    assert_eq!(bench.store.hold(&support::shop()).await.unwrap(), None);
    let more = Program::new([worker("a"), worker("b"), worker("c")]).graph();
    bench.cloud.fault(Fault::new("read", "c", What::Panic, 1));
    let ended = import(&bench.session, &more, &id("c"), "shop-dev-c", &no_wait()).await;
    broke("import", ended.unwrap_err());
    assert_eq!(bench.store.hold(&support::shop()).await.unwrap(), None);
    assert_eq!(bench.cloud.faults_left(), 0);
    bench.quiet(&program).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_gives_its_hold_back_and_the_next_one_goes_on() {
    let mut bench = Bench::new();
    bench.session.clock = Arc::new(TestClock::standing());
    bench.session.machine = notation_state::Machine::here("one");
    let gate = bench.cloud.gate("create", "a");
    let program = Arc::new(Program::pair().graph());
    let options = no_wait();
    tokio::select! {
        _ = deploy(&bench.session, program.clone(), &options) => panic!("it waits at the gate"),
        () = gate.came() => {}
    }
    free(&bench).await;
    let state = bench.store.load(&support::shop()).await.unwrap();
    assert_eq!(state.open.len(), 1, "what it called is open");
    let report = deploy(&bench.session, program, &no_wait()).await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    bench.consistent().await;
}

#[tokio::test]
async fn a_started_run_that_nobody_runs_gives_its_hold_back() {
    let mut bench = Bench::new();
    bench.session.clock = Arc::new(TestClock::standing());
    bench.session.machine = notation_state::Machine::here("one");
    let program = Arc::new(Program::pair().graph());
    let started = begin(&bench.session, program.clone(), &no_wait()).await;
    let started = started.unwrap();
    let refused = begin(&bench.session, program.clone(), &no_wait()).await;
    assert!(matches!(refused, Err(EngineError::Held(_))));
    drop(started);
    free(&bench).await;
    let started = begin(&bench.session, program, &no_wait()).await;
    started.unwrap().give_up().await.unwrap();
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
}
