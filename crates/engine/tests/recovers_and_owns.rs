//! What the next run makes of what an earlier one left, and whose objects are whose.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{
    Answer, EngineError, RunStatus, StepError, deploy, forget, import, plan, refresh, resolve,
};
use notation_model::{Expr, SecretValue, Value};
use notation_provider::Registry;
use notation_state::MemoryStore;
use support::{
    Bench, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::{id, out, resource, text, worker},
};

/// Deploys and stops right after a call of this number was carried out.
async fn stopped_after_call(bench: &Bench, program: &Program, number: u32) {
    // Seams per call: append, append, call, call.
    let power = Power::cut_at(number * 6 - 2);
    let session = powered(bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(program.graph()), &bench.options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
}

#[tokio::test]
async fn a_create_whose_reply_was_lost_with_the_process_is_recorded_not_repeated() {
    let bench = Bench::new();
    stopped_after_call(&bench, &Program::pair(), 1).await;
    assert_eq!(bench.cloud.names(), ["shop-dev-a"]);
    let calls = bench.done(&Program::pair()).await;
    assert_eq!(calls, ["create b{a}", "update a{b}"]);
    bench.consistent().await;
}

#[tokio::test]
async fn an_update_in_doubt_may_still_hold_what_it_was_to_name() {
    let bench = Bench::new();
    stopped_after_call(&bench, &Program::pair(), 3).await;
    assert_eq!(bench.cloud.shape()["a"], ["b"]);
    bench.cloud.forget_calls();
    let report = bench.deploy(&Program::new([worker("a")])).await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    assert_eq!(bench.cloud.writes(), ["update a{}", "delete b"]);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.consistent().await;
}

#[tokio::test]
async fn planning_looks_too_and_records_nothing() {
    let bench = Bench::new();
    stopped_after_call(&bench, &Program::pair(), 1).await;
    let before = bench.store.load(&bench.session.deployment).await.unwrap();
    let planned = plan(&bench.session, &Program::pair().graph(), &bench.options)
        .await
        .unwrap();
    let creates = planned
        .plan
        .steps
        .iter()
        .filter(|step| step.forecast.transition == notation_planner::Transition::Create);
    assert_eq!(creates.count(), 1);
    let after = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_create_that_cannot_be_looked_up_is_asked_about_all_at_once() {
    let bench = Bench::new();
    let blind = |name: &str| resource("sim/Blind", name).set("value", text(name));
    let program = Program::new([blind("x")]);
    stopped_after_call(&bench, &program, 1).await;
    let error = bench.deploy(&program).await.unwrap_err();
    let EngineError::Ambiguous(creates) = &error else {
        panic!("{error}")
    };
    assert_eq!(creates.len(), 1);
    assert!(error.help().contains("resolve ENTRY x --created KEY"));
    assert!(
        bench
            .store
            .hold(&bench.session.deployment)
            .await
            .unwrap()
            .is_none()
    );

    let answer = Answer::Created {
        key: "server-1".into(),
    };
    resolve(&bench.session, &id("x"), &answer, &bench.options)
        .await
        .unwrap();
    assert_eq!(bench.done(&program).await, Vec::<String>::new());
    bench.consistent().await;
}

#[tokio::test]
async fn a_create_that_did_not_happen_is_made_after_a_person_said_so() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Blind", "x").set("value", text("v"))]);
    bench
        .cloud
        .fault(Fault::new("create", "x", What::Transient, 1));
    let report = bench.deploy(&program).await.unwrap();
    assert!(matches!(
        report.failed[0].error,
        StepError::Ambiguous { .. }
    ));
    assert!(matches!(
        bench.deploy(&program).await,
        Err(EngineError::Ambiguous(_))
    ));
    resolve(&bench.session, &id("x"), &Answer::Absent, &bench.options)
        .await
        .unwrap();
    assert_eq!(bench.done(&program).await.len(), 1);
    bench.consistent().await;
    let again = resolve(&bench.session, &id("x"), &Answer::Absent, &bench.options).await;
    assert!(matches!(again, Err(EngineError::NothingToResolve { .. })));
}

#[tokio::test]
async fn a_create_that_waits_is_gone_on_with_by_its_data_also_when_nobody_can_look() {
    let program = Program::new([resource("sim/Blind", "x").set("value", text("v"))]);
    // What the next run is about, and what there is after it.
    for (wanted, left) in [(Some(&program), 1), (None, 0)] {
        let mut bench = Bench::new();
        bench.options.max_attempts = 2;
        bench.cloud.fault(Fault::new("create", "x", What::Wait, 5));
        let report = bench.deploy(&program).await.unwrap();
        assert_eq!(report.failed[0].error.code(), "run::out_of_attempts");
        // A look is enough for a plan, which calls nobody.
        let planned = plan(&bench.session, &program.graph(), &bench.options).await;
        assert_eq!(planned.unwrap().plan.summary().create, 1);
        let error = bench.deploy(&program).await.unwrap_err();
        assert!(
            matches!(&error, EngineError::Unfinished { resource, .. } if *resource == id("x")),
            "{error}"
        );
        assert_eq!(error.code(), "run::out_of_attempts");
        assert!(error.to_string().contains("still at work"), "{error}");
        let report = match wanted {
            Some(program) => bench.deploy(program).await.unwrap(),
            None => bench.destroy().await.unwrap(),
        };
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(bench.cloud.names().len(), left);
        bench.consistent().await;
    }
}

/// What there is of x, by what the next run makes of it.
async fn goes_on_or_asks(bench: &Bench, program: &Program) -> bool {
    match bench.deploy(program).await {
        Ok(report) => {
            assert!(report.failed.is_empty(), "{:?}", report.failed);
            true
        }
        Err(EngineError::Ambiguous(_)) => {
            let answer = match bench.cloud.names().pop() {
                Some(key) => Answer::Created { key },
                None => Answer::Absent,
            };
            resolve(&bench.session, &id("x"), &answer, &bench.options)
                .await
                .unwrap();
            bench.done(program).await;
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_create_after_a_wait_whose_own_answer_is_lost_is_asked_about() {
    let program = Program::new([resource("sim/Blind", "x").set("value", text("v"))]);
    for lost in [What::LoseReply, What::Transient, What::Panic] {
        let bench = Bench::new();
        bench.cloud.fault(Fault::new("create", "x", What::Wait, 1));
        bench
            .cloud
            .fault(Fault::new("create", "x", lost.clone(), 1));
        let report = bench.deploy(&program).await.unwrap();
        let code = report.failed[0].error.code();
        match lost {
            What::Panic => assert_eq!(code, "run::bug"),
            _ => assert_eq!(code, "run::ambiguous_create"),
        }
        bench.cloud.forget_faults();
        assert!(!goes_on_or_asks(&bench, &program).await, "{lost:?}");
        assert_eq!(bench.cloud.names().len(), 1, "{lost:?}");
        bench.consistent().await;
    }
}

#[tokio::test]
async fn wherever_a_create_that_waits_is_cut_off_there_is_one_object() {
    let program = Program::new([resource("sim/Blind", "x").set("value", text("v"))]);
    let mut ends = Vec::new();
    for seam in 1.. {
        let bench = Bench::new();
        bench.cloud.fault(Fault::new("create", "x", What::Wait, 2));
        let power = Power::cut_at(seam);
        let session = powered(&bench, &power);
        let whole = tokio::select! {
            report = deploy(&session, Arc::new(program.graph()), &bench.options) => {
                assert!(report.unwrap().failed.is_empty());
                true
            }
            () = power.went() => false,
        };
        ends.push(goes_on_or_asks(&bench, &program).await);
        assert_eq!(bench.cloud.names().len(), 1, "seam {seam}");
        bench.consistent().await;
        if whole {
            break;
        }
    }
    // It is asked about from the announcement of each call on, until its answer is recorded, and
    // goes on by the data before the second call and before the third.
    let (on, asked) = (true, false);
    let turns = [on, asked, on, asked, on, asked, on];
    ends.dedup();
    assert_eq!(ends, turns);
}

#[tokio::test]
async fn a_create_that_is_idempotent_by_token_is_repeated() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Free", "x").set("value", text("v"))]);
    stopped_after_call(&bench, &program, 1).await;
    bench.done(&program).await;
    assert_eq!(bench.cloud.names().len(), 1);
    bench.consistent().await;

    let bench = Bench::new();
    stopped_after_call(&bench, &program, 1).await;
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.names().len(), 0);
    bench.consistent().await;
}

#[tokio::test]
async fn a_create_with_a_key_of_the_servers_is_found_by_its_owner() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Owned", "x").set("value", text("v"))]);
    stopped_after_call(&bench, &program, 1).await;
    assert_eq!(bench.done(&program).await, Vec::<String>::new());
    bench.consistent().await;
}

#[tokio::test]
async fn a_wait_and_its_data_survive_a_crash() {
    for after in 1..6 {
        let bench = Bench::new();
        bench.cloud.fault(Fault::new("create", "a", What::Wait, 3));
        let power = Power::cut_at(2 + after * 4);
        let session = powered(&bench, &power);
        let graph = Arc::new(Program::new([worker("a")]).graph());
        tokio::select! {
            _ = deploy(&session, graph, &bench.options) => {}
            () = power.went() => {}
        }
        bench.done(&Program::new([worker("a")])).await;
        bench.consistent().await;
    }
}

#[tokio::test]
async fn an_object_of_ours_is_recorded_when_the_state_was_lost() {
    let bench = Bench::new();
    bench.done(&Program::pair()).await;
    let lost = Bench::on(bench.cloud.clone(), support::shop());
    lost.done(&Program::pair()).await;
    assert_eq!(lost.cloud.names(), ["shop-dev-a", "shop-dev-b"]);
    assert_eq!(lost.cloud.shape()["a"], ["b"]);
    lost.consistent().await;
    lost.quiet(&Program::pair()).await;
}

#[tokio::test]
async fn an_object_with_a_key_of_the_servers_is_not_doubled_when_the_state_was_lost() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Owned", "x").set("value", text("v"))]);
    bench.done(&program).await;
    let lost = Bench::on(bench.cloud.clone(), support::shop());
    assert_eq!(lost.done(&program).await, Vec::<String>::new());
    assert_eq!(lost.cloud.names().len(), 1);
    lost.consistent().await;
}

