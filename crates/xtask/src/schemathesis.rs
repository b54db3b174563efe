//! Schemathesis against a running host: every answer it can provoke is one that the host's own
//! OpenAPI document announces.

use crate::python::{Absent, install};
use std::{
    env, fs, io,
    net::{TcpListener, TcpStream},
    path::{self, Path},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

/// The version that is known to work with this.
const PACKAGE: &str = "schemathesis==4.32.5";

/// What an answer is held to: no failure of the host, a status and a media type that the document
/// has, and a body that fits its schema. Rules of taste that contradict the host's contract, such
/// as 405 for other methods, are not asked.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance";

/// How thoroughly it looks.
#[derive(Debug, Clone)]
pub struct Thoroughness {
    /// Examples per operation.
    pub examples: usize,
    /// Phases of schemathesis, comma-separated.
    pub phases: String,
}

/// All of its phases.
pub const PHASES: &str = "examples,coverage,fuzzing,stateful";

/// The phase that walks every boundary of every schema.
const COVERAGE: &str = "coverage";

/// What the walk over boundaries sees of schemas that hold free JSON by levels, each level of
/// every JSON type and of arrays and objects of the next: the first level. It tries every way
/// through them, and those of eight levels multiply to more than anybody waits for. Answers are
/// judged the same; what lies deeper is the other phases' to try, which draw at random.
const FIRST_LEVEL: &str = r#"
import schemathesis


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for schema in raw_schema["components"]["schemas"].values():
        levels = schema.get("$defs", {})
        for name in levels:
            if name.startswith("level") and name != "level1":
                levels[name] = {}
"#;

/// Installs schemathesis beside the build, starts a host, and lets the two meet.
#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
pub fn run(thoroughness: &Thoroughness, absent: Absent) -> ExitCode {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    // The program runs in a directory of its own.
    let target = match path::absolute(target) {
        Ok(target) => target,
        Err(error) => {
            eprintln!("schemathesis: {error}");
            return ExitCode::FAILURE;
        }
    };
    let program = match install(&target.join("schemathesis"), PACKAGE, "schemathesis") {
        Ok(program) => program,
        Err(reason) => {
            eprintln!("schemathesis: skipped, it cannot be installed: {reason}");
            return match absent {
                Absent::Skips => ExitCode::SUCCESS,
                Absent::Fails => ExitCode::FAILURE,
            };
        }
    };
    match meet(&program, &target, thoroughness) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("schemathesis: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A host that ends with this value.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn meet(program: &Path, target: &Path, thoroughness: &Thoroughness) -> io::Result<bool> {
    let built = Command::new("cargo")
        .args(["build", "--workspace", "--locked", "--example", "serve"])
        .status()?;
    if !built.success() {
        return Ok(false);
    }
    let data = tempfile::tempdir()?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let _host = Host(
        Command::new(target.join("debug/examples/serve"))
            .arg(data.path().join("data"))
            .arg(address.to_string())
            .env("HOST_T1P1", "schemathesis")
            .stdout(Stdio::null())
            .spawn()?,
    );
    let mut waits = 0;
    while TcpStream::connect(address).is_err() {
        waits += 1;
        if waits > 600 {
            return Err(io::Error::other("the host does not answer"));
        }
        thread::sleep(Duration::from_millis(100));
    }
    let url = format!("http://{address}/openapi.json");
    let hook = data.path().join("first_level.py");
    fs::write(&hook, FIRST_LEVEL)?;
    let (coverage, others): (Vec<&str>, Vec<&str>) = thoroughness
        .phases
        .split(',')
        .partition(|phase| *phase == COVERAGE);
    let mut found_nothing = true;
    for (phases, hook) in [(others, None), (coverage, Some(&hook))] {
        if phases.is_empty() {
            continue;
        }
        let mut command = Command::new(program);
        if let Some(hook) = hook {
            command.env("SCHEMATHESIS_HOOKS", hook);
        }
        let status = command
            .args(["run", &url])
            .args(["--header", "Authorization: Bearer schemathesis"])
            .args(["--checks", CHECKS])
            .args(["--max-examples", &thoroughness.examples.to_string()])
            .args(["--phases", &phases.join(",")])
            // With several threads Python 3.11 itself fails now and then in parsing its sources.
            .args(["--seed", "1", "--workers", "1", "--no-color"])
            .current_dir(data.path())
            .status()?;
        found_nothing &= status.success();
    }
    Ok(found_nothing)
}
