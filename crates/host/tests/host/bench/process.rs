//! A host in a process of its own, which can be killed and whose memory can be looked at: this
//! very test binary, serving when it is told where.

use super::{adapter, config};
use notation_host::{Grant, Host, NoDataPlane, Scope};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const DIR: &str = "NOTATION_TEST_HOST_DIR";
const ADAPTER: &str = "NOTATION_TEST_HOST_ADAPTER";

/// Whether such a host has the conformance adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Production,
    Conformance,
}

/// What the child does; without its variables this test has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serves_in_a_process_of_its_own() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let dir = Path::new(&dir);
    let config = match std::env::var_os(ADAPTER) {
        Some(_) => config(&dir.join("data")).with_conformance(adapter()),
        None => config(&dir.join("data")),
    };
    let host = Host::open(config, Arc::new(NoDataPlane)).await.unwrap();
    let grant = Grant {
        tenant: "t1".into(),
        principal: "p1".into(),
        scopes: [Scope::Api, Scope::Sealed].into(),
        label: String::new(),
    };
    host.install_token("t1p1", grant).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::fs::write(dir.join("address.new"), address).unwrap();
    std::fs::rename(dir.join("address.new"), dir.join("address")).unwrap();
    host.serve(listener, std::future::pending()).await.unwrap();
}

/// A running child; killed when it is dropped.
pub struct Process {
    dir: PathBuf,
    child: Child,
}

impl Process {
    /// Starts a host that keeps its data in `dir`.
    pub fn launch(dir: &Path, manner: Manner) -> Process {
        let _ = std::fs::remove_file(dir.join("address"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "bench::process::serves_in_a_process_of_its_own",
                "--nocapture",
            ])
            .env(DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if manner == Manner::Conformance {
            command.env(ADAPTER, "1");
        }
        Process {
            dir: dir.to_owned(),
            child: command.spawn().unwrap(),
        }
    }

    /// Where it serves, once it does: `127.0.0.1:PORT`.
    pub async fn address(&mut self) -> String {
        for _ in 0..6000 {
            if let Ok(address) = std::fs::read_to_string(self.dir.join("address")) {
                return address;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the host ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the host does not answer");
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Resident bytes, where the system tells them.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often something is repeated: the variable's number, or the small share that every check
/// runs.
pub fn rounds(variable: &str, share: usize) -> usize {
    std::env::var(variable)
        .ok()
        .map_or(share, |text| text.parse().expect("a number"))
}
