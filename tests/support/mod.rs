//! Drives the binary as a person or a script would, and reads what it left behind.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "it is test code outside test functions")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value as Json;
use tempfile::TempDir;

/// Two workers of the simulated cloud that bind each other.
pub const PAIR: &str = r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: {} });
const b = new Worker({ id: "b", config: {} });
a.contribute({ bindings: [{ type: "service", service: b.Name }] });
b.contribute({ bindings: [{ type: "service", service: a.Name }] });
export const nameOfA = a.Name;
"#;

/// The pair, the first with the secret `KEY`.
pub const PAIR_WITH_A_SECRET: &str = r#"
import { secret } from "@notation/core";
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: { secret: secret("KEY") } });
const b = new Worker({ id: "b", config: {} });
a.contribute({ bindings: [{ type: "service", service: b.Name }] });
b.contribute({ bindings: [{ type: "service", service: a.Name }] });
export const nameOfA = a.Name;
"#;

/// What one command left: exit status and both streams.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Ends the test unless the exit status is this one.
    #[track_caller]
    pub fn exits(self, status: i32) -> Ran {
        assert_eq!(
            self.status,
            Some(status),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Ends the test unless the text is somewhere in what was said.
    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        let both = format!("{}{}", self.stdout, self.stderr);
        assert!(both.contains(text), "{text:?} is not in\n{both}");
        self
    }

    /// Everything that was said, both streams.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The JSON events of stdout.
    pub fn events(&self) -> Vec<Json> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// The one event of that name.
    #[track_caller]
    pub fn event(&self, name: &str) -> Json {
        self.events()
            .into_iter()
            .find(|event| event["event"] == name)
            .unwrap_or_else(|| panic!("no event {name} in\n{}\n{}", self.stdout, self.stderr))
    }
}

/// Where the runtime of workers is: fetched once for all tests.
pub fn cache() -> String {
    std::env::var("NOTATION_CACHE_DIR")
        .unwrap_or_else(|_| format!("{}/runtime-cache", env!("CARGO_TARGET_TMPDIR")))
}

/// A project in a folder of its own, with its own simulated cloud, caches and home.
pub struct Project {
    folder: TempDir,
    /// Names of the app, the entry and the stage the shorthand methods use.
    pub app: &'static str,
    pub entry: &'static str,
    pub stage: &'static str,
    environment: BTreeMap<String, String>,
}

impl Project {
    /// App `shop`, entry `main`, stage `dev`; the program is written by `program`.
    pub fn new() -> Project {
        let folder = TempDir::new().unwrap();
        let project = Project {
            folder,
            app: "shop",
            entry: "main",
            stage: "dev",
            environment: BTreeMap::new(),
        };
        project.write(
            "notation.config.ts",
            "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"shop\", entries: { main: \"infra/main.ts\" } });\n",
        );
        project
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.into(), value.into());
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the program of entry `main`.
    pub fn program(&self, text: &str) -> &Project {
        self.write("infra/main.ts", text);
        self
    }

