//! A host of a test's own, and one request to it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::support::{self, Project, Ran, cache};

pub const API: &str = "/apis/forms.takoform.com/v1beta1";

pub fn notation() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_notation"));
    command
        .env("NOTATION_CACHE_DIR", cache())
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

pub fn run(arguments: &[&str]) -> Ran {
    support::ran(notation().args(arguments).output().unwrap())
}

/// A host in a folder of its own; told to end at the end.
pub struct Served {
    pub folder: TempDir,
    pub child: Child,
    /// Kept open: the host may write to it.
    _stdout: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub said: Json,
}

impl Served {
    pub fn with(flags: &[&str]) -> Served {
        Served::again(TempDir::new().unwrap(), flags)
    }

    pub fn again(folder: TempDir, flags: &[&str]) -> Served {
        let log = fs::File::create(folder.path().join("stderr")).unwrap();
        Served::telling(folder, log, flags)
    }

    /// One whose log is that file.
    pub fn telling(folder: TempDir, log: fs::File, flags: &[&str]) -> Served {
        Served::by(notation(), folder, log, flags)
    }

    /// One that may open no more files than that, and tells everything.
    pub fn within(files: u16, flags: &[&str]) -> Served {
        let folder = TempDir::new().unwrap();
        let log = fs::File::create(folder.path().join("stderr")).unwrap();
        let mut shell = Command::new("sh");
        shell
            .envs(
                notation()
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("RUST_LOG", "info,worker=debug")
            .stdin(Stdio::null())
            .args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_notation"));
        Served::by(shell, folder, log, flags)
    }

    fn by(mut notation: Command, folder: TempDir, log: fs::File, flags: &[&str]) -> Served {
        let mut child = notation
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

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    pub fn file(&self, name: &str) -> String {
        let text = fs::read_to_string(self.data().join(name)).unwrap();
        text.trim().to_owned()
    }

    pub fn authority(&self, of: &str) -> String {
        let url = self.said[of].as_str().unwrap();
        let rest = url.split_once("://").unwrap().1;
        rest.trim_end_matches('/').to_owned()
    }

    /// One request to the control plane as its owner: status and everything that came back.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let authority = self.authority("endpoint");
        let token = self.file("token");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        exchange(&authority, &request)
    }

    /// Deploys one Worker; gives the host name of its endpoint.
    pub fn worker(&self, code: &str) -> String {
        let mut project = Project::new();
        project.set("NOTATION_CACHE_DIR", &cache());
        let endpoint = format!("http://{}", self.authority("endpoint"));
        project.set("NOTATION_EDGE_ENDPOINT", &endpoint);
        project.set("NOTATION_EDGE_TOKEN", &self.file("token"));
        project.set("NOTATION_EDGE_SPACE", "production");
        project.write("src/w.ts", code);
        project.program(
            "import { Worker } from \"@notation/edge\";\n\
             const w = new Worker({ id: \"w\", config: { main: \"src/w.ts\" } });\n\
             export const url = w.url;\n",
        );
        project.deploy().exits(0);
        let outputs = project.run(&["--json", "outputs", "main", "--stage", "dev"]);
        let outputs = outputs.exits(0).event("outputs");
        let url = outputs["outputs"]["url"].as_str().unwrap().to_owned();
        let (_, rest) = url.split_once("://").unwrap();
        let name = rest.trim_end_matches('/').split(':').next().unwrap();
        name.to_owned()
    }

    pub fn admin(&self, arguments: &[&str]) -> Ran {
        let data = self.data();
        let mut all = vec!["--json", "host"];
        all.extend(arguments);
        all.extend(["--data", data.to_str().unwrap()]);
        run(&all)
    }

    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(told.success());
    }

    pub fn ends_by_itself(mut self) -> (TempDir, Option<i32>) {
        let status = self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, TempDir::new().unwrap());
        (folder, status.code())
    }

    pub fn ends(mut self) -> (TempDir, Option<i32>) {
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

pub fn log_of(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("stderr")).unwrap_or_default()
}

/// Sends a request and reads until the other side closes.
pub fn exchange(authority: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(authority).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // A host that refuses may close before it has taken everything.
    let _ = stream.write_all(request.as_bytes());
    rest_of(&mut stream)
}

pub fn rest_of(stream: &mut TcpStream) -> (u16, String) {
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
pub fn answers((status, text): (u16, String), wanted: u16, code: &str) {
    assert_eq!(status, wanted, "{text}");
    assert!(text.contains(code), "{code} is not in {text}");
}

/// A certificate for `localhost`, in two files.
pub fn certificate(folder: &Path) -> (String, String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    (text(certificate), text(key), made.cert.pem())
}

pub fn adapter() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/adapter");
    folder.to_str().unwrap().to_owned()
}