#[tokio::test]
async fn an_object_of_another_entry_is_never_touched_unless_asked_for() {
    let api = Bench::on(Default::default(), "shop:dev:api".parse().unwrap());
    let jobs = Bench::on(api.cloud.clone(), "shop:dev:jobs".parse().unwrap());
    let role = Program::new([worker("role").set("code", "v1")]);
    api.done(&role).await;
    let report = jobs.deploy(&role).await.unwrap();
    let error = report.failed[0].error.to_string();
    assert!(error.contains("shop:dev:api (resource role)"), "{error}");
    let before = jobs.cloud.object("shop-dev-role").unwrap();
    assert_eq!(before.writes, 1);

    let mut adopting = jobs;
    adopting.options.plan.adopt.insert(id("role"));
    adopting.done(&role).await;
    let after = adopting.cloud.object("shop-dev-role").unwrap();
    assert_eq!(after.tags["notation:entry"], "jobs");
}

#[tokio::test]
async fn generated_names_of_two_entries_differ() {
    let api = Bench::on(Default::default(), "shop:dev:api".parse().unwrap());
    let jobs = Bench::on(api.cloud.clone(), "shop:dev:jobs".parse().unwrap());
    let role = Program::new([resource("sim/Thing", "role")]);
    api.done(&role).await;
    jobs.done(&role).await;
    assert_eq!(jobs.cloud.names().len(), 2);
}

