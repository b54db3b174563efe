//! Wrong usage is found before anything is evaluated, and every message leads to the next command.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use serde_json::json;
use support::Project;

/// A program that must not be evaluated: it would end with status 1.
const TRAP: &str = "throw new Error(\"evaluated\");\n";

#[test]
fn a_stage_that_breaks_the_grammar_is_refused_with_the_rule() {
    let shop = Project::new();
    shop.program(TRAP);
    let long = "a".repeat(33);
    let cases = [
        ("--help", "hyphen"),
        ("Prod", "a-z"),
        (long.as_str(), "32"),
        ("-a", "hyphen"),
        ("a-", "hyphen"),
    ];
    for (stage, rule) in cases {
        for command in ["plan", "deploy", "destroy"] {
            let ran = shop
                .run(&[command, "main", "--stage", stage])
                .exits(2)
                .says(rule);
            assert!(!ran.said().contains("evaluated"), "{}", ran.said());
        }
    }
    let fits = "a".repeat(32);
    for stage in ["a", fits.as_str()] {
        shop.run(&["plan", "main", "--stage", stage])
            .exits(1)
            .says("evaluated");
    }
}

#[test]
fn a_missing_stage_is_asked_for_with_what_to_type() {
    let shop = Project::new();
    shop.program(TRAP);
    shop.run(&["deploy", "main", "--yes"])
        .exits(2)
        .says("usage::no_stage")
        .says("notation deploy main --stage dev");
    assert_eq!(shop.calls().len(), 0);
}

#[test]
fn a_path_in_place_of_an_entry_is_answered_with_the_name() {
    let shop = Project::new();
    shop.program(TRAP);
    for path in ["infra/main.ts", "./infra/main.ts"] {
        shop.run(&["deploy", path, "--stage", "prod", "--yes"])
            .exits(2)
            .says("usage::entry_is_path")
            .says("notation deploy main --stage prod");
    }
}

#[test]
fn an_unknown_entry_is_answered_with_the_nearest_and_all_names() {
    let shop = Project::new();
    shop.program(TRAP);
    for command in ["plan", "deploy", "destroy", "outputs", "refresh"] {
        shop.run(&[command, "mian", "--stage", "dev"])
            .exits(2)
            .says("usage::unknown_entry")
            .says("did you mean main?");
    }
}

#[test]
fn a_typo_in_a_flag_or_command_is_answered_with_the_nearest() {
    let shop = Project::new();
    shop.run(&["deploy", "main", "--stge", "dev"])
        .exits(2)
        .says("--stage");
    shop.run(&["deply", "main"]).exits(2).says("deploy");
    shop.run(&["--json", "deply", "main"])
        .exits(2)
        .event("error");
}

#[test]
fn what_other_tools_call_it_is_answered_with_what_it_is_called_here() {
    let shop = Project::new();
    shop.program(TRAP);
    for (typed, meant) in [
        ("apply main", "notation deploy"),
        ("preview main", "notation plan"),
        ("logs", "notation host logs"),
        ("status", "notation host status"),
        ("set main KEY", "notation secret set"),
        ("force-unlock main", "notation hold clear"),
        ("deploy main --auto-approve", "did you mean --yes?"),
        ("deploy main -stage dev", "did you mean --stage?"),
        ("deploy main --workspace dev", "did you mean --stage?"),
        ("plan main --yes", "--yes is a flag of deploy, destroy"),
        ("plan main --stage Prod_2", "did you mean --stage prod-2?"),
        ("graph main --format pdf", "one of: mermaid, dot, svg"),
        ("state show main", "usage: notation state show"),
        ("state ls main", "did you mean notation state list?"),
        ("state remove main a", "did you mean notation state rm?"),
        ("secret ls main", "did you mean notation secret list?"),
        ("stages ls", "usage: notation stages"),
        ("ls", "did you mean notation stages?"),
        ("state mv main a b", "`formerly: [\"old-id\"]`"),
        ("login", "NOTATION_STATE"),
        (
            "plan main --detailed-exitcode",
            "did you mean --fail-on-changes?",
        ),
        ("help unbreakable", "notation help"),
    ] {
        let words: Vec<&str> = typed.split(' ').collect();
        let ran = shop.run(&words).exits(2).says(meant);
        assert!(!ran.said().contains("evaluated"), "{}", ran.said());
        let mut json = vec!["--json"];
        json.extend(words);
        let error = shop.run(&json).exits(2).event("error");
        assert!(error["help"].as_str().unwrap().contains(meant), "{error}");
    }
}

