//! State that is gone while its objects live on, through the binary: nothing is made twice, no
//! binding is cut, and a kill in the middle changes nothing of it.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{collections::BTreeMap, fs};

use serde_json::{Value as Json, json};
use support::{Project, Ran};

const RING: &str = r#"
import { Thing, Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: { code: "a1" } });
const b = new Worker({ id: "b", config: {} });
const c = new Worker({ id: "c", config: {} });
a.contribute({ bindings: [{ type: "service", service: b.Name }] });
b.contribute({ bindings: [{ type: "service", service: c.Name }] });
c.contribute({ bindings: [{ type: "service", service: a.Name }] });
const d = new Worker({ id: "d", config: { secret: "s" } });
const e = new Worker({ id: "e", config: { bindings: [{ type: "kv", namespace: "n" }] } });
d.contribute({ bindings: [{ type: "service", service: e.Name }] });
e.contribute({ bindings: [{ type: "service", service: d.Name }] });
const t = new Thing({ id: "t", config: { value: { at: a.arn } } });
new Thing({ id: "child", config: { parent: t.Name } }).dependOn(d);
export const nameOfA = a.Name;
"#;

fn lose_state(shop: &Project) {
    for file in fs::read_dir(shop.path().join(".notation"))
        .unwrap()
        .flatten()
    {
        if file.file_name().to_string_lossy().starts_with("state.db") {
            fs::remove_file(file.path()).unwrap();
        }
    }
    shop.forget_calls();
}

fn shop(program: &str) -> Project {
    let shop = Project::new();
    shop.program(program);
    shop.deploy().exits(0);
    shop
}

/// Calls that changed something.
fn writes(shop: &Project) -> Vec<String> {
    shop.writes()
}

/// Ends the test unless everything is as it was, recorded, and can be taken down.
fn is_whole(shop: &Project, before: &BTreeMap<String, Json>, case: &str) {
    assert_eq!(shop.objects(), *before, "{case}");
    shop.is_quiet();
    let listed = shop
        .run(&["state", "list", "main", "--stage", "dev"])
        .exits(0);
    for name in before.keys() {
        assert!(
            listed.stdout.contains(name.as_str()),
            "{case}: {name} in {}",
            listed.stdout
        );
    }
}

#[test]
fn a_program_of_cycles_is_found_whole_and_said_so() {
    let shop = shop(RING);
    let before = shop.objects();
    lose_state(&shop);
    let ran = shop
        .deploy()
        .exits(0)
        .says("not recorded before")
        .says("a (shop-dev-a)");
    assert_eq!(writes(&shop), Vec::<String>::new(), "{}", ran.said());
    is_whole(&shop, &before, "lost");
    shop.run(&["outputs", "main", "--stage", "dev"])
        .exits(0)
        .says("shop-dev-a");
    shop.destroy().exits(0);
    assert_eq!(shop.objects(), BTreeMap::new());
    let refused = |call: &&Json| call["result"] == "in_use";
    assert_eq!(shop.calls().iter().find(refused), None);
}

#[test]
fn the_objects_found_are_an_event() {
    let shop = shop(RING);
    lose_state(&shop);
    let args = ["--json", "deploy", "main", "--stage", "dev", "--yes"];
    let found = shop.run(&args).exits(0).event("objects_found");
    assert_eq!(found["objects"].as_array().unwrap().len(), 7, "{found}");
    assert_eq!(
        found["objects"][0],
        json!({ "resource": "a", "generation": 0, "key": "shop-dev-a" })
    );
}

#[test]
fn a_replaced_member_is_found_under_its_later_name() {
    let shop = shop(RING);
    shop.run(&[
        "deploy",
        "main",
        "--stage",
        "dev",
        "--yes",
        "--replace",
        "a",
    ])
    .exits(0);
    let before = shop.objects();
    assert!(!before.contains_key("shop-dev-a"));
    lose_state(&shop);
    shop.deploy().exits(0);
    // One was made before anything could tell that there is a later one; it is gone again.
    let wrote = writes(&shop);
    let own = |call: &String| call == "create a{}" || call == "delete a";
    assert!(wrote.iter().all(own), "{wrote:?}");
    is_whole(&shop, &before, "replaced");
}

#[test]
fn renamed_members_are_found_under_the_names_of_before() {
    let shop = shop(RING);
    let before = shop.objects();
    lose_state(&shop);
    let renamed = RING
        .replace(
            "{ id: \"a\", config: { code: \"a1\" } }",
            "{ id: \"first\", formerly: [\"a\"], config: { code: \"a1\" } }",
        )
        .replace(
            "{ id: \"d\", config: { secret: \"s\" } }",
            "{ id: \"fourth\", formerly: [\"x\", \"d\"], config: { secret: \"s\" } }",
        )
        .replace("{ id: \"t\",", "{ id: \"thing\", formerly: [\"t\"],");
    shop.program(&renamed);
    shop.deploy().exits(0);
    assert_eq!(writes(&shop), Vec::<String>::new());
    is_whole(&shop, &before, "renamed");
}

#[test]
fn a_program_that_changed_meanwhile_goes_on_from_what_is_there() {
    let shop = shop(RING);
    lose_state(&shop);
    let changed = RING
        .replace("\"a1\"", "\"a2\"")
        .replace("export const", "const f = new Worker({ id: \"f\", config: {} });\nf.contribute({ bindings: [{ type: \"service\", service: a.Name }] });\na.contribute({ bindings: [{ type: \"service\", service: f.Name }] });\nexport const");
    shop.program(&changed);
    shop.deploy().exits(0);
    let mut wrote = writes(&shop);
    wrote.sort();
    assert_eq!(wrote, ["create f{a}", "update a{b,f}"]);
    shop.is_quiet();
}

#[test]
fn an_answer_that_is_lost_does_not_cut_a_binding() {
    for fault in ["lose_reply", "transient", "throttle"] {
        let shop = shop(RING);
        let before = shop.objects();
        lose_state(&shop);
        shop.faults(json!([{ "op": "create", "name": "*", "do": fault, "times": 3 }]));
        shop.deploy().exits(0);
        assert_eq!(writes(&shop), Vec::<String>::new(), "{fault}");
        is_whole(&shop, &before, fault);
    }
}

#[test]
fn a_kill_in_the_middle_doubles_nothing_and_cuts_nothing() {
    let shop = shop(RING);
    let before = shop.objects();
    let mut kills = 0;
    for nth in 1.. {
        let way = if nth % 2 == 0 {
            "kill_before"
        } else {
            "kill_after"
        };
        lose_state(&shop);
        shop.faults(json!([{ "op": "any", "name": "*", "nth": nth, "do": way }]));
        let ran: Ran = shop.deploy();
        shop.faults(json!([]));
        assert_eq!(shop.objects(), before, "{way} {nth}");
        if ran.status == Some(0) {
            break;
        }
        kills += 1;
        shop.deploy().exits(0);
        assert_eq!(shop.objects(), before, "{way} {nth}");
        is_whole(&shop, &before, way);
    }
    assert!(kills >= 7, "{kills}");
}

#[test]
fn what_would_be_deleted_is_shown_before() {
    let shop = shop(RING);
    let before = shop.objects();
    lose_state(&shop);
    shop.program(&RING.replace("code: \"a1\"", "region: \"us\""));
    shop.deploy().exits(3).says("run::unannounced");
    assert_eq!(shop.objects(), before);
    shop.plan().exits(0).says("shop-dev-a");
    shop.deploy().exits(0);
    assert!(!shop.objects().contains_key("shop-dev-a"));
    shop.is_quiet();
}
