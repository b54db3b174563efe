//! What planning and deploying cost, beside what they should: builds and runs the engine's figures.

use std::process::{Command, ExitCode};

/// Builds the figures in release and runs these groups of them, or all.
///
/// Fails when a figure could not be taken, not when one misses its target.
#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
pub fn run(json: bool, groups: &[String]) -> ExitCode {
    let package = ["-p", "notation-engine", "--example", "figures"];
    let mut command = Command::new("cargo");
    command
        .args(["run", "--quiet", "--release", "--locked"])
        .args(package)
        .arg("--")
        .args(json.then_some("--json"))
        .args(groups);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
