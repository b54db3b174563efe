//! Files that nest deeper than any stack: refused with their place, never the end of the process.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use support::Project;

const DEEP: usize = 100_000;

fn nested(before: &str, middle: &str, after: &str) -> String {
    let (before, after) = (before.repeat(DEEP), after.repeat(DEEP));
    format!("export const x = 1;\n{before}{middle}{after};\n")
}

fn check(shop: &Project) -> support::Ran {
    shop.run(&["check", "main"])
}

#[test]
fn a_program_that_nests_too_deep_is_refused_at_its_place() {
    let shop = Project::new();
    for (before, middle, after) in [
        ("(", "1", ")"),
        ("(", "", ""),
        ("[", "", "]"),
        ("{", "", "}"),
        ("`${", "1", "}`"),
        ("", "a", ".b"),
        ("", "a", "?.b"),
        ("", "a", "+a"),
        ("", "a", "\n+ a"),
        ("", "a", "||a"),
        ("", "a", "()"),
        ("", "a", "[0]"),
        ("!", "a", ""),
        ("- ", "a", ""),
        ("typeof ", "a", ""),
        ("a => ", "a", ""),
        ("a ? 1 : ", "a", ""),
        ("if (a) ", "b", ""),
        ("if (a) {} else ", "{}", ""),
        ("function f() {", "", "}"),
        ("let a: Array<", "x", ">"),
    ] {
        shop.program(&nested(before, middle, after));
        shop.run(&["--json", "check", "main"])
            .exits(1)
            .event("error");
        let said = check(&shop).exits(1).says("program::too_deep").said();
        assert!(said.contains("infra/main.ts"), "{said}");
    }
    // As deep as anybody writes is fine.
    let sum = vec!["1"; 400].join(" + ");
    let list = format!("{}{}", "[".repeat(20), "]".repeat(20));
    shop.program(&format!(
        "export const a = {sum};\nexport const b = {list};\n"
    ));
    check(&shop).exits(0);
}

#[test]
fn so_is_every_other_file_that_is_read_with_it() {
    let shop = Project::new();
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    shop.write("infra/data.json", &deep);
    shop.program("import data from \"./data.json\";\nexport const x = data;\n");
    check(&shop)
        .exits(1)
        .says("program::too_deep")
        .says("infra/data.json:1:");
    shop.write("infra/other.ts", &format!("export default {deep};\n"));
    shop.write("src/api.ts", &format!("export default {deep};\n"));
    shop.program("import other from \"./other\";\nimport { data } from \"./data.json\";\nexport const x = [other, data];\n");
    // All at once.
    check(&shop)
        .exits(1)
        .says("infra/data.json:1:")
        .says("infra/other.ts:1:");
    shop.program("import { Worker } from \"@notation/edge\";\nnew Worker({ id: \"w\", config: { main: \"src/api.ts\" } });\n");
    check(&shop).exits(1).says("src/api.ts:1:");
    let config = fs_read(&shop, "notation.config.ts");
    shop.write(
        "notation.config.ts",
        &format!("{config}export const y = {deep};\n"),
    );
    check(&shop).exits(1).says("notation.config.ts:");
}

fn fs_read(shop: &Project, file: &str) -> String {
    std::fs::read_to_string(shop.path().join(file)).unwrap()
}

#[test]
fn values_that_a_program_nests_while_it_runs_are_refused_too() {
    let shop = Project::new();
    for grow in ["x = [x]", "x = { a: x }", "x = [w.versionId, x]"] {
        for end in [
            "export const y = x;",
            "new Worker({ id: \"z\", config: { code: x } });",
            "w.contribute({ bindings: x });",
            "throw x;",
        ] {
            shop.program(&format!(
                "import {{ Worker }} from \"@notation/sim\";\nconst w = new Worker({{ id: \"w\", config: {{}} }});\nlet x: any = 1;\nfor (let i = 0; i < {DEEP}; i++) {grow};\n{end}\n"
            ));
            check(&shop).exits(1).says("program::");
        }
    }
}

#[test]
fn files_of_ours_that_were_made_deep_are_refused() {
    let shop = Project::new();
    shop.program("import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { code: { k: [7] } } });\n");
    let on_dev = |arguments: &[&str]| shop.run(&[arguments, &["--stage", "dev"]].concat());
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    on_dev(&["plan", "main", "--out", "plan.json"]).exits(0);
    let plan = fs_read(&shop, "plan.json");
    assert!(plan.contains("\"steps\""));
    for text in [
        deep.clone(),
        plan.replace("\"steps\"", &format!("\"deep\":{deep},\"steps\"")),
    ] {
        shop.write("plan.json", &text);
        on_dev(&["deploy", "main", "--yes", "--plan", "plan.json"])
            .exits(1)
            .says("plan_file::not_a_plan");
    }
    shop.deploy().exits(0);
    let objects = fs_read(&shop, "cloud/objects.json");
    let altered = objects.replace("[7]", &deep);
    assert_ne!(altered, objects);
    shop.write("cloud/objects.json", &altered);
    on_dev(&["plan", "main"]).exits(1).says("run::cannot_read");
    shop.write("cloud/objects.json", &objects);
    let state = rusqlite::Connection::open(shop.path().join(".notation/state.db")).unwrap();
    let changed = state
        .execute(
            "update record_1 set body = replace(body, '[7]', ?1)",
            [&deep],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(state);
    for command in [
        &["plan", "main"][..],
        &["state", "list", "main"],
        &["destroy", "main", "--yes"],
    ] {
        on_dev(command).exits(1).says("state::damaged");
    }
}

#[test]
fn a_line_that_is_too_long_to_be_drawn_is_told_in_words() {
    let shop = Project::new();
    let long = format!(
        "export const l = \"{}\"; new Worker({{ ide: 1 }});\n",
        "x".repeat(90_000)
    );
    shop.program(&format!(
        "import {{ Worker }} from \"@notation/sim\";\n{long}"
    ));
    check(&shop).exits(1).says("infra/main.ts:2:");
}
