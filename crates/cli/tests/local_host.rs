//! The local host: one per project, found again, replaced when stale, gone when stopped.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/hosted.rs"]
mod hosted;
#[path = "../../../tests/support/mod.rs"]
mod support;

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use hosted::Hosted;
use serde_json::Value as Json;
use support::{cache, is_alive};

#[test]
fn a_started_host_is_found_again_and_stops_when_told() {
    let hosted = Hosted::new();
    hosted
        .0
        .run(&["host", "status"])
        .exits(0)
        .says("does not run");
    let first = hosted.start();
    assert_eq!(hosted.start()["pid"], first["pid"]);
    let status = hosted.status();
    assert_eq!(status["running"], true);
    assert_eq!(status["workers"], serde_json::json!([]));
    assert!(
        first["endpoint"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    assert!(Path::new(first["log"].as_str().unwrap()).is_file());
    hosted
        .0
        .run(&["host", "logs"])
        .exits(0)
        .says("the host serves");
    hosted.0.run(&["host", "stop"]).exits(0);
    assert!(!is_alive(&first["pid"]));
    hosted
        .0
        .run(&["host", "stop"])
        .exits(0)
        .says("does not run");
    // The same addresses after a start anew.
    let again = hosted.start();
    assert_eq!(again["endpoint"], first["endpoint"]);
    assert_eq!(again["ingress"], first["ingress"]);
    assert_ne!(again["pid"], first["pid"]);
}

#[test]
fn its_secrets_are_readable_by_the_owner_only() {
    let hosted = Hosted::new();
    hosted.start();
    let mode = |name: &str| {
        fs::metadata(hosted.folder().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    for name in ["token", "admin.sock", "status-key", "info.json", "host.log"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(mode(""), 0o700);
}

#[test]
fn a_host_of_another_build_is_replaced_with_its_addresses_kept() {
    let hosted = Hosted::new();
    let first = hosted.start();
    let file = hosted.folder().join("info.json");
    let info = fs::read_to_string(&file).unwrap();
    let mut info: Json = serde_json::from_str(&info).unwrap();
    info["build"] = "0.0.1".into();
    fs::write(&file, info.to_string()).unwrap();
    let second = hosted.start();
    assert_ne!(second["pid"], first["pid"]);
    assert!(!is_alive(&first["pid"]));
    assert_eq!(second["endpoint"], first["endpoint"]);
}

#[test]
fn a_host_of_a_project_that_was_moved_is_replaced() {
    let hosted = Hosted::new();
    let first = hosted.start();
    let moved = tempfile::tempdir().unwrap();
    let target = moved.path().join("moved");
    fs::rename(hosted.0.path(), &target).unwrap();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_notation"))
            .arg("--project")
            .arg(&target)
            .args(arguments)
            .env("NOTATION_CACHE_DIR", cache())
            .output()
            .unwrap();
        support::ran(output)
    };
    let second = run(&["--json", "host", "start"]).exits(0).event("host");
    assert_ne!(second["pid"], first["pid"]);
    run(&["host", "stop"]).exits(0);
    assert!(!is_alive(&first["pid"]));
    // Back, so that the end of the test finds its folder.
    fs::rename(&target, hosted.0.path()).unwrap();
}

#[test]
fn a_port_that_somebody_took_is_named_with_the_way_out() {
    let hosted = Hosted::new();
    let first = hosted.start();
    hosted.0.run(&["host", "stop"]).exits(0);
    let address = first["endpoint"]
        .as_str()
        .unwrap()
        .trim_start_matches("http://")
        .to_owned();
    let port = address.rsplit(':').next().unwrap().to_owned();
    let taken = TcpListener::bind(&address).unwrap();
    hosted
        .0
        .run(&["host", "start"])
        .exits(1)
        .says("host::port_taken")
        .says(&port)
        .says("ports.json");
    drop(taken);
    assert_eq!(hosted.start()["endpoint"], first["endpoint"]);
}

#[test]
fn a_workers_port_that_somebody_took_is_named_by_start_status_and_deploy() {
    let hosted = Hosted::new();
    fs::remove_file(hosted.0.path().join("notation.config.ts")).unwrap();
    hosted.0.run(&["init", ".", "--app", "shop"]).exits(0);
    let deploy = ["deploy", "app", "--stage", "dev", "--yes"];
    hosted.0.run(&deploy).exits(0);
    let outputs = ["--json", "outputs", "app", "--stage", "dev"];
    let url = hosted.0.run(&outputs).exits(0).event("outputs")["outputs"]["url"].clone();
    let authority = url.as_str().unwrap().trim_start_matches("http://");
    let authority = authority.trim_end_matches('/').to_owned();
    hosted.0.run(&["host", "stop"]).exits(0);

    let taken = TcpListener::bind(&authority).unwrap();
    let words = "is taken by another program";
    hosted.0.run(&["host", "start"]).exits(0).says(words);
    let beside = format!("{}   (not answered", url.as_str().unwrap());
    let status = hosted.0.run(&["host", "status"]).exits(0);
    status.says(words).says(&beside);
    hosted.0.run(&deploy).exits(0).says(words);
    drop(taken);
    // It is answered again as soon as the port is free.
    let deadline = Instant::now() + Duration::from_secs(20);
    while hosted.0.run(&["host", "status"]).said().contains(words) {
        assert!(Instant::now() < deadline);
    }
    std::net::TcpStream::connect(&authority).unwrap();
}

#[test]
fn a_second_host_in_the_same_folder_is_refused() {
    let hosted = Hosted::new();
    hosted.start();
    hosted
        .0
        .run(&["host", "serve"])
        .exits(1)
        .says("host::running");
}

#[test]
fn ten_starts_at_once_start_one_host() {
    let hosted = Hosted::new();
    let children: Vec<_> = (0..10)
        .map(|_| {
            let mut command = hosted.0.command();
            command
                .args(["--json", "host", "start"])
                .stdout(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut pids: Vec<String> = children
        .into_iter()
        .map(|child| {
            support::ran(child.wait_with_output().unwrap())
                .exits(0)
                .event("host")["pid"]
                .to_string()
        })
        .collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn tokens_are_made_listed_and_revoked_while_it_runs() {
    let hosted = Hosted::new();
    hosted
        .0
        .run(&["host", "token", "list"])
        .exits(1)
        .says("host::not_running");
    let endpoint = hosted.start()["endpoint"].as_str().unwrap().to_owned();
    let status = |token: &str| -> String {
        let authority = endpoint.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(authority).unwrap();
        let path = "/apis/forms.takoform.com/v1/resources/nosuch?space=default";
        std::io::Write::write_all(
            &mut stream,
            format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let made = hosted
        .0
        .run(&[
            "--json", "host", "token", "create", "--tenant", "blue", "--scope", "api", "--label",
            "ci",
        ])
        .exits(0)
        .event("host");
    let text = made["text"].as_str().unwrap();
    assert_eq!(status("wrong"), "401");
    assert_ne!(status(text), "401");
    hosted
        .0
        .run(&["host", "token", "list"])
        .exits(0)
        .says("blue")
        .says("ci");
    let listed = hosted.0.run(&["host", "token", "list"]).exits(0);
    assert!(!listed.said().contains(text));
    let id = made["token"]["id"].as_str().unwrap();
    hosted.0.run(&["host", "token", "revoke", id]).exits(0);
    assert_eq!(status(text), "401");
    hosted
        .0
        .run(&["host", "token", "revoke", id])
        .exits(1)
        .says("host::unknown_token");
}

#[test]
fn a_host_whose_folder_was_removed_ends_with_its_workers() {
    let hosted = Hosted::new();
    let project = &hosted.0;
    fs::remove_file(project.path().join("notation.config.ts")).unwrap();
    project.run(&["init", ".", "--app", "shop"]).exits(0);
    let deploy = ["deploy", "app", "--stage", "dev", "--yes"];
    project.run(&deploy).exits(0);
    let first = hosted.status();
    let mut pids = vec![first["pid"].to_string()];
    let workers = first["workers"].as_array().unwrap();
    pids.extend(workers.iter().map(|worker| worker["pid"].to_string()));
    assert!(pids.len() > 1 && pids.iter().all(is_alive), "{first}");
    fs::remove_dir_all(project.path().join(".notation")).unwrap();
    // The one that is started now shares nothing with the one that is ending.
    project.run(&deploy).exits(0);
    let deadline = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(is_alive) {
        assert!(Instant::now() < deadline, "{pids:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let second = hosted.status();
    assert_ne!(second["pid"], first["pid"]);
    let outputs = ["--json", "outputs", "app", "--stage", "dev"];
    let url = project.run(&outputs).exits(0).event("outputs")["outputs"]["url"].clone();
    let authority = url.as_str().unwrap().trim_start_matches("http://");
    assert!(answers(authority.trim_end_matches('/')), "{url}");
}

#[test]
fn a_host_whose_folder_was_moved_ends_and_the_one_in_its_place_goes_on() {
    let (before, after) = (Hosted::new(), Hosted::new());
    let first = before.start();
    let from = before.0.path().join(".notation");
    fs::rename(&from, after.0.path().join(".notation")).unwrap();
    let second = before.start();
    assert_ne!(second["pid"], first["pid"]);
    // Whatever has happened by then: this is about the host of the folder, and of no other.
    after.0.run(&["host", "stop"]).exits(0);
    assert!(!is_alive(&first["pid"]));
    assert_eq!(before.status()["pid"], second["pid"]);
    // Nobody stops the next one that is moved; it ends by itself.
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    fs::rename(&from, &moved).unwrap();
    let third = before.start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_alive(&second["pid"]) {
        assert!(Instant::now() < deadline, "{second}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let log = fs::read_to_string(moved.join("host/host.log")).unwrap();
    assert!(log.contains("was removed or moved"), "{log}");
    assert_eq!(before.status()["pid"], third["pid"]);
}

/// Whether a worker answers there with success.
fn answers(authority: &str) -> bool {
    let mut stream = std::net::TcpStream::connect(authority).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    answer.starts_with("HTTP/1.1 200")
}
