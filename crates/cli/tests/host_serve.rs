//! A host in the foreground, through the binary: every flag, and whoever runs it at work.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value as Json, json};
use support::{Project, Ran};
use tempfile::TempDir;

const API: &str = "/apis/forms.takoform.com/v1beta1";

/// The runtime is fetched once for all tests.
fn cache() -> String {
    std::env::var("NOTATION_CACHE_DIR")
        .unwrap_or_else(|_| format!("{}/runtime-cache", env!("CARGO_TARGET_TMPDIR")))
}

fn notation() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_notation"));
    command
        .env("NOTATION_CACHE_DIR", cache())
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Ran {
    support::ran(notation().args(arguments).output().unwrap())
}

/// A host in a folder of its own; told to end at the end.
struct Served {
    folder: TempDir,
    child: Child,
    /// Kept open: the host may write to it.
    _stdout: BufReader<ChildStdout>,
    /// What it said when it was ready.
    said: Json,
}

impl Served {
    fn with(flags: &[&str]) -> Served {
        Served::again(TempDir::new().unwrap(), flags)
    }

    fn again(folder: TempDir, flags: &[&str]) -> Served {
        let log = fs::File::create(folder.path().join("stderr")).unwrap();
        let mut child = notation()
            .args(["--json", "host", "serve", "--data"])
            .arg(folder.path().join("host"))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let said: Json = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: {line:?}\n{}", log_of(&folder)));
        assert_eq!(said["running"], true, "{line}\n{}", log_of(&folder));
        Served {
            folder,
            child,
            _stdout: stdout,
            said,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    fn file(&self, name: &str) -> String {
        let text = fs::read_to_string(self.data().join(name)).unwrap();
        text.trim().to_owned()
    }

    fn authority(&self, of: &str) -> String {
        let url = self.said[of].as_str().unwrap();
        let rest = url.split_once("://").unwrap().1;
        rest.trim_end_matches('/').to_owned()
    }

    /// One request to the control plane as its owner: status and everything that came back.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let authority = self.authority("endpoint");
        let token = self.file("token");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        exchange(&authority, &request)
    }

    fn admin(&self, arguments: &[&str]) -> Ran {
        let data = self.data();
        let mut all = vec!["--json", "host"];
        all.extend(arguments);
        all.extend(["--data", data.to_str().unwrap()]);
        run(&all)
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(told.success());
    }

    fn ends(mut self) -> (TempDir, Option<i32>) {
        self.terminate();
        let status = self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, TempDir::new().unwrap());
        (folder, status.code())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            self.child.wait().unwrap();
        }
    }
}

fn log_of(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("stderr")).unwrap_or_default()
}

/// Sends a request and reads until the other side closes.
fn exchange(authority: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(authority).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // A host that refuses may close before it has taken everything.
    let _ = stream.write_all(request.as_bytes());
    rest_of(&mut stream)
}

fn rest_of(stream: &mut TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or(0), text)
}

#[track_caller]
fn answers((status, text): (u16, String), wanted: u16, code: &str) {
    assert_eq!(status, wanted, "{text}");
    assert!(text.contains(code), "{code} is not in {text}");
}

/// A certificate for `localhost`, in two files.
fn certificate(folder: &Path) -> (String, String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    (text(certificate), text(key), made.cert.pem())
}

fn adapter() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/adapter");
    folder.to_str().unwrap().to_owned()
}

#[test]
fn what_would_be_in_the_open_is_refused_before_anything_is_made() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("host");
    let data = data.to_str().unwrap();
    let (cert, key, _) = certificate(folder.path());
    let adapter = adapter();
    let refused: [(&[&str], &str); 10] = [
        (&["--listen", "0.0.0.0:0"], "--tls-cert"),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--tls-cert",
                &cert,
                "--tls-key",
                &key,
                "--conformance",
                &adapter,
            ],
            "conformance",
        ),
        (&["--status", "0.0.0.0:0"], "ssh -L"),
        (&["--tls-cert", &cert], "--tls-key"),
        (&["--tls-key", &key], "--tls-cert"),
        (&["--max-requests", "0"], "at least 1"),
        (
            &["--public-origin", "https://edge.example/api"],
            "nothing behind the port",
        ),
        (
            &["--public-origin", "http://edge.example"],
            "must start with https://",
        ),
        (&["--endpoint-domain", "BAD_domain..x"], "workers.example"),
        (&["--ingress-scheme", "ftp"], "https"),
    ];
    for (flags, why) in refused {
        let mut all = vec!["host", "serve", "--data", data];
        all.extend(flags);
        run(&all).exits(2).says(why);
        assert!(!Path::new(data).exists(), "{flags:?}");
    }
    // A certificate belongs to a host on purpose, not to a project's own.
    run(&["host", "serve", "--tls-cert", &cert, "--tls-key", &key])
        .exits(2)
        .says("--data");
    run(&["host", "serve", "--data", data, "--artifacts", "ftp://x"])
        .exits(2)
        .says("s3://BUCKET/PREFIX");
    run(&["host", "serve", "--data", data, "--ingress", "0.0.0.0:0"])
        .exits(2)
        .says("loopback");
}

