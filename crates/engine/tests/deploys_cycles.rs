//! Cycles, deployed, changed and destroyed on a strict cloud.

mod support;

use notation_engine::{RunStatus, StepError};
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{out, resource, text, worker},
    sorted, then,
};

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
async fn exports_are_resolved_and_kept() {
    let bench = Bench::new();
    let program = Program::pair().export("name", out("a", "Name"));
    let report = bench.deploy(&program).await.unwrap();
    assert_eq!(report.outputs["name"], text("shop-dev-a"));
    let report = bench.destroy().await.unwrap();
    assert!(report.outputs.is_empty());
}
