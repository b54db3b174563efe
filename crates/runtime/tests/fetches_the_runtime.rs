//! Fetching `workerd` through npm, with an `npm` of the test's own and with the real one.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use notation_runtime::workerd::{Progress, Stage, WorkerdError, ensure};

const ROLE: &str = "NOTATION_TEST_FETCH";

struct Stages(Mutex<Vec<Stage>>);

impl Progress for Stages {
    fn stage(&self, stage: Stage) {
        self.0.lock().unwrap().push(stage);
    }
}

/// Not a test of its own: fetches with the environment another test gives it, and prints
/// what came of it. A process of its own, because the search path belongs to the process.
#[tokio::test]
async fn fetching_process() {
    let Some(cache) = std::env::var_os(ROLE) else {
        return;
    };
    let stages = Stages(Mutex::default());
    let result = ensure(Path::new(&cache), None, &stages).await;
    let told = match &result {
        Ok(path) => path.display().to_string(),
        Err(error) => {
            let kind = match error {
                WorkerdError::NpmMissing => "missing",
                WorkerdError::Network { .. } => "network",
                WorkerdError::Npm { .. } => "npm",
                WorkerdError::Integrity { .. } => "integrity",
                WorkerdError::DiskFull { .. } => "full",
                WorkerdError::Cache { .. } => "cache",
                WorkerdError::NotRunnable { .. } => "unrunnable",
                _ => "other",
            };
            format!("{kind}: {error} ({})", error.repair())
        }
    };
    println!("\nresult {told}\nstages {:?}", stages.0.lock().unwrap());
}

fn fetch(cache: &Path, search: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["fetching_process", "--exact", "--nocapture"])
        .env(ROLE, cache)
        .env("PATH", search);
    command
}

fn said(output: &Output) -> (String, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no line {start} in {text}"))
            .to_owned()
    };
    (line("result "), line("stages "))
}

/// A directory whose only program is an `npm` that does what `script` says.
fn with_npm(script: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let npm = directory.path().join("npm");
    std::fs::write(&npm, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn each_way_to_fail_is_told_apart_and_leaves_no_binary() {
    for (script, expected) in [
        (
            "echo 'npm error code ENOTFOUND' >&2; echo 'npm error getaddrinfo failed' >&2; exit 1",
            "network: ",
        ),
        (
            "echo 'npm error code E404' >&2; echo 'npm error 404 Not Found' >&2; exit 1",
            "npm: ",
        ),
        ("echo 'npm error code ENOSPC' >&2; exit 1", "full: "),
        ("echo other > \"$PWD/x.tgz\"", "integrity: "),
        ("exit 0", "cache: "),
    ] {
        let (npm, cache) = (with_npm(script), tempfile::tempdir().unwrap());
        let output = fetch(cache.path(), npm.path().to_str().unwrap())
            .output()
            .unwrap();
        let (result, _) = said(&output);
        assert!(result.starts_with(expected), "{script}: {result}");
        let left: Vec<_> = std::fs::read_dir(cache.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["workerd.lock"], "{script}");
    }
    let (nothing, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (result, stages) = said(
        &fetch(cache.path(), nothing.path().to_str().unwrap())
            .output()
            .unwrap(),
    );
    assert_eq!(
        result,
        "missing: npm was not found, and the worker runtime is fetched through it \
         (install Node.js, which brings npm, and try again)"
    );
    assert_eq!(stages, "[Fetching { about_bytes: 47000000 }]");
    let file = tempfile::NamedTempFile::new().unwrap();
    let (result, _) = said(
        &fetch(&file.path().join("cache"), "/nowhere")
            .output()
            .unwrap(),
    );
    assert!(
        result.starts_with("cache: ") && result.contains("make "),
        "{result}"
    );
}

#[test]
fn two_processes_fetch_once_and_both_have_it() {
    let cache = tempfile::tempdir().unwrap();
    let search = std::env::var("PATH").unwrap();
    let start = || {
        fetch(cache.path(), &search)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()].map(|child| said(&child.wait_with_output().unwrap()));
    let [(one, one_stages), (two, two_stages)] = &both;
    assert_eq!(one, two);
    assert!(one.ends_with("/workerd"), "{one}");
    let fetched = [one_stages, two_stages]
        .iter()
        .filter(|stages| stages.contains("Unpacking, Ready"))
        .count();
    assert_eq!(fetched, 1, "{both:?}");
    let (again, stages) = said(&fetch(cache.path(), "/nowhere").output().unwrap());
    assert_eq!(
        (&again, stages.as_str()),
        (one, "[]"),
        "a cached binary needs no npm"
    );
}
