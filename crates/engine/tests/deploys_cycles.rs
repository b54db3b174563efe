//! Cycles, deployed, changed and destroyed on a strict cloud.

mod support;

use notation_engine::{RunStatus, StepError};
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{id, out, resource, text, worker},
};

/// The calls of two programs, one deployed after the other.
async fn then(first: &Program, second: &Program) -> (Bench, Vec<String>) {
    let bench = Bench::new();
    bench.done(first).await;
    let calls = bench.done(second).await;
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.consistent().await;
    bench.quiet(second).await;
    (bench, calls)
}

fn sorted(mut calls: Vec<String>) -> Vec<String> {
    calls.sort();
    calls
}

#[tokio::test]
async fn a_pair_takes_three_writes_and_then_nothing() {
    let bench = Bench::new();
    let calls = bench.done(&Program::pair()).await;
    assert_eq!(calls, ["create a{}", "create b{a}", "update a{b}"]);
    bench.consistent().await;
    bench.quiet(&Program::pair()).await;
}

#[tokio::test]
async fn a_figure_eight_has_one_placeholder() {
    let bench = Bench::new();
    let program = Program::new([
        worker("b").binds("a"),
        worker("a").binds("b").binds("c"),
        worker("c").binds("a"),
    ]);
    let calls = bench.done(&program).await;
    assert_eq!(calls[0], "create a{}");
    assert_eq!(sorted(calls[1..3].to_vec()), ["create b{a}", "create c{a}"]);
    assert_eq!(calls[3..], ["update a{b,c}"]);
    bench.quiet(&program).await;
}

#[tokio::test]
async fn a_worker_bound_to_itself_is_completed_and_reverted() {
    let bench = Bench::new();
    let program = Program::new([worker("a").binds("a")]);
    assert_eq!(bench.done(&program).await, ["create a{}", "update a{a}"]);
    assert_eq!(
        bench.done(&Program::default()).await,
        ["update a{}", "delete a"]
    );
}

