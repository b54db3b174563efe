//! One `workerd` process: how it is started, how it is seen to be ready, how it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::spawner::Spawner;

const CONTROL_FD: i32 = 3;
const HTTP_FD: i32 = 4;
const EVENTS_FD: i32 = 5;

/// The two listening sockets a process inherits. The host keeps its own handles, so
/// connections wait in the kernel while no process serves them.
pub(crate) struct Inherited {
    pub(crate) http: OwnedFd,
    pub(crate) events: OwnedFd,
}

/// A line a process printed.
pub(crate) enum Printed {
    /// On standard output: tenant code and runtime.
    Out(String),
    /// On standard error: the runtime.
    Err(String),
}

/// A process that serves both its sockets.
pub(crate) struct Process {
    child: Child,
    pid: u32,
    // Closing the reading end early makes the runtime complain about a broken pipe.
    _control: pipe::Receiver,
}

/// Why a process did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The system refused.
    #[error("the worker process could not be started")]
    Spawn(#[source] io::Error),
    /// It ended by itself; `said` is what it printed on standard error.
    #[error("the worker process ended while starting")]
    Ended { said: Vec<String> },
    /// It was killed at the deadline.
    #[error("the worker process did not serve within {}s", .0.as_secs())]
    Late(Duration),
}

/// Starts a process and waits until it serves. Lines it prints go to `printed`.
///
/// Errors: see [`StartError`]; in each case no process is left.
pub(crate) async fn start(
    spawner: &Spawner,
    workerd: &Path,
    inherited: &Inherited,
    config: Vec<u8>,
    deadline: Duration,
    printed: mpsc::UnboundedSender<Printed>,
) -> Result<Process, StartError> {
    let (command, control) = command(workerd, inherited).map_err(StartError::Spawn)?;
    let mut child = spawner.spawn(command).await.map_err(StartError::Spawn)?;
    let pid = child.id().unwrap_or_default();
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let feed = tokio::spawn(async move {
        let config = zeroize::Zeroizing::new(config); // holds sensitive values
        // A process that refuses its configuration closes the pipe; its own words follow.
        let _ = stdin.write_all(&config).await;
    });
    let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
    let stderr = BufReader::new(child.stderr.take().expect("standard error is a pipe"));
    let out = printed.clone();
    tokio::spawn(lines(stdout, move |line| {
        out.send(Printed::Out(line)).is_ok()
    }));
    let (said_tx, mut said) = mpsc::unbounded_channel();
    let errors = tokio::spawn(lines(stderr, move |line| {
        let _ = said_tx.send(line.clone());
        printed.send(Printed::Err(line)).is_ok()
    }));
    let mut control = BufReader::new(control);
    let listening = tokio::time::timeout(deadline, listening(&mut control)).await;
    feed.abort();
    match listening {
        Ok(true) => Ok(Process {
            child,
            pid,
            _control: control.into_inner(),
        }),
        Ok(false) => {
            let _ = child.wait().await;
            let _ = errors.await;
            let mut lines = Vec::new();
            while let Ok(line) = said.try_recv() {
                lines.push(line);
            }
            Err(StartError::Ended { said: lines })
        }
        Err(_) => {
            let _ = child.kill().await;
            Err(StartError::Late(deadline))
        }
    }
}

impl Process {
    /// Process id, for status and logs.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Resolves when the process has ended. May be called again.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks the process to end. It still finishes running requests, not `waitUntil` tasks.
    pub(crate) fn terminate(&self) {
        // `id` is none once the process was reaped, so no other process is ever signalled.
        if let Some(pid) = self
            .child
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Ends the process now.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

fn command(workerd: &Path, inherited: &Inherited) -> io::Result<(Command, pipe::Receiver)> {
    let (reading, writing) = io::pipe()?;
    let control = pipe::Receiver::from_owned_fd(reading.into())?;
    let mut command = std::process::Command::new(workerd);
    command
        .arg("serve")
        .arg("--binary")
        .arg(format!("--control-fd={CONTROL_FD}"))
        .arg(format!("--socket-fd=http={HTTP_FD}"))
        .arg(format!("--socket-fd=events={EVENTS_FD}"))
        .arg("-")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mapping = |parent_fd: OwnedFd, child_fd: i32| FdMapping {
        parent_fd,
        child_fd,
    };
    command
        .fd_mappings(vec![
            mapping(writing.into(), CONTROL_FD),
            mapping(inherited.http.as_fd().try_clone_to_owned()?, HTTP_FD),
            mapping(inherited.events.as_fd().try_clone_to_owned()?, EVENTS_FD),
        ])
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    Ok((command, control))
}

#[derive(Deserialize)]
struct ControlLine {
    event: String,
}

/// Whether both sockets began to listen before the control pipe ended.
async fn listening(control: &mut BufReader<pipe::Receiver>) -> bool {
    let mut missing = 2;
    let mut line = String::new();
    while missing > 0 {
        line.clear();
        match control.read_line(&mut line).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {
                let listens = serde_json::from_str::<ControlLine>(&line)
                    .is_ok_and(|line| line.event == "listen");
                missing -= u32::from(listens);
            }
        }
    }
    true
}

/// Hands over each line, replacing what is not UTF-8, until the end or until nobody listens.
async fn lines(mut from: impl tokio::io::AsyncBufRead + Unpin, mut to: impl FnMut(String) -> bool) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if !to(text.trim_end().to_owned()) {
                    // Keep reading: a full pipe would stop the process.
                    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
                    return;
                }
            }
        }
    }
}
