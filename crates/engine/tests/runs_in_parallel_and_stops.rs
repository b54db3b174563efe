//! Limits, failures, interrupts and holds.
#![allow(clippy::unwrap_used, reason = "its event sink is test code")]

mod support;

use std::sync::{Arc, Mutex};

use notation_engine::{
    EngineError, EngineEvent, EventSink, HoldWait, Interrupt, OnFailure, RunOptions, RunStatus,
    StepError, begin, deploy,
};
use notation_model::{Shape, Standing, Value};
use notation_provider::OpError;
use notation_state::Machine;
use support::{
    Bench, Fault, Program, TestClock,
    cloud::What,
    program::{Item, id, resource, worker},
};

fn many(ty: &str, count: usize) -> Program {
    Program::new((0..count).map(|number| resource(ty, &format!("x{number}"))))
}

#[tokio::test]
async fn ten_calls_run_at_a_time_and_never_more() {
    let bench = Bench::new();
    bench.done(&many("sim/Thing", 200)).await;
    assert_eq!(bench.cloud.names().len(), 200);
    assert_eq!(bench.cloud.most_running(), 10);
}

#[tokio::test]
async fn a_narrow_type_keeps_nobody_else_back() {
    let bench = Bench::new();
    bench.done(&many("sim/Frozen", 20)).await;
    assert_eq!(bench.cloud.most_running(), 2);
    let mixed = Program::new(
        (0..100)
            .map(|number| resource("sim/Frozen", &format!("f{number}")))
            .chain((0..20).map(|number| resource("sim/Thing", &format!("t{number}")))),
    );
    let bench = Bench::new();
    bench.done(&mixed).await;
    assert_eq!(bench.cloud.most_running(), 10);
}

#[tokio::test]
async fn one_failure_among_many_leaves_the_others_done() {
    let bench = Bench::new();
    bench
        .cloud
        .fault(Fault::new("create", "x42", What::Fail, 1));
    let program = many("sim/Worker", 100);
    let report = bench.deploy(&program).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!((report.done.len(), report.failed.len()), (99, 1));
    assert_eq!(report.failed[0].resource, id("x42"));
    assert!(report.blocked.is_empty());
    assert_eq!(bench.done(&program).await, ["create x42{}"]);
}

#[tokio::test]
async fn what_waits_for_a_failure_is_blocked_and_says_by_what() {
    let bench = Bench::new();
    bench.cloud.fault(Fault::new("create", "a", What::Fail, 1));
    let program = Program::new([
        worker("a"),
        worker("b").binds("a"),
        worker("c").binds("b"),
        worker("d"),
    ]);
    let report = bench.deploy(&program).await.unwrap();
    let blocked: Vec<String> = report
        .blocked
        .iter()
        .map(|blocked| format!("{} by {}", blocked.resource, blocked.by))
        .collect();
    assert_eq!(blocked, ["b by a:0:complete", "c by a:0:complete"]);
    assert_eq!(bench.cloud.names(), ["shop-dev-d"]);
    bench.done(&program).await;
}

#[tokio::test]
async fn fail_fast_starts_nothing_after_the_first_failure() {
    let mut bench = Bench::new();
    bench.options.on_failure = OnFailure::Stop;
    bench.options.parallelism = 1;
    bench.cloud.fault(Fault::nth("create", 1, What::Fail, 1));
    let report = bench.deploy(&many("sim/Worker", 50)).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
    assert_eq!(
        report.failed.len() + report.blocked.len() + report.done.len(),
        50
    );
    bench.options.on_failure = OnFailure::KeepGoing;
    bench.done(&many("sim/Worker", 50)).await;
    bench.consistent().await;
}

#[tokio::test]
async fn attempts_are_bounded_and_the_next_run_goes_on() {
    let mut bench = Bench::new();
    bench.options.max_attempts = 4;
    bench.cloud.fault(Fault::new("create", "w", What::Wait, 4));
    let program = Program::new([worker("w")]);
    let report = bench.deploy(&program).await.unwrap();
    let StepError::Attempts { attempts, last } = &report.failed[0].error else {
        panic!("{:?}", report.failed)
    };
    assert_eq!((*attempts, last.as_str()), (4, "still at work"));
    bench.done(&program).await;
    bench.consistent().await;
}

