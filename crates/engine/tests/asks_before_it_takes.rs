//! What is not ours stays whose it is until a write makes it ours, and what is forgotten is named.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{
    Answer, EngineError, StepError, There, deploy, forget, import, plan, resolve,
};
use support::{
    Bench, Cloud, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::{id, resource, text, worker},
};

/// `front` in some region.
fn front(region: &str) -> Program {
    Program::new([worker("a").named("front").set("region", region)])
}

/// `front` of another deployment, and ours beside it, with `--adopt a`.
async fn beside_another() -> Bench {
    let theirs = Bench::on(Cloud::new(), "other:dev:main".parse().unwrap());
    theirs.done(&front("x")).await;
    let mut ours = Bench::on(theirs.cloud.clone(), support::shop());
    ours.options.plan.adopt.insert(id("a"));
    ours
}

async fn untouched(bench: &Bench) {
    let thing = bench.cloud.object("front").unwrap();
    assert_eq!(thing.writes, 1);
    assert_eq!(thing.params["region"], text("x"));
}

#[tokio::test]
async fn an_adoption_that_no_update_can_carry_out_takes_nothing_over() {
    let mut bench = beside_another().await;
    let report = bench.deploy(&front("y")).await.unwrap();
    let error = &report.failed[0].error;
    assert!(matches!(error, StepError::NotAdoptable { .. }), "{error}");
    assert!(
        error.to_string().contains("region cannot be changed"),
        "{error}"
    );
    assert!(report.done.is_empty(), "{:?}", report.done);
    bench.options.plan.adopt.clear();
    bench.destroy().await.unwrap();
    bench.deploy(&front("y")).await.unwrap();
    bench.destroy().await.unwrap();
    untouched(&bench).await;
}

#[tokio::test]
async fn an_adoption_whose_write_fails_takes_nothing_over() {
    for tagged in [true, false] {
        let mut bench = beside_another().await;
        if !tagged {
            let mut thing = bench.cloud.object("front").unwrap();
            thing.tags.clear();
            bench.cloud.put("front", thing);
        }
        bench
            .cloud
            .fault(Fault::new("update", "front", What::Fail, 1));
        let report = bench.deploy(&front("x")).await.unwrap();
        assert_eq!(report.failed.len(), 1);
        bench.options.plan.adopt.clear();
        bench.destroy().await.unwrap();
        untouched(&bench).await;
    }
}

#[tokio::test]
async fn an_adoption_that_was_cut_off_is_ours_once_its_tags_are() {
    let whole = {
        let bench = beside_another().await;
        let power = Power::cut_at(0);
        let session = powered(&bench, &power);
        deploy(&session, Arc::new(front("x").graph()), &bench.options)
            .await
            .unwrap();
        power.seams()
    };
    let (mut left, mut taken) = (0, 0);
    for seam in 1..=whole {
        let mut bench = beside_another().await;
        let power = Power::cut_at(seam);
        let session = powered(&bench, &power);
        let program = Arc::new(front("x").graph());
        tokio::select! {
            _ = deploy(&session, program, &bench.options) => {}
            () = power.went() => {}
        }
        let ours = bench.cloud.object("front").unwrap().tags["notation:app"] == "shop";
        bench.options.plan.adopt.clear();
        bench.destroy().await.unwrap();
        if ours {
            taken += 1;
            assert!(bench.cloud.names().is_empty(), "seam {seam}: ours by now");
        } else {
            left += 1;
            untouched(&bench).await;
        }
    }
    assert!(
        left > 0 && taken > 0,
        "{left} before the write, {taken} after it"
    );
}

#[tokio::test]
async fn what_was_imported_is_ours_with_the_tags_it_had_then_and_with_no_others() {
    for again_another in [false, true] {
        let mut bench = beside_another().await;
        let graph = front("x").graph();
        import(&bench.session, &graph, &id("a"), "front", &bench.options)
            .await
            .unwrap();
        bench.options.plan.adopt.clear();
        if again_another {
            let mut thing = bench.cloud.object("front").unwrap();
            thing.tags.insert("notation:app".into(), "third".into());
            bench.cloud.put("front", thing);
        }
        bench.destroy().await.unwrap();
        assert_eq!(bench.cloud.names().is_empty(), !again_another);
    }
}

#[tokio::test]
async fn an_update_in_doubt_makes_no_object_of_somebody_else_ours() {
    let bench = Bench::new();
    let program = |code: &str| Program::new([worker("a").named("front").set("code", code)]);
    bench.done(&program("v1")).await;
    let power = Power::cut_at(4);
    let session = powered(&bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(program("v2").graph()), &bench.options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
    let mut thing = bench.cloud.object("front").unwrap();
    thing.tags.insert("notation:app".into(), "other".into());
    bench.cloud.put("front", thing);
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.names(), ["front"]);
}

