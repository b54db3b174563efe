//! Code of workers: equal code is equal, wherever it lies and whatever it is called.

use notation_model::{Asset, Expr, ResourceId, Value};
use notation_program::Evaluated;

use crate::project::{Project, render};

const ENTRY: &str = r#"
import { Worker } from "@notation/edge";
new Worker({ id: "api", config: { main: "src/api.ts" } });
new Worker({ id: "auth", config: { main: "src/auth.ts" } });
"#;

fn evaluated(project: &Project) -> Evaluated {
    project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

fn code<'a>(done: &'a Evaluated, id: &str) -> &'a Value {
    match &done.graph.resources[&id.parse::<ResourceId>().unwrap()].config["main"] {
        Expr::Known(value) => value,
        other => panic!("{other:?}"),
    }
}

fn part<'a>(done: &'a Evaluated, id: &str, name: &str) -> &'a str {
    let Value::Map(members) = code(done, id) else {
        panic!()
    };
    let Value::Asset(asset) = &members[name] else {
        panic!("{members:?}")
    };
    let Asset { digest, size_bytes } = &**asset;
    let bytes = &done.assets[digest];
    assert_eq!(bytes.len() as u64, *size_bytes);
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn one_module_without_what_it_does_not_use() {
    let done = evaluated(&Project::with_entry(ENTRY));
    insta::assert_snapshot!(part(&done, "api", "module"), @r#"
function hop(name, rest) {
	return `${name} -> ${rest}`;
}

var main_default = { async fetch(request, env) {
	const answer = await env.AUTH.fetch(request);
	return new Response(hop("api", await answer.text()));
} };

export { main_default as default };
"#);
    insta::assert_snapshot!(part(&done, "auth", "module"), @r#"
function hop(name, rest) {
	return `${name} -> ${rest}`;
}

const handlers = {
	async fetch() {
		return new Response(hop("auth", "end"));
	},
	async scheduled() {}
};

export { handlers as default };
"#);
    let Value::Map(members) = code(&done, "auth") else {
        panic!()
    };
    assert_eq!(
        members["handlers"],
        Value::List(vec!["fetch".into(), "scheduled".into()])
    );
}

#[test]
fn the_map_names_files_relative_to_the_project() {
    let done = evaluated(&Project::with_entry(ENTRY));
    let map: serde_json::Value = serde_json::from_str(part(&done, "api", "sourceMap")).unwrap();
    assert_eq!(map["file"], "index.js");
    assert_eq!(map["sources"], serde_json::json!(["src/hop.ts", "main.ts"]));
    assert_eq!(map["sourcesContent"], serde_json::Value::Null);
}

#[test]
fn moving_the_project_changes_nothing() {
    let one = evaluated(&Project::with_entry(ENTRY));
    let other = evaluated(&Project::with_entry(ENTRY));
    assert_eq!(code(&one, "api"), code(&other, "api"));
    assert_eq!(one.assets, other.assets);
}

#[test]
fn renaming_the_main_file_changes_nothing() {
    let one = evaluated(&Project::with_entry(ENTRY));
    let project = Project::with_entry(&ENTRY.replace("src/api.ts", "src/gateway.ts"));
    let text = std::fs::read_to_string(project.dir.path().join("src/api.ts")).unwrap();
    project.write("src/gateway.ts", &text);
    let other = evaluated(&project);
    assert_eq!(code(&one, "api"), code(&other, "api"));
}

#[test]
fn a_file_of_two_workers_is_bundled_once() {
    let done = evaluated(&Project::with_entry(
        r#"
import { Worker } from "@notation/edge";
for (const id of ["a", "b", "c"]) new Worker({ id, config: { main: "src/api.ts" } });
"#,
    ));
    assert_eq!(code(&done, "a"), code(&done, "c"));
    assert_eq!(done.assets.len(), 2);
}

#[test]
fn a_main_file_that_is_imported_by_its_parts_is_there_once() {
    let project = Project::with_entry(ENTRY);
    project.write(
        "src/api.ts",
        "import { answer } from \"./answer\";\nexport const name = \"api\";\nexport default { fetch: () => answer() };\n",
    );
    project.write(
        "src/answer.ts",
        "import { name } from \"./api\";\nexport const answer = () => new Response(name);\n",
    );
    let done = evaluated(&project);
    let module = part(&done, "api", "module");
    assert_eq!(module.matches("\"api\"").count(), 1, "{module}");
}

#[test]
fn a_dynamic_import_ends_in_the_same_module() {
    let project = Project::with_entry(ENTRY);
    project.write(
        "src/api.ts",
        "export default { async fetch() { const { hop } = await import(\"./hop\"); return new Response(hop(\"a\", \"b\")); } };\n",
    );
    let done = evaluated(&project);
    let module = part(&done, "api", "module");
    assert!(!module.contains("import("), "{module}");
}

#[test]
fn types_may_be_imported_from_where_no_code_is() {
    let project = Project::with_entry(ENTRY);
    project.write(
        "src/api.ts",
        "import { Handlers } from \"@notation/edge\";\nimport { Env } from \"./bindings\";\nexport default { fetch: () => new Response() } satisfies Handlers<Env>;\n",
    );
    project.write("src/bindings.d.ts", "export interface Env {}\n");
    evaluated(&project);
}

#[test]
fn a_bad_import_that_nothing_uses_is_found() {
    let project = Project::with_entry(ENTRY);
    project.write(
        "src/api.ts",
        "import { hopp } from \"./hop\";\nimport { gone } from \"./hops\";\nexport default { fetch: () => new Response() };\n",
    );
    let problems = project.evaluate().unwrap_err();
    let told: Vec<String> = problems
        .iter()
        .map(|problem| {
            let place = problem.place.as_ref().unwrap();
            let help = problem.help.as_deref().unwrap();
            format!("{} {problem}: {help}", place.origin)
        })
        .collect();
    assert_eq!(
        told,
        [
            "src/api.ts:1:10 `hopp` is not exported by `src/hop.ts`: did you mean `hop`?",
            "src/api.ts:2:22 `./hops` cannot be found: did you mean `./hop`?",
        ]
    );
}