#[tokio::test]
async fn a_deletion_that_stays_refused_ends_with_three_lists() {
    let mut bench = Bench::new();
    bench.options.max_attempts = 3;
    let program = Program::new([worker("a"), worker("b").binds("a"), worker("c")]);
    bench.done(&program).await;
    bench
        .cloud
        .fault(Fault::new("delete", "b", What::InUse, 100));
    let report = bench.destroy().await.unwrap();
    assert_eq!(report.failed.len(), 1);
    assert!(matches!(
        &report.failed[0].error,
        StepError::Provider(OpError::InUse { held_by }) if held_by.0 == ["somebody"]
    ));
    assert_eq!(report.blocked.len(), 1);
    assert_eq!(report.done.len(), 1);
    bench.consistent().await;
}

/// Gives an interrupt when the first step starts.
struct Impatient(Interrupt, Mutex<Vec<EngineEvent>>, u8);

impl EventSink for Impatient {
    fn event(&self, event: &EngineEvent) {
        let mut events = self.1.lock().unwrap();
        if matches!(event, EngineEvent::StepStarted(_)) && events.is_empty() {
            (0..self.2).for_each(|_| self.0.signal());
        }
        events.push(event.clone());
    }
}

#[tokio::test]
async fn an_interrupt_waits_for_running_calls_and_the_next_run_goes_on() {
    for signals in [1, 2] {
        let mut bench = Bench::new();
        let interrupt = Interrupt::new();
        bench.session.interrupt = interrupt.clone();
        bench.session.sink = Arc::new(Impatient(interrupt, Mutex::default(), signals));
        let program = many("sim/Worker", 50);
        let report = bench.deploy(&program).await.unwrap();
        assert_eq!(report.status, RunStatus::Interrupted);
        assert!(bench.cloud.names().len() < 50);
        if signals == 1 {
            assert_eq!(report.done.len(), bench.cloud.names().len());
            bench.consistent().await;
        }
        let deployment = &bench.session.deployment;
        assert!(bench.store.hold(deployment).await.unwrap().is_none());
        bench.session.interrupt = Interrupt::new();
        bench.session.sink = Arc::new(notation_engine::NoEvents);
        bench.done(&program).await;
        assert_eq!(bench.cloud.names().len(), 50);
        bench.consistent().await;
    }
}

#[tokio::test]
async fn a_second_run_is_told_who_holds_the_deployment() {
    let mut bench = Bench::new();
    bench.session.machine = Machine::here("first");
    let program = Arc::new(Program::pair().graph());
    let first = begin(&bench.session, program.clone(), &bench.options)
        .await
        .unwrap();
    let second = notation_engine::Session {
        machine: Machine::here("second"),
        ..bench.session.clone()
    };
    let options = RunOptions {
        hold: HoldWait::GiveUp,
        ..bench.options.clone()
    };
    let Err(EngineError::Held(hold)) = deploy(&second, program.clone(), &options).await else {
        panic!("it is held")
    };
    assert_eq!(hold.machine.name, "first");
    assert_eq!(hold.run, first.hold().run);
    first.give_up().await.unwrap();
    deploy(&second, program, &options).await.unwrap();
}

#[tokio::test]
async fn a_run_that_waits_goes_on_when_the_hold_is_given_back() {
    let mut bench = Bench::new();
    bench.session.clock = Arc::new(TestClock::standing());
    bench.session.machine = Machine::here("first");
    let program = Arc::new(Program::pair().graph());
    let first = begin(&bench.session, program.clone(), &bench.options)
        .await
        .unwrap();
    let events = Arc::new(Impatient(Interrupt::new(), Mutex::default(), 0));
    let second = notation_engine::Session {
        sink: events.clone(),
        machine: Machine::here("second"),
        ..bench.session.clone()
    };
    let options = bench.options.clone();
    let waiting = tokio::spawn(async move { deploy(&second, program, &options).await });
    while events.1.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let report = first.run().await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let report = waiting.await.unwrap().unwrap();
    assert!(report.done.is_empty());
    let told = events.1.lock().unwrap();
    assert!(matches!(told[0], EngineEvent::HoldWaiting(_)));
}

