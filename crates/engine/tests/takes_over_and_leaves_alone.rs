//! Ownership: which objects are ours, which are left alone, and what importing one records.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{EngineError, Planned, StepError, deploy, forget, import, plan, refresh};
use support::{
    Bench, Cloud, Program,
    power::{Power, powered},
    program::{id, resource, worker},
};

fn untag(cloud: &Cloud, name: &str) {
    let mut thing = cloud.object(name).unwrap();
    thing.tags.clear();
    cloud.put(name, thing);
}

fn said(planned: &Planned) -> Vec<&str> {
    let notes = planned.plan.notes.iter();
    notes.map(|note| note.message.as_str()).collect()
}

#[tokio::test]
async fn an_object_of_another_type_under_a_wanted_name_stops_at_once_also_when_it_is_ours() {
    let wanted = Program::new([worker("x").named("front")]);
    for owner in ["shop:dev:main", "other:dev:main"] {
        let before = Bench::on(Cloud::new(), owner.parse().unwrap());
        let thing = Program::new([resource("sim/Thing", "x").named("front")]);
        before.done(&thing).await;
        // State was lost, or was never here.
        for adopt in [false, true] {
            let mut bench = Bench::on(before.cloud.clone(), support::shop());
            if adopt {
                bench.options.plan.adopt.insert(id("x"));
            }
            let report = bench.deploy(&wanted).await.unwrap();
            let failed = &report.failed[0];
            assert_eq!(failed.attempt, 1, "{}", failed.error);
            let said = failed.error.to_string();
            assert!(
                matches!(&failed.error, StepError::OtherType { ty, .. } if ty.as_str() == "sim/Thing"),
                "{said}"
            );
            assert!(
                said.contains(owner) && said.contains("sim/Worker"),
                "{said}"
            );
            assert_eq!(bench.cloud.object("front").unwrap().writes, 1);
        }
    }
}

#[tokio::test]
async fn a_recorded_object_that_lost_its_tags_is_neither_written_nor_deleted_unless_asked_for() {
    let mut bench = Bench::new();
    let program = Program::new([worker("a").set("code", "v1").binds("b"), worker("b")]);
    let changed = Program::new([worker("a").set("code", "v2").binds("b"), worker("b")]);
    bench.done(&program).await;
    untag(&bench.cloud, "shop-dev-a");
    untag(&bench.cloud, "shop-dev-b");
    bench.cloud.forget_calls();
    let graph = changed.graph();
    let planned = plan(&bench.session, &graph, &bench.options).await.map(drop);
    let deployed = bench.deploy(&changed).await.map(drop);
    let destroyed = bench.destroy().await.map(drop);
    for refused in [planned, deployed, destroyed] {
        let error = refused.unwrap_err();
        let EngineError::LostTags(lost) = &error else {
            panic!("{error}")
        };
        assert_eq!(lost.len(), 2, "all at once: {error}");
        assert!(error.help().contains("--adopt a"), "{}", error.help());
    }
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    let refreshed = refresh(&bench.session, &bench.options).await.unwrap();
    assert!(refreshed.gone.is_empty(), "looking changes nothing");

    bench.options.plan.adopt.extend([id("a"), id("b")]);
    let writes = bench.done(&changed).await;
    assert_eq!(writes, ["update b{}", "update a{b}"]);
    for name in ["shop-dev-a", "shop-dev-b"] {
        let tags = bench.cloud.object(name).unwrap().tags;
        assert_eq!(tags["notation:app"], "shop", "{name}");
    }
    bench.options.plan.adopt.clear();
    bench.quiet(&changed).await;
}

#[tokio::test]
async fn a_lost_tag_on_an_object_that_is_to_go_is_answered_by_adopting_or_by_forgetting() {
    for adopt in [true, false] {
        let mut bench = Bench::new();
        bench.done(&Program::new([worker("a")])).await;
        untag(&bench.cloud, "shop-dev-a");
        if adopt {
            bench.options.plan.adopt.insert(id("a"));
        } else {
            forget(&bench.session, &id("a"), &bench.options)
                .await
                .unwrap();
        }
        bench.destroy().await.unwrap();
        assert_eq!(bench.cloud.names().is_empty(), adopt);
    }
}

