//! The journal comes first: intents before calls, outcomes before dependants, tokens that never
//! mean two things (`engine.md` §7).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use notation_engine::{deploy, destroy};
use notation_state::Outcome;
use support::{
    Bench, Fault, Program,
    cloud::What,
    power::{Line, Power, powered},
    program::{resource, text, worker},
};

/// Deploys to the end and says what happened at the borders.
async fn watched(bench: &Bench, program: &Program) -> Vec<Line> {
    let power = Power::cut_at(0);
    let session = powered(bench, &power);
    let report = deploy(&session, Arc::new(program.graph()), &bench.options).await;
    assert!(report.unwrap().failed.is_empty());
    power.diary()
}

/// The same until the power goes; what happened until then.
async fn cut(bench: &Bench, program: &Program, seam: u32) -> Vec<Line> {
    let power = Power::cut_at(seam);
    let session = powered(bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(program.graph()), &bench.options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
    power.diary()
}

fn calls(diary: &[Line]) -> Vec<(&'static str, String, String)> {
    let calls = diary.iter().filter_map(|line| match line {
        Line::Call { op, owner, token } => Some((*op, owner.resource.to_string(), token.clone())),
        Line::Intent { .. } | Line::Outcome { .. } => None,
    });
    calls.collect()
}

fn place(diary: &[Line], is: impl Fn(&Line) -> bool) -> usize {
    diary
        .iter()
        .position(is)
        .unwrap_or_else(|| panic!("{diary:#?}"))
}

fn wide() -> Program {
    let mut items = vec![worker("a").binds("b"), worker("b").binds("a")];
    items.extend(["c", "d", "e"].map(|id| worker(id).binds("a")));
    Program::new(items)
}

#[tokio::test]
async fn no_call_is_made_before_its_intent_is_durable() {
    let bench = Bench::new();
    let mut diaries = vec![watched(&bench, &wide()).await];
    diaries.push(watched(&bench, &Program::new([worker("c")])).await);
    for diary in diaries {
        for (at, line) in diary.iter().enumerate() {
            if let Line::Call { token, .. } = line {
                let announced = diary[..at]
                    .iter()
                    .any(|line| matches!(line, Line::Intent { token: it, .. } if it == token));
                assert!(announced, "{line:?}");
            }
        }
    }
}

#[tokio::test]
async fn no_dependent_step_begins_before_the_outcome_is_durable() {
    let bench = Bench::new();
    let diary = watched(&bench, &wide()).await;
    let done = |step: &str| {
        place(
            &diary,
            |line| matches!(line, Line::Outcome { step: it, outcome: Outcome::Done } if it == step),
        )
    };
    let announced = |step: &str| {
        place(
            &diary,
            |line| matches!(line, Line::Intent { step: it, .. } if it == step),
        )
    };
    for (before, after) in [
        ("a:0:placeholder", "b:0:complete"),
        ("b:0:complete", "a:0:complete"),
        ("a:0:complete", "c:0:complete"),
        ("a:0:complete", "d:0:complete"),
    ] {
        assert!(
            done(before) < announced(after),
            "{before}, {after}: {diary:#?}"
        );
    }
}

#[tokio::test]
async fn every_retry_of_an_intent_has_its_token_and_no_other_intent_has_it() {
    let bench = Bench::new();
    for (op, what) in [
        ("create", What::Transient),
        ("update", What::Throttle),
        ("delete", What::Transient),
        ("create", What::Wait),
    ] {
        bench.cloud.fault(Fault::new(op, "", what, 2));
    }
    let mut diary = watched(&bench, &wide()).await;
    diary.extend(watched(&bench, &Program::default()).await);
    let mut calls_of: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, token) in calls(&diary) {
        *calls_of.entry(token).or_default() += 1;
    }
    assert!(calls_of.values().any(|count| *count > 1), "{calls_of:?}");
    let mut steps: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut intents = 0;
    for line in &diary {
        if let Line::Intent { step, token } = line {
            steps.entry(token.clone()).or_default().insert(step.clone());
            intents += 1;
        }
    }
    assert_eq!(steps.len(), intents, "one token per intent");
    assert_eq!(
        calls_of.keys().collect::<Vec<_>>(),
        steps.keys().collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_later_run_takes_over_the_token_of_an_intent_that_it_repeats() {
    let bench = Bench::new();
    let before = cut(&bench, &Program::pair(), 4).await;
    let (_, _, token) = calls(&before).remove(0);
    // The change happened and nobody heard of it: take it back, so that it must be repeated.
    bench.cloud.take_away("shop-dev-a");
    let after = watched(&bench, &Program::pair()).await;
    let first = calls(&after).remove(0);
    assert_eq!(first, ("create", "a".to_owned(), token));
    bench.consistent().await;
}

#[tokio::test]
async fn an_intent_that_nobody_takes_over_is_closed() {
    for changed in [
        Program::new([worker("a").set("code", "other")]),
        Program::new([worker("z")]),
    ] {
        let bench = Bench::new();
        let one = Program::new([worker("a").set("code", "one")]);
        let before = cut(&bench, &one, 3).await;
        let Line::Intent { token, .. } = &before[0] else {
            panic!("{before:?}")
        };
        let after = watched(&bench, &changed).await;
        assert!(calls(&after).iter().all(|(_, _, it)| it != token));
        bench.consistent().await;
    }
}

#[tokio::test]
async fn every_call_carries_its_owner() {
    let bench = Bench::new();
    let in_region = |region: &str| Program::new([worker("a").set("region", region)]);
    watched(&bench, &in_region("us")).await;
    let diary = watched(&bench, &in_region("eu")).await;
    let owners = diary.iter().filter_map(|line| match line {
        Line::Call { op, owner, .. } => Some((*op, owner.clone())),
        Line::Intent { .. } | Line::Outcome { .. } => None,
    });
    let seen: Vec<(&str, String, u32)> = owners
        .map(|(op, owner)| (op, owner.deployment.to_string(), owner.generation))
        .collect();
    let shop = "shop:dev:main".to_owned();
    assert_eq!(seen, [("create", shop.clone(), 1), ("delete", shop, 0)]);
}

#[tokio::test]
async fn every_write_of_a_settle_pass_has_a_step_key_of_its_own() {
    let bench = Bench::new();
    let program = Program::new([
        worker("a").binds("b"),
        worker("b").binds_version("a", "versionId"),
    ]);
    let diary = watched(&bench, &program).await;
    let steps: Vec<&str> = diary
        .iter()
        .filter_map(|line| match line {
            Line::Intent { step, .. } => Some(step.as_str()),
            Line::Outcome { .. } | Line::Call { .. } => None,
        })
        .collect();
    assert!(steps.contains(&"b:0:settle:1"), "{steps:?}");
    assert_eq!(steps.iter().collect::<BTreeSet<_>>().len(), steps.len());
}

#[tokio::test]
async fn a_delete_in_doubt_is_looked_up_and_repeated_only_when_the_object_is_there() {
    // Two appends come before the call.
    for (seam, deletes) in [(5, 1), (6, 0)] {
        let bench = Bench::new();
        bench.done(&Program::new([worker("a")])).await;
        cut(&bench, &Program::default(), seam).await;
        assert_eq!(bench.cloud.names().is_empty(), deletes == 0, "seam {seam}");
        let power = Power::cut_at(0);
        let session = powered(&bench, &power);
        destroy(&session, &bench.options).await.unwrap();
        assert_eq!(calls(&power.diary()).len(), deletes, "seam {seam}");
        bench.consistent().await;
    }
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_looked_up_within_the_run_and_not_repeated() {
    let bench = Bench::new();
    bench
        .cloud
        .fault(Fault::new("create", "a", What::LoseReply, 1));
    let diary = watched(&bench, &Program::pair()).await;
    let creates: Vec<String> = calls(&diary)
        .into_iter()
        .filter(|(op, _, _)| *op == "create")
        .map(|(_, resource, _)| resource)
        .collect();
    assert_eq!(creates, ["a", "b"]);
    bench.consistent().await;
}

#[tokio::test]
async fn a_create_that_nobody_can_look_up_is_not_repeated_by_itself() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Blind", "x").set("value", text("v"))]);
    bench
        .cloud
        .fault(Fault::new("create", "x", What::LoseReply, 1));
    let power = Power::cut_at(0);
    let session = powered(&bench, &power);
    let report = deploy(&session, Arc::new(program.graph()), &bench.options).await;
    assert_eq!(
        report.unwrap().failed[0].error.code(),
        "run::ambiguous_create"
    );
    assert_eq!(calls(&power.diary()).len(), 1);
}