#[tokio::test]
async fn a_dead_holder_is_taken_over_at_once_and_one_elsewhere_after_its_lease() {
    let mut bench = Bench::new();
    let clock = Arc::new(TestClock::default());
    bench.session.clock = clock.clone();
    let program = Arc::new(Program::pair().graph());
    let options = RunOptions {
        hold: HoldWait::GiveUp,
        ..bench.options.clone()
    };
    // The bench's machine is a process that does not exist.
    let lost = begin(&bench.session, program.clone(), &options)
        .await
        .unwrap();
    let elsewhere = notation_engine::Session {
        machine: Machine::here("elsewhere"),
        ..bench.session.clone()
    };
    assert!(matches!(
        deploy(&elsewhere, program.clone(), &options).await,
        Err(EngineError::Held(_))
    ));
    let here = notation_engine::Session {
        machine: Machine::here("test"),
        ..bench.session.clone()
    };
    let taken = begin(&here, program.clone(), &options).await.unwrap();
    // The older one is fenced out: it writes nothing and calls nobody.
    let report = lost.run().await;
    assert!(report.is_err() || !report.unwrap().failed.is_empty());
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());

    clock.jump(61_000);
    let third = begin(&elsewhere, program.clone(), &options).await.unwrap();
    let report = taken.run().await;
    assert!(report.is_err() || !report.unwrap().failed.is_empty());
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    let report = third.run().await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    bench.consistent().await;
}

#[tokio::test]
async fn a_failed_plan_gives_the_hold_back() {
    let bench = Bench::new();
    let strict =
        |name: &str, other: &str| -> Item { resource("sim/StrictWorker", name).binds(other) };
    let program = Program::new([strict("a", "b"), strict("b", "a")]);
    assert!(matches!(
        bench.deploy(&program).await,
        Err(EngineError::Plan(_))
    ));
    let deployment = &bench.session.deployment;
    assert!(bench.store.hold(deployment).await.unwrap().is_none());
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_deleted_is_not_recorded_again_by_its_successor() {
    let bench = Bench::new();
    let named = |name: &str| worker("q").named(name);
    bench.done(&Program::new([named("n1"), worker("x")])).await;
    // Its name goes to another resource, so both end in the same moment.
    let moved = Program::new([worker("q"), worker("x").named("n1")]);
    let (create, delete) = (
        bench.cloud.gate("create", "q-ea12"),
        bench.cloud.gate("delete", "n1"),
    );
    let (report, ()) = tokio::join!(bench.deploy(&moved), async {
        create.came().await;
        delete.came().await;
        delete.open();
        create.open();
    });
    assert_eq!(report.unwrap().failed.len(), 0);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let records = state.records.values();
    let known: Vec<String> = records
        .map(|record| format!("{} {:?}", record.incarnation, record.standing))
        .collect();
    assert_eq!(known, ["q#1 Current", "x#1 Current"]);
    bench.consistent().await;
    bench.quiet(&moved).await;
}

#[tokio::test]
async fn what_fail_fast_kept_from_starting_is_not_in_doubt() {
    let mut bench = Bench::new();
    bench.options.on_failure = OnFailure::Stop;
    bench.options.parallelism = 1;
    bench.cloud.fault(Fault::nth("create", 1, What::Fail, 1));
    // Nobody could look for what was announced and not made.
    let program = many("sim/Blind", 5);
    let report = bench.deploy(&program).await.unwrap();
    assert_eq!(report.failed.len(), 1);
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    bench.options.on_failure = OnFailure::KeepGoing;
    assert_eq!(bench.done(&program).await.len(), 5);
}

#[tokio::test]
async fn what_is_reverted_while_its_successor_is_made_stays_superseded() {
    let bench = Bench::new();
    let pair = |region: &str| {
        let members = [worker("a"), worker("b").named("bb")];
        members.map(|member| member.set("region", Value::text(region)))
    };
    let [a, b] = pair("eu");
    bench
        .done(&Program::new([a.binds("b"), b.binds("a")]))
        .await;
    let (create, revert) = (
        bench.cloud.gate("create", "a-9467"),
        bench.cloud.gate("update", "shop-dev-a"),
    );
    bench
        .cloud
        .fault(Fault::new("delete", "shop-dev-a", What::Fail, 1));
    let apart = Program::new(pair("us"));
    let (report, ()) = tokio::join!(bench.deploy(&apart), async {
        create.came().await;
        revert.came().await;
        create.open();
        revert.open();
    });
    assert_eq!(report.unwrap().failed.len(), 1);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let known = |text: &str| {
        let mut records = state.records.values();
        let record = records.find(|record| record.incarnation.to_string() == text);
        let record = record.unwrap();
        (record.standing, record.shape)
    };
    assert_eq!(known("a"), (Standing::Superseded, Shape::Placeholder));
    assert_eq!(known("a#1"), (Standing::Current, Shape::Complete));
    bench.done(&apart).await;
    bench.consistent().await;
}
