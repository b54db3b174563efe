//! What people see at a terminal of 80 and of 120 columns, with and without colours.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;
#[path = "../../../tests/support/terminal.rs"]
mod terminal;

use serde_json::json;
use support::Project;
use terminal::{Screen, at_terminal};

const PAIR: &str = r#"
import { secret } from "@notation/core";
import { Thing, Worker } from "@notation/sim";
const api = new Worker({ id: "api", config: { secret: secret("KEY"), code: "export default { fetch() { return new Response('hello from the api') } }" } });
const auth = new Worker({ id: "auth", config: { region: "eu" } });
api.contribute({ bindings: [{ type: "service", service: auth.Name }] });
auth.contribute({ bindings: [{ type: "service", service: api.Name }] });
const table = new Thing({ id: "table", config: { value: { rows: 3 } } });
new Thing({ id: "index", config: { parent: table.Name } });
export const nameOfApi = api.Name;
"#;

fn shop() -> Project {
    let shop = Project::new();
    shop.program(PAIR);
    shop.set_secret("KEY", "hunter2\n");
    shop
}

fn at(
    shop: &Project,
    columns: u16,
    colours: bool,
    arguments: &[&str],
    answers: &[(&str, &str)],
) -> Screen {
    let mut command = shop.command();
    command.env_remove("COLUMNS").env("TERM", "xterm-256color");
    if colours {
        command.env_remove("NO_COLOR");
    }
    command.args(arguments);
    let screen = at_terminal(command, columns, answers);
    assert!(!screen.overflows(), "{}", screen.text());
    if !colours {
        assert_eq!(screen.painted(), screen.text(), "no colour is left");
    }
    screen
}

/// Looks at the same command at every width, with and without colours; `prepare` makes the world
/// it is run in.
fn reviewed(
    name: &str,
    arguments: &[&str],
    answers: &[(&str, &str)],
    status: i32,
    prepare: &dyn Fn() -> Project,
) {
    for columns in [80, 120] {
        for colours in [false, true] {
            let shop = prepare();
            let screen = at(&shop, columns, colours, arguments, answers);
            assert_eq!(screen.status, Some(status), "{}", screen.text());
            let look = if colours { "in_colour" } else { "plain" };
            insta::assert_snapshot!(
                format!("{name}_{columns}_{look}"),
                steady(&shop, &screen.painted())
            );
        }
    }
}

/// The text without what differs from run to run: times, ids of runs, folders.
fn steady(shop: &Project, text: &str) -> String {
    let folder = shop.path().display().to_string();
    let rules = [
        (regex::escape(&folder), "FOLDER"),
        (
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".into(),
            "2026-01-01T00:00:00Z",
        ),
        (r"\b\d+ ms\b".into(), "N ms"),
        (r"\b\d+\.\d s\b".into(), "N ms"),
        (r"\b\d+ min \d+ s\b".into(), "N ms"),
        (r"process \d+ +".into(), "process N   "),
        (r"process \d+".into(), "process N"),
        (r"127\.0\.0\.1:\d+".into(), "127.0.0.1:PORT"),
        (r"status:[\w-]{22}@".into(), "status:KEY@"),
    ];
    let mut text = text.to_owned();
    for (pattern, stands) in rules {
        let pattern = regex::Regex::new(&pattern).unwrap();
        text = pattern.replace_all(&text, stands).into_owned();
    }
    text
}

const DEPLOY: &[&str] = &["deploy", "main", "--stage", "dev", "--parallelism", "1"];

#[test]
fn a_plan() {
    reviewed("plan", &["plan", "main", "--stage", "dev"], &[], 0, &|| {
        let shop = shop();
        shop.deploy().exits(0);
        let changed = PAIR
            .replace("hello from the api", "good morning")
            .replace("region: \"eu\"", "region: \"us\"")
            .replace("new Thing({ id: \"index\"", "new Thing({ id: \"list\"")
            .replace("nameOfApi = api.Name", "nameOfAuth = auth.Name");
        shop.program(&changed);
        shop
    });
}

#[test]
fn a_deploy_that_is_asked_for_and_runs() {
    reviewed("deploy", DEPLOY, &[("[y/N]", "y\n")], 0, &shop);
}

#[test]
fn a_no_at_the_prompt() {
    let shop = shop();
    let screen = at(&shop, 80, false, DEPLOY, &[("[y/N]", "n\n")]);
    assert_eq!(screen.status, Some(1));
    assert!(
        screen.text().contains("nothing was written"),
        "{}",
        screen.text()
    );
    assert!(shop.objects().is_empty());
    let screen = at(&shop, 80, false, DEPLOY, &[("[y/N]", "\n")]);
    assert_eq!(screen.status, Some(1));
    for (command, question) in [
        (
            &["destroy", "main", "--stage", "dev"] as &[&str],
            "Destroy shop:dev:main?",
        ),
        (
            &["state", "rm", "main", "api", "--stage", "dev"],
            "Forget api?",
        ),
    ] {
        shop.deploy().exits(0);
        let screen = at(&shop, 80, false, command, &[(question, "no\n")]);
        assert_eq!(screen.status, Some(1), "{}", screen.text());
        assert_eq!(shop.objects().len(), 4);
    }
    let screen = at(
        &shop,
        80,
        false,
        &["destroy", "main", "--stage", "dev"],
        &[("[y/N]", "yes\n")],
    );
    assert_eq!(screen.status, Some(0), "{}", screen.text());
    assert!(shop.objects().is_empty());
}

