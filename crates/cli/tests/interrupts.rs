//! Ctrl-C and no: wherever they come, the command ends with its status and its word, nothing is
//! held and nothing is left behind (`engine.md` §7, *Hold*).
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;
#[path = "../../../tests/support/terminal.rs"]
mod terminal;

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use support::{Project, ran};
use terminal::{CTRL_C, at_terminal};

const ONE: &str =
    "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n";

fn is_free(shop: &Project) {
    shop.run(&["hold", "show", "main", "--stage", "dev"])
        .exits(0)
        .says("nobody holds");
    // From elsewhere, too, where nobody can know that the holder is dead.
    let mut elsewhere = shop.command();
    elsewhere.env("NOTATION_MACHINE", "elsewhere");
    elsewhere.args(["deploy", "main", "--stage", "dev", "--yes", "--no-wait"]);
    ran(elsewhere.output().unwrap()).exits(0);
}

/// Every file of a folder with its size, in order.
fn files(folder: &std::path::Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

/// Whether a process is evaluating a program: on a thread of that name (`proc(5)`).
fn evaluates(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.any(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "program")
    })
}

#[test]
fn while_the_program_is_evaluated() {
    let mut shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    let temporary = tempfile::TempDir::new().unwrap();
    shop.set("TMPDIR", &temporary.path().display().to_string());
    shop.program("for (;;) {}\n");
    let before = files(shop.path());
    for command in [&["deploy", "--yes"][..], &["plan"], &["check"], &["graph"]] {
        for signal in ["-INT", "-TERM"] {
            let mut evaluating = shop.command();
            evaluating
                .args(["--json", command[0], "main", "--stage", "dev"])
                .args(&command[1..])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let child = evaluating.spawn().unwrap();
            let deadline = Instant::now() + Duration::from_secs(30);
            while !evaluates(child.id()) {
                assert!(Instant::now() < deadline, "it never evaluated");
                std::thread::sleep(Duration::from_millis(2));
            }
            let pid = child.id().to_string();
            let sent = Command::new("kill").args([signal, &pid]).status();
            assert!(sent.unwrap().success());
            let stopped = ran(child.wait_with_output().unwrap()).exits(130);
            assert_eq!(stopped.event("error")["code"], "run::interrupted");
            assert_eq!(files(shop.path()), before, "{command:?}");
            assert_eq!(files(temporary.path()), []);
        }
    }
    shop.program(ONE);
    is_free(&shop);
}

#[test]
fn a_no_and_a_ctrl_c_at_the_prompt_hold_nothing() {
    for (command, question) in [("deploy", "Deploy shop:dev:main?"), ("destroy", "Destroy")] {
        for (answer, status) in [("n\r", 1), (CTRL_C, 130)] {
            let shop = Project::new();
            shop.program(ONE);
            if command == "destroy" {
                shop.deploy().exits(0);
            }
            let before = shop.objects();
            let mut asked = shop.command();
            asked.args([command, "main", "--stage", "dev"]);
            let screen = at_terminal(asked, 100, &[(question, answer)]);
            assert_eq!(screen.status, Some(status), "{}", screen.text());
            assert!(
                screen.text().contains("nothing was written"),
                "{}",
                screen.text()
            );
            assert_eq!(shop.objects(), before);
            is_free(&shop);
        }
    }
}
