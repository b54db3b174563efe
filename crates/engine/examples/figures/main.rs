//! What planning and deploying cost: `cargo xtask figures [--json] [GROUP]...`.
//!
//! Each figure stands beside what it should be on a machine with two cores. A figure that misses
//! is printed as missed and fails nothing: times depend on the machine. What can be counted is
//! asserted in tests as well. `docs/figures.md` says what is measured, and how.
#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

mod applies;
mod cycles;
mod deployment;
mod figure;
mod free;
mod growth;
mod memory;
mod plans;
mod programs;
mod stopwatch;
mod turns;

use std::error::Error;

use figure::Report;
use tempfile::TempDir;

/// Why a figure could not be taken.
pub type Failure = Box<dyn Error>;

/// Groups of figures.
const GROUPS: [&str; 5] = ["plans", "cycles", "applies", "latency", "growth"];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        Some((memory::CHILD, rest)) => return memory::child(rest).await,
        Some((growth::CHILD, rest)) => return growth::child(rest).await,
        Some((plans::CHILD, rest)) => return plans::child(rest).await,
        Some(_) | None => {}
    }
    let (flags, wanted): (Vec<&str>, Vec<&str>) = arguments
        .iter()
        .map(String::as_str)
        .partition(|argument| argument.starts_with("--"));
    let unknown = flags.iter().find(|flag| **flag != "--json");
    let unknown = unknown.or_else(|| wanted.iter().find(|group| !GROUPS.contains(group)));
    if let Some(unknown) = unknown {
        return Err(format!("no {unknown}; give --json and any of {}", GROUPS.join(", ")).into());
    }
    let mut report = Report::new(flags.contains(&"--json"));
    for group in GROUPS {
        if !(wanted.is_empty() || wanted.contains(&group)) {
            continue;
        }
        match group {
            "plans" => plans::print(&mut report).await?,
            "cycles" => cycles::print(&mut report).await?,
            "applies" => applies::print(&mut report).await?,
            "latency" => applies::print_latency(&mut report).await?,
            _ => growth::print(&mut report)?,
        }
    }
    report.end();
    Ok(())
}

/// A folder on the disk that this program lies on; a disk in memory would make nothing durable.
pub fn folder() -> Result<TempDir, Failure> {
    let program = std::env::current_exe()?;
    let beside = program.parent().ok_or("this program lies nowhere")?;
    Ok(TempDir::new_in(beside)?)
}