    /// The command with everything set but its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_notation"));
        command
            .current_dir(self.path())
            .env("NOTATION_SIM_DIR", self.cloud())
            .env("NOTATION_KEY_FILE", self.path().join("key"))
            .env("NO_COLOR", "1")
            .envs(&self.environment)
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command().args(arguments).output().unwrap())
    }

    /// Sets a secret of the deployment.
    #[track_caller]
    pub fn set_secret(&self, name: &str, value: &str) {
        let mut command = self.command();
        command.args(["secret", "set", self.entry, name, "--stage", self.stage]);
        fed(command, value).exits(0);
    }

    pub fn deploy(&self) -> Ran {
        self.run(&["deploy", self.entry, "--stage", self.stage, "--yes"])
    }

    pub fn plan(&self) -> Ran {
        self.run(&["plan", self.entry, "--stage", self.stage])
    }

    pub fn destroy(&self) -> Ran {
        self.run(&["destroy", self.entry, "--stage", self.stage, "--yes"])
    }

    /// The plan as the JSON event.
    pub fn plan_json(&self) -> Json {
        self.run(&["--json", "plan", self.entry, "--stage", self.stage])
            .exits(0)
            .event("plan")
    }

    pub fn cloud(&self) -> PathBuf {
        self.path().join("cloud")
    }

    /// Arms the simulated cloud's faults.
    pub fn faults(&self, faults: Json) {
        fs::create_dir_all(self.cloud()).unwrap();
        fs::write(self.cloud().join("faults.json"), faults.to_string()).unwrap();
    }

    /// Live objects by name.
    pub fn objects(&self) -> BTreeMap<String, Json> {
        match fs::read_to_string(self.cloud().join("objects.json")) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => BTreeMap::new(),
        }
    }

    /// Takes an object away behind the product's back.
    pub fn take_away(&self, name: &str) {
        let mut objects = self.objects();
        objects
            .remove(name)
            .unwrap_or_else(|| panic!("no object {name}"));
        fs::write(
            self.cloud().join("objects.json"),
            serde_json::to_string(&objects).unwrap(),
        )
        .unwrap();
    }

    /// Every call, as logged.
    pub fn calls(&self) -> Vec<Json> {
        let text = fs::read_to_string(self.cloud().join("calls.ndjson")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Forgets the calls so far.
    pub fn forget_calls(&self) {
        let log = self.cloud().join("calls.ndjson");
        if log.exists() {
            fs::write(log, "").unwrap();
        }
    }

    /// Writes that changed something, in the words of the cases: `create a{b}`, `delete a`.
    /// A later incarnation is `a'`.
    pub fn writes(&self) -> Vec<String> {
        self.calls()
            .iter()
            .filter(|call| call["op"] != "read" && call["result"] == "ok")
            .map(|call| self.spell(call))
            .collect()
    }

    fn spell(&self, call: &Json) -> String {
        let op = call["op"].as_str().unwrap();
        let name = self.short(call["name"].as_str().unwrap());
        if op == "delete" {
            return format!("delete {name}");
        }
        let mut bound: Vec<String> = call["params"]["bindings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|binding| binding["service"].as_str().or(binding["version"].as_str()))
            .map(|peer| self.short(peer))
            .collect();
        bound.sort();
        format!("{op} {name}{{{}}}", bound.join(","))
    }

    /// `shop-dev-a` is `a`, `shop-dev-a-1f2e` is `a'`, anything else itself.
    fn short(&self, name: &str) -> String {
        let prefix = format!("{}-{}-", self.app, self.stage);
        let Some(rest) = name.strip_prefix(&prefix) else {
            return name.to_owned();
        };
        match rest.rsplit_once('-') {
            Some((id, hex)) if hex.len() == 4 && hex.chars().all(|c| c.is_ascii_hexdigit()) => {
                format!("{id}'")
            }
            _ => rest.to_owned(),
        }
    }

    /// Ends the test unless the writes since the last look are these groups, in this order; calls
    /// of one group may come in any order. Forgets them.
    #[track_caller]
    pub fn wrote(&self, groups: &[&[&str]]) {
        let found = self.writes();
        let mut rest: &[String] = &found;
        for group in groups {
            let (now, later) = rest.split_at(group.len().min(rest.len()));
            let mut now: Vec<&str> = now.iter().map(String::as_str).collect();
            let mut wanted = group.to_vec();
            now.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(now, wanted, "in {found:?}");
            rest = later;
        }
        assert!(rest.is_empty(), "more than expected: {found:?}");
        self.forget_calls();
    }

    /// Ends the test unless planning again shows nothing to do.
    #[track_caller]
    pub fn is_quiet(&self) {
        self.run(&[
            "plan",
            self.entry,
            "--stage",
            self.stage,
            "--fail-on-changes",
        ])
        .exits(0);
    }
}

/// Whether a process runs. One that has ended and was not waited for does not.
pub fn is_alive(pid: impl std::fmt::Display) -> bool {
    // Its state letter follows the closing parenthesis.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

/// A command with something on its stdin.
pub fn fed(mut command: Command, text: &str) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    ran(child.wait_with_output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
