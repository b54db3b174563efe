//! State that was lost, or is older than the world: what is ours is recorded, not made again, and
//! no live binding is cut meanwhile (`engine.md` §8, *Ownership*).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{RunStatus, StepError, deploy};
use notation_model::Incarnation;
use support::{
    Bench, Cloud, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::{id, resource, text, worker},
};

fn ring(names: &[&str]) -> Program {
    let next = names.iter().cycle().skip(1);
    Program::new(
        names
            .iter()
            .zip(next)
            .map(|(one, next)| worker(one).binds(next)),
    )
}

/// Two cycles, one of three and a pair, and who is in none.
fn town() -> Program {
    Program::new([
        worker("a").binds("b"),
        worker("b").binds("c"),
        worker("c").binds("a"),
        worker("d").binds("e"),
        worker("e").binds("d"),
        worker("f").binds("a"),
        resource("sim/Thing", "t").set("value", text("1")),
    ])
}

/// The same cloud, nothing recorded.
fn lost(bench: &Bench) -> Bench {
    Bench::on(bench.cloud.clone(), support::shop())
}

/// Names with how often they were written: the same objects, untouched.
fn objects(cloud: &Cloud) -> Vec<(String, u64)> {
    let names = cloud.names().into_iter();
    names
        .map(|name| {
            let writes = cloud.object(&name).unwrap().writes;
            (name, writes)
        })
        .collect()
}

