//! Many at a time, and some that fail.

use serde_json::json;

use crate::support::Project;

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
