//! What people do by hand: look, forget, adopt, answer, interrupt, take an entry out of the config.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use std::process::{Command, Stdio};

use serde_json::json;
use support::{Project, ran};

const ONE: &str =
    "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n";

fn on_dev(shop: &Project, arguments: &[&str]) -> support::Ran {
    let mut all = arguments.to_vec();
    all.extend(["--stage", "dev"]);
    shop.run(&all)
}

#[test]
fn a_forgotten_resource_stays_and_is_found_again_by_its_tags() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    on_dev(&shop, &["state", "rm", "main", "a"])
        .exits(2)
        .says("usage::needs_yes");
    on_dev(&shop, &["state", "rm", "main", "a", "--yes"])
        .exits(0)
        .says("no longer known");
    on_dev(&shop, &["state", "show", "main", "a"])
        .exits(1)
        .says("state::unknown_resource");
    assert_eq!(shop.objects().len(), 1);
    shop.deploy().exits(0);
    assert_eq!(shop.objects().len(), 1);
    on_dev(&shop, &["state", "show", "main", "a"])
        .exits(0)
        .says("shop-dev-a");
}

#[test]
fn an_object_of_somebody_else_is_adopted_by_import() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    let name = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"mine\", config: { Name: \"shop-dev-a\", code: \"new\" } });\n";
    shop.program(name);
    let other = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--stage", "other"]);
        shop.run(&all)
    };
    other(&["deploy", "main", "--yes"])
        .exits(3)
        .says("shop:dev:main");
    other(&["import", "main", "mine", "nosuch"])
        .exits(1)
        .says("nosuch");
    other(&["import", "main", "mine", "shop-dev-a"])
        .exits(1)
        .says("shop:dev:main")
        .says("--adopt mine");
    other(&["import", "main", "mine", "shop-dev-a", "--adopt", "a"]).exits(2);
    other(&["import", "main", "mine", "shop-dev-a", "--adopt", "mine"])
        .exits(0)
        .says("mine");
    other(&["deploy", "main", "--yes"]).exits(0);
    assert_eq!(shop.objects()["shop-dev-a"]["params"]["code"], "new");
    assert_eq!(shop.objects().len(), 1);
}

#[test]
fn an_ambiguous_create_is_answered_by_hand() {
    let shop = Project::new();
    shop.program("import { Blind } from \"@notation/sim\";\nnew Blind({ id: \"dark\", config: { value: 1 } });\n");
    shop.faults(json!([{ "op": "create", "name": "*", "do": "kill_after" }]));
    assert_eq!(shop.deploy().status, None);
    shop.deploy()
        .exits(1)
        .says("run::ambiguous_create")
        .says("resolve main dark");
    let id = shop.objects().keys().next().unwrap().clone();
    on_dev(&shop, &["resolve", "main", "dark"]).exits(2);
    on_dev(&shop, &["resolve", "main", "dark", "--created", &id]).exits(0);
    shop.deploy().exits(0);
    assert_eq!(shop.objects().len(), 1);
    on_dev(&shop, &["resolve", "main", "dark", "--absent"])
        .exits(1)
        .says("run::nothing_to_resolve");
}

#[test]
fn a_create_that_is_not_finished_yet_is_gone_on_with_without_asking() {
    let shop = Project::new();
    shop.program("import { Blind } from \"@notation/sim\";\nnew Blind({ id: \"dark\", config: { value: 1 } });\n");
    shop.faults(json!([{ "op": "create", "do": "wait", "times": 5, "delay_ms": 10 }]));
    let deploy = ["deploy", "main", "--yes", "--max-attempts", "2"];
    on_dev(&shop, &deploy)
        .exits(3)
        .says("run::out_of_attempts")
        .says("it goes on from here");
    on_dev(&shop, &deploy)
        .exits(3)
        .says("run::out_of_attempts")
        .says("the create of dark that an earlier run began is not finished");
    shop.deploy().exits(0);
    assert_eq!(shop.objects().len(), 1);
    let made: Vec<_> = shop.calls();
    let tokens: std::collections::BTreeSet<_> =
        made.iter().map(|call| call["token"].to_string()).collect();
    assert_eq!((made.len(), tokens.len()), (6, 1), "{made:?}");
    shop.is_quiet();
}

