//! What has to pass before a change lands, in the order in which it fails soonest.

use crate::{
    campaign,
    python::Absent,
    schemathesis::{self, Thoroughness},
};
use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

/// One command of the check.
struct Part {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const BEFORE_TIDY: &[Part] = &[Part {
    name: "format",
    program: "cargo",
    arguments: &["fmt", "--all", "--check"],
}];

const AFTER_TIDY: &[Part] = &[
    Part {
        name: "lints",
        program: "cargo",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    },
    Part {
        name: "type tests",
        program: "node",
        arguments: &["sdk/tests/run.mjs"],
    },
    Part {
        name: "tests",
        program: "cargo",
        arguments: &["test", "--workspace", "--locked", "--no-fail-fast"],
    },
];

/// The suite that can run against a published set of contracts.
const WITH_CONTRACTS: Part = Part {
    name: "host with published contracts",
    program: "cargo",
    arguments: &["test", "--workspace", "--locked", "--test", "host"],
};

/// Examples per operation that every check lets schemathesis try.
const EXAMPLES: usize = 8;
/// The phases of every check: without the walk over every boundary, which takes minutes on a busy
/// machine.
const GLANCE: &str = "examples,fuzzing,stateful";

/// The binary that the tests have built.
fn debug_binary() -> PathBuf {
    let folder = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    Path::new(&folder).join("debug/notation")
}

/// Runs everything; stops at the first part that fails.
#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
pub fn run(contracts: Option<&Path>, tidy: &dyn Fn() -> ExitCode) -> ExitCode {
    for part in BEFORE_TIDY {
        if !passes(part, None) {
            return ExitCode::FAILURE;
        }
    }
    if tidy() != ExitCode::SUCCESS {
        return ExitCode::FAILURE;
    }
    for part in AFTER_TIDY {
        if !passes(part, None) {
            return ExitCode::FAILURE;
        }
    }
    eprintln!("\n== answers against the OpenAPI document");
    let glance = Thoroughness {
        examples: EXAMPLES,
        phases: GLANCE.to_owned(),
    };
    if schemathesis::run(&glance, Absent::Skips) != ExitCode::SUCCESS {
        return ExitCode::FAILURE;
    }
    eprintln!("\n== kill campaign");
    if campaign::run(&debug_binary(), campaign::SHORT) != ExitCode::SUCCESS {
        return ExitCode::FAILURE;
    }
    if let Some(contracts) = contracts {
        let Ok(contracts) = contracts.canonicalize() else {
            eprintln!("check: there is no folder {}", contracts.display());
            return ExitCode::FAILURE;
        };
        if !passes(&WITH_CONTRACTS, Some(&contracts)) {
            return ExitCode::FAILURE;
        }
    }
    eprintln!("check: everything passed");
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
fn passes(part: &Part, contracts: Option<&Path>) -> bool {
    eprintln!(
        "\n== {}: {} {}",
        part.name,
        part.program,
        part.arguments.join(" ")
    );
    let started = Instant::now();
    let mut command = Command::new(part.program);
    command.args(part.arguments);
    if let Some(contracts) = contracts {
        command.env("NOTATION_CONTRACTS", contracts);
        // The endurance tests look at no contract; they ran in full share already.
        command.env("NOTATION_HOST_KILLS", "2");
        command.env("NOTATION_HOST_FUZZ", "1000");
    }
    let status = match command.status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("== {} could not start {}: {error}", part.name, part.program);
            return false;
        }
    };
    let seconds = started.elapsed().as_secs();
    eprintln!(
        "== {} {} in {seconds} s",
        part.name,
        if status.success() { "passed" } else { "FAILED" }
    );
    status.success()
}