#[test]
fn a_failure_and_its_report() {
    reviewed(
        "failure",
        &[
            "deploy",
            "main",
            "--stage",
            "dev",
            "--yes",
            "--parallelism",
            "1",
        ],
        &[],
        3,
        &|| {
            let shop = shop();
            shop.faults(json!([
                { "op": "create", "name": "shop-dev-auth", "do": "fail" },
                { "op": "create", "name": "shop-dev-table-*", "do": "fail" },
            ]));
            shop
        },
    );
}

#[test]
fn a_problem_of_the_program() {
    reviewed("problem", &["check", "main"], &[], 1, &|| {
        let shop = Project::new();
        shop.program(
            "import { Worker } from \"@notation/sim\";\nconst a = new Worker({ id: \"a\", config: { regoin: \"eu\" } });\nnew Worker({ id: \"a\", config: {} });\n",
        );
        shop
    });
}

#[test]
fn wrong_usage() {
    reviewed("usage", &["deploy", "main", "dev"], &[], 2, &Project::new);
}

#[test]
fn the_list_of_stages() {
    reviewed("stages", &["stages"], &[], 0, &|| {
        let shop = shop();
        shop.deploy().exits(0);
        shop.write(
            "notation.config.ts",
            "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"orders\", entries: { main: \"infra/main.ts\", jobs: \"infra/main.ts\" } });\n",
        );
        shop.program("export const x = 1;\n");
        for entry in ["main", "jobs"] {
            shop.run(&["deploy", entry, "--stage", "prod", "--yes"])
                .exits(0);
        }
        shop.write(
            "notation.config.ts",
            "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"orders\", entries: { main: \"infra/main.ts\" } });\n",
        );
        shop
    });
}

#[test]
fn a_graph() {
    for format in ["mermaid", "dot", "svg"] {
        let shop = Project::new();
        shop.program(
            &PAIR
                .replace(
                    "new Thing({ id: \"index\"",
                    "const index = new Thing({ id: \"index\"",
                )
                .replace("export const", "index.dependOn(auth);\nexport const"),
        );
        let ran = shop.run(&["graph", "main", "--format", format]).exits(0);
        insta::assert_snapshot!(format!("graph_{format}"), ran.stdout);
    }
}

#[test]
fn the_status_of_the_host() {
    let mut shop = Project::new();
    let cache = std::env::var("NOTATION_CACHE_DIR")
        .unwrap_or_else(|_| format!("{}/runtime-cache", env!("CARGO_TARGET_TMPDIR")));
    shop.set("NOTATION_CACHE_DIR", &cache);
    std::fs::remove_file(shop.path().join("notation.config.ts")).unwrap();
    shop.run(&["init", ".", "--app", "shop"]).exits(0);
    shop.run(&["deploy", "app", "--stage", "dev", "--yes"])
        .exits(0);
    for columns in [80, 120] {
        for colours in [false, true] {
            let screen = at(&shop, columns, colours, &["host", "status"], &[]);
            let look = if colours { "in_colour" } else { "plain" };
            insta::assert_snapshot!(
                format!("status_{columns}_{look}"),
                steady(&shop, &screen.painted())
            );
        }
    }
    let screen = at(&shop, 80, false, &["host", "logs"], &[]);
    assert!(
        screen.text().contains("the host serves"),
        "{}",
        screen.text()
    );
    shop.run(&["host", "stop"]).exits(0);
}

#[test]
fn a_page_about_an_error() {
    reviewed("page", &["help", "unbreakable_loop"], &[], 0, &Project::new);
}

#[test]
fn the_help_of_a_command_fits_80_columns() {
    let shop = Project::new();
    for topic in ["", "deploy", "state show", "host serve", "init"] {
        let mut arguments = vec!["help"];
        arguments.extend(topic.split_whitespace());
        let ran = shop.run(&arguments).exits(0);
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    insta::assert_snapshot!(
        "help_deploy",
        shop.run(&["deploy", "--help"]).exits(0).stdout
    );
}

/// One step has to wait: what the moving lines say meanwhile, and that they leave nothing behind.
#[test]
fn a_running_step_is_a_moving_line() {
    let shop = shop();
    shop.faults(json!([{ "op": "create", "name": "shop-dev-auth", "do": "wait", "times": 20, "delay_ms": 100 }]));
    let deploy = [
        "deploy",
        "main",
        "--stage",
        "dev",
        "--yes",
        "--max-attempts",
        "100",
    ];
    let screen = at(&shop, 80, false, &deploy, &[("auth   create, attempt", "")]);
    assert_eq!(screen.status, Some(0), "{}", screen.text());
    let moment = &screen.moments[0];
    let moving: Vec<_> = moment
        .lines()
        .filter(|line| line.contains("attempt"))
        .collect();
    let [line] = moving.as_slice() else {
        panic!("one line waits: {moment}");
    };
    let shape = regex::Regex::new(r"^  \S auth   create, attempt \d+: .+  \d+s$").unwrap();
    assert!(shape.is_match(line), "{line:?}");
    assert!(!screen.text().contains("attempt"), "{}", screen.text());
}

#[test]
fn an_interrupt_where_a_secret_is_asked_for_leaves_the_terminal_as_it_was() {
    let shop = Project::new();
    shop.program(PAIR);
    let set = ["secret", "set", "main", "KEY", "--stage", "dev"];
    let asked = |typed: &str| at(&shop, 80, false, &set, &[("(not shown):", typed)]);
    let screen = asked("swo\u{3}");
    assert_eq!(screen.status, Some(130), "{}", screen.text());
    assert!(screen.echoes, "{}", screen.text());
    assert!(
        screen.text().contains("run::interrupted"),
        "{}",
        screen.text()
    );
    let screen = asked("swordfish\n");
    assert_eq!(screen.status, Some(0), "{}", screen.text());
    assert!(
        screen.echoes && !screen.text().contains("swo"),
        "{}",
        screen.text()
    );
}
