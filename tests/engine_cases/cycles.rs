//! Cycles are set up, settle, change and are refused.

use serde_json::json;

use crate::{PAIR, ring, support::Project};

/// One line, without the frame that errors are drawn in.
fn flat(said: &str) -> String {
    let words = said.split_whitespace().filter(|word| *word != "│");
    words.collect::<Vec<_>>().join(" ")
}

/// T1.
#[test]
fn a_pair_is_created_through_one_placeholder() {
    let shop = Project::new();
    shop.program(PAIR);
    let plan = shop.plan_json();
    let steps = plan["steps"].as_array().unwrap();
    let find = |resource: &str, goal: &str| {
        steps
            .iter()
            .find(|step| step["resource"] == resource && step["goal"] == goal)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(find("a", "placeholder")["transition"], "create");
    assert_eq!(find("b", "complete")["transition"], "create");
    assert_eq!(find("a", "complete")["transition"], "update");
    assert_eq!(plan["cycles"][0]["passes"], 3);
    assert_eq!(plan["cycles"][0]["may_write"], json!([]));
    assert_eq!(plan["summary"]["create"], 2);
    assert_eq!(plan["summary"]["update"], 1);
    let ran = shop
        .run(&["--json", "deploy", "main", "--stage", "dev", "--yes"])
        .exits(0);
    let passes: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["event"] == "settle_pass")
        .collect();
    assert_eq!(
        passes.len(),
        1,
        "the first pass finds no difference: {passes:?}"
    );
    assert_eq!(passes[0]["written"], json!([]));
    shop.wrote(&[&["create a{}"], &["create b{a}"], &["update a{b}"]]);
    shop.is_quiet();
    assert_eq!(shop.plan_json()["summary"]["unchanged"], 2);
    shop.deploy().exits(0);
    shop.wrote(&[]);
    shop.run(&["outputs", "main", "--stage", "dev"])
        .exits(0)
        .says("shop-dev-a");
}

/// T2.
#[test]
fn a_figure_eight_needs_one_placeholder_the_shared_member() {
    let shop = Project::new();
    shop.program(
        r#"
import { Worker } from "@notation/sim";
const b = new Worker({ id: "b", config: {} });
const a = new Worker({ id: "a", config: {} });
const c = new Worker({ id: "c", config: {} });
const bind = (from: Worker, to: Worker) => from.contribute({ bindings: [{ type: "service", service: to.Name }] });
bind(a, b); bind(b, a); bind(a, c); bind(c, a);
"#,
    );
    shop.deploy().exits(0);
    shop.wrote(&[
        &["create a{}"],
        &["create b{a}", "create c{a}"],
        &["update a{b,c}"],
    ]);
    shop.is_quiet();
}

/// T3.
#[test]
fn a_loop_in_which_nobody_can_start_bare_is_refused_before_any_call() {
    let shop = Project::new();
    shop.program(&PAIR.replace("Worker", "StrictWorker"));
    let ran = shop.deploy().exits(1).says("plan::unbreakable_loop");
    let said = flat(&ran.said());
    let walk = [
        "a and b depend on each other",
        "a needs b (contribution to `bindings`, infra/main.ts:5:1): `bindings` is required by",
        "b needs a (contribution to `bindings`, infra/main.ts:6:1): `bindings` is required by",
        "help: give `bindings` a value in the config",
    ];
    let places: Vec<Option<usize>> = walk.iter().map(|text| said.find(text)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?} in {said}"
    );
    assert_eq!(shop.calls().len(), 0);
    shop.run(&["check", "main"])
        .exits(1)
        .says("plan::unbreakable_loop");
}

/// T4.
#[test]
fn a_member_without_contributions_does_not_open_a_loop() {
    let shop = Project::new();
    shop.program(
        r#"
import { StrictWorker, Worker } from "@notation/sim";
const b = new StrictWorker({ id: "b", config: {} });
const a = new Worker({ id: "a", config: { bindings: [{ type: "service", service: b.Name }] } });
b.contribute({ bindings: [{ type: "service", service: a.Name }] });
"#,
    );
    shop.deploy().exits(1).says("plan::unbreakable_loop");
    assert_eq!(shop.calls().len(), 0);
}

