//! More clients than a host has room for, and a host that has no file descriptor left.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use crate::served::{Served, answers, exchange, log_of};

const CODE: &str = "export default { fetch() { return new Response(\"alive\"); } };\n";
const SILENT: &str = "does not answer any more";
/// Longer than what is waited for takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request on a connection that stays open.
fn ask(stream: &mut TcpStream, name: &str) {
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    while !answer.contains("alive") {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).unwrap();
        assert_ne!(length, 0, "{answer}");
        answer.push_str(std::str::from_utf8(&part[..length]).unwrap());
    }
}

fn has_ended(stream: &TcpStream) -> bool {
    match stream.peek(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn clients_that_say_nothing_leave_room_for_the_others_and_are_let_go() {
    // A sixth of the files: 50 connections.
    let served = Served::within(300, &["--ingress", "127.0.0.1:0", "--read-timeout", "8"]);
    let name = served.worker(CODE);
    let ingress = served.authority("ingress");
    let last = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    let mut kept = TcpStream::connect(&ingress).unwrap();
    ask(&mut kept, &name);
    let silent = |count: usize| -> Vec<TcpStream> {
        let connect = |_| {
            let stream = TcpStream::connect(&ingress).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        };
        (0..count).map(connect).collect()
    };
    let mut all = silent(60);
    answers(
        exchange(&ingress, &last),
        503,
        "as many connections as it takes",
    );
    all.extend(silent(340));
    // Whoever has a place is answered all the time.
    let deadline = Instant::now() + PATIENCE;
    while !all.iter().all(has_ended) {
        assert!(Instant::now() < deadline, "silent clients are kept");
        ask(&mut kept, &name);
        // So is the control plane, and it has a descriptor left to look at its store with.
        answers(served.ask("GET", "/readyz", "", ""), 200, "");
    }
    answers(exchange(&ingress, &last), 200, "alive");
    let log = log_of(&served.folder);
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert!(lines("the ingress has as many connections") < 10, "{log}");
    assert_ne!(lines("the ingress has as many connections"), 0, "{log}");
    assert_eq!(lines("Too many open files"), 0, "{log}");
    assert_eq!(lines(SILENT), 0, "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_host_that_can_open_nothing_does_not_take_its_workers_for_dead() {
    use rustix::process::{Pid, Resource, getrlimit, prlimit};

    let served = Served::within(300, &["--ingress", "127.0.0.1:0"]);
    let name = served.worker(CODE);
    let ingress = served.authority("ingress");
    let pid = Pid::from_child(&served.child);
    // Every new descriptor would be above this one.
    let mut limit = getrlimit(Resource::Nofile);
    (limit.current, limit.maximum) = (Some(3), Some(300));
    let before = prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let log = log_of(&served.folder);
        assert!(!log.contains(SILENT), "{log}");
        if log.matches("was not asked for a sign of life").count() >= 4 {
            break;
        }
        assert!(Instant::now() < deadline, "{log}");
        thread::sleep(Duration::from_millis(100));
    }
    prlimit(Some(pid), Resource::Nofile, before).unwrap();
    answers(
        exchange(
            &ingress,
            &format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"),
        ),
        200,
        "alive",
    );
    let log = log_of(&served.folder);
    assert!(
        !log.contains(SILENT) && !log.contains("ended unexpectedly"),
        "{log}"
    );
}
