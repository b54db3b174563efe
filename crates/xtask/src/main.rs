//! Chores of the repository: `cargo xtask check` is what has to pass, `cargo xtask tidy` a part of it.

mod arrows;
mod bench;
mod bucket;
mod campaign;
mod check;
mod circles;
mod endure;
mod figures;
mod python;
mod rules;
mod schemathesis;
mod sources;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Chores of the repository")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check what the manifests and sources promise; prints every broken promise.
    Tidy {
        /// Workspace to look at.
        #[arg(long, default_value = ".")]
        root: PathBuf,
    },
    /// Everything that has to pass: format, lints, tidy, all tests, type tests.
    Check {
        /// Run the host's suite once more with the published contracts in this folder.
        #[arg(long)]
        contracts: Option<PathBuf>,
    },
    /// Whole-process times of the release binary.
    Bench {
        /// How often each command runs.
        #[arg(long, default_value_t = 40)]
        runs: usize,
    },
    /// What planning and deploying cost, in release, beside what they should.
    Figures {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
        /// Only these: plans, cycles, applies, latency, growth.
        groups: Vec<String>,
    },
    /// Kill a large deploy at random instants, run it again each time, count what was lost.
    Campaign {
        /// The binary to kill.
        #[arg(long, default_value = "target/release/notation")]
        binary: PathBuf,
        /// Independent resources.
        #[arg(long, default_value_t = 1000)]
        singles: usize,
        /// Pairs that bind each other.
        #[arg(long, default_value_t = 50)]
        pairs: usize,
        /// How often it is killed.
        #[arg(long, default_value_t = 50)]
        kills: usize,
        /// Seed of the instants.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The host's kill and bad-input tests at full length.
    Endure {
        /// How often the host is killed under load.
        #[arg(long, default_value_t = 100)]
        kills: usize,
        /// How many bad requests it gets.
        #[arg(long, default_value_t = 100_000)]
        requests: usize,
    },
    /// The contract of the artifact store on a bucket over HTTP; needs python3 and a package index.
    Bucket,
    /// Schemathesis against a running host; needs python3 and a package index.
    Schemathesis {
        /// Examples per operation.
        #[arg(long, default_value_t = 50)]
        examples: usize,
        /// Phases of schemathesis, comma-separated.
        #[arg(long, default_value = schemathesis::PHASES)]
        phases: String,
    },
}

fn main() -> ExitCode {
    match Args::parse().chore {
        Chore::Tidy { root } => tidy(&root),
        Chore::Campaign {
            binary,
            singles,
            pairs,
            kills,
            seed,
        } => campaign::run(
            &binary,
            campaign::Size {
                singles,
                pairs,
                kills,
                seed,
            },
        ),
        Chore::Endure { kills, requests } => endure::run(endure::Length { kills, requests }),
        Chore::Schemathesis { examples, phases } => schemathesis::run(
            &schemathesis::Thoroughness { examples, phases },
            python::Absent::Fails,
        ),
        Chore::Bucket => bucket::run(),
        Chore::Figures { json, groups } => figures::run(json, &groups),
        Chore::Bench { runs } => bench::start(runs.max(1)),
        Chore::Check { contracts } => {
            let tidied = || tidy(Path::new("."));
            check::run(contracts.as_deref(), &tidied)
        }
    }
}

#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a developer reads this on a terminal"
)]
fn tidy(root: &Path) -> ExitCode {
    let found = match arrows::broken(root).and_then(|mut found| {
        found.extend(sources::broken(root)?);
        found.extend(rules::broken(root)?);
        found.extend(circles::broken(root)?);
        Ok(found)
    }) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("tidy could not look: {error}");
            return ExitCode::from(2);
        }
    };
    for problem in &found {
        eprintln!("tidy: {problem}");
    }
    if found.is_empty() {
        println!("tidy: every promise holds");
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} broken", found.len());
        ExitCode::FAILURE
    }
}