#[tokio::test]
async fn an_existing_object_is_imported_and_written_in_full() {
    let other = Bench::on(Default::default(), "old:dev:main".parse().unwrap());
    other.done(&Program::new([worker("w").named("w")])).await;
    let bench = Bench::on(other.cloud.clone(), support::shop());
    let mut bench = bench;
    let program = Program::new([worker("w").named("w").set("code", "mine")]);
    let graph = program.graph();
    let refused = import(&bench.session, &graph, &id("w"), "w", &bench.options).await;
    assert!(matches!(refused, Err(EngineError::Foreign { .. })));
    bench.options.plan.adopt.insert(id("w"));
    import(&bench.session, &graph, &id("w"), "w", &bench.options)
        .await
        .unwrap();
    bench.options.plan.adopt.clear();
    assert_eq!(bench.done(&program).await, ["update w{}"]);
    assert_eq!(
        bench.cloud.object("w").unwrap().tags["notation:app"],
        "shop"
    );
    bench.quiet(&program).await;
    let again = import(&bench.session, &graph, &id("w"), "w", &bench.options).await;
    assert!(matches!(again, Err(EngineError::AlreadyRecorded { .. })));
    // Under another id, too: an object has one.
    let other_id = Program::new([worker("w").named("w"), worker("x").named("w")]).graph();
    bench.options.plan.adopt.insert(id("x"));
    let twice = import(&bench.session, &other_id, &id("x"), "w", &bench.options).await;
    assert!(
        matches!(&twice, Err(EngineError::AlreadyRecorded { resource, .. }) if *resource == id("w")),
        "{twice:?}"
    );
    let absent = Program::new([worker("v").named("v")]).graph();
    let absent = import(&bench.session, &absent, &id("v"), "v", &bench.options).await;
    assert!(matches!(absent, Err(EngineError::NoSuchObject { .. })));
}

