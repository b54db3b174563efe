//! One `workerd` process: how it is started, how it is seen to be ready, how it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use serde::Deserialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::spawner::Spawner;

const CONTROL_FD: i32 = 3;
const HTTP_FD: i32 = 4;
const EVENTS_FD: i32 = 5;

/// Lines are cut here.
const MOST_LINE_BYTES: usize = 256 << 10;
/// Lines on standard error that may explain why a process did not start.
const MOST_SAID: usize = 64;
/// Lines that may wait for the log.
pub(crate) const MOST_WAITING_LINES: usize = 4096;

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
    printed: mpsc::Sender<Printed>,
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
    tokio::spawn(lines(stdout, printing(printed.clone(), Printed::Out)));
    let (said_tx, mut said) = mpsc::channel(MOST_SAID);
    let mut print = printing(printed, Printed::Err);
    let errors = tokio::spawn(lines(stderr, move |line| {
        let _ = said_tx.try_send(line.clone());
        print(line);
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

/// Hands over each line, replacing what is not UTF-8 and cutting what is too long, until the
/// end. Goes on reading when nobody listens: a full pipe would stop the process.
async fn lines(mut from: impl AsyncBufRead + Unpin, mut to: impl FnMut(String)) {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let chunk = match from.fill_buf().await {
            Ok(chunk) if !chunk.is_empty() => chunk,
            Ok(_) | Err(_) => break,
        };
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        line.extend_from_slice(&part[..part.len().min(MOST_LINE_BYTES - line.len())]);
        let consumed = end.map_or(chunk.len(), |end| end + 1);
        if end.is_some() {
            to(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
        from.consume(consumed);
    }
    if !line.is_empty() {
        to(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}

/// Puts lines on the way to the log. Code that prints faster than the log can take it loses
/// lines, and the log says how many.
fn printing(
    printed: mpsc::Sender<Printed>,
    as_printed: fn(String) -> Printed,
) -> impl FnMut(String) {
    let mut lost = 0u64;
    move |line| {
        if lost > 0 {
            let note =
                format!("{lost} lines were lost: they came faster than the log could take them");
            match printed.try_send(Printed::Err(note)) {
                Ok(()) => lost = 0,
                Err(_) => {
                    lost += 1;
                    return;
                }
            }
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = printed.try_send(as_printed(line)) {
            lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_split_wherever_the_reads_end() {
        let mut text = b"one\r\ntwo \xff\n\n".to_vec();
        text.extend(vec![b'x'; MOST_LINE_BYTES + 10]);
        text.extend(b"\nlast");
        let mut seen = Vec::new();
        lines(BufReader::with_capacity(5, &text[..]), |line| {
            seen.push(line)
        })
        .await;
        let lengths: Vec<_> = seen.iter().map(String::len).collect();
        assert_eq!(&seen[..3], ["one", "two \u{fffd}", ""]);
        assert_eq!((lengths[3], seen[4].as_str()), (MOST_LINE_BYTES, "last"));
    }

    #[test]
    fn a_log_that_is_too_slow_is_told_how_much_it_missed() {
        let (send, mut printed) = mpsc::channel(1);
        let mut print = printing(send, Printed::Out);
        for line in ["a", "b", "c"] {
            print(line.into());
        }
        let text = |printed| match printed {
            Ok(Printed::Out(text) | Printed::Err(text)) => text,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(text(printed.try_recv()), "a");
        print("d".into());
        assert!(text(printed.try_recv()).starts_with("2 lines were lost"));
        print("e".into());
        assert!(text(printed.try_recv()).starts_with("1 lines were lost"));
    }
}