#[test]
fn what_cannot_be_read_is_not_imported_and_counted_apart_by_refresh() {
    let shop = Project::new();
    let types = "import { Blind, Worker } from \"@notation/sim\";\n";
    shop.program(&format!(
        "{types}new Blind({{ id: \"dark\", config: {{}} }});\nnew Worker({{ id: \"a\", config: {{}} }});\n"
    ));
    let refused = on_dev(&shop, &["import", "main", "dark", "id-1"])
        .exits(1)
        .says("run::cannot_read")
        .says("dark is a sim/Blind, and nothing of that type can be read");
    assert!(
        !refused.said().contains("--no-refresh"),
        "{}",
        refused.said()
    );
    shop.deploy().exits(0);
    on_dev(&shop, &["refresh", "main"])
        .exits(0)
        .says("1 resource as recorded, 0 changed, 0 gone, 1 not read")
        .says("? dark   cannot be read");
    let refreshed = on_dev(&shop, &["--json", "refresh", "main"]).event("refresh");
    assert_eq!(refreshed["unread"], json!(["dark"]));
    assert_eq!(refreshed["unchanged"], 1);
}

#[test]
fn what_is_protected_is_not_destroyed_and_the_way_out_is_said() {
    let shop = Project::new();
    let program = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", protect: true, config: {} });\n";
    shop.program(program).deploy().exits(0);
    shop.program(&program.replace("protect: true, ", ""));
    let refused = shop
        .destroy()
        .exits(1)
        .says("plan::protected")
        .says("a is protected and would be deleted: nothing is asked for")
        .says("deploy a program that declares a without `protect` first");
    assert!(!refused.said().contains("the program does not have it"));
    shop.deploy().exits(0);
    shop.destroy().exits(0);
}

#[test]
fn what_a_killed_update_wrote_is_no_drift_and_its_step_says_why_it_is_there() {
    let shop = Project::new();
    let program = |code: u32| {
        format!(
            "import {{ Worker }} from \"@notation/sim\";\nnew Worker({{ id: \"a\", config: {{ code: {code} }} }});\n"
        )
    };
    shop.program(&program(1)).deploy().exits(0);
    shop.program(&program(2));
    shop.faults(json!([{ "op": "update", "do": "kill_after" }]));
    assert_eq!(shop.deploy().status, None);
    for refreshed in [false, true] {
        if refreshed {
            on_dev(&shop, &["refresh", "main"]).exits(0);
        }
        let planned = shop.plan().exits(0).says("in doubt: written in full");
        assert!(!planned.said().contains("differs"), "{}", planned.said());
        let plan = shop.plan_json();
        assert_eq!(plan["steps"][0]["why"], "in_doubt", "{plan}");
        assert_eq!(plan["notes"], json!([]), "{plan}");
    }
    shop.deploy().exits(0);
    shop.is_quiet();
}

#[test]
fn an_interrupt_waits_for_running_calls_and_the_next_run_goes_on() {
    let shop = Project::new();
    let many: String = (0..30)
        .map(|i| format!("new Thing({{ id: \"t{i}\", config: {{}} }});\n"))
        .collect();
    shop.program(&format!(
        "import {{ Thing }} from \"@notation/sim\";\n{many}"
    ));
    shop.faults(json!({ "latency_ms": 150, "faults": [] }));
    let child = shop
        .command()
        .args([
            "--json",
            "deploy",
            "main",
            "--stage",
            "dev",
            "--yes",
            "--parallelism",
            "2",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while shop.objects().len() < 2 {
        assert!(std::time::Instant::now() < deadline, "no object was made");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let stopped = ran(child.wait_with_output().unwrap()).exits(130);
    assert_eq!(stopped.event("report")["status"], "interrupted");
    let made = shop.objects().len();
    assert!(made < 30, "{made}");
    shop.faults(json!([]));
    shop.run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .exits(0);
    assert_eq!(shop.objects().len(), 30);
    shop.is_quiet();
}

#[test]
fn an_entry_that_left_the_config_can_still_be_shown_and_destroyed() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    shop.write(
        "notation.config.ts",
        "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { other: \"infra/main.ts\" } });\n",
    );
    on_dev(&shop, &["deploy", "main", "--yes"])
        .exits(2)
        .says("usage::unknown_entry");
    on_dev(&shop, &["state", "list", "main"])
        .exits(0)
        .says("shop-dev-a");
    on_dev(&shop, &["destroy", "main", "--yes"]).exits(0);
    assert!(shop.objects().is_empty());
}

#[test]
fn types_are_laid_and_a_new_project_is_made_once() {
    let place = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_notation"))
            .current_dir(place.path())
            .args(arguments)
            .output()
            .unwrap();
        ran(output)
    };
    run(&["init", "Orders_App"])
        .exits(0)
        .says("notation deploy app");
    let config =
        std::fs::read_to_string(place.path().join("Orders_App/notation.config.ts")).unwrap();
    assert!(config.contains("orders-app"), "{config}");
    run(&["--project", "Orders_App", "check", "app"]).exits(0);
    run(&["--project", "Orders_App", "types"]).exits(0);
    for format in ["mermaid", "dot", "svg"] {
        run(&[
            "--project",
            "Orders_App",
            "graph",
            "app",
            "--format",
            format,
        ])
        .exits(0)
        .says("cycle");
    }
    // What a shell would take apart is quoted.
    run(&["init", "two words"]).exits(0).says("cd 'two words'");
    run(&["init", "Orders_App"]).exits(1);
    run(&["init", "x", "--app", "Bad_Name"]).exits(2);
}

#[test]
fn the_simulated_cloud_is_shown_and_emptied() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    shop.run(&["sim", "dump"]).exits(0).says("shop-dev-a");
    shop.run(&["sim", "reset"]).exits(0);
    assert!(shop.objects().is_empty());
    on_dev(&shop, &["refresh", "main"]).exits(0).says("gone");
    on_dev(&shop, &["plan", "main"])
        .exits(0)
        .says("was found gone");
}

