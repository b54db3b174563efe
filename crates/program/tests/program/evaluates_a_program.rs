//! What a program declares, as data.

use notation_model::{Expr, Value, Via};

use crate::project::{Project, evaluated};

/// The graph in short: one line per resource, contribution, dependOn and export.
fn outline(entry: &str) -> String {
    let done = evaluated(entry);
    let mut lines = Vec::new();
    for desired in done.graph.resources.values() {
        let marks = match (desired.marks.protect, desired.marks.never_bare) {
            (false, false) => "",
            (true, false) => " protect",
            (false, true) => " never-bare",
            (true, true) => " protect never-bare",
        };
        let formerly: String = desired
            .formerly
            .iter()
            .map(|id| format!(" formerly {id}"))
            .collect();
        lines.push(format!(
            "{} {}{marks}{formerly} @{}",
            desired.id, desired.ty, desired.origin
        ));
        for (field, value) in &desired.config {
            lines.push(format!("  {field} = {}", text(value)));
        }
        for contribution in &desired.contributions {
            lines.push(format!(
                "  {} += {} @{}",
                contribution.field,
                text(&contribution.value),
                contribution.origin
            ));
        }
        for depend in &desired.depend_on {
            lines.push(format!("  after {} @{}", depend.target, depend.origin));
        }
    }
    for (name, value) in &done.graph.exports {
        lines.push(format!("export {name} = {}", text(value)));
    }
    lines.extend(done.said.iter().map(|line| format!("said {line}")));
    lines.join("\n")
}

