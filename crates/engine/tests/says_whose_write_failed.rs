//! What a failed write leaves behind: whose it was, and that an object is gone.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::{Arc, Mutex};

use notation_engine::{
    DriftCheck, EngineEvent, EventSink, RunOptions, RunStatus, Session, StepError, deploy,
};
use notation_planner::Transition;
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{id, out, resource, text, worker},
};

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl EventSink for Heard {
    fn event(&self, event: &EngineEvent) {
        let line = match event {
            EngineEvent::StepStarted(step) => format!("started {}", step.key),
            EngineEvent::StepWaiting(step) => format!("waiting {}", step.key),
            EngineEvent::StepDone(step) => format!("done {}", step.key),
            EngineEvent::StepFailed(step) => format!("failed {} {}", step.key, step.resource),
            EngineEvent::StepBlocked(step) => format!("blocked {}", step.key),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn a_settle_write_that_fails_is_reported_as_what_it_is() {
    // a is completed after b and m were made, so b, which reads its version, is written again.
    let program = Program::new([
        worker("a").binds("m"),
        worker("b").binds_version("a", "versionId"),
        worker("m").binds("b"),
    ]);
    let bench = Bench::new();
    bench.cloud.fault(Fault::new("update", "-b", What::Fail, 1));
    let heard = Arc::new(Heard::default());
    let session = Session {
        sink: heard.clone(),
        ..bench.session.clone()
    };
    let report = deploy(&session, Arc::new(program.graph()), &bench.options).await;
    let report = report.unwrap();

    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(failed.key.to_string(), "b:0:settle:1");
    assert_eq!(failed.resource, id("b"));
    assert_eq!(failed.transition, Transition::Update);
    let [blocked] = report.blocked.as_slice() else {
        panic!("{:?}", report.blocked)
    };
    assert_eq!(blocked.to_string(), "waits for b:0:settle:1");
    let heard = std::mem::take(&mut *heard.0.lock().unwrap());
    let settling: Vec<&str> = heard
        .iter()
        .filter(|line| line.contains("settle"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        settling,
        [
            "started b:0:settle:1",
            "failed b:0:settle:1 b",
            "blocked cycle:a:settle"
        ]
    );
    bench.consistent().await;
    bench.done(&program).await;
    bench.quiet(&program).await;
}

fn believing() -> RunOptions {
    RunOptions {
        drift: DriftCheck::Skip,
        ..RunOptions::default()
    }
}

#[tokio::test]
async fn what_an_update_finds_gone_is_made_again_by_the_next_run() {
    for (ty, options) in [
        // It cannot be read: no refresh would tell.
        ("sim/Blind", RunOptions::default()),
        ("sim/Thing", believing()),
    ] {
        let mut bench = Bench::new();
        bench.options = options;
        let program = |value: &str| {
            let x = resource(ty, "x").set("value", text(value));
            Program::new([x, worker("w").set("code", out("x", "id"))])
        };
        bench.done(&program("1")).await;
        let key = bench.store.load(&bench.session.deployment).await.unwrap();
        let key = key.records.values().find(|record| record.ty.as_str() == ty);
        bench.cloud.take_away(&key.unwrap().key);

        let report = bench.deploy(&program("2")).await.unwrap();
        let [failed] = report.failed.as_slice() else {
            panic!("{:?}", report.failed)
        };
        assert!(matches!(failed.error, StepError::Vanished { wanted: true }));
        bench.consistent().await;
        let state = bench.store.load(&bench.session.deployment).await.unwrap();
        let mut gone = state.records.values().filter(|record| record.gone);
        let gone = gone.next().unwrap();
        assert_eq!(gone.incarnation.to_string(), "x");

        let calls = bench.done(&program("2")).await;
        assert!(calls[0].starts_with("create "), "{calls:?}");
        bench.consistent().await;
        bench.quiet(&program("2")).await;
    }
}

#[tokio::test]
async fn what_a_destroy_finds_gone_has_nothing_left_to_remove() {
    let mut bench = Bench::new();
    bench.done(&Program::pair()).await;
    bench.options = believing();
    for name in bench.cloud.names() {
        bench.cloud.take_away(&name);
    }
    let report = bench.destroy().await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    for failed in &report.failed {
        assert!(matches!(
            failed.error,
            StepError::Vanished { wanted: false }
        ));
        let help = failed.error.help(&failed.resource);
        assert_eq!(
            help,
            "run the command again: nothing of it is left to remove"
        );
    }
    let report = bench.destroy().await.unwrap();
    assert_eq!(report.failed.len(), 0, "{:?}", report.failed);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(state.records.len(), 0);
}
