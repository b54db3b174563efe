//! `--json`: one object per line on stdout, in the shape that scripts rely on.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use serde_json::{Value as Json, json};
use support::{PAIR_WITH_A_SECRET, Project, Ran};

/// Every line of stdout is an event of the published schema.
#[track_caller]
fn in_shape(ran: Ran) -> Ran {
    let schema: Json =
        serde_json::from_str(include_str!("../../../docs/events.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in ran.events() {
        let wrong: Vec<String> = validator
            .iter_errors(&event)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{event:#}\n{wrong:#?}");
    }
    ran
}

fn events(ran: &Ran, name: &str) -> Vec<Json> {
    ran.events()
        .into_iter()
        .filter(|event| event["event"] == name)
        .collect()
}

/// A script that cannot answer is shown what it would be asked, and then why it was not done.
#[test]
fn what_is_asked_for_is_shown_before_it_is_refused() {
    let shop = Project::new();
    shop.program(PAIR_WITH_A_SECRET);
    shop.set_secret("KEY", "hunter2\n");
    let refused = |command: &str| {
        let ran = in_shape(
            shop.run(&["--json", command, "main", "--stage", "dev"])
                .exits(2),
        );
        let names: Vec<Json> = ran
            .events()
            .iter()
            .map(|event| event["event"].clone())
            .collect();
        assert_eq!(names, ["plan", "error"], "{}", ran.said());
        assert_eq!(ran.event("error")["code"], "usage::needs_yes");
        ran.event("plan")
    };
    let mut shown = refused("deploy");
    assert_eq!(shown["summary"]["create"], 2, "{shown}");
    let mut planned = shop
        .run(&["--json", "plan", "main", "--stage", "dev"])
        .exits(0)
        .event("plan");
    for plan in [&mut shown, &mut planned] {
        plan["at"].take();
    }
    assert_eq!(shown, planned);
    assert!(shop.objects().is_empty());
    // The hold was given back: nothing to wait for.
    shop.run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .exits(0);
    assert_eq!(refused("destroy")["summary"]["delete"], 2);
    assert_eq!(shop.objects().len(), 2);
}

#[test]
fn a_deploy_tells_its_plan_its_steps_and_its_report() {
    let shop = Project::new();
    shop.program(PAIR_WITH_A_SECRET);
    shop.set_secret("KEY", "hunter2\n");
    let ran = in_shape(
        shop.run(&["--json", "deploy", "main", "--stage", "dev", "--yes"])
            .exits(0),
    );
    for event in ran.events() {
        assert!(
            event["event"].is_string() && event["at"].is_string(),
            "{event}"
        );
        let at = event["at"].as_str().unwrap();
        assert!(at.ends_with('Z') && at.contains('T'), "{at}");
    }
    let plan = ran.event("plan");
    assert_eq!(plan["deployment"], "shop:dev:main");
    let step = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["resource"] == "b" && step["goal"] == "complete")
        .unwrap();
    assert_eq!(step["type"], "sim/Worker");
    assert_eq!(step["generation"], 0);
    assert_eq!(step["transition"], "create");
    assert!(
        step["after"]
            .as_array()
            .is_some_and(|after| !after.is_empty())
    );
    let whole = plan.to_string();
    assert!(whole.contains(r#"{"secret":true}"#), "{whole}");
    assert!(whole.contains(r#"{"unknown":"a.Name"}"#), "{whole}");
    assert!(!ran.said().contains("hunter2"));
    let settle = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["goal"] == "settled")
        .unwrap();
    assert!(
        settle["cycle"].is_string()
            && settle["resource"].is_null()
            && settle["transition"].is_null()
    );
    let mut members: Vec<_> = plan["cycles"][0]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(Json::to_string)
        .collect();
    members.sort();
    assert_eq!(members, [r#""a""#, r#""b""#]);
    assert_eq!(plan["cycles"][0]["placeholders"], json!(["a"]));
    assert_eq!(events(&ran, "step_started").len(), 3);
    let done = events(&ran, "step_done");
    let names: Vec<_> = done
        .iter()
        .map(|step| (step["resource"].as_str(), step["transition"].as_str()))
        .collect();
    assert!(
        names.starts_with(&[
            (Some("a"), Some("create")),
            (Some("b"), Some("create")),
            (Some("a"), Some("update"))
        ]),
        "{names:?}"
    );
    assert!(done.iter().all(|step| step["took_ms"].is_u64()
        && step["attempt"].is_u64()
        && step["key"].is_string()));
    let report = ran.event("report");
    assert_eq!(report["status"], "done");
    assert_eq!(report["outputs"]["nameOfA"], "shop-dev-a");
    assert_eq!(report["failed"], json!([]));
    assert!(report["took_ms"].is_u64());
}

#[test]
fn a_failed_step_and_what_it_blocks_are_told() {
    let shop = Project::new();
    shop.program(PAIR_WITH_A_SECRET);
    shop.set_secret("KEY", "hunter2\n");
    shop.faults(json!([{ "op": "create", "name": "shop-dev-b", "do": "fail" }]));
    let ran = in_shape(
        shop.run(&["--json", "deploy", "main", "--stage", "dev", "--yes"])
            .exits(3),
    );
    assert_eq!(events(&ran, "step_failed")[0]["resource"], "b");
    let report = ran.event("report");
    assert_eq!(report["status"], "failed");
    assert_eq!(report["failed"][0]["resource"], "b");
    assert!(
        report["blocked"]
            .as_array()
            .is_some_and(|blocked| !blocked.is_empty())
    );
    let error = ran.event("error");
    assert!(
        error["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("run::"))
    );
    assert!(error["help"].is_string());
}

#[test]
fn a_problem_of_the_program_has_its_place() {
    let shop = Project::new();
    shop.program("import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { regoin: \"eu\" } });\n");
    let error = in_shape(shop.run(&["--json", "check", "main"]).exits(1)).event("error");
    assert_eq!(error["place"]["file"], "infra/main.ts");
    assert_eq!(error["place"]["line"], 2);
    assert!(
        error["help"]
            .as_str()
            .is_some_and(|help| help.contains("region")),
        "{error}"
    );
}

#[test]
fn commands_that_print_say_it_as_events() {
    let shop = Project::new();
    shop.program(PAIR_WITH_A_SECRET);
    shop.set_secret("KEY", "hunter2\n");
    shop.deploy().exits(0);
    let on_dev = |command: &[&str]| {
        let mut all = vec!["--json"];
        all.extend(command);
        all.extend(["--stage", "dev"]);
        in_shape(shop.run(&all).exits(0))
    };
    assert_eq!(
        on_dev(&["outputs", "main"]).event("outputs")["outputs"]["nameOfA"],
        "shop-dev-a"
    );
    let state = on_dev(&["state", "list", "main"]).event("state");
    assert_eq!(state["resources"].as_array().map(Vec::len), Some(2));
    let shown = on_dev(&["state", "show", "main", "a"]).event("state");
    assert_eq!(
        shown["resources"][0]["applied"]["secret"],
        json!({ "secret": true })
    );
    assert_eq!(
        on_dev(&["secret", "list", "main"]).event("secrets")["secrets"],
        json!(["KEY"])
    );
    assert_eq!(
        on_dev(&["hold", "show", "main"]).event("hold")["hold"],
        Json::Null
    );
    let graph = on_dev(&["graph", "main"]).event("graph");
    assert_eq!(graph["cycles"], json!([["a", "b"]]));
    let stages = in_shape(shop.run(&["--json", "stages"]).exits(0)).event("stages");
    assert_eq!(stages["stages"][0]["stage"], "dev");
    assert_eq!(stages["stages"][0]["resources"], 2);
    let refreshed = on_dev(&["refresh", "main"]).event("refresh");
    assert_eq!(refreshed["unchanged"], 2);
    on_dev(&["check", "main"]);
    on_dev(&["secret", "rm", "main", "KEY"]);
    on_dev(&["destroy", "main", "--yes"]);
    in_shape(shop.run(&["--json", "types"]).exits(0));
    in_shape(shop.run(&["--json", "host", "status"]).exits(0));
    in_shape(shop.run(&["--json", "nosuch"]).exits(2));
    shop.program(&PAIR_WITH_A_SECRET.replace("Worker", "StrictWorker"));
    in_shape(shop.run(&["--json", "check", "main"]).exits(1));
    let sim = in_shape(shop.run(&["--json", "sim", "dump"]).exits(0)).event("sim");
    assert_eq!(sim["objects"], json!({}));
}

#[test]
fn plan_says_by_its_status_whether_there_is_something_to_do() {
    let shop = Project::new();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n",
    );
    let plan = ["plan", "main", "--stage", "dev", "--fail-on-changes"];
    shop.run(&plan).exits(5);
    shop.deploy().exits(0);
    shop.run(&plan).exits(0);
    // What is only recorded counts: the next plan depends on it.
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"bb\", formerly: [\"a\"], protect: true, config: {} });\n",
    );
    shop.run(&plan).exits(5);
    let planned = in_shape(
        shop.run(&["--json", "plan", "main", "--stage", "dev"])
            .exits(0),
    );
    let planned = planned.event("plan");
    let recorded =
        json!([{ "resource": "bb", "formerly": "a", "protect": true, "placeholder": null }]);
    assert_eq!(planned["recorded"], recorded);
    assert_eq!(planned["summary"]["recorded"], 1);
    assert_eq!(planned["steps"], json!([]));
    shop.run(&["deploy", "main", "--stage", "dev"])
        .exits(2)
        .says("usage::needs_yes");
    let deploy = ["--json", "deploy", "main", "--stage", "dev", "--yes"];
    let deployed = in_shape(shop.run(&deploy).exits(0));
    assert_eq!(deployed.event("report")["recorded"], recorded);
    shop.run(&plan).exits(0);
    shop.program("export const nothing = 1;\n");
    shop.run(&plan).exits(1).says("plan::protected");
}
