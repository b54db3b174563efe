//! The engine's exact cases, through the binary and the simulated cloud's call log.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where it fails and says what it measured"
)]

mod support;

use serde_json::json;
use support::Project;

const PAIR: &str = r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: {} });
const b = new Worker({ id: "b", config: {} });
a.contribute({ bindings: [{ type: "service", service: b.Name }] });
b.contribute({ bindings: [{ type: "service", service: a.Name }] });
export const nameOfA = a.Name;
"#;

const NOTHING: &str = "export const nothing = 0;\n";

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
    let ran = shop
        .deploy()
        .exits(1)
        .says("plan::unbreakable_loop")
        .says("bindings")
        .says("infra/main.ts:5");
    for member in ["a", "b"] {
        assert!(ran.said().contains(&format!("{member} ")), "{}", ran.said());
    }
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
    for round in 0..2 {
        let ran = shop.deploy().exits(3);
        for text in ["a.versionId", "b.versionId", "bindings"] {
            assert!(
                ran.said().contains(text),
                "{text} is not in\n{}",
                ran.said()
            );
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

/// T7.
#[test]
fn a_pair_is_destroyed_through_placeholders() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.forget_calls();
    shop.destroy().exits(0);
    shop.wrote(&[&["update a{}", "update b{}"], &["delete a", "delete b"]]);
    assert!(shop.objects().is_empty());
    shop.run(&["state", "list", "main", "--stage", "dev"])
        .exits(0);
    shop.destroy().exits(0);
    shop.wrote(&[]);
}

/// T8.
#[test]
fn removing_a_pair_from_the_program_makes_the_same_calls_as_destroying_it() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.forget_calls();
    shop.program(NOTHING).deploy().exits(0);
    shop.wrote(&[&["update a{}", "update b{}"], &["delete a", "delete b"]]);
}

/// T9.
#[test]
fn a_dropped_binding_is_written_before_its_target_is_deleted() {
    let shop = Project::new();
    let bound = r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: {} });
const b = new Worker({ id: "b", config: { bindings: [{ type: "service", service: a.Name }] } });
"#;
    shop.program(bound).deploy().exits(0);
    shop.forget_calls();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"b\", config: {} });\n",
    )
    .deploy()
    .exits(0);
    shop.wrote(&[&["update b{}"], &["delete a"]]);
}

fn pair(a: &str, b: &str) -> String {
    PAIR.replace(
        "id: \"a\", config: {}",
        &format!("id: \"a\", config: {{ {a} }}"),
    )
    .replace(
        "id: \"b\", config: {}",
        &format!("id: \"b\", config: {{ {b} }}"),
    )
}

/// T11.
#[test]
fn a_member_with_a_generated_name_is_replaced_side_by_side() {
    let shop = Project::new();
    shop.program(&pair("region: \"eu\"", "")).deploy().exits(0);
    shop.forget_calls();
    shop.program(&pair("region: \"us\"", "")).deploy().exits(0);
    shop.wrote(&[&["create a'{b}"], &["update b{a'}"], &["delete a"]]);
    shop.is_quiet();
}

/// T12.
#[test]
fn a_member_with_a_written_name_reverts_its_peer_first_and_warns() {
    let shop = Project::new();
    shop.program(&pair("Name: \"front\", region: \"eu\"", ""))
        .deploy()
        .exits(0);
    shop.forget_calls();
    shop.program(&pair("Name: \"front\", region: \"us\"", ""));
    shop.plan()
        .exits(0)
        .says("unavailable")
        .says("generated name");
    shop.deploy().exits(0);
    shop.wrote(&[
        &["update b{}"],
        &["delete front"],
        &["create front{b}"],
        &["update b{front}"],
    ]);
    shop.is_quiet();
}

