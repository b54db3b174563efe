//! A host in the foreground, through the binary: every flag, and whoever runs it at work.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../../tests/support/hosted.rs"]
mod hosted;
#[path = "../../../../tests/support/mod.rs"]
mod support;

mod crowded;
mod opening;
mod proxied;
mod secret;
mod served;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use serde_json::{Value as Json, json};
use served::*;
use tempfile::TempDir;

#[test]
fn limits_are_what_the_flags_say() {
    let served = Served::with(&[
        "--max-body-bytes",
        "1000",
        "--max-head-bytes",
        "9000",
        "--max-requests",
        "1",
        "--max-connections",
        "2",
        "--read-timeout",
        "6",
        "--body-timeout",
        "60",
        "--public-origin",
        "https://edge.example",
    ]);
    let validate = format!("{API}/resources/validate");
    answers(
        served.ask("POST", &validate, "", &"x".repeat(1001)),
        400,
        "larger than 1000 bytes",
    );
    let long = format!("x-long: {}\r\n", "x".repeat(9000));
    answers(
        served.ask("GET", "/healthz", &long, ""),
        400,
        "larger than 9000 bytes",
    );
    answers(
        served.ask("GET", "/.well-known/takoform/v1beta1", "", ""),
        200,
        "https://edge.example/",
    );

    let authority = served.authority("endpoint");
    let token = served.file("token");
    let open = |text: &str| {
        let mut stream = TcpStream::connect(&authority).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    // One request that waits for its body holds the only place until its time is over.
    let slow = format!(
        "POST {validate} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
    );
    let mut holder = open(&slow);
    let mut byte = [0];
    holder.read_exact(&mut byte).unwrap();
    // A connection that ended a moment ago may still have its place.
    let unless_crowded = |path: &str| loop {
        match served.ask("GET", path, "", "") {
            (503, _) => thread::yield_now(),
            answer => break answer,
        }
    };
    let forms = format!("{API}/forms");
    answers(unless_crowded(&forms), 429, "rate_limited");
    // Whether it lives can be asked all the same.
    answers(unless_crowded("/healthz"), 200, "ok");
    // Two connections are all; the third is told so.
    let mut silent = open("GET /healthz");
    answers(
        served.ask("GET", "/healthz", "", ""),
        503,
        "backend_unavailable",
    );
    let (_, text) = rest_of(&mut holder);
    assert!(
        text.contains("504") && text.contains("deadline_exceeded"),
        "{text}"
    );
    // A head that does not arrive ends its connection without an answer.
    assert_eq!(rest_of(&mut silent).0, 0);
    answers(served.ask("GET", "/healthz", "", ""), 200, "ok");
}

#[test]
fn whoever_runs_it_administers_it_over_its_socket() {
    let served = Served::with(&[]);
    let socket = served.data().join("admin.sock");
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let made = served
        .admin(&[
            "token",
            "create",
            "--tenant",
            "blue",
            "--principal",
            "ci",
            "--scope",
            "api",
        ])
        .exits(0)
        .event("host");
    assert!(made["text"].as_str().unwrap().starts_with("ntn_"));
    for of in ["--tenant", "--principal"] {
        served
            .admin(&["token", "create", of, ""])
            .exits(2)
            .says("a name is needed");
    }
    let tenants = served.admin(&["tenants"]).exits(0).event("host");
    assert_eq!(
        tenants["tenants"],
        json!([
            { "tenant": "blue", "principals": ["ci"], "tokens": 1, "resources": 0 },
            { "tenant": "local", "principals": ["owner"], "tokens": 1, "resources": 0 },
        ])
    );
    served
        .admin(&["secret", "list", "nobody"])
        .exits(1)
        .says("host::refused")
        .says("tenant local has no worker nobody in space default");
    let collected = served.admin(&["collect"]).exits(0).event("host");
    assert_eq!(collected["artifacts"], 0);
    // Nothing of it is there over the network.
    for path in ["/tokens", "/tenants", "/collect"] {
        answers(served.ask("GET", path, "", ""), 404, "resource_not_found");
    }
    let data = served.data();
    let (_folder, status) = served.ends();
    assert_eq!(status, Some(0));
    assert!(!data.join("admin.sock").exists());
}

#[test]
fn the_folder_s_own_token_stays_revoked_and_another_takes_its_place() {
    let served = Served::with(&[]);
    let leaked = served.file("token");
    let listed = served.admin(&["token", "list"]).exits(0).event("host");
    let id = listed["tokens"][0]["id"].as_str().unwrap().to_owned();
    served.admin(&["token", "revoke", &id]).exits(0);
    let forms = format!("{API}/forms");
    assert_eq!(served.ask("GET", &forms, "", "").0, 401);
    let (folder, _) = served.ends();
    let served = Served::again(folder, &[]);
    assert_ne!(served.file("token"), leaked);
    assert_ne!(served.ask("GET", &forms, "", "").0, 401);
    fs::write(served.data().join("token"), &leaked).unwrap();
    assert_eq!(served.ask("GET", &forms, "", "").0, 401);
}

#[test]
fn the_status_page_and_the_metrics_want_the_key_of_the_folder() {
    let served = Served::with(&[]);
    let authority = served.authority("status_page");
    let get = |path: &str, header: &str| {
        exchange(
            &authority,
            &format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{header}\r\n"),
        )
    };
    let key = served.file("status-key");
    assert_eq!(get("/", "").0, 401);
    let token = format!("Authorization: Bearer {}\r\n", served.file("token"));
    assert_eq!(get("/", &token).0, 401, "a token of the API is no key");
    let key = format!("Authorization: Bearer {key}\r\n");
    answers(get("/", &key), 200, "Nothing is deployed yet");
    answers(get("/metrics", &key), 200, "notation_host_connections");
    let mode = fs::metadata(served.data().join("status-key")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    // The control plane itself has neither.
    answers(
        served.ask("GET", "/metrics", "", ""),
        404,
        "resource_not_found",
    );
}

#[test]
fn an_upload_that_is_under_way_ends_before_the_host_does() {
    let served = Served::with(&["--grace", "60"]);
    let bytes = "export default { fetch() { return new Response(\"kept\"); } };\n".repeat(2000);
    let digest = notation_edge_api::blob_digest(bytes.as_bytes());
    let manifest = json!({ "manifest": {
        "apiVersion": "artifacts.takoform.com/v1alpha1", "kind": "WorkerBundle", "mainModule": "index.js",
        "modules": [{ "name": "index.js", "mediaType": "application/javascript+module", "size": bytes.len(), "digest": digest }],
    } });
    let (status, text) = served.ask(
        "POST",
        &format!("{API}/artifacts/uploads"),
        "Idempotency-Key: one\r\n",
        &manifest.to_string(),
    );
    assert_eq!(status, 201, "{text}");
    let body: Json = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let upload = body["uploadId"].as_str().unwrap();
    let (authority, token) = (served.authority("endpoint"), served.file("token"));
    let mut stream = TcpStream::connect(&authority).unwrap();
    let (first, last) = bytes.split_at(bytes.len() / 2);
    write!(
        stream,
        "PUT {API}/artifacts/uploads/{upload}/blobs/{digest} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        bytes.len()
    )
    .unwrap();
    // It is under way once the host asks for the body.
    let mut go = [0; 12];
    stream.read_exact(&mut go).unwrap();
    assert_eq!(&go, b"HTTP/1.1 100");
    stream.write_all(first.as_bytes()).unwrap();
    served.terminate();
    while TcpStream::connect(&authority).is_ok() {
        thread::sleep(Duration::from_millis(10));
    }
    stream.write_all(last.as_bytes()).unwrap();
    let (_, text) = rest_of(&mut stream);
    assert!(text.contains("HTTP/1.1 204"), "{text}");
    let (folder, status) = served.ends_by_itself();
    assert_eq!(status, Some(0));
    let served = Served::again(folder, &[]);
    let (status, _) = served.ask("HEAD", &format!("{API}/artifacts/blobs/{digest}"), "", "");
    assert_eq!(status, 200);
}

#[test]
fn the_log_is_json_when_that_is_asked_for_and_has_no_secrets() {
    let served = Served::with(&["--log-format", "json"]);
    let made = served
        .admin(&["token", "create", "--tenant", "blue"])
        .exits(0);
    let token = made.event("host")["text"].as_str().unwrap().to_owned();
    let path = "/sealed/v1/spaces/default/workers/w/values/API_KEY";
    answers(
        served.ask("PUT", path, "", "swordfish"),
        404,
        "resource_not_found",
    );
    let (owner, key) = (served.file("token"), served.file("status-key"));
    let (folder, _) = served.ends();
    let log = log_of(&folder);
    let lines: Vec<Json> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let answered = lines.iter().find(|line| line["message"] == "answered");
    let answered = answered.unwrap_or_else(|| panic!("no request in {log}"));
    assert_eq!(answered["path"], path);
    assert_eq!(answered["tenant"], "local");
    assert_eq!(answered["status"], 404);
    for secret in ["swordfish", &token, &owner, &key] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_host_whose_log_cannot_be_written_serves_changes_and_ends_in_order() {
    for format in ["text", "json"] {
        // Every write to it fails as on a full disk.
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let folder = TempDir::new().unwrap();
        let served = Served::telling(folder, full, &["--log-format", format]);
        let path = "/sealed/v1/spaces/default/workers/w/values/API_KEY";
        for _ in 0..3 {
            // Each has a line in the log.
            answers(served.ask("PUT", path, "", "x"), 404, "resource_not_found");
        }
        served
            .admin(&["token", "create", "--tenant", "blue"])
            .exits(0);
        answers(served.ask("GET", "/readyz", "", ""), 200, "ready");
        let (_folder, status) = served.ends();
        assert_eq!(status, Some(0));
    }
}

#[test]
fn a_damaged_contract_set_is_refused_with_every_reason() {
    let folder = TempDir::new().unwrap();
    let set = folder.path().join("set");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/contracts");
    assert!(
        Command::new("cp")
            .arg("-r")
            .arg(&own)
            .arg(&set)
            .status()
            .unwrap()
            .success()
    );
    let data = folder.path().join("host");
    let serve = || {
        run(&[
            "host",
            "serve",
            "--data",
            data.to_str().unwrap(),
            "--contracts",
            set.to_str().unwrap(),
        ])
    };
    let edited = set.join("forms/candidates/edge/v1beta1/worker-version/definition.json");
    let text = fs::read_to_string(&edited).unwrap();
    fs::write(
        &edited,
        text.replacen("\"title\": \"", "\"title\": \"Edited ", 1),
    )
    .unwrap();
    fs::remove_file(set.join("bindings/candidates/v1alpha1/module-worker.service/definition.json"))
        .unwrap();
    serve()
        .exits(1)
        .says("host::contracts")
        .says("worker-version/definition.json has digest")
        .says("module-worker.service/definition.json cannot be read");
}

#[test]
fn data_of_a_newer_version_is_refused_with_the_way_out() {
    let (folder, _) = Served::with(&[]).ends();
    let store = folder.path().join("host/data/host.sqlite");
    // Through SQLite: the last changes may be in the journal beside the file still.
    let database = rusqlite::Connection::open(&store).unwrap();
    database.pragma_update(None, "user_version", 1000).unwrap();
    drop(database);
    let data = folder.path().join("host");
    run(&["host", "serve", "--data", data.to_str().unwrap()])
        .exits(1)
        .says("host::newer_data")
        .says("has format 1000")
        .says("backup");
    fs::write(store.with_extension("format-3.sqlite"), "").unwrap();
    run(&["host", "serve", "--data", data.to_str().unwrap()])
        .exits(1)
        .says("host.format-3.sqlite");
}

#[test]
fn a_folder_or_an_address_that_cannot_be_used_is_refused_with_its_own_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("host");
    let data = data.to_str().unwrap();
    for flag in ["--listen", "--status", "--ingress"] {
        let ran = run(&["host", "serve", "--data", data, flag, &address]).exits(1);
        ran.says("host::port_taken").says("give another port");
    }
    fs::write(folder.path().join("file"), "").unwrap();
    let file = folder.path().join("file/host");
    run(&["host", "serve", "--data", file.to_str().unwrap()])
        .exits(1)
        .says("host::folder")
        .says("something that is no folder");
}

#[test]
fn the_conformance_adapter_is_there_only_with_its_flag() {
    let adapter = adapter();
    let probe = "Takoform-Conformance-Probe: error:deletion_protected\r\n";
    let forms = format!("{API}/forms");
    let with = Served::with(&["--conformance", &adapter]);
    answers(
        with.ask("GET", &forms, probe, ""),
        409,
        "deletion_protected",
    );
    drop(with);
    let without = Served::with(&[]);
    answers(
        without.ask("GET", &forms, probe, ""),
        400,
        "invalid_argument",
    );
}
