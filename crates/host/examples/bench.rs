//! Figures of the control plane, one line each:
//! `cargo run --release -p notation-host --example bench -- [RESOURCES]` (10 000 by default).

use notation_edge_api as wire;
use notation_edge_api::client::{Client, Fence, Outcome};
use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

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

async fn create(client: &Client, form: &wire::FormRef, name: &str) -> Result<Duration, Failure> {
    let mut body = wire::ResourceBody {
        api_version: form.api_version.clone(),
        kind: form.kind.clone(),
        form: Some(wire::Form {
            form_ref: form.clone(),
            package_digest: None,
        }),
        metadata: wire::RequestMetadata {
            name: name.to_owned(),
            space: "bench".to_owned(),
            uid: None,
            generation: None,
            revision: None,
        },
        spec: None,
        review: None,
        expected_uid: None,
        expected_generation: None,
        native_id: None,
    };
    let prepared = client.prepare(&body, &Fence::Create).await?;
    body.review = Some(wire::Review {
        prepare_digest: prepared.review.prepare_digest,
    });
    let start = Instant::now();
    match client.apply(&body, &Fence::Create, name).await? {
        Outcome::Done(_) => Ok(start.elapsed()),
        Outcome::Accepted { .. } => Err("the host answers later".into()),
    }
}

async fn p50(client: &Client, form: &wire::FormRef, prefix: &str) -> Result<Duration, Failure> {
    let mut times = Vec::new();
    for number in 0..201 {
        times.push(create(client, form, &format!("{prefix}{number}")).await?);
    }
    times.sort();
    Ok(times[100])
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

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let count: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let mut out = std::io::stdout();
    let (host, client) = open(&dir.path().join("data")).await?;
    let profiles = client.form_support().await?;
    let form = profiles
        .iter()
        .map(|profile| &profile.form_ref)
        .find(|form| form.kind == "EdgeKVNamespace")
        .ok_or("no EdgeKVNamespace")?
        .clone();
    let empty = p50(&client, &form, "a").await?;
    writeln!(out, "apply, empty host           p50 {empty:?}")?;
    let before = resident_bytes();
    let start = Instant::now();
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let (client, form) = (client.clone(), form.clone());
            tokio::spawn(async move {
                for number in (task..count).step_by(32) {
                    create(&client, &form, &format!("load{number}")).await?;
                }
                Ok::<(), Failure>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let took = start.elapsed();
    writeln!(
        out,
        "prepare and apply, 32 at once  {:.0} per second",
        count as f64 / took.as_secs_f64()
    )?;
    writeln!(
        out,
        "memory per resource         {} bytes",
        (resident_bytes().saturating_sub(before)) / count as u64
    )?;
    let full = p50(&client, &form, "b").await?;
    writeln!(
        out,
        "apply, {count} resources     p50 {full:?} ({:.2} of empty)",
        full.as_secs_f64() / empty.as_secs_f64()
    )?;
    host.flush().await?;
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy)?;
    for file in ["host.sqlite", "host.sqlite-wal", "host.key"] {
        let from = dir.path().join("data").join(file);
        if from.exists() {
            std::fs::copy(from, copy.join(file))?;
        }
    }
    let start = Instant::now();
    let again = Host::open(HostConfig::new(&copy), Arc::new(NoDataPlane)).await?;
    writeln!(out, "start with {count} resources  {:?}", start.elapsed())?;
    drop(again);
    Ok(())
}
