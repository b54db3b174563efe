//! A run that is planned once more beside a failure leaves what failed and who waits for it, and
//! nothing else; and tells each of them once, in its events as in its report (`engine.md` §7).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::{Arc, Mutex};

use notation_engine::{EngineEvent, EventSink, Report, RunOptions, Session, deploy, plan};
use notation_state::MemoryStore;
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{Item, out, resource, text, worker},
    shop,
};

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EventSink for Told {
    fn event(&self, event: &EngineEvent) {
        let line = match event {
            EngineEvent::StepDone(step) => format!("done {}", step.key),
            EngineEvent::StepFailed(step) => format!("failed {} {:?}", step.key, step.transition),
            EngineEvent::StepBlocked(step) => format!("blocked {}", step.key),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// The report, what it says failed and was left, and a check that the events say the same.
struct Said {
    report: Report,
    failed: Vec<String>,
    blocked: Vec<String>,
}

async fn said(bench: &Bench, program: &Program, options: &RunOptions) -> Said {
    let told = Arc::new(Told::default());
    let session = Session {
        sink: told.clone(),
        ..bench.session.clone()
    };
    let report = deploy(&session, Arc::new(program.graph()), options).await;
    let report = report.unwrap();
    let failed: Vec<String> = report
        .failed
        .iter()
        .map(|step| step.key.to_string())
        .collect();
    let mut blocked: Vec<String> = report
        .blocked
        .iter()
        .map(|step| step.key.to_string())
        .collect();
    blocked.sort();
    let mut left: Vec<&String> = failed.iter().chain(&blocked).collect();
    left.sort();
    let count = left.len();
    left.dedup();
    assert_eq!(left.len(), count, "failed {failed:?}, blocked {blocked:?}");
    let told = std::mem::take(&mut *told.0.lock().unwrap());
    let of = |kind: &str| {
        let keys = told.iter().filter_map(|line| line.strip_prefix(kind));
        let mut keys: Vec<String> = keys.map(str::to_owned).collect();
        keys.sort();
        keys
    };
    let expected = report.failed.iter();
    let mut expected: Vec<String> = expected
        .map(|step| format!("{} {:?}", step.key, step.transition))
        .collect();
    expected.sort();
    assert_eq!(of("failed "), expected, "{told:?}");
    assert_eq!(of("blocked "), blocked, "{told:?}");
    let done = of("done ");
    for key in &failed {
        assert!(
            !done.contains(key),
            "{key} is both done and failed: {told:?}"
        );
    }
    Said {
        report,
        failed,
        blocked,
    }
}

/// w is replaced when f is: its region turns out different.
fn turns_out(value: &str) -> [Item; 2] {
    [
        resource("sim/Frozen", "f").set("value", text(value)),
        worker("w").set("region", out("f", "id")),
    ]
}

#[tokio::test]
async fn a_cycle_that_never_settles_has_failed_and_does_not_wait_for_itself() {
    let program = |value: &str| {
        let [f, w] = turns_out(value);
        Program::new([
            f,
            w,
            worker("a")
                .set("code", text(value))
                .binds_version("b", "versionId"),
            worker("b").binds_version("a", "versionId"),
            worker("u").named("u").set("code", out("a", "versionId")),
        ])
    };
    let bench = Bench::new();
    bench.deploy(&program("one")).await.unwrap();
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed, ["cycle:a:settle"]);
    assert_eq!(said.blocked, ["u:0:complete"]);
    assert_eq!(
        said.report.blocked[0].to_string(),
        "waits for cycle:a:settle"
    );
    let replaced = said.report.done.iter();
    let replaced = replaced.filter(|step| step.key.to_string() == "w:1:complete");
    assert_eq!(replaced.count(), 1);
}

#[tokio::test]
async fn a_settle_write_that_failed_keeps_its_cycle_waiting_also_in_the_second_plan() {
    let program = |value: &str| {
        let [f, w] = turns_out(value);
        Program::new([
            f,
            w,
            worker("a").set("code", text(value)).binds("m"),
            worker("b").binds_version("a", "versionId"),
            worker("m").binds("b"),
            worker("u").named("u").set("code", out("a", "versionId")),
        ])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    bench.cloud.fault(Fault::new("update", "-b", What::Fail, 1));
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed.len(), 1, "{:?}", said.failed);
    assert!(said.blocked.contains(&"cycle:a:settle".to_owned()));
    assert!(said.blocked.contains(&"u:0:complete".to_owned()));
    bench.done(&program("two")).await;
    bench.quiet(&program("two")).await;
}

#[tokio::test]
async fn a_delete_that_fails_keeps_nobody_from_being_updated_who_does_not_wait_for_it() {
    let program = |value: &str, name: &str, more: Vec<Item>| {
        let [f, w] = turns_out(value);
        let z = resource("sim/Thing", "z")
            .named(name)
            .set("value", out("w", "arn"));
        let q = resource("sim/Thing", "q")
            .named("q")
            .set("value", out("z", "value"));
        Program::new([f, w, z, q].into_iter().chain(more))
    };
    let bench = Bench::new();
    bench.done(&program("one", "n1", Vec::new())).await;
    bench.cloud.fault(Fault::new("delete", "n1", What::Fail, 9));
    bench
        .deploy(&program("one", "n2", Vec::new()))
        .await
        .unwrap();
    bench.cloud.forget_calls();
    // n1 is still there, and v waits for it to go.
    let v = vec![resource("sim/Thing", "v").named("n1")];
    let now = program("two", "n2", v);
    let said = said(&bench, &now, &bench.options).await;
    assert_eq!(said.failed, ["z:0:absent"]);
    // n1 refers to the w before, which refers to the f before.
    assert_eq!(said.blocked, ["f:0:absent", "v:0:complete", "w:0:absent"]);
    let calls = bench.cloud.writes();
    for name in ["update n2", "update q"] {
        let of = calls.iter().filter(|call| call.starts_with(name));
        assert_eq!(of.count(), 1, "{name}: {calls:?}");
    }
    bench.cloud.forget_faults();
    bench.done(&now).await;
    bench.quiet(&now).await;
}

#[tokio::test]
async fn what_a_failed_successor_leaves_is_told_as_with_one_plan() {
    let program = |value: &str| {
        let x = resource("sim/Thing", "x");
        let y = resource("sim/Thing", "y").set("value", out("x", "id"));
        Program::new(turns_out(value).into_iter().chain([x, y]))
    };
    let mut options = RunOptions::default();
    options.plan.replace.insert("x".parse().unwrap());
    // What the next x will be called.
    let bench = Bench::new();
    bench.done(&program("one")).await;
    deploy(&bench.session, Arc::new(program("one").graph()), &options)
        .await
        .unwrap();
    let mut names = bench.cloud.names().into_iter();
    let next = names.find(|name| name.starts_with("shop-dev-x")).unwrap();
    let next: &'static str = next.leak();
    let mut left = Vec::new();
    for value in ["one", "two"] {
        let bench = Bench::new();
        bench.done(&program("one")).await;
        bench.cloud.fault(Fault::new("create", next, What::Fail, 1));
        let said = said(&bench, &program(value), &options).await;
        assert_eq!(said.failed, ["x:1:complete"], "{value}");
        left.push(said.blocked);
    }
    assert_eq!(left[0], ["x:0:absent", "y:0:complete"]);
    assert_eq!(left[0], left[1]);
}

#[tokio::test]
async fn a_second_plan_that_is_refused_is_told_as_a_failure_of_who_asked_for_it() {
    let program = |value: &str| {
        let [f, mut w] = turns_out(value);
        w = w.set("code", text(value)).protected(value == "two");
        let y = resource("sim/Thing", "y").set("value", out("w", "versionId"));
        Program::new([f, w, y])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed, ["w:0:complete"]);
    assert!(said.blocked.contains(&"y:0:complete".to_owned()));
}

#[tokio::test]
async fn a_removal_that_nobody_was_shown_is_told_and_stops_the_rest() {
    let program = |value: &str| {
        Program::new([
            resource("sim/Frozen", "a")
                .named("a")
                .set("value", text(value)),
            resource("sim/Thing", "y")
                .named("y")
                .set("value", out("a", "id")),
        ])
    };
    let old = Bench::new();
    old.done(&program("one")).await;
    // The state is lost, and what is there cannot become what is asked for.
    let bench = Bench::with(old.cloud.clone(), shop(), Arc::new(MemoryStore::new()));
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed, ["a:0:absent"]);
    assert_eq!(said.report.failed[0].error.code(), "run::unannounced");
    assert!(!said.blocked.is_empty());
    let known = plan(&bench.session, &program("two").graph(), &bench.options).await;
    let steps = known.unwrap().plan.steps;
    let steps: Vec<String> = steps.iter().map(|step| step.key.to_string()).collect();
    for key in &steps {
        let left = said.failed.contains(key) || said.blocked.contains(key);
        assert!(left, "{key} is to be done and was not told: {steps:?}");
    }
}

#[tokio::test]
async fn a_replacement_that_cannot_be_planned_fails_alone() {
    let program = |value: &str| {
        let [f, w] = turns_out(value);
        let w = w.protected(value == "two");
        let x = worker("x").set("region", out("f", "id"));
        let y = resource("sim/Thing", "y").set("value", out("x", "arn"));
        Program::new([f, w, x, y])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed, ["w:0:complete"]);
    assert_eq!(said.report.failed[0].error.code(), "plan::protected");
    // Only the f that w still refers to stays.
    assert_eq!(said.blocked, ["f:0:absent"]);
    let done = said.report.done.iter().map(|step| step.key.to_string());
    let done: Vec<String> = done.collect();
    for key in ["x:1:complete", "y:0:complete", "x:0:absent"] {
        assert!(done.contains(&key.to_owned()), "{key}: {done:?}");
    }
    bench.consistent().await;
}

#[tokio::test]
async fn nobody_makes_room_for_a_replacement_that_failed() {
    let program = |value: &str| {
        let [f, w] = turns_out(value);
        let m = worker("m")
            .named("m")
            .set("region", out("f", "id"))
            .binds("p");
        let p = worker("p").binds("m");
        Program::new([f, w, m, p])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    bench.cloud.forget_calls();
    // Both are to be replaced, m in its place: that was not announced.
    let said = said(&bench, &program("two"), &bench.options).await;
    assert_eq!(said.failed, ["m:0:complete"]);
    assert_eq!(said.report.failed[0].error.code(), "run::would_replace");
    let calls = bench.cloud.writes();
    let created = calls.iter().filter(|call| call.starts_with("create w-"));
    assert_eq!(created.count(), 1, "{calls:?}");
    assert!(
        calls.iter().all(|call| !call.starts_with("update p")),
        "{calls:?}"
    );
    bench.consistent().await;
}
