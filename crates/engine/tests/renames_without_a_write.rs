//! A renaming writes nothing, so an object's tags name an id that its resource had before. The
//! cloud of these tests looks whose an object is at every update and every delete.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{DriftCheck, RunOptions, deploy, destroy};
use support::{
    Bench, Program,
    power::{Power, powered},
    program::{Item, id, resource, worker},
};

const TYPES: [&str; 4] = ["sim/Worker", "sim/Thing", "sim/Frozen", "sim/Owned"];

/// Deployed as `api`, then with each of these ids, without a call.
async fn renamed(item: impl Fn(&str) -> Item, ids: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.done(&Program::new([item("api")])).await;
    let mut before = "api";
    for id in ids {
        let now = Program::new([item(id).formerly(before)]);
        assert_eq!(bench.done(&now).await, Vec::<String>::new());
        before = id;
    }
    let names = bench.cloud.names();
    let object = bench.cloud.object(&names[0]).unwrap();
    assert_eq!(object.tags["notation:resource"], "api");
    bench
}

async fn is_empty(bench: &Bench) {
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
    bench.consistent().await;
}

#[tokio::test]
async fn what_was_renamed_once_or_twice_can_be_destroyed_and_taken_out_of_the_program() {
    for ty in TYPES {
        for ids in [&["gateway"][..], &["gateway", "front"]] {
            for drift in [DriftCheck::Read, DriftCheck::Skip] {
                let mut bench = renamed(|id| resource(ty, id), ids).await;
                bench.options.drift = drift;
                let report = bench.destroy().await.unwrap();
                assert!(report.failed.is_empty(), "{ty}: {:?}", report.failed);
                is_empty(&bench).await;

                let mut bench = renamed(|id| resource(ty, id), ids).await;
                bench.options.drift = drift;
                assert_eq!(bench.done(&Program::default()).await.len(), 1, "{ty}");
                is_empty(&bench).await;
            }
        }
    }
}

#[tokio::test]
async fn a_renaming_that_no_deploy_recorded_is_part_of_the_run_that_replaces_or_updates() {
    for (ty, field) in [("sim/Worker", "code"), ("sim/Thing", "value")] {
        let item = |id: &str, value: &str| resource(ty, id).set(field, value);
        let mut bench = Bench::new();
        bench.done(&Program::new([item("api", "one")])).await;
        let renamed = Program::new([item("gateway", "two").formerly("api")]);
        assert_eq!(bench.done(&renamed).await.len(), 1);
        let names = bench.cloud.names();
        let object = bench.cloud.object(&names[0]).unwrap();
        assert_eq!(object.tags["notation:resource"], "gateway");

        let renamed = Program::new([item("front", "two").formerly("gateway")]);
        bench.options.plan.replace.insert(id("front"));
        assert_eq!(bench.done(&renamed).await.len(), 2);
        assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
        let names = bench.cloud.names();
        let object = bench.cloud.object(&names[0]).unwrap();
        assert_eq!(object.tags["notation:resource"], "front");
        bench.options.plan.replace.clear();
        bench.destroy().await.unwrap();
        is_empty(&bench).await;
    }
}

#[tokio::test]
async fn what_was_renamed_can_be_replaced_under_a_written_and_under_a_generated_name() {
    for written in [true, false] {
        let item = |id: &str| match written {
            true => worker(id).named("front"),
            false => worker(id),
        };
        let mut bench = renamed(item, &["gateway"]).await;
        bench.options.plan.replace.insert(id("gateway"));
        let writes = bench.done(&Program::new([item("gateway")])).await;
        assert!(writes.iter().any(|write| write.starts_with("delete")));
        bench.options.plan.replace.clear();
        bench.quiet(&Program::new([item("gateway")])).await;
        bench.consistent().await;
        let names = bench.cloud.names();
        assert_eq!(names.len(), 1, "{names:?}");
        bench.destroy().await.unwrap();
        is_empty(&bench).await;
    }
}

fn pair(one: Item) -> Program {
    let this = one.0.id.to_string();
    Program::new([one.binds("b"), worker("b").binds(&this)])
}

#[tokio::test]
async fn a_renamed_member_of_a_cycle_is_reverted_and_deleted() {
    for leaves in [false, true] {
        let bench = Bench::new();
        bench.done(&pair(worker("a"))).await;
        let renamed = pair(worker("z").formerly("a"));
        assert_eq!(bench.done(&renamed).await, Vec::<String>::new());
        if leaves {
            bench.done(&Program::new([worker("b")])).await;
            assert_eq!(bench.cloud.names(), ["shop-dev-b"]);
        }
        let report = bench.destroy().await.unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        is_empty(&bench).await;
    }
}

#[tokio::test]
async fn a_run_that_is_cut_off_after_a_renaming_is_finished_by_the_next() {
    let options = || {
        let mut options = RunOptions::default();
        options.plan.replace.insert(id("z"));
        options
    };
    for replaces in [false, true] {
        for at in 1.. {
            let bench = Bench::new();
            bench.done(&pair(worker("a"))).await;
            let renamed = pair(worker("z").formerly("a"));
            bench.done(&renamed).await;
            let power = Power::cut_at(at);
            let session = powered(&bench, &power);
            let run = async {
                match replaces {
                    true => deploy(&session, Arc::new(renamed.graph()), &options()).await,
                    false => destroy(&session, &RunOptions::default()).await,
                }
            };
            let over = tokio::select! {
                report = run => {
                    assert!(report.unwrap().failed.is_empty());
                    true
                }
                () = power.went() => false,
            };
            // Whoever comes next need not have the program.
            let report = bench.destroy().await.unwrap();
            assert!(report.failed.is_empty(), "seam {at}: {:?}", report.failed);
            is_empty(&bench).await;
            if over {
                assert!(at > 8, "{at} seams");
                break;
            }
        }
    }
}
