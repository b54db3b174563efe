//! Who a deployment is and what its objects are called, through the binary and the simulated
//! cloud.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{collections::BTreeSet, fs};

use serde_json::Value as Json;
use support::{PAIR, Project, Ran};

fn config(app: &str, entries: &str, more: &str) -> String {
    format!(
        "import {{ defineConfig }} from \"@notation/core\";\nexport default defineConfig({{ app: \"{app}\", entries: {{ {entries} }}{more} }});\n"
    )
}

fn one(ty: &str, id: &str, config: &str) -> String {
    format!(
        "import {{ {ty} }} from \"@notation/sim\";\nnew {ty}({{ id: \"{id}\", config: {{ {config} }} }});\n"
    )
}

fn names(shop: &Project) -> Vec<String> {
    shop.objects().into_keys().collect()
}

/// The program ends with status 1 and this word when it is evaluated.
const TRAP: &str = "throw new Error(\"evaluated\");\n";

#[test]
fn renaming_the_entry_file_and_moving_the_project_changes_nothing() {
    let shop = Project::new();
    shop.write(
        "notation.config.ts",
        &config("shop", "main: \"infra/api.ts\"", ""),
    );
    shop.write("infra/api.ts", PAIR);
    shop.deploy().exits(0);
    shop.forget_calls();

    fs::rename(
        shop.path().join("infra/api.ts"),
        shop.path().join("infra/orders.ts"),
    )
    .unwrap();
    shop.write(
        "notation.config.ts",
        &config("shop", "main: \"infra/orders.ts\"", ""),
    );
    shop.is_quiet();
    shop.deploy().exits(0).says("Nothing to do");
    shop.wrote(&[]);

    // The whole folder under another name, with a state that is known by nothing else.
    let moved = Project::new();
    for entry in fs::read_dir(shop.path()).unwrap().flatten() {
        let target = moved.path().join(entry.file_name());
        if target.is_file() {
            fs::remove_file(&target).unwrap();
        }
        fs::rename(entry.path(), target).unwrap();
    }
    moved.is_quiet();
    moved.deploy().exits(0).says("Nothing to do");
    moved.wrote(&[]);
    assert_eq!(names(&moved), ["shop-dev-a", "shop-dev-b"]);
}

#[test]
fn the_project_is_found_from_a_folder_inside_it() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    fs::create_dir_all(shop.path().join("src/deep")).unwrap();
    let mut command = shop.command();
    command.current_dir(shop.path().join("src/deep"));
    command.args(["plan", "main", "--stage", "dev", "--fail-on-changes"]);
    support::ran(command.output().unwrap()).exits(0);
}

#[test]
fn every_problem_of_the_config_is_told_at_once_with_its_place() {
    let shop = Project::new();
    shop.program(TRAP);
    shop.write(
        "notation.config.ts",
        "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({\n  app: \"Orders_App\",\n  entires: { main: \"infra/main.ts\" },\n  entries: { main: \"infra/main.ts\", \"-x\": \"infra/nosuch.ts\" },\n  defaultStage: \"Dev\",\n});\n",
    );
    let ran = shop.run(&["--json", "plan", "main"]).exits(1);
    let problems: Vec<Json> = ran
        .events()
        .into_iter()
        .filter(|event| event["event"] == "error")
        .collect();
    let lines: BTreeSet<u64> = problems
        .iter()
        .map(|problem| {
            assert_eq!(problem["place"]["file"], "notation.config.ts", "{problem}");
            problem["place"]["line"].as_u64().unwrap()
        })
        .collect();
    assert!(
        BTreeSet::from([3, 4, 5, 6]).is_subset(&lines),
        "{problems:#?}"
    );
    assert!(
        ran.said().contains("did you mean `entries`?"),
        "{}",
        ran.said()
    );
}

#[test]
fn what_is_no_entry_or_no_stage_is_refused_before_evaluation_with_what_to_type() {
    let shop = Project::new();
    shop.program(TRAP);
    shop.run(&["plan", "main", "--stage", "dev"])
        .exits(1)
        .says("evaluated");
    let unevaluated = |ran: Ran, says: &str| {
        let ran = ran.exits(2).says(says);
        assert!(!ran.said().contains("evaluated"), "{}", ran.said());
    };
    let path = shop.path().join("infra/main.ts");
    for command in ["check", "plan", "deploy", "graph"] {
        for path in ["infra/main.ts", "./infra/main.ts", path.to_str().unwrap()] {
            unevaluated(
                shop.run(&[command, path, "--stage", "prod"]),
                &format!("notation {command} main --stage prod"),
            );
        }
        unevaluated(
            shop.run(&[command, "mian", "--stage", "dev"]),
            "entries of shop: main",
        );
        unevaluated(shop.run(&[command]), "entries of shop: main");
    }
    for command in ["plan", "deploy", "destroy", "outputs", "refresh"] {
        unevaluated(
            shop.run(&[command, "main"]),
            &format!("notation {command} main --stage dev"),
        );
        unevaluated(
            shop.run(&[command, "main", "prod"]),
            &format!("notation {command} main --stage prod"),
        );
    }
    // Even when there is nothing that could be evaluated.
    fs::remove_file(shop.path().join("infra/main.ts")).unwrap();
    unevaluated(
        shop.run(&["destroy", "nosuch", "--stage", "dev"]),
        "usage::unknown_entry",
    );
    assert_eq!(shop.calls().len(), 0);
}

