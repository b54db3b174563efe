//! Ending worker processes a killed host left behind.
//!
//! On Linux a worker process ends with its host. Elsewhere, and as a second net, each
//! process is marked by a file in the run directory until it ends; the next host that uses
//! the directory ends those that are still there.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

const EXTENSION: &str = "pid";

/// Where processes are marked.
#[derive(Clone)]
pub(crate) struct Marks(PathBuf);

impl Marks {
    pub(crate) fn in_directory(directory: &Path) -> Marks {
        Marks(directory.to_owned())
    }

    /// Marks a process. Marks of processes that ended are harmless: a process is only ended
    /// when it runs our binary.
    pub(crate) fn mark(&self, pid: u32) {
        let file = self.0.join(format!("{pid}.{EXTENSION}"));
        if let Err(error) = fs::write(&file, b"") {
            tracing::debug!(%error, file = %file.display(), "a worker process was not marked");
        }
    }

    /// Removes the mark of a process that has ended.
    pub(crate) fn unmark(&self, pid: u32) {
        let _ = fs::remove_file(self.0.join(format!("{pid}.{EXTENSION}")));
    }
}

/// Ends every marked process that still runs `workerd`.
pub(crate) fn sweep(run_dir: &Path, workerd: &Path) {
    let Ok(entries) = fs::read_dir(run_dir) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let marked = path
            .extension()
            .is_some_and(|extension| extension == EXTENSION);
        let pid = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.parse::<i32>().ok());
        if let Some(pid) = pid
            .filter(|pid| marked && runs(*pid, workerd))
            .and_then(Pid::from_raw)
        {
            tracing::warn!(
                pid = pid.as_raw_nonzero(),
                "ending a worker process an earlier host left behind"
            );
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether the process with this id runs the binary: ids are given again.
fn runs(pid: i32, workerd: &Path) -> bool {
    let name = workerd.file_name().unwrap_or_default();
    if let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) {
        return program.file_name() == Some(name);
    }
    let asked = std::process::Command::new("ps")
        .args(["-o", "comm=", "-p", &pid.to_string()])
        .output();
    asked.is_ok_and(|output| {
        let program = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&program).file_name() == Some(name)
    })
}