fn text(expr: &Expr) -> String {
    match expr {
        Expr::Known(Value::Map(members)) if members.contains_key("module") => "(code)".into(),
        Expr::Known(value) => value.to_display_json().to_string(),
        Expr::Output(source) => format!("${{{source}}}"),
        Expr::Name => "(name)".into(),
        Expr::Secret(name) => format!("secret({name})"),
        Expr::Join(parts) => parts.iter().map(text).collect::<Vec<_>>().join(" + "),
        Expr::List(items) => format!(
            "[{}]",
            items.iter().map(text).collect::<Vec<_>>().join(", ")
        ),
        Expr::Map(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{key}: {}", text(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

#[test]
fn two_workers_that_bind_each_other() {
    insta::assert_snapshot!(outline(r#"
import { Worker } from "@notation/edge";
const api = new Worker({ id: "api", config: { main: "src/api.ts" } });
const auth = new Worker({ id: "auth", config: { main: "src/auth.ts", endpoint: false } });
api.bind("AUTH", auth);
auth.bind("API", api);
export const url = api.url;
"#), @r#"
api edge/Worker @infra/app.ts:3:13
  main = (code)
  bindings += [{name: "AUTH", service: ${auth.ScriptName}}] @infra/app.ts:5:1
auth edge/Worker @infra/app.ts:4:14
  endpoint = false
  main = (code)
  bindings += [{name: "API", service: ${api.ScriptName}}] @infra/app.ts:6:1
export url = ${api.url}
"#);
}

#[test]
fn options_and_marks() {
    insta::assert_snapshot!(outline(r#"
import { Thing } from "@notation/sim";
const a = new Thing({ id: "a", protect: true, placeholder: "never", formerly: "old" });
const named = new Thing({ config: { Name: "by-hand" }, formerly: ["x", "y"] });
a.dependOn(named, a).contribute({ note: "later" });
"#), @r#"
a sim/Thing protect never-bare formerly old @infra/app.ts:3:11
  note += "later" @infra/app.ts:5:22
  after by-hand @infra/app.ts:5:1
  after a @infra/app.ts:5:1
by-hand sim/Thing formerly x formerly y @infra/app.ts:4:15
  Name = "by-hand"
"#);
}

#[test]
fn references_compose_into_texts_lists_and_maps() {
    insta::assert_snapshot!(outline(r#"
import { concat, interpolate, secret } from "@notation/core";
import { Thing, Worker } from "@notation/sim";
const a = new Worker({ id: "a" });
const t = new Thing({ id: "t" });
new Thing({
  id: "all",
  config: {
    value: {
      whole: a.arn,
      nested: t.value.routes[0].host,
      template: `https://${a.arn}/${1 + 1}/${t.value.path}`,
      tagged: interpolate`<${a.arn}>`,
      joined: concat("x-", a.Name, 7),
      string: String(a.arn),
      lines: [a.Name, a.arn].join(","),
      encoded: JSON.stringify({ arn: `${a.arn}` }),
      secret: secret("KEY"),
      header: `Bearer ${secret("KEY")}`,
      list: [1, a.arn],
      plain: { deep: [true, null, 1.5, "x"], skipped: undefined },
    },
    parent: a.Name,
  },
});
"#), @r#"
a sim/Worker @infra/app.ts:4:11
t sim/Thing @infra/app.ts:5:11
all sim/Thing @infra/app.ts:6:1
  parent = ${a.Name}
  value = {encoded: "{\"arn\":\"" + ${a.arn} + "\"}", header: "Bearer " + secret(KEY), joined: "x-" + ${a.Name} + "7", lines: ${a.Name} + "," + ${a.arn}, list: [1, ${a.arn}], nested: ${t.value.routes[0].host}, plain: {"deep":[true,null,1.5,"x"]}, secret: secret(KEY), string: ${a.arn}, tagged: "<" + ${a.arn} + ">", template: "https://" + ${a.arn} + "/2/" + ${t.value.path}, whole: ${a.arn}}
"#);
}

#[test]
fn contributions_keep_the_order_of_the_calls() {
    insta::assert_snapshot!(outline(r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: { bindings: [{ type: "first" }] } });
const b = new Worker({ id: "b" });
a.contribute({ bindings: [{ service: b.Name }] });
b.bind("A", a);
a.contribute({ bindings: { service: a.Name }, code: undefined });
"#), @r#"
a sim/Worker @infra/app.ts:3:11
  bindings = [{"type":"first"}]
  bindings += [{service: ${b.Name}}] @infra/app.ts:5:1
  bindings += {service: ${a.Name}} @infra/app.ts:7:1
b sim/Worker @infra/app.ts:4:11
  bindings += [{name: "A", service: ${a.Name}, type: "service"}] @infra/app.ts:6:1
"#);
}

#[test]
fn what_it_prints_is_kept_and_references_print_as_themselves() {
    insta::assert_snapshot!(outline(r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a" });
console.log("arn", a.arn, `is ${a.arn}`, { n: [1, a.arn], t: `x${a.Name}` }, a);
console.warn(1, null, undefined);
"#), @r#"
a sim/Worker @infra/app.ts:3:11
said arn ${a.arn} is ${a.arn} { n: [1, ${a.arn}], t: "x${a.Name}" } sim/Worker a
said 1 null undefined
"#);
}

#[test]
fn helpers_packages_and_top_level_await_work() {
    let project = Project::with_entry(
        r#"
import { things } from "./things";
import { shout } from "shouting";
const names = await Promise.all(["x", "y"].map(async (name) => shout(name)));
things(names);
export { names };
"#,
    );
    project.write(
        "infra/things.ts",
        "import { Thing } from \"@notation/sim\";\nexport function things(names: readonly string[]) {\n  for (const name of names) new Thing({ id: name });\n}\n",
    );
    project.write(
        "node_modules/shouting/package.json",
        "{ \"name\": \"shouting\", \"version\": \"1.0.0\", \"main\": \"index.js\" }",
    );
    project.write(
        "node_modules/shouting/index.js",
        "exports.shout = (text) => text.toUpperCase();\n",
    );
    let done = project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", crate::project::render(&problems)));
    let ids: Vec<_> = done.graph.resources.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["X", "Y"]);
    assert_eq!(
        done.graph.resources[0].origin.to_string(),
        "infra/things.ts:3:29"
    );
}

#[test]
fn edges_know_how_they_were_made() {
    let done = evaluated(
        r#"
import { Thing, Worker } from "@notation/sim";
const a = new Worker({ id: "a" });
const t = new Thing({ id: "t", config: { parent: a.Name, value: { deep: [a.arn] } } });
a.bind("T", a).dependOn(t);
"#,
    );
    let edges: Vec<String> = done
        .graph
        .resources
        .values()
        .flat_map(|desired| {
            desired
                .edges()
                .into_iter()
                .map(|edge| {
                    let via = match &edge.via {
                        Via::Config(path) => format!("config {path}"),
                        Via::Contribution(field) => format!("contribution {field}"),
                        Via::DependOn => "dependOn".into(),
                    };
                    format!("{} -> {} {via} @{}", edge.from, edge.to, edge.origin)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        edges,
        [
            "a -> a contribution bindings @infra/app.ts:5:1",
            "a -> t dependOn @infra/app.ts:5:16",
            "t -> a config parent @infra/app.ts:4:11",
            "t -> a config value.deep[0] @infra/app.ts:4:11",
        ]
    );
}

#[test]
fn evaluating_twice_gives_the_same() {
    let entry = r#"
import { Thing } from "@notation/sim";
for (let i = 0; i < 50; i += 1) new Thing({ id: `t${i}`, config: { value: { i } } });
"#;
    assert_eq!(outline(entry), outline(entry));
}

#[test]
fn classes_of_ones_own_can_build_on_resources() {
    insta::assert_snapshot!(outline(r#"
import { Thing, Worker } from "@notation/sim";
enum Region { North = "north" }
class Pair extends Worker {
  label = "kept here";
  mine?: string;
  constructor(id: string, readonly region_: Region) {
    super({ id, config: { region: region_ } });
    this.bind("SELF", this).mine = id;
  }
  address() {
    return `${this.Name}/${this.label}/${this.mine}/${this.region_}`;
  }
}
const pair = new Pair("pair", Region.North);
new Thing({ id: "t", config: { note: pair.address() } });
"#), @r#"
pair sim/Worker @infra/app.ts:8:5
  region = "north"
  bindings += [{name: "SELF", service: ${pair.Name}, type: "service"}] @infra/app.ts:9:5
t sim/Thing @infra/app.ts:16:1
  note = ${pair.Name} + "/kept here/pair/north"
"#);
}

#[test]
fn data_and_paths_of_a_tsconfig_can_be_imported() {
    let project = Project::with_entry(
        r#"
import table from "./table.json";
import { name } from "@/names";
import text from "./note.txt";
import { Thing } from "@notation/sim";
new Thing({ id: name, config: { value: table, note: text } });
"#,
    );
    project.write("infra/table.json", "{ \"rows\": [1, 2] }");
    project.write("infra/note.txt", "hello");
    project.write("src/names.ts", "export const name: string = \"named\";\n");
    project.write(
        "tsconfig.json",
        "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"], \"@notation/*\": [\"./.notation/types/@notation/*/index.d.ts\"] } } }",
    );
    notation_program::lay_types(project.dir.path()).unwrap();
    let done = project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", crate::project::render(&problems)));
    let thing = &done.graph.resources[0];
    assert_eq!(thing.id.as_str(), "named");
    assert_eq!(text(&thing.config["note"]), "\"hello\"");
    assert_eq!(text(&thing.config["value"]), "{\"rows\":[1,2]}");
}

#[test]
fn files_that_import_each_other_and_export_again_work() {
    let project =
        Project::with_entry("export * from \"./a\";\nexport { b as renamed } from \"./b\";\n");
    project.write(
        "infra/a.ts",
        "import { b } from \"./b\";\nexport const a = () => 1;\nexport const sum: number = 1 + b;\n",
    );
    project.write(
        "infra/b.ts",
        "import * as a from \"./a\";\nexport const b = 41;\nexport const later = () => a.a();\n",
    );
    let problems = project.evaluate().unwrap_err();
    // `a` is a function; everything else is fine.
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["the entry exports `a`, which is a function and not data"]
    );
}

#[test]
fn a_thousand_resources_are_nothing_special() {
    let done = evaluated(
        r#"
import { Worker } from "@notation/sim";
let before = new Worker({ id: "w0" });
for (let i = 1; i < 1000; i += 1) {
  const next = new Worker({ id: `w${i}`, config: { code: `after ${before.arn}` } });
  before.bind("NEXT", next);
  before = next;
}
"#,
    );
    assert_eq!(done.graph.resources.len(), 1000);
}
