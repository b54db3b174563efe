//! A share of the crash matrix through the binary: every call of every story, killed before and
//! after the cloud's change, without an answer, slow, throttled and read too early. The whole
//! matrix, with every journal append, runs in the engine's own tests.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::{NOTHING, PAIR, pair, ring, support::Project};

struct Story {
    first: String,
    second: String,
    smaller: String,
}

fn alone(id: &str, config: &str) -> String {
    format!(
        "import {{ Worker }} from \"@notation/sim\";\nnew Worker({{ id: \"{id}\", config: {{ {config} }} }});\n"
    )
}

fn ring_in(region: &str) -> String {
    ring(&[("a", "b"), ("b", "c"), ("c", "a")]).replace(
        "id: \"b\", config: {}",
        &format!("id: \"b\", config: {{ region: \"{region}\" }}"),
    )
}

/// Every mutating call as operation and how many of that operation came before, from 1.
fn calls(story: &Story) -> Vec<(String, usize)> {
    let shop = Project::new();
    shop.program(&story.first).deploy().exits(0);
    shop.forget_calls();
    shop.program(&story.second).deploy().exits(0);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let writes = shop.writes();
    let numbered = writes.iter().map(|write| {
        let op = write.split(' ').next().unwrap().to_owned();
        let count = counts.entry(op.clone()).or_default();
        *count += 1;
        (op, *count)
    });
    numbered.collect()
}

/// The world that the program asks for, whatever went before, and nothing left to do.
fn ends_in(shop: &Project, program: &str, what: &str) {
    shop.program(program);
    let ran = shop.deploy();
    assert_eq!(ran.status, Some(0), "{what}: {}", ran.said());
    let objects = shop.objects();
    let declared = program.matches("new Worker").count();
    assert_eq!(objects.len(), declared, "{what}: {objects:?}");
    let contributed = program.matches(".contribute(").count();
    let mut bound = 0;
    for (name, object) in &objects {
        for binding in object["params"]["bindings"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let target = binding["service"].as_str().unwrap();
            assert!(objects.contains_key(target), "{what}: {name} -> {target}");
            bound += 1;
        }
    }
    assert_eq!(bound, contributed, "{what}: {objects:?}");
    let refused: Vec<Json> = shop
        .calls()
        .into_iter()
        .filter(|call| {
            call["op"] != "read"
                && matches!(
                    call["result"].as_str(),
                    Some("refused" | "in_use" | "exists")
                )
        })
        .collect();
    assert!(refused.is_empty(), "{what}: {refused:?}");
    shop.faults(json!([]));
    shop.is_quiet();
}

fn survives(story: &Story) {
    let followers = [&story.second, NOTHING, &story.smaller];
    let mut cases = 0;
    for (op, number) in calls(story) {
        for what in [
            "kill_before",
            "kill_after",
            "lose_reply",
            "wait",
            "throttle",
        ] {
            let shop = Project::new();
            shop.program(&story.first).deploy().exits(0);
            shop.forget_calls();
            shop.program(&story.second);
            let mut faults = vec![
                json!({ "op": op, "name": "*", "nth": number, "do": what, "times": 1, "delay_ms": 5 }),
            ];
            let killed = what.starts_with("kill");
            if killed {
                // The next run reads what was true before the last write.
                faults.push(
                    json!({ "op": "read", "name": "*", "nth": 3 + cases % 4, "do": "stale_read" }),
                );
            }
            shop.faults(Json::Array(faults));
            let status = shop.deploy().status;
            let case = format!("{what} at {op} {number}");
            assert_eq!(status, if killed { None } else { Some(0) }, "{case}");
            let next = if killed {
                followers[cases % 3]
            } else {
                &story.second
            };
            ends_in(&shop, next, &case);
            cases += 1;
        }
    }
    assert!(cases >= 15);
}

#[test]
fn a_pair_that_is_set_up() {
    survives(&Story {
        first: NOTHING.to_owned(),
        second: PAIR.to_owned(),
        smaller: alone("a", ""),
    });
}

#[test]
fn a_pair_that_is_destroyed() {
    survives(&Story {
        first: PAIR.to_owned(),
        second: NOTHING.to_owned(),
        smaller: alone("b", ""),
    });
}

#[test]
fn a_member_that_is_replaced_side_by_side() {
    survives(&Story {
        first: pair("region: \"us\"", ""),
        second: pair("region: \"eu\"", ""),
        smaller: alone("b", ""),
    });
}

#[test]
fn a_member_that_is_replaced_under_a_written_name() {
    survives(&Story {
        first: pair("Name: \"front\", region: \"us\"", ""),
        second: pair("Name: \"front\", region: \"eu\"", ""),
        smaller: alone("b", ""),
    });
}

#[test]
fn a_ring_of_three_of_which_one_is_replaced() {
    survives(&Story {
        first: ring_in("us"),
        second: ring_in("eu"),
        smaller: ring(&[("a", "b"), ("b", "a")]),
    });
}
