//! Figures of the control plane, one line each:
//! `cargo run --release -p notation-host --example bench -- [STORED] [MANY]`.
//!
//! `STORED` (10 000) is what a full host has when its answers are compared with an empty one's;
//! `MANY` (100 000) is what it has when it starts. Both hosts of a comparison run side by side
//! and are asked in turn, so that what else the machine does meets both alike.

use notation_edge_api as wire;
use notation_edge_api::client::{Client, Fence, Outcome};
use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Clients at once where load is measured.
const CLIENTS: usize = 32;
/// Answers that a median is taken of.
const ANSWERS: usize = 401;

async fn open(dir: &Path) -> Result<(Host, Client), Failure> {
    let host = Host::open(HostConfig::new(dir), Arc::new(NoDataPlane)).await?;
    let grant = Grant {
        tenant: "bench".to_owned(),
        principal: "bench".to_owned(),
        scopes: [Scope::Api].into(),
        label: String::new(),
    };
    host.install_token("bench", grant).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let client = Client::new(&format!("http://{}", listener.local_addr()?), "bench")?;
    let serving = host.clone();
    tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
    Ok((host, client))
}

async fn prepared(
    client: &Client,
    form: &wire::FormRef,
    name: &str,
) -> Result<wire::ResourceBody, Failure> {
    let mut body = wire::ResourceBody::of(form, name, "bench", None);
    let prepared = client.prepare(&body, &Fence::Create).await?;
    body.review = Some(wire::Review {
        prepare_digest: prepared.review.prepare_digest,
    });
    Ok(body)
}

/// How long the apply alone took.
async fn apply(client: &Client, body: &wire::ResourceBody) -> Result<Duration, Failure> {
    let start = Instant::now();
    match client
        .apply(body, &Fence::Create, &body.metadata.name)
        .await?
    {
        Outcome::Done(_) => Ok(start.elapsed()),
        Outcome::Accepted { .. } => Err("the host answers later".into()),
    }
}

/// Creates resources with several clients at once; how long the applies took all together.
async fn fill(
    client: &Client,
    form: &wire::FormRef,
    prefix: &str,
    count: usize,
) -> Result<Duration, Failure> {
    let mut bodies = vec![Vec::new(); CLIENTS];
    for number in 0..count {
        bodies[number % CLIENTS].push(format!("{prefix}{number}"));
    }
    let mut reviewing = Vec::new();
    for names in bodies {
        let (client, form) = (client.clone(), form.clone());
        reviewing.push(tokio::spawn(async move {
            let mut bodies = Vec::new();
            for name in names {
                bodies.push(prepared(&client, &form, &name).await?);
            }
            Ok::<_, Failure>(bodies)
        }));
    }
    let mut ready = Vec::new();
    for task in reviewing {
        ready.push(task.await??);
    }
    let start = Instant::now();
    let mut applying = Vec::new();
    for bodies in ready {
        let client = client.clone();
        applying.push(tokio::spawn(async move {
            for body in bodies {
                apply(&client, &body).await?;
            }
            Ok::<_, Failure>(())
        }));
    }
    for task in applying {
        task.await??;
    }
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Medians of an apply on two hosts that are asked in turn.
async fn compare(
    first: &Client,
    second: &Client,
    form: &wire::FormRef,
) -> Result<[Duration; 2], Failure> {
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..ANSWERS {
        for (client, times) in [first, second].into_iter().zip(&mut times) {
            let body = prepared(client, form, &format!("measured{number}")).await?;
            times.push(apply(client, &body).await?);
        }
    }
    Ok(times.map(median))
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// What a process of its own tells: how long a start takes and what a resource weighs in memory.
async fn start(dir: &Path, count: u64) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    let empty = tempfile::tempdir()?;
    drop(Host::open(HostConfig::new(empty.path()), Arc::new(NoDataPlane)).await?);
    let before = resident_bytes();
    let begun = Instant::now();
    let host = Host::open(HostConfig::new(dir), Arc::new(NoDataPlane)).await?;
    let took = begun.elapsed();
    let grown = resident_bytes().saturating_sub(before);
    writeln!(out, "start with {count} resources    {took:?}")?;
    writeln!(
        out,
        "memory per resource             {} bytes",
        grown / count.max(1)
    )?;
    drop(host);
    Ok(())
}

async fn measure(stored: usize, many: usize) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let mut out = std::io::stdout();
    let (_empty_host, empty) = open(&dir.path().join("empty")).await?;
    let (host, full) = open(&dir.path().join("data")).await?;
    let profiles = full.form_support().await?;
    let form = profiles
        .iter()
        .map(|profile| &profile.form_ref)
        .find(|form| form.kind == "EdgeKVNamespace")
        .ok_or("no EdgeKVNamespace")?
        .clone();
    let took = fill(&full, &form, "stored", stored).await?;
    let rate = stored as f64 / took.as_secs_f64();
    writeln!(
        out,
        "durable applies, {CLIENTS} clients     {rate:.0} per second"
    )?;
    let [alone, among] = compare(&empty, &full, &form).await?;
    let ratio = among.as_secs_f64() / alone.as_secs_f64();
    writeln!(out, "apply, empty host               p50 {alone:?}")?;
    writeln!(
        out,
        "apply, {stored} resources      p50 {among:?} ({ratio:.2} of empty)"
    )?;
    let rest = many.saturating_sub(stored + ANSWERS);
    let took = fill(&full, &form, "more", rest).await?;
    let rate = rest as f64 / took.as_secs_f64();
    writeln!(out, "durable applies up to {many}   {rate:.0} per second")?;
    host.flush().await?;
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy)?;
    for file in ["host.sqlite", "host.sqlite-wal", "host.key"] {
        let from = dir.path().join("data").join(file);
        if from.exists() {
            std::fs::copy(from, copy.join(file))?;
        }
    }
    let child = Command::new(std::env::current_exe()?)
        .args(["--start", &many.to_string()])
        .arg(&copy)
        .status()?;
    if child.success() {
        Ok(())
    } else {
        Err("the second process failed".into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments
            .get(at)
            .map_or(Ok(default), |text| text.parse::<usize>())
    };
    match arguments.first().map(String::as_str) {
        Some("--start") => {
            let dir = arguments.get(2).ok_or("--start COUNT DIR")?;
            start(Path::new(dir), number(1, 0)? as u64).await
        }
        _ => measure(number(0, 10_000)?, number(1, 100_000)?).await,
    }
}
