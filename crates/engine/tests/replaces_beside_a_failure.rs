//! A replacement found while running is carried out beside what fails in the same run; what failed
//! is not tried again, and who waits for it stays blocked (`engine.md` §6, §7).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use notation_engine::{Blocked, OnFailure, Report, RunStatus};
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{id, out, resource, text, worker},
};

/// f is replaced with its value, and w with it: its region turns out different. z only changes, v
/// reads it, and u reads both.
fn program(value: &str) -> Program {
    Program::new([
        resource("sim/Frozen", "f").set("value", text(value)),
        worker("w").set("region", out("f", "id")),
        resource("sim/Thing", "z")
            .named("z")
            .set("value", text(value))
            .after("f"),
        resource("sim/Thing", "v")
            .named("v")
            .set("value", out("z", "value")),
        worker("u")
            .named("u")
            .set("code", out("w", "arn"))
            .after("z"),
    ])
}

fn calls_of<'c>(calls: &'c [String], what: &str) -> Vec<&'c String> {
    calls.iter().filter(|call| call.starts_with(what)).collect()
}

fn failed(report: &Report) -> Vec<String> {
    let failed = report.failed.iter();
    failed.map(|step| step.key.to_string()).collect()
}

fn blocked(report: &Report) -> Vec<String> {
    let mut blocked: Vec<String> = report
        .blocked
        .iter()
        .map(|step| format!("{} {step}", step.key))
        .collect();
    blocked.sort();
    blocked
}

#[tokio::test]
async fn what_does_not_depend_on_the_failure_is_replaced_in_the_same_run() {
    let bench = Bench::new();
    bench.done(&program("one")).await;
    bench.cloud.forget_calls();
    bench.cloud.fault(Fault::new("update", "z", What::Fail, 1));
    let report = bench.deploy(&program("two")).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(failed(&report), ["z:0:complete"]);
    let calls = bench.cloud.writes();
    assert_eq!(calls_of(&calls, "create w-").len(), 1, "{calls:?}");
    // Whoever waits for the failure was not called, in neither round, nor was the failure again.
    assert_eq!(
        blocked(&report),
        [
            "f:0:absent waits for z:0:complete",
            "u:0:complete waits for z:0:complete",
            "v:0:complete waits for z:0:complete",
            "w:0:absent waits for z:0:complete",
        ]
    );
    for name in ["update z", "update v", "update u"] {
        assert!(calls_of(&calls, name).is_empty(), "{calls:?}");
    }
    bench.consistent().await;
    let calls = bench.done(&program("two")).await;
    assert!(calls_of(&calls, "create").is_empty(), "{calls:?}");
    bench.quiet(&program("two")).await;
    bench.consistent().await;
}

#[tokio::test]
async fn what_stops_the_run_leaves_the_replacement_to_the_next_one_and_calls_it_no_failure() {
    for what in [What::Fail, What::Wait] {
        let mut bench = Bench::new();
        bench.done(&program("one")).await;
        // It fails after w was found to be replaced; with a wait its call stays open.
        let stops = Fault::new("update", "z", what.clone(), 9);
        bench.cloud.fault(stops);
        match what {
            What::Fail => bench.options.on_failure = OnFailure::Stop,
            _ => bench.options.max_attempts = 2,
        }
        let report = bench.deploy(&program("two")).await.unwrap();
        assert_eq!(failed(&report), ["z:0:complete"], "{what:?}");
        let w = report.blocked.iter().find(|step| step.resource == id("w"));
        let w = w.unwrap_or_else(|| panic!("{:?}", report.blocked));
        assert_eq!(w.why, Blocked::Stopped);
        assert_eq!(w.to_string(), "the run stopped at z:0:complete");
        bench.cloud.forget_faults();
        bench.options = Bench::new().options;
        let calls = bench.done(&program("two")).await;
        assert_eq!(calls_of(&calls, "create w-").len(), 1, "{calls:?}");
        bench.quiet(&program("two")).await;
        bench.consistent().await;
    }
}

