//! What was killed, lost or taken away.

use serde_json::json;

use crate::{NOTHING, PAIR, support::Project};

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

/// `q` under a name, and a worker that names it in its config and is bound to itself.
fn held(name: &str) -> String {
    format!(
        r#"
import {{ Thing, Worker }} from "@notation/sim";
const q = new Thing({{ id: "q", config: {{ Name: "{name}" }} }});
const w = new Worker({{ id: "w", config: {{ bindings: [{{ type: "service", service: q.Name }}] }} }});
w.contribute({{ bindings: [{{ type: "service", service: w.Name }}] }});
"#
    )
}

#[test]
fn what_was_made_again_under_another_name_keeps_no_destroy_from_getting_through() {
    let target = ["deploy", "main", "--stage", "dev", "--yes", "--target", "q"];
    for stopped in [None, Some("kill_before"), Some("kill_after"), Some("fail")] {
        let shop = Project::new();
        shop.program(&held("n1")).deploy().exits(0);
        shop.take_away("n1");
        shop.program(&held("n2"));
        match stopped {
            None => {
                shop.run(&target).exits(0);
            }
            Some(how) => {
                shop.faults(json!([{ "op": "update", "do": how }]));
                assert_ne!(shop.deploy().status, Some(0));
                shop.faults(json!([]));
            }
        }
        shop.destroy().exits(0);
        assert!(shop.objects().is_empty(), "{stopped:?}");
    }
}