#[test]
fn a_certificate_opens_the_control_plane_beyond_loopback() {
    let folder = TempDir::new().unwrap();
    let (cert, key, pem) = certificate(folder.path());
    let flags = [
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
    ];
    let served = Served::with(&flags);
    let authority = served.authority("endpoint");
    assert!(
        served.said["endpoint"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    );
    let port = authority.rsplit(':').next().unwrap().to_owned();
    let origin = format!("https://localhost:{port}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let text = runtime.block_on(async {
        let trusted = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([trusted])
            .build()
            .unwrap();
        let target = format!("{origin}/.well-known/takoform/v1beta1");
        http.get(target).send().await.unwrap().text().await.unwrap()
    });
    assert!(text.contains(&format!("{origin}{API}")), "{text}");
    // Without TLS there is no talking to it.
    let plain = format!("127.0.0.1:{port}");
    let (status, _) = exchange(&plain, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(status, 0);
    drop(served);
    let absent = folder.path().join("absent.pem");
    let data = folder.path().join("host");
    run(&[
        "host",
        "serve",
        "--data",
        data.to_str().unwrap(),
        "--tls-cert",
        &cert,
        "--tls-key",
        absent.to_str().unwrap(),
    ])
    .exits(1)
    .says("host::tls")
    .says("absent.pem");
}

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
    answers(served.ask("GET", "/healthz", "", ""), 429, "rate_limited");
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

impl Served {
    fn ends_by_itself(mut self) -> (TempDir, Option<i32>) {
        let status = self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, TempDir::new().unwrap());
        (folder, status.code())
    }
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
    fs::write(store.with_extension("format-2.sqlite"), "").unwrap();
    run(&["host", "serve", "--data", data.to_str().unwrap()])
        .exits(1)
        .says("host.format-2.sqlite");
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

/// A project with a host of its own that is stopped at the end.
struct Hosted(Project);

impl Drop for Hosted {
    fn drop(&mut self) {
        self.0.run(&["host", "stop"]);
    }
}

#[test]
fn a_secret_reaches_the_running_worker_and_nothing_else() {
    let mut project = Project::new();
    project.set("NOTATION_CACHE_DIR", &cache());
    let hosted = Hosted(project);
    let project = &hosted.0;
    project.write(
        "src/w.ts",
        "export default { fetch(_request: Request, env: { API_KEY: string }) { return new Response(\"the key is \" + env.API_KEY); } };\n",
    );
    project.program(
        "import { secret } from \"@notation/core\";\nimport { Worker } from \"@notation/edge\";\n\
         const w = new Worker({ id: \"w\", config: { main: \"src/w.ts\", secrets: { API_KEY: secret(\"KEY\") } } });\n\
         export const url = w.url;\nexport const name = w.ScriptName;\n",
    );
    let set = |value: &str| {
        let mut command = project.command();
        command.args(["secret", "set", "main", "KEY", "--stage", "dev"]);
        fed(command, value).exits(0);
    };
    set("swordfish");
    let deployed = project.deploy().exits(0);
    let outputs = || {
        let ran = project.run(&["--json", "outputs", "main", "--stage", "dev"]);
        ran.exits(0).event("outputs")["outputs"].clone()
    };
    let answer = || {
        let url = outputs()["url"].as_str().unwrap().to_owned();
        let authority = url
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let request = format!("GET / HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        exchange(&authority, &request).1
    };
    assert!(answer().contains("the key is swordfish"), "{}", answer());
    // Another value, another version.
    set("mackerel");
    let again = project.deploy().exits(0);
    assert!(answer().contains("the key is mackerel"), "{}", answer());

    // Whoever runs the host sees names, and can change the value.
    let worker = outputs()["name"].as_str().unwrap().to_owned();
    project
        .run(&["host", "secret", "list", &worker])
        .exits(0)
        .says("API_KEY");
    let mut command = project.command();
    command.args(["host", "secret", "set", &worker, "API_KEY"]);
    let told = fed(command, "halibut\n").exits(0);
    assert!(answer().contains("the key is halibut"), "{}", answer());
    project
        .run(&["host", "secret", "rm", &worker, "OTHER"])
        .exits(1)
        .says("secret::unknown");

    let status = project.run(&["host", "status"]).exits(0);
    let logs = project.run(&["host", "logs", "-n", "10000"]).exits(0);
    let shown = project
        .run(&["state", "show", "main", "w", "--stage", "dev"])
        .exits(0);
    for said in [
        deployed.said(),
        again.said(),
        told.said(),
        status.said(),
        logs.said(),
        shown.said(),
    ] {
        for value in ["swordfish", "mackerel", "halibut"] {
            assert!(!said.contains(value), "{said}");
        }
    }
    // At rest neither; the worker's own configuration lives in memory.
    for file in files_below(&project.path().join(".notation")) {
        let bytes = fs::read(&file).unwrap_or_default();
        for value in ["swordfish", "mackerel", "halibut"] {
            let found = bytes
                .windows(value.len())
                .any(|window| window == value.as_bytes());
            assert!(!found, "{value} is in {}", file.display());
        }
    }
    // A value that is taken away: its version is not ready, and says which it misses.
    project
        .run(&["host", "secret", "rm", &worker, "API_KEY"])
        .exits(0);
    let page = project
        .run(&["--json", "host", "status"])
        .exits(0)
        .event("host");
    let page = page["status_page"].as_str().unwrap().to_owned();
    let (key, authority) = page
        .trim_start_matches("http://status:")
        .trim_end_matches('/')
        .split_once('@')
        .unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    );
    let (status, html) = exchange(authority, &request);
    assert_eq!(status, 200);
    assert!(
        html.contains("API_KEY") && html.contains("not ready"),
        "{html}"
    );
}

/// A command with something on its stdin.
fn fed(mut command: Command, text: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    support::ran(child.wait_with_output().unwrap())
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&path)),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    files
}
