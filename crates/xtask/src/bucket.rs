//! Artifacts in a bucket over its real protocol: moto's S3 on loopback, and the contract that every
//! store of artifacts keeps.

use crate::python::install;
use std::{
    env,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{self, Path},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

/// The version that is known to work with this.
const PACKAGE: &str = "moto[server]==5.2.5";
const BUCKET: &str = "artifacts";

/// A server that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Installs moto beside the build, starts its S3, and runs the contract of the artifact store on a
/// bucket of it.
#[expect(clippy::print_stderr, reason = "a developer reads this on a terminal")]
pub fn run() -> ExitCode {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let met = path::absolute(target)
        .map_err(|error| error.to_string())
        .and_then(|target| install(&target.join("moto"), PACKAGE, "moto_server"))
        .and_then(|program| meet(&program).map_err(|error| error.to_string()));
    match met {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("bucket: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn meet(program: &Path) -> io::Result<bool> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let _server = Server(
        Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let mut waits = 0;
    while TcpStream::connect(address).is_err() {
        waits += 1;
        if waits > 600 {
            return Err(io::Error::other("the bucket's server does not answer"));
        }
        thread::sleep(Duration::from_millis(100));
    }
    make(address)?;
    let status = Command::new("cargo")
        .args(["test", "--workspace", "--locked", "--lib", "a_bucket_"])
        .env("NOTATION_TEST_BUCKET", format!("s3://{BUCKET}/some/prefix"))
        .env("AWS_ENDPOINT", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .status()?;
    Ok(status.success())
}

/// Makes the bucket; nobody is asked who they are.
fn make(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "PUT /{BUCKET} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(io::Error::other(format!("no bucket was made: {answer}")))
}
