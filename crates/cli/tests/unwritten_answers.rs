//! An answer that cannot be written is no success, and a reader that went away is no failure.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use support::{PAIR, Project, Ran, ran};

/// Every write to it fails as on a full disk.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

fn unwritten(shop: &Project, arguments: &[&str]) -> Ran {
    let mut command = shop.command();
    command.args(arguments).stdout(full());
    ran(command.output().unwrap())
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    let of_entry = [
        "check",
        "plan",
        "graph",
        "outputs",
        "state list",
        "hold show",
        "secret list",
    ];
    let mut asked: Vec<String> = of_entry
        .iter()
        .map(|command| format!("{command} main --stage dev"))
        .collect();
    asked.extend(
        [
            "stages",
            "sim dump",
            "version",
            "help plan",
            "--help",
            "plan --help",
            "--version",
        ]
        .map(str::to_owned),
    );
    asked.push("completions bash".to_owned());
    for line in &asked {
        // A secret list without a secret says nothing on stdout.
        let silent = line.starts_with("secret");
        for json in ["", "--json "] {
            let line = format!("{json}{line}");
            let words: Vec<&str> = line.split(' ').collect();
            let ran = unwritten(&shop, &words);
            if silent && json.is_empty() {
                ran.exits(0);
                continue;
            }
            let ran = ran.exits(1).says("system::not_written");
            assert!(ran.stderr.contains("No space left on device"), "{line}");
        }
    }
}

#[test]
fn a_deploy_does_its_work_without_an_audience_and_says_so() {
    let shop = Project::new();
    shop.program(PAIR);
    let deploy = ["deploy", "main", "--stage", "dev", "--yes"];
    unwritten(&shop, &deploy)
        .exits(3)
        .says("system::not_written");
    assert_eq!(shop.objects().len(), 2);
    shop.is_quiet();
    // Its own status says more.
    shop.program("throw new Error(\"no\");");
    unwritten(
        &shop,
        &["--json", "deploy", "main", "--stage", "dev", "--yes"],
    )
    .exits(1)
    .says("system::not_written");
}

#[test]
fn a_reader_that_goes_away_has_what_it_wanted() {
    let shop = Project::new();
    let program: String = (0..2000)
        .map(|at| {
            format!("export const output{at} = \"a text that fills what a pipe holds {at}\";\n")
        })
        .collect();
    shop.program(&program).deploy().exits(0);
    for json in [false, true] {
        let mut command = shop.command();
        if json {
            command.arg("--json");
        }
        command.args(["outputs", "main", "--stage", "dev"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
        if !json {
            reader.read_line(&mut first).unwrap();
            assert!(first.contains("output0"), "{first}");
        }
        drop(reader);
        let ran = ran(child.wait_with_output().unwrap()).exits(0);
        assert_eq!(ran.stderr, "");
    }
}
