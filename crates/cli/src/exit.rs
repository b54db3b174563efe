//! What the process ends with (`spec/cli.md`, *Exit statuses*).

use std::process::ExitCode;

/// Exit statuses. Stable: scripts depend on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The user can fix it, and nothing was written.
    Fixable = 1,
    /// Wrong usage, found before evaluation.
    Usage = 2,
    /// The run stopped or failed after its first step could start; state is consistent.
    Stopped = 3,
    /// Another run holds the deployment.
    Held = 4,
    /// There are changes (only with `--fail-on-changes`).
    Changes = 5,
    /// Our bug.
    Bug = 70,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