#[tokio::test]
async fn drift_is_written_back_and_not_looked_for_when_told() {
    let mut bench = Bench::new();
    let program = Program::new([worker("w").set("code", "v1")]);
    bench.done(&program).await;
    bench.cloud.change("shop-dev-w", "code", text("hacked"));
    bench.options.drift = notation_engine::DriftCheck::Skip;
    assert_eq!(bench.done(&program).await, Vec::<String>::new());
    bench.options.drift = notation_engine::DriftCheck::Read;
    assert_eq!(bench.done(&program).await, ["update w{}"]);
    assert_eq!(
        bench.cloud.object("shop-dev-w").unwrap().params["code"],
        text("v1")
    );
    bench.quiet(&program).await;
}

#[tokio::test]
async fn a_refresh_records_what_it_finds_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.done(&Program::pair()).await;
    bench.cloud.take_away("shop-dev-a");
    bench.cloud.change("shop-dev-b", "code", text("hacked"));
    bench.cloud.forget_calls();
    let refreshed = refresh(&bench.session, &bench.options).await.unwrap();
    assert_eq!(refreshed.gone.len(), 1);
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    bench.consistent().await;
    bench.options.drift = notation_engine::DriftCheck::Skip;
    assert_eq!(bench.done(&Program::pair()).await, ["create a{b}"]);
}

#[tokio::test]
async fn a_renamed_resource_goes_on_without_a_call() {
    let bench = Bench::new();
    bench
        .done(&Program::new([worker("old").set("code", "v1")]))
        .await;
    let renamed = Program::new([worker("new").set("code", "v1").formerly("old")]);
    assert_eq!(bench.done(&renamed).await, Vec::<String>::new());
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let [record] = state.records.values().collect::<Vec<_>>()[..] else {
        panic!("{:?}", state.records)
    };
    assert_eq!(record.incarnation.resource, id("new"));
    assert_eq!(record.key, "shop-dev-old");
    bench.quiet(&renamed).await;
}