#[test]
fn an_interrupt_of_what_only_looks_is_told_and_gives_the_hold_back() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    let unknown = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\nnew Worker({ id: \"b\", config: { Name: \"other\" } });\n";
    shop.program(unknown);
    // Longer than the test could take.
    shop.faults(json!({ "latency_ms": 600_000, "faults": [] }));
    let commands: [&[&str]; 3] = [
        &["refresh", "main"],
        &["plan", "main"],
        &["import", "main", "b", "other"],
    ];
    for command in commands {
        shop.forget_calls();
        let child = shop
            .command()
            .arg("--json")
            .args(command)
            .args(["--stage", "dev"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_calling(&shop, pid) {
            assert!(std::time::Instant::now() < deadline, "it never called");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let killed = Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success());
        let stopped = ran(child.wait_with_output().unwrap()).exits(130);
        assert_eq!(stopped.event("error")["code"], "run::interrupted");
        on_dev(&shop, &["hold", "show", "main"])
            .exits(0)
            .says("nobody holds");
    }
}

/// Whether a process waits for an answer of the simulated cloud.
fn is_calling(shop: &Project, pid: u32) -> bool {
    let running = std::fs::read_dir(shop.cloud().join("running"));
    let names = running.into_iter().flatten().flatten();
    names
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .any(|name| name.starts_with(&format!("{pid}-")))
}

#[test]
fn flags_about_nothing_are_refused() {
    let shop = Project::new();
    shop.program("import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\nnew Worker({ id: \"z\", config: {} });\n");
    shop.deploy().exits(0);
    let plan = |flags: &[&str]| on_dev(&shop, &[&["plan", "main"], flags].concat());
    plan(&["--adopt", "nope", "--replace", "none"])
        .exits(1)
        .says("--adopt nope: there is no such resource")
        .says("--replace none: there is no such resource");
    plan(&["--target", "z", "--replace", "a", "--adopt", "a"])
        .exits(1)
        .says("plan::left_out")
        .says("--replace a")
        .says("--adopt a")
        .says("--target z");
    plan(&["--target", "z", "--target", "a", "--replace", "a"]).exits(0);
    on_dev(&shop, &["destroy", "main", "--yes", "--replace", "a"])
        .exits(1)
        .says("plan::not_declared");
    assert_eq!(shop.objects().len(), 2);
}

#[test]
fn a_name_taken_by_a_renamed_resource_has_a_way_out() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    let renamed = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"c\", formerly: [\"a\"], config: {} });\n";
    shop.program(renamed).deploy().exits(0);
    let both = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"c\", config: {} });\nnew Worker({ id: \"a\", config: {} });\n";
    shop.program(both);
    shop.plan()
        .exits(1)
        .says("plan::duplicate_identity")
        .says("write a name for a in the program");
}

#[test]
fn a_program_stays_inside_its_project() {
    let shop = Project::new();
    shop.write("app/notation.config.ts", "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { main: \"main.ts\" } });\n");
    shop.write("outside.ts", "export const n = 1;\n");
    shop.write(
        "app/main.ts",
        "\nimport { n } from \"../outside\";\nexport const m = n;\n",
    );
    shop.run(&["--project", "app", "check", "main"])
        .exits(1)
        .says("program::import_outside")
        .says("main.ts:2:19");
    shop.write("app/main.ts", "export const half = \"\\ud800\";\n");
    shop.run(&["--project", "app", "check", "main"])
        .exits(1)
        .says("half a character");
}

#[test]
fn what_a_killed_run_made_is_named_when_its_resource_is_forgotten() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    shop.faults(json!([{ "op": "create", "do": "kill_after" }]));
    let killed = on_dev(&shop, &["deploy", "main", "--yes", "--replace", "a"]);
    assert_eq!(killed.status, None);
    shop.faults(json!([]));
    let names: Vec<String> = shop.objects().keys().cloned().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    on_dev(&shop, &["state", "rm", "main", "a", "--yes"])
        .exits(0)
        .says(&names[0])
        .says(&names[1])
        .says("was made by a run that was cut off");
}
