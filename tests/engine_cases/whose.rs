//! Stages, names, owners and holds.

use serde_json::json;

use crate::{NOTHING, PAIR, support::Project};

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
    for text in ["home", "since", "hold clear"] {
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