#[tokio::test]
async fn forgetting_deletes_nothing() {
    let bench = Bench::new();
    bench.done(&Program::new([worker("w")])).await;
    let forgotten = forget(&bench.session, &id("w"), &bench.options)
        .await
        .unwrap();
    assert_eq!(forgotten.len(), 1);
    assert_eq!(bench.cloud.names(), ["shop-dev-w"]);
    let nothing = forget(&bench.session, &id("w"), &bench.options).await;
    assert!(matches!(nothing, Err(EngineError::NoSuchResource { .. })));
}

#[tokio::test]
async fn all_missing_secrets_are_named_before_anything_else() {
    let store = Arc::new(MemoryStore::new());
    let bench = Bench::with(Default::default(), support::shop(), store.clone());
    let secret = |name: &str| Expr::Secret(name.parse().unwrap());
    let program = Program::new([worker("w")
        .set("secret", secret("ONE"))
        .set("code", secret("TWO"))]);
    let error = bench.deploy(&program).await.unwrap_err();
    let EngineError::MissingSecrets(names) = &error else {
        panic!("{error}")
    };
    assert_eq!(names.len(), 2);
    for name in names {
        let value = SecretValue::new(Value::text("hunter2"));
        let deployment = &bench.session.deployment;
        bench
            .store
            .set_secret(deployment, name, &value)
            .await
            .unwrap();
    }
    bench.done(&program).await;
    bench.quiet(&program).await;
    let journal = format!("{:?}", store.journal(&bench.session.deployment));
    assert!(!journal.contains("hunter2"));
}

#[tokio::test]
async fn a_record_of_an_unknown_type_is_left_in_place() {
    let bench = Bench::new();
    bench.done(&Program::new([worker("w")])).await;
    let mut without = bench.session.clone();
    without.registry = Registry::new(vec![]).unwrap();
    let report = notation_engine::destroy(&without, &bench.options)
        .await
        .unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(state.records.len(), 1);
    assert_eq!(bench.cloud.names(), ["shop-dev-w"]);
}

#[tokio::test]
async fn what_an_unknown_type_holds_is_not_asked_to_go() {
    let bench = Bench::new();
    let held = Program::new([worker("a"), worker("b").binds("a"), worker("c")]);
    bench.done(&held).await;
    let session = &bench.session;
    let mut state = session.store.load(&session.deployment).await.unwrap();
    let unknown = state.records.values_mut();
    for record in unknown.filter(|record| record.incarnation.resource == id("b")) {
        record.ty = "other/Worker".parse().unwrap();
    }
    let old = Bench::on(bench.cloud.clone(), support::shop());
    old.put_back(state).await;
    let report = old.destroy().await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    assert_eq!(old.cloud.refusals(), Vec::<String>::new());
    assert_eq!(old.cloud.names(), ["shop-dev-a", "shop-dev-b"]);
    let state = old.store.load(&support::shop()).await.unwrap();
    assert_eq!(state.records.len(), 2);
}

#[tokio::test]
async fn a_provider_that_cannot_be_read_is_named_before_planning() {
    let mut bench = Bench::new();
    let program = Program::new([
        worker("w"),
        resource("sim/Thing", "t").set("value", out("w", "Name")),
    ]);
    bench.done(&program).await;
    bench.options.max_attempts = 3;
    bench
        .cloud
        .fault(Fault::new("read", "w", What::Transient, 100));
    let error = bench.deploy(&program).await.unwrap_err();
    let EngineError::Observe(failures) = &error else {
        panic!("{error}")
    };
    assert_eq!(failures.len(), 1);
}

#[tokio::test]
async fn an_object_that_was_deleted_before_is_not_taken_for_the_one_that_was_to_be_made() {
    let bench = Bench::new();
    let program = Program::new([worker("x")]);
    bench.done(&program).await;
    bench.destroy().await.unwrap();
    // Nothing is made, and the look is one write behind.
    bench
        .cloud
        .fault(Fault::new("create", "x", What::Throttle, 1));
    bench.cloud.fault(Fault::new("read", "x", What::Stale, 1));
    assert_eq!(bench.done(&program).await, ["create x{}"]);
    bench.consistent().await;
    bench.quiet(&program).await;
}