#[tokio::test]
async fn forgetting_names_what_a_run_was_cut_off_while_making() {
    let bench = Bench::new();
    let program = Program::new([worker("a")]);
    bench.done(&program).await;
    let mut options = bench.options.clone();
    options.plan.replace.insert(id("a"));
    // One commit announces that the old one is to go.
    let power = Power::cut_at(6);
    let session = powered(&bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(program.graph()), &options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
    let there = bench.cloud.names();
    assert_eq!(there.len(), 2, "{there:?}");
    let left = forget(&bench.session, &id("a"), &bench.options)
        .await
        .unwrap();
    let named: Vec<(String, There)> = left.into_iter().map(|one| (one.key, one.there)).collect();
    assert_eq!(
        named,
        [
            (there[0].clone(), There::Recorded),
            (there[1].clone(), There::Found)
        ]
    );
}

#[tokio::test]
async fn forgetting_says_what_nobody_can_tell() {
    let bench = Bench::new();
    let program = Program::new([resource("sim/Blind", "x").set("value", text("x"))]);
    let power = Power::cut_at(4);
    let session = powered(&bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(program.graph()), &bench.options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
    let left = forget(&bench.session, &id("x"), &bench.options)
        .await
        .unwrap();
    let named: Vec<There> = left.into_iter().map(|one| one.there).collect();
    assert_eq!(named, [There::Perhaps]);
}

#[tokio::test]
async fn an_answer_with_the_key_of_another_resource_is_refused() {
    let bench = Bench::new();
    let blind = |name: &str| resource("sim/Blind", name).set("value", text("same"));
    bench.done(&Program::new([blind("x")])).await;
    let key = bench.cloud.names().remove(0);
    let both = Program::new([blind("x"), blind("y")]);
    let power = Power::cut_at(4);
    let session = powered(&bench, &power);
    tokio::select! {
        report = deploy(&session, Arc::new(both.graph()), &bench.options) => {
            panic!("it was to be stopped: {report:?}")
        }
        () = power.went() => {}
    }
    let created = |key: String| Answer::Created { key };
    let of_x = created(key.clone());
    let refused = resolve(&bench.session, &id("y"), &of_x, &bench.options).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, EngineError::AlreadyRecorded { resource, .. } if *resource == id("x")),
        "{refused}"
    );
    let made = bench.cloud.names().into_iter().find(|name| *name != key);
    let of_y = created(made.unwrap());
    resolve(&bench.session, &id("y"), &of_y, &bench.options)
        .await
        .unwrap();
    bench.quiet(&both).await;
    bench.consistent().await;
}

#[tokio::test]
async fn a_state_that_cannot_be_written_any_more_ends_the_run_with_a_report() {
    let program = Program::new(["a", "b", "c", "d"].map(worker)).export("n", text("1").into());
    let whole = {
        let bench = Bench::new();
        let power = Power::cut_at(0);
        let session = powered(&bench, &power);
        deploy(&session, Arc::new(program.graph()), &bench.options)
            .await
            .unwrap();
        power.seams()
    };
    for append in 1..=whole {
        let bench = Bench::new();
        let session = powered(&bench, &Power::disk_full_from(append));
        let ended = deploy(&session, Arc::new(program.graph()), &bench.options).await;
        let report = ended.unwrap_or_else(|error| panic!("append {append}: {error}"));
        if append == whole {
            break;
        }
        if report.status == notation_engine::RunStatus::Done {
            // Nothing was left to write.
            continue;
        }
        let step = report
            .failed
            .iter()
            .find(|step| matches!(step.error, StepError::Store(_)));
        assert!(
            step.is_some() != report.not_recorded.is_some(),
            "append {append}: said once, {report:?}"
        );
        for blocked in &report.blocked {
            assert!(
                blocked.to_string().starts_with("the run stopped at"),
                "{blocked}"
            );
        }
        // With room again it goes on.
        bench.done(&program).await;
        bench.consistent().await;
    }
}

#[tokio::test]
async fn what_lost_its_tags_and_cannot_be_updated_is_believed_but_not_against_its_tags() {
    for other in [None, Some("other")] {
        let bench = Bench::new();
        let frozen = Program::new([resource("sim/Frozen", "f").named("ice")]);
        bench.done(&frozen).await;
        let mut thing = bench.cloud.object("ice").unwrap();
        match other {
            None => thing.tags.clear(),
            Some(app) => drop(thing.tags.insert("notation:app".into(), app.into())),
        }
        bench.cloud.put("ice", thing);
        plan(&bench.session, &frozen.graph(), &bench.options)
            .await
            .unwrap();
        bench.destroy().await.unwrap();
        assert_eq!(bench.cloud.names().is_empty(), other.is_none());
    }
}
