//! A Worker at an edge host whose resource got another id: a renaming writes nothing, so the host
//! knows it by the id of before.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/hosted.rs"]
mod hosted;
#[path = "../../../tests/support/mod.rs"]
mod support;

use hosted::Hosted;
use serde_json::Value as Json;
use support::Ran;

/// Renames, and looks at the host.
struct Renaming(Hosted);

impl Renaming {
    fn new() -> Renaming {
        let hosted = Hosted::new();
        hosted.0.write(
            "src/w.ts",
            "export default { fetch() { return new Response(\"here\"); } };\n",
        );
        Renaming(hosted)
    }

    /// Deploys these statements.
    fn deploy(&self, statements: &str, flags: &[&str]) -> Ran {
        let imports = "import { Worker } from \"@notation/edge\";\nconst main = \"src/w.ts\";\n";
        let project = &self.0.0;
        project.program(&format!("{imports}{statements}"));
        let deploy = ["deploy", "main", "--stage", "dev", "--yes"];
        project.run(&[&deploy[..], flags].concat())
    }

    fn destroy(&self) -> Ran {
        self.0.0.destroy()
    }

    /// Names of the Workers that the host has.
    fn workers(&self) -> Vec<String> {
        let all = self.resources();
        let workers = all.iter().filter(|one| one["kind"] == "ModuleWorker");
        let names = workers.map(|one| one["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn resources(&self) -> Vec<Json> {
        let status = self.0.status();
        assert_eq!(status["running"], true);
        status["resources"].as_array().unwrap().clone()
    }
}

fn worker(id: &str, formerly: &[&str]) -> String {
    named(id, formerly, "")
}

/// With more of a config than its code.
fn named(id: &str, formerly: &[&str], more: &str) -> String {
    let main = "main: \"src/w.ts\"";
    format!(
        "new Worker({{ id: \"{id}\", formerly: {formerly:?}, config: {{ {main}, {more} }} }});\n"
    )
}

#[test]
fn it_is_destroyed_and_leaves_when_it_is_taken_out_of_the_program() {
    let hosted = Renaming::new();
    for twice in [false, true] {
        for destroyed in [true, false] {
            hosted.deploy(&worker("api", &[]), &[]).exits(0);
            hosted.deploy(&worker("gateway", &["api"]), &[]).exits(0);
            if twice {
                hosted.deploy(&worker("front", &["gateway"]), &[]).exits(0);
            }
            assert_eq!(hosted.workers(), ["shop-dev-api"]);
            match destroyed {
                true => hosted.destroy().exits(0),
                false => hosted.deploy("", &[]).exits(0),
            };
            assert_eq!(hosted.resources(), Vec::<Json>::new());
        }
    }
}

#[test]
fn it_is_replaced_under_a_generated_and_under_a_written_name() {
    let hosted = Renaming::new();
    for more in ["", "ScriptName: \"front\""] {
        hosted.deploy(&named("api", &[], more), &[]).exits(0);
        let renamed = named("gateway", &["api"], more);
        hosted.deploy(&renamed, &[]).exits(0);
        hosted
            .deploy(&renamed, &["--replace", "gateway"])
            .exits(0)
            .says("gateway");
        assert_eq!(hosted.workers().len(), 1);
        hosted.deploy(&renamed, &[]).exits(0).says("Nothing to do");
        hosted.destroy().exits(0);
        assert_eq!(hosted.resources(), Vec::<Json>::new());
    }
}

#[test]
fn in_a_cycle_it_is_destroyed_and_leaves_without_its_peer() {
    let hosted = Renaming::new();
    let pair = |one: &str| {
        let other = worker("auth", &[]);
        format!(
            "const one = {one}const other = {other}\
one.contribute({{ bindings: [{{ name: \"OTHER\", service: other.ScriptName }}] }});\n\
other.contribute({{ bindings: [{{ name: \"ONE\", service: one.ScriptName }}] }});\n"
        )
    };
    for leaves in [true, false] {
        hosted.deploy(&pair(&worker("api", &[])), &[]).exits(0);
        let renamed = pair(&worker("gateway", &["api"]));
        hosted.deploy(&renamed, &[]).exits(0);
        assert_eq!(hosted.workers(), ["shop-dev-api", "shop-dev-auth"]);
        if leaves {
            hosted.deploy(&worker("auth", &[]), &[]).exits(0);
            assert_eq!(hosted.workers(), ["shop-dev-auth"]);
        }
        hosted.destroy().exits(0);
        assert_eq!(hosted.resources(), Vec::<Json>::new());
    }
}