#[test]
fn outside_of_a_project_the_way_in_is_shown() {
    let shop = Project::new();
    std::fs::remove_file(shop.path().join("notation.config.ts")).unwrap();
    shop.run(&["plan", "main", "--stage", "dev"])
        .exits(1)
        .says("notation.config.ts")
        .says("notation init");
}

#[test]
fn without_a_terminal_a_change_needs_yes_and_no_change_asks_nothing() {
    let shop = Project::new();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n",
    );
    shop.run(&["deploy", "main", "--stage", "dev"])
        .exits(2)
        .says("usage::needs_yes")
        .says("notation deploy main --stage dev --yes");
    assert!(shop.objects().is_empty());
    // The hold was given back: nothing to wait for.
    shop.run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .exits(0);
    shop.run(&["deploy", "main", "--stage", "dev"])
        .exits(0)
        .says("Nothing to do");
    shop.run(&["destroy", "main", "--stage", "dev"])
        .exits(2)
        .says("usage::needs_yes");
    assert_eq!(shop.objects().len(), 1);
}

/// What keeps a program from every plan is known without state: `check` says it as `plan` does.
#[test]
fn check_refuses_what_no_plan_takes() {
    let worker = "import { secret } from \"@notation/core\";\nimport { StrictWorker, Worker } from \"@notation/sim\";\n";
    for (program, code, message, line, labels) in [
        (
            "new Worker({ id: \"a\", formerly: [\"x\"] });\nnew Worker({ id: \"b\", formerly: [\"x\"] });\n",
            "plan::claimed_twice",
            "a and b both claim the id x",
            4,
            vec!["claims the id x"],
        ),
        (
            "new Worker({ id: \"a\", formerly: [\"a\"] });\n",
            "plan::claimed_twice",
            "a names its own id in its `formerly`",
            3,
            vec!["claims the id a"],
        ),
        (
            "new Worker({ id: \"a\" });\nnew Worker({ id: \"b\", formerly: [\"a\", \"y\"] });\n",
            "plan::claimed_twice",
            "a and b both claim the id a",
            4,
            vec!["has the id a", "claims the id a"],
        ),
        (
            "new Worker({ id: \"a\", config: { Name: secret(\"KEY\") } });\n",
            "plan::secret_key",
            "`Name` names a and is made of a secret",
            3,
            vec!["infra/main.ts:3:1"],
        ),
        (
            "const b = new Worker({ id: \"b\", config: {} });\nnew Worker({ id: \"a\", config: { Name: `n-${b.secret}` } });\n",
            "plan::secret_key",
            "`Name` names a and is made of a secret, b.secret",
            4,
            vec!["infra/main.ts:4:1"],
        ),
        // One of the names is generated; its type shares them.
        (
            "new Worker({ id: \"a\", config: {} });\nnew StrictWorker({ id: \"b\", config: { Name: \"shop-dev-a\", bindings: [] } });\n",
            "plan::duplicate_identity",
            "a (sim/Worker) and b (sim/StrictWorker) both claim the name \"shop-dev-a\"",
            4,
            vec!["claimed again", "claimed first"],
        ),
        (
            "const a = new Worker({ id: \"a\", config: {} });\nnew Worker({ id: \"b\", config: { Name: `${a.Name}` } });\n",
            "plan::duplicate_identity",
            "a and b both claim sim/Worker \"shop-dev-a\"",
            4,
            vec!["claimed again", "claimed first"],
        ),
    ] {
        let shop = Project::new();
        shop.program(&format!("{worker}{program}"));
        shop.set_secret("KEY", "hunter2\n");
        for command in ["check", "plan", "deploy"] {
            let typed = [command, "main", "--stage", "dev"];
            let ran = shop.run(&typed).exits(1).says(code).says(message);
            for label in &labels {
                assert!(ran.said().contains(label), "{label}: {}", ran.said());
            }
            let mut json = vec!["--json"];
            json.extend(typed);
            let error = shop.run(&json).exits(1).event("error");
            assert_eq!(error["code"], code, "{error}");
            assert_eq!(error["place"]["line"], line, "{error}");
            // Every other place, with what is there.
            let related = error["related"].as_array().unwrap().iter();
            let related: Vec<_> = related
                .map(|other| (other["message"].as_str().unwrap(), &other["place"]["line"]))
                .collect();
            match labels.as_slice() {
                [_] => assert!(
                    related.iter().all(|(_, at)| **at != line),
                    "{code}: {error}"
                ),
                _ => {
                    assert!(labels.contains(&related[0].0), "{error}");
                    assert_eq!(related, [(related[0].0, &json!(3))], "{error}");
                }
            }
        }
    }
}

