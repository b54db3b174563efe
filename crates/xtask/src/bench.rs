//! Whole-process times of the release binary: what a person waits for.

use std::{
    io,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

/// One command that is timed in a project folder.
struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    /// The figure a two-core machine should stay under, in milliseconds.
    under_ms: u64,
}

const CASES: &[Case] = &[
    Case {
        name: "version",
        arguments: &["version"],
        under_ms: 10,
    },
    Case {
        name: "plan the pair (three bundles), --no-refresh",
        arguments: &[
            "--project",
            "examples/pair",
            "plan",
            "pair",
            "--stage",
            "bench",
            "--no-refresh",
        ],
        under_ms: 30,
    },
];

/// Builds the release binary, runs each case `runs` times and prints minimum, median and
/// maximum in milliseconds beside the figure it should stay under.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads this on a terminal"
)]
pub fn start(runs: usize) -> ExitCode {
    let built = Command::new("cargo")
        .args(["build", "--release", "--locked", "-p", "notation-cli"])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return ExitCode::FAILURE;
    }
    let folder = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let binary = Path::new(&folder).join("release/notation");
    println!(
        "{:<46} {:>8} {:>8} {:>8}   {:>8}",
        "whole process, ms", "min", "median", "max", "under"
    );
    let mut slow = false;
    for case in CASES {
        let mut times = Vec::with_capacity(runs);
        // The first run fills the page cache and is not counted.
        for run in 0..=runs {
            match time(&binary, case) {
                Ok(took) if run > 0 => times.push(took),
                Ok(_) => {}
                Err(error) => {
                    eprintln!("{}: {error}", case.name);
                    return ExitCode::FAILURE;
                }
            }
        }
        times.sort_unstable();
        let ms = |took: Duration| took.as_secs_f64() * 1000.0;
        let (min, median, max) = (
            ms(times[0]),
            ms(times[times.len() / 2]),
            ms(times[times.len() - 1]),
        );
        let late = median > case.under_ms as f64;
        slow |= late;
        let mark = if late { " LATE" } else { "" };
        println!(
            "{:<46} {min:>8.1} {median:>8.1} {max:>8.1}   {:>8}{mark}",
            case.name, case.under_ms
        );
    }
    if slow {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn time(binary: &Path, case: &Case) -> io::Result<Duration> {
    let started = Instant::now();
    let output = Command::new(binary)
        .args(case.arguments)
        .stdin(Stdio::null())
        .output()?;
    let took = started.elapsed();
    if output.status.success() {
        Ok(took)
    } else {
        Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }
}
