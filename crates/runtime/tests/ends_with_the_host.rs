//! A host that is killed takes its worker processes with it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use support::{Host, alive, until};

const CHILD: &str = "NOTATION_TEST_HOST";

/// Not a test of its own: the host that the other test kills.
#[tokio::test(flavor = "multi_thread")]
async fn host_process() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: () => new Response('here') }",
    );
    host.worker("spins", "export default { fetch() { while (true); } }");
    host.converge().await;
    println!(
        "\nworkers {} {}",
        host.pid("api").unwrap(),
        host.pid("spins").unwrap()
    );
    let _never = host.get("spins", "/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_host_leaves_no_worker_process() {
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["host_process", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let line = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("workers "))
        .unwrap();
    let pids: Vec<u32> = line
        .split(' ')
        .skip(1)
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert!(pids.iter().all(|pid| alive(*pid)));
    host.kill().unwrap();
    host.wait().unwrap();
    for pid in pids {
        until("the worker process to end", async || {
            (!alive(pid)).then_some(())
        })
        .await;
    }
}