/// T13.
#[test]
fn a_failed_create_in_a_replacement_leaves_a_state_that_the_next_deploy_finishes() {
    let shop = Project::new();
    shop.program(&pair("Name: \"front\", region: \"eu\"", ""))
        .deploy()
        .exits(0);
    shop.program(&pair("Name: \"front\", region: \"us\"", ""));
    shop.faults(json!([{ "op": "create", "name": "front", "do": "fail" }]));
    shop.deploy().exits(3);
    assert_eq!(shop.objects().len(), 1);
    shop.forget_calls();
    shop.deploy().exits(0);
    shop.wrote(&[&["create front{b}"], &["update b{front}"]]);
    shop.is_quiet();
}

/// T15.
#[test]
fn an_object_whose_answer_was_lost_in_a_kill_is_found_and_not_made_twice() {
    let shop = Project::new();
    shop.program(PAIR);
    shop.faults(json!([{ "op": "create", "name": "shop-dev-a", "do": "kill_after" }]));
    let ran = shop.deploy();
    assert_eq!(ran.status, None, "the process was killed: {ran:?}");
    assert_eq!(shop.objects().len(), 1);
    shop.deploy().exits(0);
    shop.wrote(&[&["create a{}"], &["create b{a}"], &["update a{b}"]]);
    assert_eq!(shop.objects().len(), 2);
    shop.is_quiet();
}

/// T17.
#[test]
fn a_create_that_never_reached_the_cloud_stops_nothing_later() {
    for next in ["plan", "deploy", "destroy"] {
        let shop = Project::new();
        shop.program(PAIR);
        shop.faults(json!([{ "op": "create", "name": "shop-dev-b", "do": "kill_before" }]));
        assert_eq!(shop.deploy().status, None);
        let ran = match next {
            "plan" => shop.plan(),
            "deploy" => shop.deploy(),
            _ => shop.destroy(),
        };
        ran.exits(0);
        shop.deploy().exits(0);
        assert_eq!(shop.objects().len(), 2);
        shop.is_quiet();
    }
}

/// T18, shortened: the whole campaign is a command of its own.
#[test]
fn killed_again_and_again_a_deploy_ends_with_one_object_per_resource() {
    let shop = Project::new();
    shop.program(
        "import { Thing } from \"@notation/sim\";\nfor (let i = 0; i < 60; i++) new Thing({ id: `t${i}`, config: { value: i } });\n",
    );
    for nth in [1, 7, 20, 3, 11] {
        for when in ["kill_before", "kill_after"] {
            shop.faults(json!([{ "op": "create", "name": "*", "nth": nth, "do": when }]));
            shop.deploy();
            shop.run(&["state", "list", "main", "--stage", "dev"])
                .exits(0);
        }
    }
    shop.faults(json!([]));
    shop.deploy().exits(0);
    assert_eq!(shop.objects().len(), 60);
    shop.is_quiet();
}

/// T19.
#[test]
fn a_bad_stage_is_refused_before_the_program_is_evaluated() {
    let shop = Project::new();
    shop.program("throw new Error(\"evaluated\");\n");
    let long = "a".repeat(33);
    for stage in ["--help", "Prod", &long, "-a", "a-"] {
        let ran = shop
            .run(&["plan", "main", &format!("--stage={stage}")])
            .exits(2);
        assert!(!ran.said().contains("evaluated"), "{}", ran.said());
    }
    shop.run(&["plan", "main"]).exits(2).says("--stage");
    shop.program(NOTHING);
    for stage in ["a", &"a".repeat(32)] {
        shop.run(&["plan", "main", "--stage", stage]).exits(0);
    }
}

