//! A plan that was reviewed is run exactly, or not at all.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use support::Project;

const ONE: &str = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { code: \"one\" } });\n";

fn save(shop: &Project) {
    shop.run(&["plan", "main", "--stage", "dev", "--out", "plan.json"])
        .exits(0);
}

fn apply(shop: &Project) -> support::Ran {
    shop.run(&[
        "deploy",
        "main",
        "--stage",
        "dev",
        "--yes",
        "--plan",
        "plan.json",
    ])
}

#[test]
fn a_secret_that_is_set_again_makes_a_plan_old() {
    let shop = Project::new();
    shop.program("import { Worker } from \"@notation/sim\";\nimport { secret } from \"@notation/core\";\nnew Worker({ id: \"a\", config: { secret: secret(\"K\") } });\n");
    // Both values differ from what is deployed, so the steps are the same.
    shop.set_secret("K", "one");
    shop.deploy().exits(0);
    shop.set_secret("K", "two");
    save(&shop);
    shop.set_secret("K", "three");
    apply(&shop)
        .exits(1)
        .says("plan_file::moved")
        .says("K among the secrets: changed");
    let file = std::fs::read_to_string(shop.path().join("plan.json")).unwrap();
    assert!(!file.contains("two"));
    save(&shop);
    // One that the program does not name is no part of it.
    shop.set_secret("OTHER", "x");
    apply(&shop).exits(0);
    shop.is_quiet();
}

#[test]
fn a_saved_plan_is_applied_once() {
    let shop = Project::new();
    shop.program(ONE);
    save(&shop);
    apply(&shop).exits(0);
    shop.wrote(&[&["create a{}"]]);
    apply(&shop)
        .exits(1)
        .says("plan_file::moved")
        .says("a in the state");
}

#[test]
fn a_changed_program_is_named() {
    let shop = Project::new();
    shop.program(ONE);
    save(&shop);
    shop.program(&ONE.replace("\"one\"", "\"two\""));
    apply(&shop).exits(1).says("a in the program: changed");
    shop.program(&format!(
        "{ONE}new Worker({{ id: \"b\", config: {{}} }});\n"
    ));
    apply(&shop).exits(1).says("b in the program: new");
    // A moved line is no change.
    shop.program(&format!("\n\n{ONE}"));
    apply(&shop).exits(0);
}

#[test]
fn a_plan_of_another_stage_or_no_plan_at_all_is_refused() {
    let shop = Project::new();
    shop.program(ONE);
    save(&shop);
    shop.run(&[
        "deploy",
        "main",
        "--stage",
        "prod",
        "--yes",
        "--plan",
        "plan.json",
    ])
    .exits(1)
    .says("plan_file::other_deployment");
    shop.write("plan.json", "{}");
    apply(&shop).exits(1).says("plan_file::not_a_plan");
    std::fs::remove_file(shop.path().join("plan.json")).unwrap();
    apply(&shop).exits(1).says("plan_file::unreadable");
    assert!(shop.objects().is_empty());
}

const TWO: &str = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"z\", config: {} });\nnew Worker({ id: \"y\", config: {} });\n";

#[test]
fn what_moved_beside_program_and_state_is_named() {
    let shop = Project::new();
    shop.program(TWO);
    save(&shop);
    let lines: Vec<&str> = TWO.lines().collect();
    let turned = [lines[0], lines[2], lines[1]].join("\n");
    shop.program(&turned);
    apply(&shop)
        .exits(1)
        .says("moved: the order of the declarations");

    shop.program(TWO).deploy().exits(0);
    shop.program(&TWO.replace("\"y\", config: {}", "\"y\", config: { code: \"n\" }"));
    save(&shop);
    shop.take_away("shop-dev-z");
    apply(&shop)
        .exits(1)
        .says("moved: z (shop-dev-z) is gone at the provider");

    let text = std::fs::read_to_string(shop.path().join("plan.json")).unwrap();
    shop.write("plan.json", &text.replace("\"update\"", "\"create\""));
    apply(&shop)
        .exits(1)
        .says("plan_file::not_a_plan")
        .says("changed after it was saved");
}