/// `spec/engine.md` §9: the program cannot read the stage.
#[test]
fn a_program_cannot_learn_the_stage_by_any_means() {
    let mut shop = Project::new();
    shop.set("NOTATION_STAGE", "blue");
    let spy = r#"
import { Thing } from "@notation/sim";
const seen = new Set();
const words: string[] = [];
function look(value: any, depth: number) {
  if (depth > 4 || value === null || value === undefined || seen.has(value)) return;
  if (typeof value === "string") { words.push(value); return; }
  if (typeof value !== "object" && typeof value !== "function") return;
  seen.add(value);
  for (const key of Reflect.ownKeys(value)) {
    words.push(String(key));
    let found;
    try { found = value[key]; } catch (error) { words.push(String(error)); continue; }
    look(found, depth + 1);
  }
}
look(globalThis, 0);
look(import.meta, 0);
look(Thing, 0);
try { (null as any).x; } catch (error) { words.push(String((error as Error).stack)); }
for (const name of ["process", "Deno", "Bun", "require", "fetch", "performance", "navigator", "location", "__dirname", "__filename"]) {
  words.push(name + " " + (name in globalThis ? typeof (globalThis as any)[name] : "absent"));
}
const t = new Thing({ id: "t", config: {} });
try { look(t, 0); } catch (error) { words.push(String(error)); }
// A name is a reference: what stands for it says nothing, and is the same for every stage.
try { words.push([...String(t.Name)].map((c) => c.charCodeAt(0)).join(",")); } catch (error) { words.push(String(error)); }
export const seenByProgram = words.join("\n");
"#;
    shop.program(spy);
    let output = |stage: &str| {
        shop.run(&["deploy", "main", "--stage", stage, "--yes"])
            .exits(0);
        let ran = shop
            .run(&["--json", "outputs", "main", "--stage", stage])
            .exits(0);
        let text = ran.event("outputs")["outputs"]["seenByProgram"].to_string();
        assert!(text.len() > 200, "{text}");
        assert!(!text.contains(stage), "{text}");
        text
    };
    assert_eq!(output("blue"), output("green"));
    // Each of these ends with an error that says why.
    for means in [
        "process.env.STAGE",
        "new Date()",
        "Math.random()",
        "fetch(\"http://localhost/\")",
    ] {
        shop.program(&format!("export const x = {means};\n"));
        shop.run(&["plan", "main", "--stage", "blue"]).exits(1);
    }
    for module in ["node:fs", "fs", "node:os", "child_process"] {
        shop.program(&format!(
            "import * as x from \"{module}\";\nexport const y = Object.keys(x);\n"
        ));
        shop.run(&["plan", "main", "--stage", "blue"]).exits(1);
    }
}

#[test]
fn names_are_generated_cut_and_kept_as_the_rules_say() {
    let shop = Project::new();
    let hex = |text: &str, count: usize| {
        text.len() == count && text.chars().all(|c| c.is_ascii_hexdigit())
    };
    // A scoped name is plain; the next incarnation carries four characters.
    shop.program(&one("Worker", "a", "region: \"eu\""))
        .deploy()
        .exits(0);
    assert_eq!(names(&shop), ["shop-dev-a"]);
    shop.program(&one("Worker", "a", "region: \"us\""))
        .deploy()
        .exits(0);
    let second = names(&shop);
    let end = second[0].strip_prefix("shop-dev-a-").unwrap();
    assert!(hex(end, 4) && second.len() == 1, "{second:?}");
    // It stays for life, also under another id, and when a name is no more written by hand.
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"b\", config: { region: \"us\" }, formerly: [\"a\"] });\n",
    )
    .deploy()
    .exits(0);
    assert_eq!(names(&shop), second);
    shop.program(&one("Worker", "w", "Name: \"By-Hand\""))
        .deploy()
        .exits(0);
    assert_eq!(names(&shop), ["By-Hand"]);
    shop.program(&one("Worker", "w", "")).deploy().exits(0);
    assert_eq!(names(&shop), ["By-Hand"]);
    shop.destroy().exits(0);

    // A generated name always carries them, and always the same.
    shop.program(&one("Thing", "t", "")).deploy().exits(0);
    let first = names(&shop);
    assert!(
        hex(first[0].strip_prefix("shop-dev-t-").unwrap(), 4),
        "{first:?}"
    );
    shop.destroy().exits(0);
    shop.deploy().exits(0);
    assert_eq!(names(&shop), first);
    shop.destroy().exits(0);

    // Too long: cut, eight characters of a hash, and said.
    let long = "x".repeat(80);
    shop.program(&one("Worker", &long, ""));
    let plan = shop.plan_json();
    assert!(
        plan["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["code"] == "name_cut"),
        "{plan}"
    );
    shop.deploy().exits(0);
    let cut = names(&shop).remove(0);
    assert!(cut.len() <= 63 && cut.starts_with("shop-dev-xxx"), "{cut}");
    assert!(hex(cut.rsplit('-').next().unwrap(), 8), "{cut}");
    shop.is_quiet();
}