/// T21.
#[test]
fn equal_joins_of_different_deployments_never_share_an_object() {
    let one = Project::new();
    let program = |ty: &str| {
        format!(
            "import {{ {ty} }} from \"@notation/sim\";\nnew {ty}({{ id: \"x\", config: {{}} }});\n"
        )
    };
    let config = |app: &str| {
        format!(
            "import {{ defineConfig }} from \"@notation/core\";\nexport default defineConfig({{ app: \"{app}\", entries: {{ main: \"infra/main.ts\" }} }});\n"
        )
    };
    for (ty, second) in [("Thing", 0), ("Worker", 3)] {
        one.write("notation.config.ts", &config("orders"));
        one.program(&program(ty));
        one.run(&["deploy", "main", "--stage", "app-prod", "--yes"])
            .exits(0);
        one.write("notation.config.ts", &config("orders-app"));
        let before = one.objects();
        let ran = one
            .run(&["deploy", "main", "--stage", "prod", "--yes"])
            .exits(second);
        if second == 3 {
            assert!(
                ran.said().contains("orders") && ran.said().contains("app-prod"),
                "{}",
                ran.said()
            );
            assert_eq!(one.objects(), before);
        } else {
            assert_eq!(one.objects().len(), 2);
        }
        one.write("notation.config.ts", &config("orders"));
        one.run(&["destroy", "main", "--stage", "app-prod", "--yes"])
            .exits(0);
        one.write("notation.config.ts", &config("orders-app"));
        one.run(&["destroy", "main", "--stage", "prod", "--yes"])
            .exits(0);
    }
}

/// T22.
#[test]
fn two_entries_of_one_stage_never_adopt_each_others_objects() {
    for (ty, second) in [("Thing", 0), ("Worker", 3)] {
        let shop = Project::new();
        shop.write(
            "notation.config.ts",
            "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { api: \"infra/api.ts\", jobs: \"infra/jobs.ts\" } });\n",
        );
        let program = format!(
            "import {{ {ty} }} from \"@notation/sim\";\nnew {ty}({{ id: \"role\", config: {{}} }});\n"
        );
        shop.write("infra/api.ts", &program);
        shop.write("infra/jobs.ts", &program);
        shop.run(&["deploy", "api", "--stage", "dev", "--yes"])
            .exits(0);
        let ran = shop
            .run(&["deploy", "jobs", "--stage", "dev", "--yes"])
            .exits(second);
        if second == 3 {
            assert!(ran.said().contains("api"), "{}", ran.said());
        }
        assert_eq!(shop.objects().len(), if second == 3 { 1 } else { 2 });
    }
}

/// T23.
#[test]
fn a_hold_left_by_a_killed_run_is_respected_elsewhere_and_taken_over_at_home() {
    let mut shop = Project::new();
    shop.program(PAIR);
    shop.set("NOTATION_MACHINE", "home");
    shop.faults(json!([{ "op": "create", "name": "*", "do": "kill_after" }]));
    assert_eq!(shop.deploy().status, None);
    shop.set("NOTATION_MACHINE", "elsewhere");
    let held = shop
        .run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .exits(4);
    for text in ["home", "hold clear"] {
        assert!(
            held.said().contains(text),
            "{text} is not in\n{}",
            held.said()
        );
    }
    shop.set("NOTATION_MACHINE", "home");
    shop.deploy().exits(0).says("taken over");
    shop.set("NOTATION_MACHINE", "elsewhere");
    shop.run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .exits(0);
}

/// T26.
#[test]
fn a_member_taken_away_by_hand_is_made_again_under_its_old_name() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.take_away("shop-dev-a");
    shop.forget_calls();
    shop.deploy().exits(0);
    shop.wrote(&[&["create a{b}"]]);
    shop.is_quiet();

    let by_arn = Project::new();
    by_arn
        .program(&PAIR.replace("service: a.Name", "service: a.Name, arn: a.arn"))
        .deploy()
        .exits(0);
    by_arn.take_away("shop-dev-a");
    by_arn.forget_calls();
    by_arn.deploy().exits(0);
    by_arn.wrote(&[&["create a{b}"], &["update b{a}"]]);
    by_arn.is_quiet();
}