#[tokio::test]
async fn a_cycle_that_failed_to_settle_is_not_settled_again() {
    let program = |value: &str| {
        Program::new([
            resource("sim/Frozen", "f").set("value", text(value)),
            worker("w").set("region", out("f", "id")),
            worker("a").set("code", text(value)).binds("m"),
            worker("b").binds_version("a", "versionId"),
            worker("m").binds("b"),
        ])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    bench.cloud.forget_calls();
    bench.cloud.fault(Fault::new("update", "-b", What::Fail, 1));
    let report = bench.deploy(&program("two")).await.unwrap();
    let [failure] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(failure.resource, id("b"));
    let calls = bench.cloud.writes();
    assert_eq!(calls_of(&calls, "create w-").len(), 1, "{calls:?}");
    assert!(calls_of(&calls, "update b").is_empty(), "{calls:?}");
    bench.done(&program("two")).await;
    bench.quiet(&program("two")).await;
    bench.consistent().await;
}

#[tokio::test]
async fn what_was_asked_to_be_replaced_is_also_after_planning_once_more() {
    let program = |value: &str| {
        Program::new([
            resource("sim/Frozen", "f").set("value", text(value)),
            worker("w").set("region", out("f", "id")),
            // It cannot begin before w is there.
            worker("r").set("code", out("w", "arn")),
        ])
    };
    let mut bench = Bench::new();
    bench.done(&program("one")).await;
    bench.options.plan.replace.insert(id("r"));
    let calls = bench.done(&program("two")).await;
    assert_eq!(calls_of(&calls, "create w-").len(), 1, "{calls:?}");
    assert_eq!(calls_of(&calls, "create r-").len(), 1, "{calls:?}");
    bench.consistent().await;
}

/// The same with a cycle around what is replaced, and one beside it.
fn with_cycles(value: &str) -> Program {
    Program::new([
        resource("sim/Frozen", "f").set("value", text(value)),
        worker("w").set("region", out("f", "id")).binds("p"),
        worker("p").binds("w"),
        worker("a").set("code", text(value)).binds("m"),
        worker("b").binds_version("a", "versionId"),
        worker("m").binds("b"),
        worker("u")
            .named("u")
            .set("code", out("p", "arn"))
            .after("a"),
    ])
}

#[tokio::test]
async fn whichever_call_fails_nothing_is_refused_and_the_next_run_does_the_rest() {
    let mut replaced_beside = 0;
    let programs = [program, with_cycles];
    for (program, order) in programs
        .into_iter()
        .flat_map(|one| [(one, 0), (one, 5), (one, 9)])
    {
        for what in [What::Fail, What::LoseReply, What::Panic, What::Wait] {
            for number in 1.. {
                let mut bench = Bench::new();
                bench.options.max_attempts = 2;
                bench.done(&program("one")).await;
                let refused = bench.cloud.refusals().len();
                bench.cloud.forget_calls();
                bench.cloud.shuffle(order);
                bench
                    .cloud
                    .fault(Fault::nth("write", number, what.clone(), 2));
                let report = bench.deploy(&program("two")).await.unwrap();
                let case = format!("{what:?} of call {number}: {:?}", report.failed);
                let untouched = bench.cloud.faults_left() == 1 && report.failed.is_empty();
                let calls = bench.cloud.writes();
                if !report.failed.is_empty() && !calls_of(&calls, "create w-").is_empty() {
                    replaced_beside += 1;
                }
                for step in &report.failed {
                    assert_ne!(step.error.code(), "run::would_replace", "{case}");
                }
                assert_eq!(bench.cloud.refusals().len(), refused, "{case}");
                bench.cloud.forget_faults();
                bench.done(&program("two")).await;
                bench.quiet(&program("two")).await;
                bench.consistent().await;
                if untouched {
                    break;
                }
            }
        }
    }
    assert!(replaced_beside > 0);
}