#[test]
fn a_name_claimed_in_another_file_is_told_with_that_place() {
    let shop = Project::new();
    shop.write(
        "infra/first.ts",
        "import { Worker } from \"@notation/sim\";\nexport const a = new Worker({ id: \"a\" });\n",
    );
    shop.program(
        "import { Worker } from \"@notation/sim\";\nimport { a } from \"./first\";\nnew Worker({ id: \"b\", config: { Name: \"shop-dev-a\" } });\nexport const n = a.Name;\n",
    );
    shop.run(&["check", "main", "--stage", "dev"])
        .exits(1)
        .says("infra/main.ts:3:1")
        .says("claimed first (infra/first.ts:2:18)");
    // The generated name has the stage in it.
    shop.run(&["check", "main", "--stage", "prod"]).exits(0);
    shop.run(&["check", "main"]).exits(0);
}

#[test]
fn first_mistakes_of_a_program_are_told_for_what_they_are() {
    let shop = Project::new();
    let head = "import { Thing, Worker } from \"@notation/sim\";\n";
    for (program, code, help) in [
        (
            "const a = new Worker({ id: \"a\" });\nconst t = new Thing({ id: \"t\" });\nt.dependsOn(a);\n",
            "program::unknown_output",
            "did you mean `dependOn`?",
        ),
        (
            "const a = new Worker({ id: \"a\" });\nconst t = new Thing({ id: \"t\" });\nt.bind(\"A\", a);\n",
            "program::unknown_output",
            "its methods are `contribute` and `dependOn`",
        ),
        (
            "\n\nconst a = new Worker({ id: \"a\", config: { bindings: { service: b.Name } } });\nconst b = new Worker({ id: \"b\", config: { bindings: { service: a.Name } } });\n",
            "program::used_too_early",
            "`a.contribute({ bindings: { service: b.Name } })`",
        ),
    ] {
        shop.program(&format!("{head}{program}"));
        let error = shop
            .run(&["--json", "check", "main"])
            .exits(1)
            .event("error");
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["place"]["line"], 4, "{error}");
        assert!(error["help"].as_str().unwrap().contains(help), "{error}");
    }
}

#[test]
fn help_explains_commands_and_every_error_code() {
    let shop = Project::new();
    shop.run(&["help"])
        .exits(0)
        .says("deploy")
        .says("Exit status");
    shop.run(&["help", "secret", "set"]).exits(0).says("stdin");
    shop.run(&["help", "usage::no_stage"])
        .exits(0)
        .says("defaultStage");
    shop.run(&["help", "usage::nosuch"])
        .exits(2)
        .says("usage::no_stage");
    // One word of several areas: the page of each.
    let pages = shop.run(&["help", "unknown_field"]).exits(0);
    pages
        .says("# program::unknown_field")
        .says("# plan::unknown_field");
    shop.run(&["help", "nosuch"]).exits(2).says("notation help");
    shop.run(&["version"])
        .exits(0)
        .says(env!("CARGO_PKG_VERSION"));
    let version = shop.run(&["--json", "version"]).exits(0).event("version");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_shell_gets_a_script_that_asks_the_binary() {
    let shop = Project::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        shop.run(&["completions", shell]).exits(0).says("COMPLETE");
    }
}

#[test]
fn completion_offers_entry_names_and_stages_with_state() {
    let shop = Project::new();
    shop.program("export const x = 1;\n").deploy().exits(0);
    let complete = |words: &[&str]| {
        let mut command = shop.command();
        command
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .env("_CLAP_COMPLETE_COMP_TYPE", "9")
            .env("_CLAP_COMPLETE_SPACE", "true")
            .arg("--")
            .args(words);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(complete(&["notation", "deploy", ""]).contains("main"));
    assert!(complete(&["notation", "deploy", "main", "--stage", ""]).contains("dev"));
    assert!(complete(&["notation", "destroy", "main", "--app", ""]).contains("shop"));
    // Also from elsewhere, and of an entry that left the config and has state.
    shop.write(
        "notation.config.ts",
        "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { other: \"infra/main.ts\" } });\n",
    );
    let project = shop.path().to_str().unwrap();
    let mut command = shop.command();
    command
        .current_dir("/")
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "4")
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .args(["--", "notation", "--project", project, "destroy", ""]);
    let offered = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(
        offered.contains("main") && offered.contains("other"),
        "{offered}"
    );
}
