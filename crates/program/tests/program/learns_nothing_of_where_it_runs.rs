//! What a program cannot find out, by whatever means.

use notation_model::{Expr, Value};

use crate::project::{Project, evaluated};

#[test]
fn the_program_cannot_learn_where_it_runs() {
    let done = evaluated(
        r#"
const seen = [];
for (const name of ["process", "fetch", "require", "performance", "WeakRef", "setTimeout", "navigator", "location", "Intl", "Atomics", "std", "os", "scriptArgs", "gc"]) {
  if (typeof globalThis[name] !== "undefined") seen.push(name);
}
const stack = new Error("x").stack;
export const found = seen;
export const url = import.meta.url ?? null;
export const pathInStack = stack.includes("/");
"#,
    );
    assert_eq!(
        done.graph.exports["found"],
        Expr::Known(Value::List(vec![]))
    );
    assert_eq!(done.graph.exports["url"], Expr::Known(Value::Null));
    assert_eq!(
        done.graph.exports["pathInStack"],
        Expr::Known(Value::Bool(false))
    );
}

/// A package that gathers every text it can reach: properties of everything in reach of some
/// values, getters called, functions and errors written out, and what the usual ways of asking
/// answer. It is a package, because a program's own questions to references are refused.
const CURIOUS: &str = r#"
exports.gather = (roots, questions) => {
  const seen = new Set();
  const texts = new Set();
  const note = (value) => {
    const text = String(value);
    if (/^[\x20-\x7e\n]*$/.test(text)) texts.add(text);
  };
  const told = (error) => {
    for (const look of [() => note(error), () => note(error.stack), () => note(error.help)]) {
      try { look(); } catch { /* It has no text. */ }
    }
  };
  const queue = [...roots];
  while (queue.length > 0 && seen.size < 20000) {
    const value = queue.pop();
    if (value === null || (typeof value !== "object" && typeof value !== "function")) {
      note(typeof value === "symbol" ? value.description : value);
      continue;
    }
    if (seen.has(value)) continue;
    seen.add(value);
    for (const look of [
      () => note(value),
      () => note(value.stack),
      () => note(Function.prototype.toString.call(value)),
      () => queue.push(Object.getPrototypeOf(value)),
      () => Reflect.ownKeys(value).forEach((key) => {
        note(typeof key === "symbol" ? key.description : key);
        try { queue.push(value[key]); } catch (error) { told(error); }
      }),
    ]) {
      try { look(); } catch (error) { told(error); }
    }
  }
  for (const ask of questions) {
    try { note(ask()); } catch (error) { told(error); }
  }
  return { texts: [...texts], reached: seen.size };
};
"#;

const ASKING: &str = r#"
import * as core from "@notation/core";
import { Worker } from "@notation/edge";
import { gather } from "curious";
const worker: any = new Worker({ id: "api", config: { main: "src/api.ts" } });
const { texts, reached } = gather(
  [globalThis, core, worker, worker.ScriptName, worker.url, import.meta, new Error("asked"), console, (() => {}).constructor],
  [
    () => eval("typeof process + typeof Deno + typeof require"),
    () => new Function("return this")(),
    () => (globalThis as any).constructor.constructor("return process.env")(),
    () => Symbol.for("stage").description,
    () => `${worker.ScriptName}`.constructor.name,
    () => Date.now(),
    () => new Date().toString(),
    () => Intl.DateTimeFormat().resolvedOptions().timeZone,
    () => (import.meta as any).url,
    () => (import.meta as any).filename,
    () => worker.stage,
    () => core.secret("STAGE"),
  ],
);
export { texts as found, reached };
"#;

#[test]
fn the_program_cannot_learn_its_stage_by_any_means() {
    let project = Project::with_entry(ASKING);
    project.write(
        "node_modules/curious/package.json",
        "{ \"name\": \"curious\", \"version\": \"1.0.0\", \"main\": \"index.js\" }",
    );
    project.write("node_modules/curious/index.js", CURIOUS);
    project.write(
        "notation.config.ts",
        r#"import { defineConfig } from "@notation/core";
export default defineConfig({ app: "zq-app", entries: { main: "infra/app.ts" }, defaultStage: "zq-stage" });
"#,
    );
    let done = project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", crate::project::render(&problems)));
    let Expr::Known(Value::List(found)) = &done.graph.exports["found"] else {
        panic!("{:?}", done.graph.exports["found"])
    };
    let Expr::Known(Value::Int(reached)) = &done.graph.exports["reached"] else {
        panic!("{:?}", done.graph.exports["reached"])
    };
    // It looked around: every intrinsic of the language has some properties.
    assert!(
        *reached > 300 && found.len() > 300,
        "{reached} {}",
        found.len()
    );
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = project.dir.path().to_str().unwrap();
    let user = std::env::var("HOME").unwrap_or_default();
    let secrets = [
        "zq-app",
        "zq-stage",
        "zq",
        folder,
        path.as_str(),
        user.as_str(),
    ];
    for text in found.iter().filter_map(Value::as_text) {
        for secret in secrets.iter().filter(|secret| secret.len() > 1) {
            assert!(
                !text.contains(secret),
                "the program learnt {secret}: {text}"
            );
        }
    }
}
