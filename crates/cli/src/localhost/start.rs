//! Finding the local host of a project, starting it when it is needed, replacing a stale one.

use std::{
    fs::OpenOptions,
    io::{BufRead as _, BufReader, ErrorKind},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::{
    control::{self, Ask},
    folder::{self, Folder, FolderError, Info, Tenancy},
    word::Word,
};
use crate::{exit::Exit, failure::Failure};

/// How long an orderly stop may take before the process is ended.
const STOPPING: Duration = Duration::from_secs(30);

/// The living host of this project, when it is the one this binary would start.
pub fn find(project: &Path) -> Result<Option<Info>, Failure> {
    let living = living(&Folder::of(project))?;
    Ok(living.filter(|info| is_ours(info, project)))
}

/// Whoever lives in the folder and has said so: also a host that [`ensure`] would replace.
pub fn living(folder: &Folder) -> Result<Option<Info>, Failure> {
    match folder.tenancy().map_err(unusable)? {
        Tenancy::Running(info) => Ok(Some(info)),
        Tenancy::Unclear | Tenancy::Vacant => Ok(None),
    }
}

/// The living host of this project, started when there is none, replaced when it is stale: of
/// another build, or started before the project was moved.
pub fn ensure(
    project: &Path,
    workerd: impl FnOnce() -> Result<(), Failure>,
) -> Result<Info, Failure> {
    if let Some(info) = find(project)? {
        return Ok(info);
    }
    let folder = Folder::of(project);
    folder.make().map_err(unusable)?;
    let _starting = folder.starting().map_err(unusable)?;
    // Another command may have started it while this one waited.
    if let Some(info) = find(project)? {
        return Ok(info);
    }
    // What is fetched is fetched here, where a person sees why it takes time or fails.
    workerd()?;
    stop(&folder)?;
    start(&folder, project)
}

fn is_ours(info: &Info, project: &Path) -> bool {
    info.build == folder::build() && info.project == project
}

fn start(folder: &Folder, project: &Path) -> Result<Info, Failure> {
    let log = folder.log();
    let failed = |why: String| {
        Failure::new(
            Exit::Fixable,
            "host::cannot_start",
            format!("the local host cannot be started: {why}"),
        )
        .help(format!(
            "`notation host logs` shows what it said; its log is {}",
            log.display()
        ))
    };
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| failed(format!("{}: {error}", log.display())))?;
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .arg("--project")
        .arg(project)
        .args(["host", "serve", "--detached"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .current_dir(project)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdout = child.stdout.take().expect("it was asked for");
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str(&line) {
        Ok(Word::Ready(info)) => Ok(info),
        Ok(Word::Failed(told)) => {
            Err(Failure::from(told).also(format!("its log is {}", log.display())))
        }
        Err(_) => {
            let status = child
                .wait()
                .map(|status| status.to_string())
                .unwrap_or_default();
            Err(failed(format!("it ended without a word ({status})")))
        }
    }
}

/// What an attempt to stop found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Nobody lived there.
    NotRunning,
    /// It ended in order.
    InOrder,
    /// It did not answer and was ended.
    Killed,
}

/// Stops whoever lives in the folder and waits until it is gone.
pub fn stop(folder: &Folder) -> Result<Stopped, Failure> {
    let info = match folder.tenancy().map_err(unusable)? {
        Tenancy::Vacant => return Ok(Stopped::NotRunning),
        Tenancy::Running(info) => Some(info),
        Tenancy::Unclear => None,
    };
    let process = info.as_ref().and_then(|info| Process::of(info.pid));
    let asked = info
        .as_ref()
        .is_some_and(|info| control::ask(&info.control, &Ask::Stop).is_ok());
    let patience = if asked {
        STOPPING
    } else {
        Duration::from_secs(2)
    };
    if gone_within(folder, patience)? {
        process.iter().for_each(Process::wait);
        return Ok(Stopped::InOrder);
    }
    let stuck = || {
        Failure::new(
            Exit::Fixable,
            "host::stuck",
            format!(
                "a process lives in {} and does not answer",
                folder.path().display()
            ),
        )
        .help("end it by hand (its process id is in info.json), then try again")
    };
    let pid = info
        .and_then(|info| i32::try_from(info.pid).ok())
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(stuck)?;
    // It holds the lock, so the id is of a living host and not of somebody else.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).map_err(|_| stuck())?;
    if gone_within(folder, STOPPING)? {
        process.iter().for_each(Process::wait);
        Ok(Stopped::Killed)
    } else {
        Err(stuck())
    }
}

/// A process whose end can be waited for: the lock falls a moment before it.
struct Process(#[cfg(target_os = "linux")] std::os::fd::OwnedFd);

impl Process {
    #[cfg(target_os = "linux")]
    fn of(pid: u32) -> Option<Process> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
        let watched = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
        watched.ok().map(Process)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: u32) -> Option<Process> {
        None
    }

    #[cfg(target_os = "linux")]
    fn wait(&self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec {
            tv_sec: 5,
            tv_nsec: 0,
        };
        // It is ending; when the system cannot tell, nothing more can be done here.
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&patience));
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(&self) {}
}

fn gone_within(folder: &Folder, patience: Duration) -> Result<bool, Failure> {
    let (send, receive) = mpsc::channel();
    let folder = folder.clone();
    // The thread is left behind when it takes longer; it ends with this process.
    thread::spawn(move || send.send(folder.wait_until_vacant()));
    match receive.recv_timeout(patience) {
        Ok(result) => result.map(|()| true).map_err(unusable),
        Err(_) => Ok(false),
    }
}

/// The folder of the local host does not work.
pub fn unusable(error: FolderError) -> Failure {
    let cause = std::error::Error::source(&error)
        .map(ToString::to_string)
        .unwrap_or_default();
    Failure::new(Exit::Fixable, "host::folder", format!("{error}: {cause}"))
        .help(way_out(error.source.kind()))
}

/// How a folder of a host is made usable.
pub fn way_out(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room on the disk that it lies on"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "something that is no folder is in its place: move that away, or give another folder with --data"
        }
        _ => {
            "make it usable for this user; a host keeps its data in the folder given with --data, otherwise in .notation/host of the project"
        }
    }
}
