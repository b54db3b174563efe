//! Two deployments in one account: neither takes, writes or deletes what the other made.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::fs;

use serde_json::{Value as Json, json};
use support::{Project, Ran};

/// A pair, a thing that holds another, and one that is replaced when its region changes.
fn program(region: &str) -> String {
    format!(
        r#"
import {{ Thing, Worker }} from "@notation/sim";
const a = new Worker({{ id: "a", config: {{}} }});
const b = new Worker({{ id: "b", config: {{}} }});
a.contribute({{ bindings: [{{ type: "service", service: b.Name }}] }});
b.contribute({{ bindings: [{{ type: "service", service: a.Name }}] }});
const t = new Thing({{ id: "t", config: {{ value: 1 }} }});
new Thing({{ id: "child", config: {{ parent: t.Name }} }});
new Worker({{ id: "moves", config: {{ region: "{region}" }} }});
export const nameOfA = a.Name;
"#
    )
}

fn on(shop: &Project, stage: &str, arguments: &[&str]) -> Ran {
    let mut all = arguments.to_vec();
    all.extend(["--stage", stage]);
    shop.run(&all)
}

fn deploy(shop: &Project, stage: &str) -> Ran {
    on(shop, stage, &["deploy", "main", "--yes"])
}

/// Objects of a stage, whole.
fn of_stage(shop: &Project, stage: &str) -> Vec<(String, Json)> {
    let objects = shop.objects().into_iter();
    objects
        .filter(|(_, object)| object["tags"]["notation:stage"] == stage)
        .collect()
}

fn lose_state(shop: &Project) {
    let folder = shop.path().join(".notation");
    for file in fs::read_dir(&folder).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("state.db") {
            fs::remove_file(file.path()).unwrap();
        }
    }
}