#[test]
fn every_object_carries_the_tags_of_its_deployment() {
    let shop = Project::new();
    shop.program(&one("Worker", "a", "region: \"eu\""))
        .deploy()
        .exits(0);
    shop.program(&one("Worker", "a", "region: \"us\""))
        .deploy()
        .exits(0);
    let (_, object) = shop.objects().pop_first().unwrap();
    let tags = &object["tags"];
    for (tag, value) in [
        ("app", "shop"),
        ("stage", "dev"),
        ("entry", "main"),
        ("resource", "a"),
        ("generation", "1"),
    ] {
        assert_eq!(tags[format!("notation:{tag}")], value, "{tags}");
    }
}

#[test]
fn a_renamed_app_is_another_deployment_and_the_old_one_can_be_seen_and_taken_down() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.write(
        "notation.config.ts",
        &config("store", "main: \"infra/main.ts\"", ""),
    );
    shop.run(&["stages"])
        .exits(0)
        .says("notation destroy main --stage dev --app shop");
    let plan = shop.plan_json();
    assert_eq!(plan["summary"]["create"], 2);
    assert!(
        plan["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["code"] == "other_app"),
        "{plan}"
    );
    shop.deploy().exits(0);
    assert_eq!(names(&shop).len(), 4);
    let of_shop = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--stage", "dev", "--app", "shop"]);
        shop.run(&all)
    };
    of_shop(&["outputs", "main"]).exits(0).says("shop-dev-a");
    of_shop(&["state", "list", "main"])
        .exits(0)
        .says("shop-dev-b");
    of_shop(&["hold", "show", "main"]).exits(0);
    of_shop(&["destroy", "main", "--yes"]).exits(0);
    assert_eq!(names(&shop), ["store-dev-a", "store-dev-b"]);
    shop.is_quiet();
    shop.run(&[
        "destroy", "main", "--stage", "dev", "--app", "nosuch", "--yes",
    ])
    .exits(1)
    .says("state::never_deployed");
}

#[test]
fn the_outputs_of_a_stage_that_was_never_deployed_are_an_error_with_the_stages_there_are() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.run(&["outputs", "main", "--stage", "prdo"])
        .exits(1)
        .says("state::never_deployed")
        .says("main is deployed to: dev")
        .says("notation deploy main --stage prdo");
}

#[test]
fn a_change_of_the_outputs_alone_is_shown_asked_for_and_stored() {
    let shop = Project::new();
    shop.program(PAIR);
    let plan = shop.plan_json();
    assert_eq!(plan["outputs"][0]["name"], "nameOfA");
    assert_eq!(plan["outputs"][0]["after"]["unknown"], "a.Name");
    shop.deploy().exits(0);
    shop.is_quiet();
    shop.program(&PAIR.replace(
        "export const nameOfA = a.Name",
        "export const nameOfB = b.Name",
    ));
    let plan = shop.plan_json();
    assert_eq!(
        plan["outputs"],
        serde_json::json!([
            { "name": "nameOfA", "before": "shop-dev-a", "after": null },
            { "name": "nameOfB", "before": null, "after": "shop-dev-b" },
        ])
    );
    let plan = ["plan", "main", "--stage", "dev", "--fail-on-changes"];
    shop.run(&plan)
        .exits(5)
        .says("nameOfB")
        .says("2 outputs to change");
    shop.run(&["deploy", "main", "--stage", "dev"]).exits(2);
    shop.forget_calls();
    shop.deploy().exits(0);
    shop.wrote(&[]);
    shop.is_quiet();
    shop.run(&["outputs", "main", "--stage", "dev"])
        .exits(0)
        .says("nameOfB = shop-dev-b");
}