#[tokio::test]
async fn cycles_are_taken_up_without_a_write() {
    for program in [Program::pair(), ring(&["a", "b", "c"]), town()] {
        let bench = Bench::new();
        bench.done(&program).await;
        let before = objects(&bench.cloud);
        let lost = lost(&bench);
        assert_eq!(lost.done(&program).await, Vec::<String>::new());
        assert_eq!(objects(&lost.cloud), before);
        lost.consistent().await;
        lost.quiet(&program).await;
        // The references are known: everything is taken down in order.
        lost.cloud.forget_calls();
        let report = lost.destroy().await.unwrap();
        assert_eq!(report.status, RunStatus::Done);
        assert_eq!(lost.cloud.refusals(), Vec::<String>::new());
        assert_eq!(lost.cloud.names(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_later_incarnation_is_found_by_its_name_and_the_one_made_beside_it_goes() {
    for times in [1, 3] {
        let mut bench = Bench::new();
        bench.done(&Program::pair()).await;
        bench.options.plan.replace.insert(id("a"));
        for _ in 0..times {
            bench.done(&Program::pair()).await;
        }
        let before = objects(&bench.cloud);
        assert!(!bench.cloud.names().contains(&"shop-dev-a".to_owned()));
        let lost = lost(&bench);
        let calls = lost.done(&Program::pair()).await;
        assert_eq!(
            calls,
            ["create a{}", "delete a"],
            "nothing that was there is written"
        );
        assert_eq!(objects(&lost.cloud), before);
        let state = lost.store.load(&support::shop()).await.unwrap();
        let a = Incarnation {
            resource: id("a"),
            generation: times,
        };
        assert!(state.records.contains_key(&a), "{:?}", state.records.keys());
        lost.consistent().await;
        lost.quiet(&Program::pair()).await;
    }
}

#[tokio::test]
async fn one_object_that_is_as_the_program_wants_it_tells_of_all_the_others() {
    let mut bench = Bench::new();
    let program = Program::new([worker("x"), worker("a").binds("b"), worker("b").binds("a")]);
    bench.done(&program).await;
    bench.options.plan.replace.extend([id("a"), id("b")]);
    bench.done(&program).await;
    let before = objects(&bench.cloud);
    let lost = lost(&bench);
    lost.done(&program).await;
    assert_eq!(objects(&lost.cloud), before);
    lost.consistent().await;
}

#[tokio::test]
async fn a_renamed_resource_is_found_by_the_name_of_before() {
    let bench = Bench::new();
    bench
        .done(&Program::new([
            worker("a").binds("z"),
            worker("z").binds("a"),
        ]))
        .await;
    let before = bench.cloud.names();
    let renamed = Program::new([worker("b").binds("z").formerly("a"), worker("z").binds("b")]);
    let lost_it = lost(&bench);
    assert_eq!(lost_it.done(&renamed).await, Vec::<String>::new());
    assert_eq!(lost_it.cloud.names(), before);
    lost_it.quiet(&renamed).await;
    // Alone, with a server-made key, too.
    let bench = Bench::new();
    bench
        .done(&Program::new([resource("sim/Owned", "a"), worker("x")]))
        .await;
    let before = bench.cloud.names();
    let renamed = Program::new([
        resource("sim/Owned", "b").formerly("a"),
        worker("y").formerly("x"),
    ]);
    let lost_it = lost(&bench);
    assert_eq!(lost_it.done(&renamed).await, Vec::<String>::new());
    assert_eq!(lost_it.cloud.names(), before);
    lost_it.quiet(&renamed).await;
}

#[tokio::test]
async fn a_program_that_changed_meanwhile_is_brought_about_from_what_was_found() {
    let bench = Bench::new();
    bench.done(&ring(&["a", "b", "c"])).await;
    // a changes, c binds d now, d is new.
    let program = Program::new([
        worker("a").binds("b").set("code", "v2"),
        worker("b").binds("c"),
        worker("c").binds("a").binds("d"),
        worker("d").binds("a"),
    ]);
    let lost = lost(&bench);
    let calls = lost.done(&program).await;
    assert!(
        calls
            .iter()
            .all(|call| ["update a{b}", "create d{a}", "update c{a,d}"].contains(&call.as_str())),
        "{calls:?}"
    );
    lost.quiet(&program).await;
    lost.consistent().await;
}

#[tokio::test]
async fn what_would_be_deleted_because_of_what_was_found_is_shown_first() {
    let bench = Bench::new();
    let program = |region: &str| {
        Program::new([
            worker("a").binds("b").set("region", text(region)),
            worker("b").binds("a"),
        ])
    };
    bench.done(&program("eu")).await;
    let before = objects(&bench.cloud);
    let lost = lost(&bench);
    lost.cloud.forget_calls();
    let report = lost.deploy(&program("us")).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    let [failed] = &report.failed[..] else {
        panic!("{:?}", report.failed)
    };
    assert!(matches!(&failed.error, StepError::Unannounced { what } if what.resource == id("a")));
    assert_eq!(objects(&lost.cloud), before);
    lost.consistent().await;
    // The next plan has it.
    let calls = lost.done(&program("us")).await;
    assert_eq!(calls.last().map(String::as_str), Some("delete a"));
    lost.quiet(&program("us")).await;
}

#[tokio::test]
async fn state_older_than_the_world_is_brought_up_to_it() {
    let mut bench = Bench::new();
    bench.done(&Program::pair()).await;
    let old = bench.store.load(&support::shop()).await.unwrap();
    bench.options.plan.replace.insert(id("a"));
    bench.done(&Program::pair()).await;
    let wider = Program::new([
        worker("a").binds("b"),
        worker("b").binds("a"),
        worker("c").binds("a"),
    ]);
    bench.options.plan.replace.clear();
    bench.done(&wider).await;
    let before = objects(&bench.cloud);
    // A backup of the first deploy is put back.
    let backup = lost(&bench);
    backup.put_back(old).await;
    backup.deploy(&wider).await.unwrap();
    let names: Vec<String> = before.iter().map(|(name, _)| name.clone()).collect();
    backup.deploy(&wider).await.unwrap();
    assert_eq!(backup.cloud.names(), names);
    backup.quiet(&wider).await;
    backup.consistent().await;
}

/// Takes up the town without its records until the power goes at a seam. True when it was not
/// reached.
async fn taken_up_until(bench: &Bench, seam: u32) -> (Bench, bool) {
    let lost = lost(bench);
    let power = Power::cut_at(seam);
    let session = powered(&lost, &power);
    let graph = Arc::new(town().graph());
    let whole = tokio::select! {
        report = deploy(&session, graph, &lost.options) => {
            assert!(report.unwrap().failed.is_empty());
            true
        }
        () = power.went() => false,
    };
    (lost, whole)
}

#[tokio::test]
async fn power_cut_at_any_instant_of_taking_up_cuts_no_binding_and_doubles_nothing() {
    let bench = Bench::new();
    bench.done(&town()).await;
    let before = objects(&bench.cloud);
    let mut cuts = 0;
    for seam in 1.. {
        let (lost, whole) = taken_up_until(&bench, seam).await;
        assert_eq!(objects(&lost.cloud), before, "cut {seam}");
        assert_eq!(lost.done(&town()).await, Vec::<String>::new(), "cut {seam}");
        assert_eq!(objects(&lost.cloud), before, "cut {seam}");
        lost.consistent().await;
        if whole {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 20, "{cuts}");
}

#[tokio::test]
async fn power_cut_while_a_later_incarnation_is_taken_up_leaves_it_the_only_one() {
    let mut bench = Bench::new();
    bench.done(&town()).await;
    bench.options.plan.replace.insert(id("a"));
    bench.done(&town()).await;
    let before = objects(&bench.cloud);
    for seam in 1.. {
        let (lost, whole) = taken_up_until(&bench, seam).await;
        // What an earlier run made beside it is shown before it is deleted.
        let report = lost.deploy(&town()).await.unwrap();
        for failed in &report.failed {
            assert!(
                matches!(failed.error, StepError::Unannounced { .. }),
                "{failed:?}"
            );
        }
        lost.done(&town()).await;
        assert_eq!(objects(&lost.cloud), before, "cut {seam}");
        lost.consistent().await;
        lost.quiet(&town()).await;
        if whole {
            break;
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_while_meeting_an_object_does_not_cut_it() {
    let bench = Bench::new();
    bench.done(&Program::pair()).await;
    let before = objects(&bench.cloud);
    for what in [What::Transient, What::Throttle] {
        let lost = lost(&bench);
        lost.cloud.fault(Fault::new("create", "", what, 2));
        assert_eq!(lost.done(&Program::pair()).await, Vec::<String>::new());
        assert_eq!(objects(&lost.cloud), before);
        lost.consistent().await;
    }
}

#[tokio::test]
async fn a_failure_beside_it_keeps_nothing_from_being_recorded() {
    let bench = Bench::new();
    bench.done(&Program::pair()).await;
    let before = objects(&bench.cloud);
    let wider = Program::new([worker("x"), worker("a").binds("b"), worker("b").binds("a")]);
    let lost = lost(&bench);
    lost.cloud.fault(Fault::new("create", "-x", What::Fail, 1));
    let report = lost.deploy(&wider).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(objects(&lost.cloud), before);
    lost.consistent().await;
    assert_eq!(lost.done(&wider).await, ["create x{}"]);
}

#[tokio::test]
async fn a_read_that_fails_while_looking_ends_the_run_and_the_next_one_goes_on() {
    let mut bench = Bench::new();
    bench.done(&Program::pair()).await;
    let before = objects(&bench.cloud);
    bench = lost(&bench);
    bench.options.max_attempts = 2;
    bench
        .cloud
        .fault(Fault::new("read", "-b", What::Transient, 100));
    let report = bench.deploy(&Program::pair()).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(objects(&bench.cloud), before);
    bench.cloud.forget_faults();
    assert_eq!(bench.done(&Program::pair()).await, Vec::<String>::new());
    bench.consistent().await;
}

#[tokio::test]
async fn an_ordinary_first_deploy_reads_nothing() {
    let bench = Bench::new();
    bench.cloud.refuse_reads();
    bench.done(&town()).await;
}
