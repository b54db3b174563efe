//! Every fault of the script, from outside.

#![allow(clippy::unwrap_used, reason = "words for tests")]

mod common;

use std::{process::Command, time::Instant};

use common::*;
use notation_provider::{HeldBy, OpError, Progress, Provider as _};
use serde_json::{Value as Json, json};

fn transient<T: std::fmt::Debug>(answer: Result<T, OpError>) -> Option<u64> {
    match answer {
        Err(OpError::Transient { after_ms, .. }) => after_ms,
        other => panic!("not transient: {other:?}"),
    }
}

#[tokio::test]
async fn fail_and_transient_change_nothing() {
    let lab = Lab::new();
    lab.faults(json!([
        { "op": "create", "name": "a", "do": "fail" },
        { "op": "create", "name": "a", "nth": 2, "do": "transient" },
        { "op": "any", "name": "a", "nth": 3, "do": "throttle", "delay_ms": 40 },
    ]));
    assert!(matches!(
        lab.create("Worker", binds("a", &[])).await,
        Err(OpError::Failed { .. })
    ));
    assert_eq!(transient(lab.create("Worker", binds("a", &[])).await), None);
    assert_eq!(
        transient(lab.create("Worker", binds("a", &[])).await),
        Some(40)
    );
    assert_eq!(lab.objects(), json!({}));
    done(lab.create("Worker", binds("a", &[])).await);
    assert_eq!(
        lab.log(),
        [
            "create a failed",
            "create a transient",
            "create a transient",
            "create a ok"
        ]
    );
}