/// T36.
#[test]
fn what_a_fresh_stage_could_not_have_is_refused_although_it_exists() {
    let shop = Project::new();
    let program = |a: &str, b: &str| {
        format!(
            r#"
import {{ StrictWorker, Worker }} from "@notation/sim";
const x = new Worker({{ id: "x", config: {{}} }});
const a = new StrictWorker({{ id: "a", config: {{}} }});
const b = new StrictWorker({{ id: "b", config: {{}} }});
a.contribute({{ bindings: [{{ type: "service", service: {a}.Name }}] }});
b.contribute({{ bindings: [{{ type: "service", service: {b}.Name }}] }});
"#
        )
    };
    shop.program(&program("x", "a")).deploy().exits(0);
    shop.forget_calls();
    shop.program(&program("b", "a"))
        .deploy()
        .exits(1)
        .says("plan::unbreakable_loop");
    shop.wrote(&[]);
}

/// T5.
#[test]
fn a_worker_bound_to_itself_starts_bare_and_lets_go_before_it_is_deleted() {
    let shop = Project::new();
    shop.program(
        r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: {} });
a.contribute({ bindings: [{ type: "service", service: a.Name }] });
"#,
    );
    shop.deploy().exits(0);
    shop.wrote(&[&["create a{}"], &["update a{a}"]]);
    shop.is_quiet();
    shop.destroy().exits(0);
    shop.wrote(&[&["update a{}"], &["delete a"]]);
    assert!(shop.objects().is_empty());
}

/// T6.
#[test]
fn outputs_that_change_on_every_update_are_named_and_end_the_run() {
    let shop = Project::new();
    shop.program(
        &PAIR
            .replace("service: b.Name", "version: b.versionId")
            .replace("service: a.Name", "version: a.versionId"),
    );
    let mut again = shop.plan_json()["cycles"][0]["may_write"].clone();
    again
        .as_array_mut()
        .unwrap()
        .sort_by_key(ToString::to_string);
    assert_eq!(again, json!(["a", "b"]));
    for round in 0..2 {
        let ran = shop.deploy().exits(3);
        let said = flat(&ran.said());
        // Each with the values that were seen, and the field that reads it.
        let versions = if round == 0 { "(v2, v3, v4)" } else { "(v" };
        for text in [
            "a.versionId changed on every update",
            versions,
            "read by b.bindings[0].version",
            "b.versionId changed on every update",
            "read by a.bindings[0].version",
        ] {
            assert!(said.contains(text), "{text} is not in\n{said}");
        }
        let writes = shop.writes();
        if round == 0 {
            assert_eq!(writes.len(), 3 + 2 * 2, "{writes:?}");
            assert_eq!(writes[0], "create a{}");
            let order: Vec<&str> = writes[1..].iter().map(|write| &write[..8]).collect();
            assert_eq!(
                order,
                [
                    "create b", "update a", "update b", "update a", "update b", "update a"
                ]
            );
        }
        let last = shop.objects();
        assert_eq!(last.len(), 2);
        shop.forget_calls();
    }
}

/// T27 and T28.
#[test]
fn a_member_joins_and_leaves_a_ring_without_a_placeholder() {
    let shop = Project::new();
    shop.program(&ring(&[("a", "b"), ("b", "a")]))
        .deploy()
        .exits(0);
    shop.forget_calls();
    shop.program(&ring(&[("a", "b"), ("b", "c"), ("c", "a")]))
        .deploy()
        .exits(0);
    shop.wrote(&[&["create c{a}"], &["update b{c}"]]);
    shop.is_quiet();
    shop.program(&ring(&[("a", "b"), ("b", "a")]))
        .deploy()
        .exits(0);
    shop.wrote(&[&["update b{a}"], &["delete c"]]);
    shop.is_quiet();
}