fn ring(edges: &[(&str, &str)]) -> String {
    let mut members: Vec<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    members.sort_unstable();
    members.dedup();
    let mut text = String::from("import { Worker } from \"@notation/sim\";\n");
    for member in members {
        text += &format!("const {member} = new Worker({{ id: \"{member}\", config: {{}} }});\n");
    }
    for (from, to) in edges {
        text += &format!(
            "{from}.contribute({{ bindings: [{{ type: \"service\", service: {to}.Name }}] }});\n"
        );
    }
    text
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

/// T29.
#[test]
fn independent_resources_are_made_in_parallel_up_to_the_limit() {
    let shop = Project::new();
    shop.program("import { Thing } from \"@notation/sim\";\nfor (let i = 0; i < 200; i++) new Thing({ id: `t${i}`, config: {} });\n");
    shop.faults(json!({ "latency_ms": 50, "faults": [] }));
    shop.deploy().exits(0);
    let most = shop
        .calls()
        .iter()
        .filter_map(|call| call["in_flight"].as_u64())
        .max();
    assert_eq!(most, Some(10));
}

/// T30.
#[test]
fn one_failure_among_many_stops_only_itself() {
    let shop = Project::new();
    shop.program("import { Thing } from \"@notation/sim\";\nfor (let i = 0; i < 100; i++) new Thing({ id: `t${i}`, config: {} });\n");
    shop.faults(json!([{ "op": "create", "name": "shop-dev-t42-*", "do": "fail" }]));
    let ran = shop
        .run(&["--json", "deploy", "main", "--stage", "dev", "--yes"])
        .exits(3);
    let report = ran.event("report");
    assert_eq!(report["failed"].as_array().unwrap().len(), 1);
    assert_eq!(report["done"].as_array().unwrap().len(), 99);
    shop.forget_calls();
    shop.deploy().exits(0);
    assert_eq!(shop.writes().len(), 1);
}

/// T31.
#[test]
fn two_members_replaced_side_by_side_revert_nothing_before_the_new_pair_stands() {
    let shop = Project::new();
    shop.program(&pair("region: \"eu\"", "region: \"eu\""))
        .deploy()
        .exits(0);
    shop.forget_calls();
    shop.program(&pair("region: \"us\"", "region: \"us\""))
        .deploy()
        .exits(0);
    shop.wrote(&[
        &["create a'{}"],
        &["create b'{a'}"],
        &["update a'{b'}"],
        &["update a{}", "update b{}"],
        &["delete a", "delete b"],
    ]);
    shop.is_quiet();
}

/// T32.
#[test]
fn two_members_replaced_one_with_a_written_name() {
    let shop = Project::new();
    shop.program(&pair("region: \"eu\"", "Name: \"back\", region: \"eu\""))
        .deploy()
        .exits(0);
    shop.forget_calls();
    shop.program(&pair("region: \"us\"", "Name: \"back\", region: \"us\""))
        .deploy()
        .exits(0);
    shop.wrote(&[
        &["create a'{}", "update a{}", "update back{}"],
        &["delete back"],
        &["create back{a'}"],
        &["update a'{back}"],
        &["delete a"],
    ]);
    shop.is_quiet();
}

/// T33.
#[test]
fn a_holder_that_cannot_let_go_is_dragged_along() {
    let shop = Project::new();
    let program = |region: &str| {
        format!(
            "{}const c = new Thing({{ id: \"c\", config: {{ parent: a.Name }} }});\n",
            pair(
                &format!("Name: \"front\", region: \"{region}\""),
                "Name: \"back\""
            )
        )
        .replace("import { Worker }", "import { Thing, Worker }")
    };
    shop.program(&program("eu")).deploy().exits(0);
    shop.forget_calls();
    shop.program(&program("us"));
    shop.plan().exits(0).says("c");
    shop.deploy().exits(0);
    let writes = shop.writes();
    let place = |text: &str| {
        writes
            .iter()
            .position(|write| write.starts_with(text))
            .unwrap_or_else(|| panic!("{text}: {writes:?}"))
    };
    assert_eq!(writes.len(), 6, "{writes:?}");
    assert!(
        place("update back{}") < place("delete front") && place("delete c") < place("delete front"),
        "{writes:?}"
    );
    assert!(place("delete front") < place("create front{back}"));
    assert!(place("create front{back}") < place("update back{front}"));
    assert_eq!(place("create c"), 5);
    shop.is_quiet();
}

/// T34.
#[test]
fn room_is_made_last_so_a_failure_upstream_takes_nothing_down() {
    let shop = Project::new();
    shop.program(&pair("Name: \"front\", region: \"eu\"", "Name: \"back\""))
        .deploy()
        .exits(0);
    shop.forget_calls();
    let changed = pair("Name: \"front\", region: \"us\", code: `${t.id}`", "Name: \"back\"")
        .replace("import { Worker } from \"@notation/sim\";", "import { Thing, Worker } from \"@notation/sim\";\nconst t = new Thing({ id: \"t\", config: {} });");
    shop.program(&changed);
    shop.faults(json!([{ "op": "create", "name": "shop-dev-t-*", "do": "fail" }]));
    shop.deploy().exits(3);
    shop.wrote(&[]);
    let objects = shop.objects();
    assert_eq!(objects["front"]["params"]["bindings"][0]["service"], "back");
    assert_eq!(objects["back"]["params"]["bindings"][0]["service"], "front");
}

/// T35.
#[test]
fn a_type_without_update_is_replaced() {
    let shop = Project::new();
    let program = |config: &str| {
        format!(
            "import {{ Frozen }} from \"@notation/sim\";\nnew Frozen({{ id: \"f\", config: {{ {config} }} }});\n"
        )
    };
    shop.program(&program("value: 1")).deploy().exits(0);
    shop.forget_calls();
    shop.program(&program("value: 2")).deploy().exits(0);
    let writes = shop.writes();
    assert!(
        writes.len() == 2 && writes[0].starts_with("create") && writes[1].starts_with("delete"),
        "{writes:?}"
    );
    shop.forget_calls();
    shop.program(&program("Name: \"ice\", value: 1"))
        .deploy()
        .exits(0);
    shop.forget_calls();
    shop.program(&program("Name: \"ice\", value: 2"))
        .deploy()
        .exits(0);
    shop.wrote(&[&["delete ice"], &["create ice{}"]]);
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

/// T37.
#[test]
fn an_update_in_doubt_is_written_before_what_it_may_hold_is_deleted() {
    let shop = Project::new();
    shop.program(PAIR);
    shop.faults(json!([{ "op": "update", "name": "shop-dev-a", "do": "kill_after" }]));
    assert_eq!(shop.deploy().status, None);
    shop.forget_calls();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n",
    )
    .deploy()
    .exits(0);
    shop.wrote(&[&["update a{}"], &["delete b"]]);
    shop.is_quiet();
}

/// A read that is behind once is asked again: nothing is forgotten, nothing made twice.
#[test]
fn a_stale_read_neither_doubles_nor_forgets_an_object() {
    let shop = Project::new();
    shop.program(
        "import { Thing } from \"@notation/sim\";\nnew Thing({ id: \"t\", config: {} });\n",
    )
    .deploy()
    .exits(0);
    shop.faults(json!([{ "op": "read", "nth": 1, "do": "stale_read" }]));
    shop.program(NOTHING).deploy().exits(0);
    assert!(shop.objects().is_empty(), "{:?}", shop.objects());
}

/// A name moves from one resource to another: whoever had it before gets a generated one.
#[test]
fn a_written_name_can_be_given_to_another_resource() {
    let shop = Project::new();
    let one = "import { Worker } from \"@notation/sim\";\nconst b = new Worker({ id: \"b\", config: { Name: \"front\" } });\n";
    shop.program(one).deploy().exits(0);
    shop.forget_calls();
    let moved = one.replace("Name: \"front\"", "")
        + "const a = new Worker({ id: \"a\", config: { Name: \"front\" } });\n";
    shop.program(&moved).deploy().exits(0);
    let objects = shop.objects();
    assert_eq!(objects.len(), 2, "{objects:?}");
    assert_eq!(objects["front"]["tags"]["notation:resource"], "a");
    shop.is_quiet();
}
