//! Plans as people read them, at two widths and without colour.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use support::Project;

const PAIR: &str = r#"
import { Worker } from "@notation/sim";
const api = new Worker({ id: "api", config: { code: "export default { fetch() { return new Response('hello from the api') } }" } });
const auth = new Worker({ id: "auth", config: { region: "eu" } });
api.contribute({ bindings: [{ type: "service", service: auth.Name }] });
auth.contribute({ bindings: [{ type: "service", service: api.Name }] });
"#;

fn plan(shop: &Project, columns: &str) -> String {
    let output = shop
        .command()
        .env("COLUMNS", columns)
        .args(["plan", "main", "--stage", "dev"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let widest = text
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    assert!(
        widest <= columns.parse().unwrap(),
        "{widest} columns:\n{text}"
    );
    text
}

#[test]
fn a_new_pair_at_80_columns() {
    let shop = Project::new();
    shop.program(PAIR);
    insta::assert_snapshot!(plan(&shop, "80"));
}

#[test]
fn a_new_pair_at_120_columns() {
    let shop = Project::new();
    shop.program(PAIR);
    insta::assert_snapshot!(plan(&shop, "120"));
}

#[test]
fn what_is_only_recorded() {
    let shop = Project::new();
    let program = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\nnew Worker({ id: \"b\", config: {} });\nexport const n = 1;\n";
    shop.program(program).deploy().exits(0);
    let marked = program
        .replace("id: \"a\"", "id: \"a\", protect: true")
        .replace(
            "id: \"b\"",
            "id: \"longer\", formerly: [\"b\"], placeholder: \"never\"",
        );
    shop.program(&marked.replace("n = 1", "n = 2"));
    insta::assert_snapshot!(plan(&shop, "80"), @"
shop:dev:main

  recorded
  ~ a        becomes protected
  ~ longer   is b under its new name; must never be a placeholder

  outputs
  ~ n   1 → 2

Plan: 2 resources to record, 1 output to change, 0 resources unchanged
");
    let said = shop.deploy().exits(0).said();
    let last = said.lines().skip_while(|line| *line != "Recorded:");
    let last: Vec<&str> = last
        .map(|line| line.split(" in ").next().unwrap())
        .collect();
    insta::assert_snapshot!(last.join("\n"), @"
Recorded:
  a        becomes protected
  longer   is b under its new name; must never be a placeholder

Done: 2 recorded, 1 output changed
");
    shop.program(&marked);
    let said = shop.deploy().exits(0).said();
    assert!(said.contains("Done: 1 output changed in "), "{said}");
}

#[test]
fn a_secret_where_it_is_kept_in_clear() {
    let shop = Project::new();
    shop.write(
        "src/api.ts",
        "export default { fetch() { return new Response(\"hi\"); } };\n",
    );
    shop.set_secret("KEY", "hunter2\n");
    let program = "import { secret } from \"@notation/core\";\nimport { Worker } from \"@notation/edge\";\nconst api = new Worker({ id: \"api\", config: { main: \"src/api.ts\", vars: { ISSUER: \"me\" }, secrets: { K: secret(\"KEY\") } } });\n";
    shop.program(program);
    assert!(!plan(&shop, "200").contains("warning"));
    shop.program(&format!("{program}new Worker({{ id: \"auth\", config: {{ main: \"src/api.ts\", vars: {{ K: `${{api.secrets.K}}-` }} }} }});\n"));
    let text = plan(&shop, "200");
    let warnings = text.lines().filter(|line| line.contains("warning"));
    insta::assert_snapshot!(warnings.collect::<Vec<_>>().join("\n"), @"  warning  `vars` of auth is given a secret and is no secret field of edge/Worker: it is kept in clear there; use `secrets`");
}

#[test]
fn a_changed_and_a_removed_resource() {
    let shop = Project::new();
    shop.program(&format!(
        "{PAIR}new Worker({{ id: \"old\", config: {{}} }});\n"
    ))
    .deploy()
    .exits(0);
    shop.program(&PAIR.replace("hello from the api", "good morning"));
    insta::assert_snapshot!(plan(&shop, "80"));
}

#[test]
fn a_member_replaced_under_a_written_name() {
    let shop = Project::new();
    let named = |region: &str| {
        PAIR.replace(
            "region: \"eu\"",
            &format!("Name: \"auth\", region: \"{region}\""),
        )
    };
    shop.program(&named("eu")).deploy().exits(0);
    shop.program(&named("us"));
    insta::assert_snapshot!(plan(&shop, "80"));
}

#[test]
fn a_destroyed_pair() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.program("export const nothing = 0;\n");
    insta::assert_snapshot!(plan(&shop, "80"));
}

#[test]
fn nothing_to_do() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    insta::assert_snapshot!(plan(&shop, "80"));
}

#[test]
fn colours_are_there_when_they_are_wanted() {
    let shop = Project::new();
    shop.program(PAIR);
    let mut command = shop.command();
    command
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .env("COLUMNS", "80")
        .args(["plan", "main", "--stage", "dev"]);
    let coloured = String::from_utf8(command.output().unwrap().stdout).unwrap();
    insta::assert_snapshot!(coloured.replace('\u{1b}', "␛"));
    let plain = String::from_utf8(command.arg("--no-color").output().unwrap().stdout).unwrap();
    assert!(!plain.contains('\u{1b}'));
}