#[tokio::test]
async fn an_object_that_somebody_else_made_under_our_name_is_not_ours_any_more() {
    let bench = Bench::new();
    let program = Program::new([worker("a").set("code", "v1")]);
    bench.done(&program).await;
    bench.cloud.take_away("shop-dev-a");
    let other = Bench::on(bench.cloud.clone(), "other:dev:main".parse().unwrap());
    other
        .done(&Program::new([worker("z").named("shop-dev-a")]))
        .await;
    let report = bench.deploy(&program).await.unwrap();
    let said = report.failed[0].error.to_string();
    assert!(said.contains("other:dev:main (resource z)"), "{said}");
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.object("shop-dev-a").unwrap().writes, 1);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(state.records.len(), 0);
}

/// Forgets all of it, then imports it in this order.
async fn imported(bench: &Bench, program: &Program, order: &[&str]) {
    for name in order {
        forget(&bench.session, &id(name), &bench.options)
            .await
            .unwrap();
    }
    let graph = program.graph();
    for name in order {
        let key = format!("shop-dev-{name}");
        import(&bench.session, &graph, &id(name), &key, &bench.options)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn an_imported_cycle_is_removed_in_order_whatever_was_imported_first() {
    for order in [["a", "b"], ["b", "a"]] {
        let bench = Bench::new();
        bench.done(&Program::pair()).await;
        imported(&bench, &Program::pair(), &order).await;
        bench.quiet(&Program::pair()).await;
        imported(&bench, &Program::pair(), &order).await;
        bench.cloud.forget_calls();
        let report = bench.destroy().await.unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(bench.cloud.refusals(), Vec::<String>::new(), "{order:?}");
        assert_eq!(bench.cloud.writes()[..2].len(), 2);
        assert!(bench.cloud.names().is_empty());
    }
}

#[tokio::test]
async fn an_import_records_what_the_object_refers_to_not_what_the_program_says() {
    // At the provider a -> c; the program says a -> b.
    let bench = Bench::new();
    let there = Program::new([worker("a").binds("c"), worker("b"), worker("c")]);
    bench.done(&there).await;
    let says = Program::new([worker("a").binds("b"), worker("b"), worker("c")]);
    imported(&bench, &says, &["a", "b", "c"]).await;
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let a = state
        .records
        .values()
        .find(|record| record.incarnation.resource == id("a"))
        .unwrap();
    let targets: Vec<&str> = a.edges.iter().map(|e| e.to.resource.as_str()).collect();
    assert_eq!(targets, ["c"]);
    // c leaves: a lets go first.
    let without = Program::new([worker("a").binds("b"), worker("b")]);
    let calls = bench.done(&without).await;
    assert_eq!(calls, ["update a{b}", "delete c"]);
    bench.quiet(&without).await;
}

#[tokio::test]
async fn an_imported_object_refers_to_what_it_falls_back_to_as_well() {
    // It is bound to nobody, and the program binds it in its config.
    let bench = Bench::new();
    bench
        .done(&Program::new([
            worker("c"),
            worker("d").set("region", "us"),
        ]))
        .await;
    let bound = Program::new([
        worker("c").named("another"),
        worker("d").set("region", "eu").made_with("c").binds("c"),
    ]);
    imported(&bench, &bound, &["d"]).await;
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let d = state
        .records
        .values()
        .find(|record| record.incarnation.resource == id("d"))
        .unwrap();
    let via: Vec<String> = d
        .edges
        .iter()
        .map(|edge| format!("{:?}", edge.via))
        .collect();
    assert_eq!(via, ["Config(\"bindings\")"]);
    bench.done(&bound).await;
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.quiet(&bound).await;
}

#[tokio::test]
async fn who_may_refer_to_an_id_of_before_may_refer_to_what_is_imported_under_another() {
    // Cut off at every seam, also while it is open whether b was bound.
    let one = Program::new([worker("d2").named("another").formerly("d")]);
    let mut imports = 0;
    for seam in 1..40 {
        let bench = Bench::new();
        let power = Power::cut_at(seam);
        let session = powered(&bench, &power);
        let pair = Program::new([worker("b").binds("d"), worker("d").binds("b")]);
        tokio::select! {
            ended = deploy(&session, Arc::new(pair.graph()), &bench.options) => drop(ended.unwrap()),
            () = power.went() => {}
        }
        if bench.cloud.object("shop-dev-d").is_none() {
            continue;
        }
        let _ = forget(&bench.session, &id("d"), &bench.options).await;
        let mut options = bench.options.clone();
        options.plan.adopt.insert(id("d2"));
        import(
            &bench.session,
            &one.graph(),
            &id("d2"),
            "shop-dev-d",
            &options,
        )
        .await
        .unwrap();
        imports += 1;
        let report = bench.deploy(&one).await.unwrap();
        assert!(report.failed.is_empty(), "{seam}: {:?}", report.failed);
        assert_eq!(bench.cloud.names(), ["another"], "{seam}");
    }
    assert!(imports > 5, "{imports}");
}

#[tokio::test]
async fn a_config_that_names_a_forgotten_object_is_not_gone_back_to() {
    // Nobody looks whether it is still there, also when its resource has another one by now.
    let before = Program::new([
        worker("a"),
        worker("c").made_with("a").binds("c"),
        worker("other"),
    ]);
    let alone = Program::new([worker("a")]);
    for imported in [false, true] {
        let bench = Bench::new();
        bench.done(&before).await;
        for name in ["a", "other"] {
            forget(&bench.session, &id(name), &bench.options)
                .await
                .unwrap();
        }
        let mut options = bench.options.clone();
        options.plan.adopt.insert(id("a"));
        if imported {
            let graph = alone.graph();
            import(&bench.session, &graph, &id("a"), "shop-dev-other", &options)
                .await
                .unwrap();
        } else {
            bench.cloud.take_away("shop-dev-other");
        }
        bench.cloud.take_away("shop-dev-a");
        let report = bench.destroy().await.unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
        assert_eq!(bench.cloud.names(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_imported_member_that_holds_itself_lets_go_before_it_is_deleted() {
    let bench = Bench::new();
    let itself = Program::new([worker("a").binds("a")]);
    bench.done(&itself).await;
    imported(&bench, &itself, &["a"]).await;
    bench.cloud.forget_calls();
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.writes(), ["update a{}", "delete a"]);
}

#[tokio::test]
async fn a_record_whose_object_another_resource_has_by_its_tags_is_dropped_and_the_object_left() {
    let bench = Bench::new();
    let program = Program::new([worker("a").set("code", "v1")]);
    bench.done(&program).await;
    let mut thing = bench.cloud.object("shop-dev-a").unwrap();
    thing.tags.insert("notation:resource".into(), "zzz".into());
    bench.cloud.put("shop-dev-a", thing);
    bench.cloud.forget_calls();

    let nothing = Program::new([]).graph();
    let planned = plan(&bench.session, &nothing, &bench.options)
        .await
        .unwrap();
    assert_eq!(
        said(&planned),
        [
            "a (shop-dev-a) is there, but belongs to shop:dev:main (resource zzz) by now: it is left \
          alone, and its record is dropped"
        ]
    );
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    assert_eq!(bench.cloud.names(), ["shop-dev-a"]);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(state.records.len(), 0);
}

#[tokio::test]
async fn what_is_gone_or_another_s_while_it_stays_is_told_apart() {
    let bench = Bench::new();
    let program = Program::new([worker("a"), worker("b")]);
    bench.done(&program).await;
    bench.cloud.take_away("shop-dev-a");
    let mut thing = bench.cloud.object("shop-dev-b").unwrap();
    thing.tags.insert("notation:app".into(), "other".into());
    bench.cloud.put("shop-dev-b", thing);
    let graph = program.graph();
    let planned = plan(&bench.session, &graph, &bench.options).await.unwrap();
    assert_eq!(
        said(&planned),
        [
            "a (shop-dev-a) is gone at the provider and is made again",
            "b (shop-dev-b) is there, but belongs to other:dev:main (resource b) by now: ours is \
             gone and made again",
        ]
    );
}

#[tokio::test]
async fn an_object_that_lost_some_of_its_tags_is_asked_about_as_one_that_lost_all() {
    // What is left of them names nobody else.
    let bench = Bench::new();
    let program = Program::new([worker("a").set("code", "v1")]);
    bench.done(&program).await;
    let whole = bench.cloud.object("shop-dev-a").unwrap();
    for tag in ["app", "stage", "entry", "resource"] {
        let mut thing = whole.clone();
        thing.tags.remove(&format!("notation:{tag}"));
        bench.cloud.put("shop-dev-a", thing);
        let refused = bench.destroy().await.unwrap_err();
        assert!(
            matches!(refused, EngineError::LostTags(_)),
            "{tag}: {refused}"
        );
    }
    assert_eq!(bench.cloud.names(), ["shop-dev-a"]);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert_eq!(state.records.len(), 1);
}

#[tokio::test]
async fn a_renamed_object_stays_ours_though_its_tags_have_the_id_of_before() {
    let bench = Bench::new();
    bench.done(&Program::new([worker("a")])).await;
    bench.done(&Program::new([worker("b").formerly("a")])).await;
    // The code need not remember.
    bench.quiet(&Program::new([worker("b")])).await;
    bench.cloud.forget_calls();
    bench.destroy().await.unwrap();
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_target_that_wants_a_name_takes_in_who_has_it() {
    let mut bench = Bench::new();
    bench
        .done(&Program::new([worker("m").named("front")]))
        .await;
    bench.options.plan.target.insert(id("api"));
    bench
        .done(&Program::new([worker("api").named("front"), worker("x")]))
        .await;
    assert_eq!(bench.cloud.names(), ["front"]);
    let tags = bench.cloud.object("front").unwrap().tags;
    assert_eq!(tags["notation:resource"], "api");
}

/// Tags of somebody else, or none, on what is recorded as `a`.
fn taken_away(cloud: &Cloud, tags: Option<&str>) {
    let mut thing = cloud.object("shop-dev-a").unwrap();
    match tags {
        Some(resource) => {
            thing
                .tags
                .insert("notation:resource".into(), resource.into());
        }
        None => thing.tags.clear(),
    }
    cloud.put("shop-dev-a", thing);
}

#[tokio::test]
async fn what_is_another_s_is_not_touched_also_when_nobody_looked_first() {
    for tags in [Some("zzz"), None] {
        for there in [true, false] {
            let mut bench = Bench::new();
            bench.options.drift = notation_engine::DriftCheck::Skip;
            bench.done(&Program::new([worker("a"), worker("b")])).await;
            taken_away(&bench.cloud, tags);
            bench.cloud.forget_calls();
            let next = match there {
                true => {
                    Program::new([worker("a").set("code", "v2"), worker("b").set("code", "v2")])
                }
                false => Program::new([]),
            };
            let report = bench.deploy(&next).await.unwrap();
            let [failed] = &report.failed[..] else {
                panic!("{:?}", report.failed)
            };
            assert_eq!(failed.resource, id("a"));
            assert_eq!(failed.error.code(), "run::not_ours", "{}", failed.error);
            let wrote = if there { "update b{}" } else { "delete b" };
            assert_eq!(bench.cloud.writes(), [wrote]);
            assert!(bench.cloud.names().contains(&"shop-dev-a".to_owned()));
            // A look says what becomes of it.
            bench.options.drift = notation_engine::DriftCheck::Read;
            match (tags, bench.deploy(&Program::new([])).await) {
                (Some(_), Ok(report)) => assert!(report.failed.is_empty()),
                (None, Err(EngineError::LostTags(_))) => {}
                (_, other) => panic!("{other:?}"),
            }
            assert!(bench.cloud.names().contains(&"shop-dev-a".to_owned()));
        }
    }
}

#[tokio::test]
async fn believing_the_records_reads_only_what_is_written() {
    let mut bench = Bench::new();
    bench.options.drift = notation_engine::DriftCheck::Skip;
    bench.done(&Program::pair()).await;
    assert_eq!(
        bench.destroy().await.unwrap().status,
        notation_engine::RunStatus::Done
    );
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
    // What nothing is to be done with is not read.
    bench.done(&Program::pair()).await;
    bench.cloud.refuse_reads();
    bench.done(&Program::pair()).await;
}