/// Calls that changed something, by operation.
fn writes(shop: &Project) -> Vec<String> {
    shop.calls()
        .iter()
        .filter(|call| call["op"] != "read" && call["result"] == "ok")
        .map(|call| {
            format!(
                "{} {}",
                call["op"].as_str().unwrap(),
                call["name"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn two_stages_of_one_program_share_nothing() {
    let shop = Project::new();
    shop.program(&program("eu"));
    deploy(&shop, "prod").exits(0);
    let prod = of_stage(&shop, "prod");
    assert_eq!(prod.len(), 5);
    deploy(&shop, "staging").exits(0);
    let staging = of_stage(&shop, "staging");
    assert_eq!(staging.len(), 5);
    assert_eq!(shop.objects().len(), 10, "all names differ");
    assert_eq!(of_stage(&shop, "prod"), prod);
    // Each has its own state: a change and a destroy of one leave the other as it is.
    shop.program(&program("us"));
    deploy(&shop, "staging").exits(0);
    assert_eq!(of_stage(&shop, "prod"), prod);
    shop.program(&program("eu"));
    on(&shop, "prod", &["plan", "main", "--fail-on-changes"]).exits(0);
    on(&shop, "staging", &["destroy", "main", "--yes"]).exits(0);
    assert_eq!(shop.objects().len(), 5);
    assert_eq!(of_stage(&shop, "prod"), prod);
    on(&shop, "prod", &["plan", "main", "--fail-on-changes"]).exits(0);
}

#[test]
fn a_stage_that_is_pointed_at_names_of_the_other_is_stopped_with_the_owner() {
    let shop = Project::new();
    shop.program(&program("eu"));
    deploy(&shop, "prod").exits(0);
    let prod = of_stage(&shop, "prod");
    for (name, object) in &prod {
        let ty = object["type"].as_str().unwrap().trim_start_matches("sim/");
        shop.program(&format!(
            "import {{ {ty} }} from \"@notation/sim\";\nnew {ty}({{ id: \"thief\", config: {{ Name: \"{name}\" }} }});\n"
        ));
        on(&shop, "staging", &["plan", "main"])
            .exits(0)
            .says(name)
            .says("belongs to")
            .says("shop:prod:main");
        deploy(&shop, "staging")
            .exits(3)
            .says("run::not_ours")
            .says("shop:prod:main")
            .says("--adopt thief");
        assert_eq!(of_stage(&shop, "prod"), prod);
        let import = ["import", "main", "thief", name, "--adopt", "thief"];
        on(&shop, "staging", &import[..4])
            .exits(1)
            .says("run::not_ours")
            .says("shop:prod:main");
        assert_eq!(of_stage(&shop, "prod"), prod);
        on(&shop, "staging", &import).exits(0);
        // Importing is asking for it, once the owner is known. Forgetting gives nothing back and takes nothing down.
        on(&shop, "staging", &["state", "rm", "main", "thief", "--yes"]).exits(0);
        assert_eq!(of_stage(&shop, "prod"), prod);
    }
    shop.program(&program("eu"));
    on(&shop, "prod", &["plan", "main", "--fail-on-changes"]).exits(0);
}

/// What tells one object from another made in its place.
fn identities(objects: &[(String, Json)]) -> Vec<(String, Json, Json)> {
    let of = |(name, object): &(String, Json)| {
        let outputs = &object["outputs"];
        (name.clone(), outputs["id"].clone(), outputs["arn"].clone())
    };
    objects.iter().map(of).collect()
}

#[test]
fn with_the_state_lost_a_stage_finds_its_own_objects_and_leaves_the_others() {
    let shop = Project::new();
    shop.program(&program("eu"));
    deploy(&shop, "prod").exits(0);
    deploy(&shop, "staging").exits(0);
    let (prod, staging) = (of_stage(&shop, "prod"), of_stage(&shop, "staging"));
    lose_state(&shop);
    shop.forget_calls();
    deploy(&shop, "prod").exits(0);
    let wrote = writes(&shop);
    assert!(
        wrote.iter().all(|call| call.starts_with("update ")),
        "{wrote:?}"
    );
    assert_eq!(identities(&of_stage(&shop, "prod")), identities(&prod));
    assert_eq!(of_stage(&shop, "staging"), staging);
    on(&shop, "prod", &["plan", "main", "--fail-on-changes"]).exits(0);
    on(&shop, "prod", &["outputs", "main"])
        .exits(0)
        .says("shop-prod-a");
    // What was found is taken down by its owner, and nothing else is.
    on(&shop, "prod", &["destroy", "main", "--yes"]).exits(0);
    assert_eq!(of_stage(&shop, "prod"), []);
    assert_eq!(of_stage(&shop, "staging"), staging);
    deploy(&shop, "staging").exits(0);
    assert_eq!(
        identities(&of_stage(&shop, "staging")),
        identities(&staging)
    );
    // With the state of both lost, the names of the other one are refused still.
    lose_state(&shop);
    shop.program("import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { Name: \"shop-staging-a\" } });\n");
    deploy(&shop, "prod").exits(3).says("shop:staging:main");
    assert_eq!(
        identities(&of_stage(&shop, "staging")),
        identities(&staging)
    );
}

/// What the tags of an object say, and whether a deployment that lost its state takes it for its
/// own.
enum Answer {
    Ours,
    /// Refused; the error has this.
    Theirs(&'static str),
}

/// Its name, the tags that are not ours (`None`: taken away), and what comes of it.
type Case = (
    &'static str,
    &'static [(&'static str, Option<&'static str>)],
    Answer,
);

#[test]
fn every_combination_of_owners_is_judged_by_the_tags() {
    use Answer::{Ours, Theirs};
    let cases: &[Case] = &[
        ("ours", &[], Ours),
        (
            "ours of another generation",
            &[("generation", Some("7"))],
            Ours,
        ),
        ("a former id of it", &[("resource", Some("old"))], Ours),
        (
            "another stage",
            &[("stage", Some("prod"))],
            Theirs("shop:prod:main"),
        ),
        (
            "another entry",
            &[("entry", Some("jobs"))],
            Theirs("shop:dev:jobs"),
        ),
        (
            "another app",
            &[("app", Some("store"))],
            Theirs("store:dev:main"),
        ),
        (
            "another resource of ours",
            &[("resource", Some("other"))],
            Theirs("other"),
        ),
        (
            "everything else",
            &[
                ("app", Some("x")),
                ("stage", Some("y")),
                ("entry", Some("z")),
                ("resource", Some("w")),
            ],
            Theirs("x:y:z"),
        ),
        (
            "nobody",
            &[
                ("app", None),
                ("stage", None),
                ("entry", None),
                ("resource", None),
                ("generation", None),
            ],
            Theirs("no"),
        ),
        ("tags that are not whole", &[("entry", None)], Theirs("")),
    ];
    for ty in ["Worker", "Thing", "Frozen"] {
        for (case, tags, answer) in cases {
            let shop = Project::new();
            let config = if ty == "Worker" {
                "code: \"new\""
            } else {
                "value: \"new\""
            };
            shop.program(&format!(
                "import {{ {ty} }} from \"@notation/sim\";\nnew {ty}({{ id: \"x\", config: {{ {config} }}, formerly: [\"old\"] }});\n"
            ));
            deploy(&shop, "dev").exits(0);
            let mut objects = shop.objects();
            let name = objects.keys().next().unwrap().clone();
            let object = objects.get_mut(&name).unwrap();
            for (tag, value) in *tags {
                let tag = format!("notation:{tag}");
                match value {
                    Some(value) => object["tags"][tag] = json!(value),
                    None => {
                        object["tags"].as_object_mut().unwrap().remove(&tag);
                    }
                }
            }
            fs::write(
                shop.cloud().join("objects.json"),
                json!(objects).to_string(),
            )
            .unwrap();
            lose_state(&shop);
            let before = shop.objects();
            match answer {
                Ours => {
                    deploy(&shop, "dev").exits(0);
                    assert_eq!(shop.objects().len(), 1, "{ty}, {case}");
                    on(&shop, "dev", &["plan", "main", "--fail-on-changes"]).exits(0);
                }
                Theirs(owner) => {
                    let ran = deploy(&shop, "dev");
                    assert_eq!(ran.status, Some(3), "{ty}, {case}: {}", ran.said());
                    let ran = ran.says("run::not_ours").says(owner).says("--adopt x");
                    assert_eq!(shop.objects(), before, "{ty}, {case}: {}", ran.said());
                    let adopt = ["deploy", "main", "--yes", "--adopt", "x"];
                    if ty == "Frozen" {
                        // Nothing of it can be written, its tags neither.
                        on(&shop, "dev", &adopt).exits(3).says("cannot be updated");
                        assert_eq!(shop.objects(), before, "{ty}, {case}");
                        continue;
                    }
                    on(&shop, "dev", &adopt).exits(0);
                    let after = shop.objects();
                    assert_eq!(after.len(), 1, "{ty}, {case}");
                    let tags = &after[&name]["tags"];
                    assert_eq!(tags["notation:stage"], "dev", "{ty}, {case}");
                    assert_eq!(tags["notation:resource"], "x", "{ty}, {case}");
                    on(&shop, "dev", &["plan", "main", "--fail-on-changes"]).exits(0);
                }
            }
        }
    }
}

#[test]
fn an_object_that_the_other_stage_took_over_is_left_alone() {
    let shop = Project::new();
    shop.program("import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { Name: \"shared\", code: \"1\" } });\n");
    deploy(&shop, "prod").exits(0);
    deploy(&shop, "staging").exits(3).says("shop:prod:main");
    on(
        &shop,
        "staging",
        &["deploy", "main", "--yes", "--adopt", "a"],
    )
    .exits(0);
    let taken = shop.objects();
    assert_eq!(taken["shared"]["tags"]["notation:stage"], "staging");
    // What the first one still records is not its own any more.
    let ran = on(&shop, "prod", &["destroy", "main", "--yes"]);
    assert_eq!(shop.objects(), taken, "{}", ran.said());
}

#[test]
fn a_second_entry_is_warned_in_the_plan_and_told_the_owner_by_the_deploy() {
    let shop = Project::new();
    shop.write(
        "notation.config.ts",
        "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { api: \"infra/api.ts\", jobs: \"infra/jobs.ts\" } });\n",
    );
    let program =
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"role\", config: {} });\n";
    shop.write("infra/api.ts", program);
    shop.write("infra/jobs.ts", program);
    on(&shop, "dev", &["deploy", "api", "--yes"]).exits(0);
    let plan = on(&shop, "dev", &["--json", "plan", "jobs"])
        .exits(0)
        .event("plan");
    let note = &plan["notes"][0];
    assert_eq!(note["code"], "name_owned", "{plan}");
    assert_eq!(note["resource"], "role");
    assert!(
        note["message"].as_str().unwrap().contains("shop:dev:api"),
        "{note}"
    );
    on(&shop, "dev", &["deploy", "jobs", "--yes"])
        .exits(3)
        .says("shop:dev:api");
    assert_eq!(shop.objects().len(), 1);
    // Who takes it over is told whose it is.
    let adopting = ["--json", "plan", "jobs", "--adopt", "role"];
    let plan = on(&shop, "dev", &adopting).exits(0).event("plan");
    let note = &plan["notes"][0];
    assert_eq!(note["code"], "name_taken_over", "{plan}");
    assert_eq!(plan["notes"].as_array().unwrap().len(), 1, "{plan}");
    assert_eq!(
        note["message"],
        "role takes shop-dev-role over from role of shop:dev:api: it is written as this program asks, and is lost to shop:dev:api"
    );
}
