//! What cannot be changed is replaced.

use serde_json::json;

use crate::{pair, support::Project};

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
    // Because of what it holds.
    shop.plan()
        .exits(0)
        .says("`parent` holds a, which is replaced");
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
