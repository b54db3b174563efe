//! Replacements, planned and found while running, on a strict cloud.

mod support;

use notation_engine::RunStatus;
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{id, out, resource, text, worker},
    sorted, then,
};

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
