//! Chores of the repository: `cargo xtask tidy`.

mod arrows;
mod sources;

use std::process::ExitCode;

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
        root: std::path::PathBuf,
    },
}

#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a developer reads this on a terminal"
)]
fn main() -> ExitCode {
    let Args {
        chore: Chore::Tidy { root },
    } = Args::parse();
    let found = match arrows::broken(&root).and_then(|mut found| {
        found.extend(sources::broken(&root)?);
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
