//! What deploying costs: `cargo run --release -p notation-engine --example figures`.
//!
//! Prints, for a provider that costs nothing and durable state in a file: time and bytes written
//! per byte of recorded state for 1 000 and 10 000 resources; the time with calls that take 20 ms
//! against the ideal schedule; planning what is there already.
#![allow(clippy::print_stdout, reason = "printing figures is what it is for")]

use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use notation_engine::{DriftCheck, RunOptions, Session, begin, deploy, plan};
use notation_model::{
    Desired, DesiredGraph, Expr, Marks, Origin, Owner, Params, ResourceType, TypeName, Value,
};
use notation_provider::{
    Found, LookFor, Object, OpContext, OpError, Progress, Provider, Registry, Update,
};
use notation_state::{KeySource, SqliteStore, StateStore};

/// Answers at once, or after a while, and remembers nothing.
struct Free(Duration);

#[async_trait]
impl Provider for Free {
    fn name(&self) -> &str {
        "sim"
    }
    fn types(&self) -> Vec<ResourceType> {
        notation_provider_sim::types()
    }
    async fn create(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        let key = params.get("Name").and_then(Value::as_text);
        let key = key.unwrap_or("none").to_owned();
        let outputs = Params::from([("id".into(), Value::text(format!("id-of-{key}")))]);
        Ok(Progress::Done(Object { key, outputs }))
    }
    async fn read(
        &self,
        _: &Owner,
        _: &TypeName,
        _: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        Ok(None)
    }
    async fn update(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        Ok(Progress::Done(Object {
            key: key.to_owned(),
            outputs: update.outputs.clone(),
        }))
    }
    async fn delete(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        _: &str,
        _: &Params,
    ) -> Result<Progress<()>, OpError> {
        Ok(Progress::Done(()))
    }
}

fn wide(count: usize) -> Result<DesiredGraph, Box<dyn Error>> {
    let mut graph = DesiredGraph::default();
    for number in 0..count {
        let value = BTreeMap::from([
            ("memory".to_owned(), Expr::Known(Value::Int(512))),
            ("runtime".to_owned(), Expr::from("js")),
            ("route".to_owned(), Expr::from("/api/v1/orders")),
        ]);
        let desired = Desired {
            id: format!("thing-{number}").parse()?,
            ty: "sim/Thing".parse()?,
            config: BTreeMap::from([("value".to_owned(), Expr::Map(value))]),
            contributions: Vec::new(),
            depend_on: Vec::new(),
            marks: Marks::default(),
            formerly: Vec::new(),
            origin: Origin::default(),
        };
        graph.resources.insert(desired.id.clone(), desired);
    }
    Ok(graph)
}

/// Bytes this process handed to the system for writing so far.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: ")?.parse().ok())
        .unwrap_or(0)
}

fn session(folder: &Path, latency: Duration) -> Result<Session, Box<dyn Error>> {
    let store = SqliteStore::open(folder.join("state.db"), KeySource::File(folder.join("key")));
    Ok(Session::new(
        "shop:dev:main".parse()?,
        Arc::new(store),
        Registry::new(vec![Arc::new(Free(latency))])?,
    ))
}

/// Bytes of what is recorded: records as compact JSON-like text.
async fn recorded_bytes(session: &Session) -> Result<u64, Box<dyn Error>> {
    let store: &Arc<dyn StateStore> = &session.store;
    let state = store.load(&session.deployment).await?;
    let sizes = state.records.values().map(|record| {
        let params = |params: &Params| -> usize {
            params
                .iter()
                .map(|(name, value)| name.len() + 4 + value.to_display_json().to_string().len())
                .sum()
        };
        record.key.len() + params(&record.applied) + params(&record.outputs) + 40
    });
    Ok(sizes.sum::<usize>() as u64)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = RunOptions {
        drift: DriftCheck::Skip,
        ..RunOptions::default()
    };
    for count in [1_000, 10_000] {
        let folder = tempfile::tempdir()?;
        let session = session(folder.path(), Duration::ZERO)?;
        let graph = Arc::new(wide(count)?);
        let before = written_bytes();
        let started = Instant::now();
        let ready = begin(&session, graph.clone(), &options).await?;
        let planned = started.elapsed();
        let report = ready.run().await?;
        let took = started.elapsed();
        let recorded = recorded_bytes(&session).await?;
        let planned_again = Instant::now();
        let again = plan(&session, &graph, &options).await?;
        let planned_again = planned_again.elapsed();
        // Closing the file moves what was appended to its place: that is written too.
        drop(session);
        let written = written_bytes() - before;
        println!(
            "apply {count}, free provider, durable: {:.2} s (planned after {:.2} s), {} done, {:.1} bytes written per byte recorded ({} per resource)",
            took.as_secs_f64(),
            planned.as_secs_f64(),
            report.done.len(),
            written as f64 / recorded as f64,
            recorded / count as u64,
        );
        println!(
            "plan {count} with nothing to do: {:.3} s, {} steps",
            planned_again.as_secs_f64(),
            again.plan.steps.len()
        );
    }
    let folder = tempfile::tempdir()?;
    let latency = Duration::from_millis(20);
    let session = session(folder.path(), latency)?;
    let count = 1_000;
    let started = Instant::now();
    deploy(&session, Arc::new(wide(count)?), &options).await?;
    let ideal = latency.as_secs_f64() * count as f64 / options.parallelism as f64;
    println!(
        "apply {count} with calls of 20 ms: {:.2} of the ideal schedule",
        started.elapsed().as_secs_f64() / ideal
    );
    Ok(())
}