#[tokio::test]
async fn peers_of_a_renamed_member_see_what_was_recorded_under_its_former_id() {
    for changed in ["b", "c"] {
        let code = |id: &str| if id == changed { "v2" } else { "v1" };
        let renamed = Program::new([
            worker("c").formerly("a").binds("b").set("code", code("c")),
            worker("b").binds("c").set("code", code("b")),
        ]);
        let first = Program::new([
            worker("a").binds("b").set("code", "v1"),
            worker("b").binds("a").set("code", "v1"),
        ]);
        let (_, calls) = then(&first, &renamed).await;
        assert_eq!(calls.len(), 1, "{calls:?}");
    }
    let itself = Program::new([worker("c").formerly("a").binds("c").set("code", "v2")]);
    let (_, calls) = then(&Program::new([worker("a").binds("a")]), &itself).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[tokio::test]
async fn a_cycle_that_never_settles_is_named_and_stays_consistent() {
    let bench = Bench::new();
    let program = Program::new([
        worker("a").binds_version("b", "versionId"),
        worker("b").binds_version("a", "versionId"),
    ]);
    for round in 0..2 {
        bench.cloud.forget_calls();
        let report = bench.deploy(&program).await.unwrap();
        assert_eq!(report.status, RunStatus::Failed);
        let [failed] = report.failed.as_slice() else {
            panic!("{:?}", report.failed)
        };
        let StepError::Unsettled(unsettled) = &failed.error else {
            panic!("{:?}", failed.error)
        };
        let text = unsettled.to_string();
        assert!(
            text.contains("a.versionId") && text.contains("b.versionId"),
            "{text}"
        );
        assert!(text.contains("changed on every update"), "{text}");
        if round == 0 {
            let calls = bench.cloud.writes();
            assert_eq!(calls[..3], ["create a{}", "create b{a}", "update a{b}"]);
            assert_eq!(calls.len(), 7, "{calls:?}");
        }
        bench.consistent().await;
    }
}

#[tokio::test]
async fn destroying_a_pair_reverts_both_first() {
    let bench = Bench::new();
    bench.done(&Program::pair()).await;
    bench.cloud.forget_calls();
    let report = bench.destroy().await.unwrap();
    assert_eq!(report.status, RunStatus::Done);
    let calls = bench.cloud.writes();
    assert_eq!(sorted(calls[..2].to_vec()), ["update a{}", "update b{}"]);
    assert_eq!(sorted(calls[2..].to_vec()), ["delete a", "delete b"]);
    bench.consistent().await;
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn a_peer_lets_go_before_what_it_named_is_deleted() {
    let (_, calls) = then(&Program::pair(), &Program::new([worker("b")])).await;
    assert_eq!(calls, ["update b{}", "delete a"]);
}

#[tokio::test]
async fn a_generated_name_is_replaced_side_by_side() {
    let second = Program::new([
        worker("a").set("region", "eu").binds("b"),
        worker("b").binds("a"),
    ]);
    let (_, calls) = then(&Program::pair(), &second).await;
    let next = calls[0].strip_prefix("create ").unwrap();
    let next = next.strip_suffix("{b}").unwrap();
    assert!(next.starts_with("a-"), "{calls:?}");
    assert_eq!(
        calls[1..],
        [format!("update b{{{next}}}"), "delete a".into()]
    );
}

#[tokio::test]
async fn a_written_name_is_replaced_after_its_peer_was_reverted() {
    let program = |region: &str| {
        Program::new([
            worker("a").named("a").set("region", region).binds("b"),
            worker("b").named("b").binds("a"),
        ])
    };
    let (_, calls) = then(&program("us"), &program("eu")).await;
    assert_eq!(
        calls,
        ["update b{}", "delete a", "create a{b}", "update b{a}"]
    );
}

#[tokio::test]
async fn a_failed_replacement_leaves_a_placeholder_and_the_next_deploy_finishes() {
    let program = |region: &str| {
        Program::new([
            worker("a").named("a").set("region", region).binds("b"),
            worker("b").named("b").binds("a"),
        ])
    };
    let bench = Bench::new();
    bench.done(&program("us")).await;
    bench.cloud.fault(Fault::new("create", "a", What::Fail, 1));
    let report = bench.deploy(&program("eu")).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(report.failed.len(), 1);
    assert!(!report.blocked.is_empty());
    bench.consistent().await;
    let calls = bench.done(&program("eu")).await;
    assert_eq!(calls, ["create a{b}", "update b{a}"]);
    bench.quiet(&program("eu")).await;
}

#[tokio::test]
async fn a_member_taken_away_by_hand_is_made_again_under_its_name() {
    let bench = Bench::new();
    bench.done(&Program::pair()).await;
    bench.cloud.take_away("shop-dev-a");
    assert_eq!(bench.done(&Program::pair()).await, ["create a{b}"]);
    bench.consistent().await;
    bench.quiet(&Program::pair()).await;

    let arn = Program::new([
        worker("a").binds("b"),
        worker("b").binds_version("a", "arn"),
    ]);
    let bench = Bench::new();
    bench.done(&arn).await;
    bench.cloud.take_away("shop-dev-a");
    assert_eq!(bench.done(&arn).await, ["create a{b}", "update b{a}"]);
    bench.quiet(&arn).await;
}

#[tokio::test]
async fn members_join_and_leave_without_placeholders() {
    let ring = Program::new([
        worker("a").binds("b"),
        worker("b").binds("c"),
        worker("c").binds("a"),
    ]);
    let (bench, calls) = then(&Program::pair(), &ring).await;
    assert_eq!(calls, ["create c{a}", "update b{c}"]);
    let calls = bench.done(&Program::pair()).await;
    assert_eq!(calls, ["update b{a}", "delete c"]);
    bench.quiet(&Program::pair()).await;
}

#[tokio::test]
async fn both_replaced_side_by_side_touch_the_old_ones_last() {
    let second = Program::new([
        worker("a").set("region", "eu").binds("b"),
        worker("b").set("region", "eu").binds("a"),
    ]);
    let (_, calls) = then(&Program::pair(), &second).await;
    assert_eq!(calls.len(), 7, "{calls:?}");
    assert!(calls[0].starts_with("create a-") && calls[0].ends_with("{}"));
    assert!(calls[1].starts_with("create b-"));
    assert!(calls[2].starts_with("update a-"));
    assert_eq!(sorted(calls[3..5].to_vec()), ["update a{}", "update b{}"]);
    assert_eq!(sorted(calls[5..].to_vec()), ["delete a", "delete b"]);
}

#[tokio::test]
async fn both_replaced_one_with_a_written_name() {
    let program = |region: &str| {
        Program::new([
            worker("a").set("region", region).binds("b"),
            worker("b").named("b").set("region", region).binds("a"),
        ])
    };
    let (_, calls) = then(&program("us"), &program("eu")).await;
    assert_eq!(calls.len(), 7, "{calls:?}");
    let next = calls[0].strip_prefix("create ").unwrap();
    let next = next.strip_suffix("{}").unwrap();
    assert_eq!(
        sorted(calls[1..3].to_vec()),
        ["update a{}", "update b{}"],
        "{calls:?}"
    );
    assert_eq!(
        calls[3..],
        [
            "delete b".to_owned(),
            format!("create b{{{next}}}"),
            format!("update {next}{{b}}"),
            "delete a".to_owned()
        ]
    );
}

#[tokio::test]
async fn what_cannot_start_bare_is_refused_whatever_exists() {
    let bench = Bench::new();
    let strict = |id: &str| resource("sim/StrictWorker", id);
    bench
        .done(&Program::new([
            worker("x"),
            strict("a").binds("x"),
            strict("b").binds("a"),
        ]))
        .await;
    let looped = Program::new([strict("a").binds("b"), strict("b").binds("a")]);
    let error = bench.deploy(&looped).await.unwrap_err();
    assert_eq!(error.code(), "plan::unbreakable_loop");
}

#[tokio::test]
async fn what_holds_by_config_is_dragged_along() {
    let program = |region: &str| {
        Program::new([
            worker("a").named("a").set("region", region).binds("b"),
            worker("b").named("b").binds("a"),
            resource("sim/Thing", "c").set("parent", out("a", "Name")),
        ])
    };
    let (_, calls) = then(&program("us"), &program("eu")).await;
    assert_eq!(calls.len(), 6, "{calls:?}");
    assert_eq!(calls[2], "delete a");
    assert_eq!(calls[3], "create a{b}");
}

#[tokio::test]
async fn a_failure_upstream_takes_nothing_down() {
    let program = |region: &str, code: notation_model::Expr| {
        Program::new([
            worker("a")
                .named("a")
                .set("region", region)
                .set("code", code)
                .binds("b"),
            worker("b").named("b").binds("a"),
        ])
    };
    let bench = Bench::new();
    bench.done(&program("us", "one".into())).await;
    let mut items = program("eu", out("t", "id"));
    items = Program::new(
        items
            .graph()
            .resources
            .into_values()
            .map(support::program::Item)
            .chain([resource("sim/Thing", "t").named("t")]),
    );
    bench.cloud.fault(Fault::new("create", "t", What::Fail, 1));
    bench.cloud.forget_calls();
    let report = bench.deploy(&items).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(bench.cloud.writes(), Vec::<String>::new());
    assert_eq!(
        bench.cloud.shape().into_iter().collect::<Vec<_>>(),
        [
            ("a".into(), vec!["b".into()]),
            ("b".into(), vec!["a".into()])
        ]
    );
}

#[tokio::test]
async fn a_type_without_update_is_replaced() {
    let frozen =
        |value: &str| Program::new([resource("sim/Frozen", "f").set("value", text(value).clone())]);
    let (_, calls) = then(&frozen("one"), &frozen("two")).await;
    assert!(calls[0].starts_with("create f-") && calls[1].starts_with("delete f-"));
    let named = |value: &str| {
        Program::new([resource("sim/Frozen", "f")
            .named("f")
            .set("value", text(value).clone())])
    };
    let (_, calls) = then(&named("one"), &named("two")).await;
    assert_eq!(calls, ["delete f", "create f{}"]);
}

#[tokio::test]
async fn a_replacement_found_while_running_is_planned_once_more() {
    let program = |value: &str| {
        Program::new([
            resource("sim/Thing", "t").set("value", text(value)),
            resource("sim/Frozen", "f").set("value", out("t", "value")),
            worker("w").set("region", out("f", "id")).binds("w"),
        ])
    };
    let (bench, calls) = then(&program("one"), &program("two")).await;
    let created = |calls: &[String], id: &str| {
        calls
            .iter()
            .filter(|call| call.starts_with(&format!("create {id}-")))
            .count()
    };
    assert_eq!(created(&calls, "f"), 1, "{calls:?}");
    assert_eq!(created(&calls, "w"), 1, "{calls:?}");
    assert_eq!(bench.cloud.names().len(), 3);
}

#[tokio::test]
async fn a_written_name_whose_region_turns_out_different_stops_before_the_write() {
    let program = |value: &str| {
        Program::new([
            resource("sim/Frozen", "f").set("value", text(value)),
            worker("w").named("w").set("region", out("f", "id")),
        ])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    let report = bench.deploy(&program("two")).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(failed.resource, id("w"));
    let text = failed.error.to_string();
    assert!(text.contains("region") && text.contains("f.id"), "{text}");
    assert!(failed.error.help(&failed.resource).contains("--replace w"));
}

#[tokio::test]
async fn a_replacement_found_while_running_that_is_refused_is_a_failed_run() {
    let program = |value: &str| {
        let mut w = worker("w").set("region", out("f", "id"));
        w.0.marks.protect = true;
        Program::new([resource("sim/Frozen", "f").set("value", text(value)), w])
    };
    let bench = Bench::new();
    bench.done(&program("one")).await;
    let report = bench.deploy(&program("two")).await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert!(report.done.iter().any(|step| step.resource == id("f")));
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(
        (failed.resource.clone(), failed.error.code()),
        (id("w"), "plan::protected")
    );
    let text = failed.error.to_string();
    assert!(
        text.contains("f.id") && text.contains("would be replaced: region"),
        "{text}"
    );
    bench.consistent().await;
}

#[tokio::test]
async fn exports_are_resolved_and_kept() {
    let bench = Bench::new();
    let program = Program::pair().export("name", out("a", "Name"));
    let report = bench.deploy(&program).await.unwrap();
    assert_eq!(report.outputs["name"], text("shop-dev-a"));
    let report = bench.destroy().await.unwrap();
    assert!(report.outputs.is_empty());
}

#[tokio::test]
async fn a_change_that_reaches_an_immutable_field_while_settling_stops_before_the_write() {
    // a is updated after b was made, and its version goes into the region of b.
    let program = Program::new([
        worker("a").binds("b"),
        worker("b").set("region", out("a", "versionId")),
    ]);
    let bench = Bench::new();
    let report = bench.deploy(&program).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    let said = failed.error.to_string();
    assert!(
        said.contains("region of b") && said.contains("a.versionId"),
        "{said}"
    );
    let help = failed.error.help(&failed.resource);
    assert!(help.contains("--replace b"), "{help}");
    assert_eq!(bench.cloud.object("shop-dev-b").unwrap().writes, 1);
}

#[tokio::test]
async fn what_the_plan_replaced_is_not_replaced_again_for_what_turned_out() {
    // The plan replaces q; running replaces r, whose arn q was made with.
    let program = |region: &str| {
        Program::new([
            worker("w").set("region", region),
            worker("r").set("region", out("w", "arn")).binds("q"),
            worker("q").set("region", out("r", "arn")).binds("r"),
        ])
    };
    let mut bench = Bench::new();
    bench.done(&program("one")).await;
    bench.options.plan.replace.insert(id("q"));
    let report = bench.deploy(&program("two")).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(failed.error.code(), "run::replaced_twice");
    assert_eq!(
        failed.error.to_string(),
        "q was replaced in this deploy and would be replaced once more: region"
    );
    let made = bench.cloud.names().into_iter();
    let of_q = made.filter(|name| name.starts_with("shop-dev-q-"));
    assert_eq!(of_q.count(), 1, "{:?}", bench.cloud.names());
    // The next deploy goes on, and is shown.
    bench.options.plan.replace.clear();
    bench.done(&program("two")).await;
    bench.quiet(&program("two")).await;
    assert_eq!(bench.cloud.names().len(), 3);
}

#[tokio::test]
async fn a_resource_is_replaced_at_most_once_per_deploy() {
    // Whatever replaces b changes a, which replaces b.
    let program = |code: &str| {
        Program::new([
            worker("a").set("code", code).binds("b"),
            worker("b").set("region", out("a", "versionId")),
        ])
    };
    let mut bench = Bench::new();
    bench.deploy(&program("one")).await.unwrap();
    bench.options.plan.replace.insert(id("b"));
    let report = bench.deploy(&program("two")).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(
        failed.error.code(),
        "run::replaced_twice",
        "{}",
        failed.error
    );
    let creates = bench.cloud.writes();
    let creates = creates.iter().filter(|call| call.starts_with("create b-"));
    assert_eq!(creates.count(), 1);
}
