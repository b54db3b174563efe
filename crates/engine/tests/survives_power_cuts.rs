//! The power goes before and after every call and every journal append, in stories beyond the
//! crash matrix: with state in a file, while a cycle settles, while something is made again.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{RunOptions, deploy};
use notation_model::DesiredGraph;
use notation_state::{KeySource, SqliteStore};
use support::{
    Bench, Cloud, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::worker,
};

/// From one program to the next; the faults come with the second.
struct Story {
    first: Program,
    second: Program,
    /// A smaller program that someone may go on with instead.
    smaller: Program,
    faults: Vec<Fault>,
}

impl Story {
    fn new(first: Program, second: Program, smaller: Program) -> Story {
        Story {
            first,
            second,
            smaller,
            faults: Vec::new(),
        }
    }
}

fn pair_in(region: &str) -> Program {
    Program::new([
        worker("a").set("region", region).binds("b"),
        worker("b").binds("a"),
    ])
}

fn ring_in(region: &str) -> Program {
    Program::new([
        worker("a").binds("b"),
        worker("b").set("region", region).binds("c"),
        worker("c").binds("a"),
    ])
}

fn alone(id: &str) -> Program {
    Program::new([worker(id)])
}

/// Runs the second program and cuts the power at a seam. Returns how many seams there were if it
/// was not reached.
async fn cut(story: &Story, at: u32) -> (Bench, Option<u32>) {
    cut_on(Bench::new(), story, at).await
}

async fn cut_on(bench: Bench, story: &Story, at: u32) -> (Bench, Option<u32>) {
    bench.done(&story.first).await;
    for fault in &story.faults {
        bench.cloud.fault(fault.clone());
    }
    bench.cloud.forget_calls();
    let power = Power::cut_at(at);
    let session = powered(&bench, &power);
    let graph = Arc::new(story.second.graph());
    let options = RunOptions::default();
    let finished = tokio::select! {
        report = deploy(&session, graph, &options) => {
            let report = report.unwrap();
            assert!(report.failed.is_empty(), "{:?}", report.failed);
            Some(power.seams())
        }
        () = power.went() => None,
    };
    (bench, finished)
}

/// The world that a program asks for, whatever was before.
async fn ends_in(bench: &Bench, graph: &DesiredGraph, at: u32, then: &str) {
    let what = format!("cut at seam {at}, then {then}");
    let report = deploy(&bench.session, Arc::new(graph.clone()), &bench.options)
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.failed.is_empty(), "{what}: {:?}", report.failed);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new(), "{what}");
    let wanted: Vec<&str> = graph.resources.keys().map(|id| id.as_str()).collect();
    let shape = bench.cloud.shape();
    assert_eq!(shape.len(), wanted.len(), "{what}: {shape:?}");
    for (name, bound) in &shape {
        for target in bound {
            assert!(shape.contains_key(target), "{what}: {name} names {target}");
        }
    }
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    for (incarnation, record) in &state.records {
        let object = bench
            .cloud
            .object(&record.key)
            .expect("a record's object lives");
        let bindings = object.params.get("bindings").map(|_| ());
        let asked = graph.resources[&incarnation.resource].contributions.len();
        assert_eq!(bindings.is_some(), asked > 0, "{what}: {incarnation}");
    }
    bench.consistent().await;
    bench.cloud.forget_calls();
    let report = deploy(&bench.session, Arc::new(graph.clone()), &bench.options)
        .await
        .unwrap();
    assert!(report.failed.is_empty());
    assert_eq!(bench.cloud.writes(), Vec::<String>::new(), "{what}");
}

async fn at_every_seam(story: Story) {
    let mut at = 1;
    loop {
        let (bench, finished) = cut(&story, at).await;
        if finished.is_some() {
            break;
        }
        ends_in(&bench, &story.second.graph(), at, "deployed again").await;
        let (bench, _) = cut(&story, at).await;
        ends_in(&bench, &DesiredGraph::default(), at, "destroyed").await;
        let (bench, _) = cut(&story, at).await;
        ends_in(&bench, &story.smaller.graph(), at, "made smaller").await;
        let (bench, _) = cut(&story, at).await;
        ends_in(&bench, &story.first.graph(), at, "taken back").await;
        at += 1;
    }
    assert!(at > 4, "there were seams");
}

#[tokio::test]
async fn while_a_ring_is_set_up() {
    at_every_seam(Story::new(Program::default(), ring_in("us"), alone("c"))).await;
}

#[tokio::test]
async fn while_state_is_kept_in_a_file() {
    let story = Story::new(pair_in("us"), pair_in("eu"), alone("b"));
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let open = || SqliteStore::open(&path, KeySource::passphrase("correct horse"));
        let bench = Bench::with(Cloud::new(), support::shop(), Arc::new(open()));
        let (bench, finished) = cut_on(bench, &story, at).await;
        let cloud = bench.cloud.clone();
        drop(bench);
        let next = Bench::with(cloud, support::shop(), Arc::new(open()));
        ends_in(&next, &story.second.graph(), at, "deployed again").await;
        if finished.is_some() {
            break;
        }
    }
}

/// b reads what every update of a changes: one settle pass writes b.
fn settling(region: &str) -> Program {
    Program::new([
        worker("a").set("code", region).binds("b"),
        worker("b").binds_version("a", "versionId"),
    ])
}

#[tokio::test]
async fn while_a_cycle_settles() {
    at_every_seam(Story::new(Program::default(), settling("us"), alone("b"))).await;
    at_every_seam(Story::new(settling("us"), settling("eu"), alone("a"))).await;
}

#[tokio::test]
async fn while_a_member_found_gone_is_made_again() {
    for at in 1.. {
        let bench = Bench::new();
        bench.done(&Program::pair()).await;
        bench.cloud.take_away("shop-dev-a");
        let power = Power::cut_at(at);
        let session = powered(&bench, &power);
        let graph = Arc::new(Program::pair().graph());
        let finished = tokio::select! {
            report = deploy(&session, graph.clone(), &bench.options) => {
                assert!(report.unwrap().failed.is_empty());
                true
            }
            () = power.went() => false,
        };
        ends_in(&bench, &graph, at, "deployed again").await;
        if finished {
            assert!(at > 4);
            break;
        }
    }
}

#[tokio::test]
async fn with_reads_that_miss_what_was_just_made_after_a_lost_reply() {
    let lost = Fault::new("create", "", What::LoseReply, 2);
    let stale = Fault::new("read", "", What::Absent, 1);
    let mut story = Story::new(Program::default(), Program::pair(), Program::default());
    story.faults = vec![lost, stale];
    let (bench, finished) = cut(&story, 0).await;
    assert!(finished.is_some());
    ends_in(&bench, &story.second.graph(), 0, "deployed again").await;
}

#[tokio::test]
async fn a_store_that_loses_nothing_is_needed_for_all_of_this() {
    // The power switch itself: a cut run leaves its hold, and its intent stays open.
    let (bench, _) = cut(
        &Story::new(Program::default(), Program::pair(), Program::default()),
        3,
    )
    .await;
    let store = &bench.store;
    let deployment = &bench.session.deployment;
    assert!(store.hold(deployment).await.unwrap().is_some());
    assert_eq!(store.load(deployment).await.unwrap().open.len(), 1);
}
