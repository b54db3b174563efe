//! The host's endurance tests at full length; every check runs a small share of them.

use std::process::{Command, ExitCode};

/// How long the tests run.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// How often the host is killed under load.
    pub kills: usize,
    /// How many bad requests it gets.
    pub requests: usize,
}

/// Runs both tests of the host's suite and shows what they counted.
#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
pub fn run(length: Length) -> ExitCode {
    let status = Command::new("cargo")
        .args(["test", "--workspace", "--locked", "--test", "host", "--"])
        .args(["nothing_acknowledged_is_lost", "bad_input_makes_no_5xx"])
        .args(["--nocapture", "--test-threads", "1"])
        .env("NOTATION_HOST_KILLS", length.kills.to_string())
        .env("NOTATION_HOST_FUZZ", length.requests.to_string())
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("endure: cargo could not start: {error}");
            ExitCode::FAILURE
        }
    }
}