#[tokio::test]
async fn a_lost_reply_leaves_the_change() {
    let lab = Lab::new();
    lab.faults(
        json!([{ "op": "create", "do": "lose_reply" }, { "op": "delete", "do": "lose_reply" }]),
    );
    let token = fresh();
    transient(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    assert_eq!(lab.objects()["a"]["writes"], 1);
    done(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    transient(lab.delete("Worker", "a").await);
    assert_eq!(lab.delete("Worker", "a").await, Err(OpError::NotFound));
}

#[tokio::test]
async fn a_wait_wants_its_data_back() {
    let lab = Lab::new();
    lab.faults(json!([{ "op": "create", "do": "wait", "times": 2, "delay_ms": 5 }]));
    let (ty, params) = (ty_name("Worker"), params_of(binds("a", &[])));
    let mut ctx = ctx(&fresh());
    for _ in 0..2 {
        let Ok(Progress::Waiting {
            after_ms: 5,
            resume,
            ..
        }) = lab.sim.create(&ctx, &ty, &params).await
        else {
            panic!()
        };
        assert_eq!(lab.objects(), json!({}));
        let forgotten = common::ctx(&ctx.token.0);
        assert!(matches!(
            lab.sim.create(&forgotten, &ty, &params).await,
            Err(OpError::Failed { .. })
        ));
        ctx.resume = Some(resume);
    }
    done(lab.sim.create(&ctx, &ty, &params).await);
    done(lab.sim.create(&ctx, &ty, &params).await);
    ctx.resume = Some(json!("made up"));
    assert!(matches!(
        lab.sim.create(&ctx, &ty, &params).await,
        Err(OpError::Failed { .. })
    ));
    assert_eq!(lab.objects()["a"]["writes"], 1);
}

#[tokio::test]
async fn a_wait_goes_on_in_another_process() {
    let lab = Lab::new();
    lab.faults(json!([{ "do": "wait", "times": 1 }]));
    let (ty, params) = (ty_name("Worker"), params_of(binds("a", &[])));
    let mut ctx = ctx(&fresh());
    let Ok(Progress::Waiting { resume, .. }) = lab.sim.create(&ctx, &ty, &params).await else {
        panic!()
    };
    ctx.resume = Some(resume);
    done(lab.reopen().create(&ctx, &ty, &params).await);
}

#[tokio::test]
async fn refuse_speaks_for_a_holder_nobody_sees() {
    let lab = Lab::new();
    lab.faults(json!([
        { "op": "update", "do": "refuse" },
        { "op": "delete", "do": "refuse", "holder": "the console", "times": 2 },
    ]));
    done(lab.create("Worker", binds("a", &[])).await);
    refused(lab.update("Worker", "a", binds("a", &[])).await);
    for _ in 0..2 {
        let held = lab.delete("Worker", "a").await.unwrap_err();
        assert_eq!(
            held,
            OpError::InUse {
                held_by: HeldBy(vec!["the console".into()])
            }
        );
    }
    done(lab.delete("Worker", "a").await);
}

#[tokio::test]
async fn a_stale_read_answers_what_was_true_before_the_last_write() {
    let lab = Lab::new();
    let code = |code: &str| json!({ "Name": "a", "code": code });
    let stale = || lab.faults(json!([{ "op": "read", "do": "stale_read" }]));
    done(lab.create("Worker", code("one")).await);
    stale();
    assert_eq!(lab.read("Worker", "a").await, Ok(None));
    assert!(lab.read("Worker", "a").await.unwrap().is_some());
    done(lab.update("Worker", "a", code("two")).await);
    stale();
    let read = async || lab.read("Worker", "a").await.unwrap().unwrap().params["code"].clone();
    assert_eq!((read().await, read().await), ("one".into(), "two".into()));
    done(lab.delete("Worker", "a").await);
    stale();
    assert_eq!(read().await, "two".into());
    assert_eq!(lab.read("Worker", "a").await, Ok(None));
}

#[tokio::test]
async fn latency_is_spent_side_by_side_and_calls_are_counted() {
    let lab = Lab::new();
    lab.faults(json!({ "latency_ms": 300, "faults": [] }));
    let begun = Instant::now();
    let names = ["a", "b", "c", "d"];
    let all = names.map(|name| lab.create("Worker", binds(name, &[])));
    for answer in futures_of(all).await {
        done(answer);
    }
    assert!(begun.elapsed().as_millis() >= 300);
    let mut counts: Vec<Json> = lab
        .calls()
        .iter()
        .map(|call| call["in_flight"].clone())
        .collect();
    counts.sort_by_key(|count| count.as_u64());
    assert_eq!(counts, [1, 2, 3, 4].map(Json::from));
}

/// Polls all at once.
async fn futures_of<F: Future, const N: usize>(futures: [F; N]) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *result = Some(output);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test]
async fn writing_the_script_anew_arms_it_again_and_a_broken_one_is_named() {
    let lab = Lab::new();
    let script = json!([{ "op": "create", "name": "{a,b}", "do": "fail" }]);
    lab.faults(script.clone());
    assert!(lab.create("Worker", binds("a", &[])).await.is_err());
    done(lab.create("Worker", binds("a", &[])).await);
    lab.faults(script);
    assert!(lab.create("Worker", binds("b", &[])).await.is_err());
    lab.faults(json!([{ "do": "explode" }]));
    let Err(OpError::Failed { message }) = lab.create("Worker", binds("b", &[])).await else {
        panic!()
    };
    assert!(
        message.contains("faults.json") && message.contains("fault 1"),
        "{message}"
    );
}

const CHILD: &str = "NOTATION_SIM_TEST_CHILD";

/// Not a test of its own: what the process to be killed does.
#[tokio::test]
async fn child_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD) else {
        return;
    };
    let sim = notation_provider_sim::SimProvider::open(dir);
    let _ = sim
        .create(
            &ctx("child"),
            &ty_name("Worker"),
            &params_of(binds("a", &[])),
        )
        .await;
}

fn run_child(lab: &Lab) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed"])
        .env(CHILD, lab.folder())
        .env_remove("NOTATION_SIM_CALLS")
        .output()
        .unwrap()
        .status
}

#[tokio::test]
async fn kills_end_the_process_before_or_after_the_change() {
    let lab = Lab::new();
    lab.faults(json!([
        { "op": "create", "do": "kill_before" },
        { "op": "create", "nth": 2, "do": "kill_after" },
    ]));
    assert!(!run_child(&lab).success());
    assert_eq!((lab.objects(), lab.log().len()), (json!({}), 0));
    assert!(!run_child(&lab).success());
    assert_eq!(lab.objects()["a"]["writes"], 1);
    assert_eq!(lab.log(), ["create a ok"]);
    assert!(run_child(&lab).success());
    assert_eq!(lab.log(), ["create a ok", "create a ok"]);
    assert_eq!(lab.calls()[1]["in_flight"], 1);
}
