//! What deploying costs beside the provider: time, bytes, and what is lost against the ideal
//! schedule.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use notation_engine::{RunStatus, Session, begin, deploy};
use notation_model::DesiredGraph;
use notation_planner::{Plan, StepKey, Transition};
use notation_state::MemoryStore;

use crate::{
    Failure,
    deployment::{options, session, store},
    figure::{Figure, Report, Target},
    free::Free,
    programs::{Program, Shape},
    stopwatch::{Took, ms, timed},
};

/// What an append-only segment needs around each line: its length and a checksum.
const FRAME_BYTES: u64 = 8;

/// Durable deploys with a free provider.
pub async fn print(report: &mut Report) -> Result<(), Failure> {
    let mut before: Option<(Took, f64)> = None;
    for (count, target) in [(1_000, Target::None), (10_000, Target::Under(2_000.0))] {
        let program = Program::new(Shape::Wide, count);
        let graph = Arc::new(program.graph()?);
        let (took, cost) = timed(async || durable_deploy(&graph).await).await?;
        report.put(&Figure {
            name: format!("apply of {program}, free provider, durable"),
            value: took.median_ms,
            unit: "ms",
            target,
            note: format!(
                "{}; {} commits, at most {} calls at a time",
                took.note(),
                cost.commits,
                cost.most_running
            ),
        });
        report.put(&Figure {
            name: format!("bytes written per byte recorded, {program}"),
            value: cost.ratio,
            unit: "times",
            target: Target::Under(20.0),
            note: format!(
                "{} bytes a record; an append-only segment would write {:.1}",
                cost.record_bytes, cost.segment_ratio
            ),
        });
        if let Some((less, ratio)) = before.replace((took, cost.ratio)) {
            report.put(&Figure {
                name: format!("apply of {program}: against a tenth of it"),
                value: took.over(&less),
                unit: "times",
                target: Target::AtMost(15.0),
                note: format!("cpu {:.1} times", took.cpu_ms / less.cpu_ms),
            });
            report.put(&Figure {
                name: format!("bytes written per byte, {program}: against a tenth"),
                value: (cost.ratio / ratio - 1.0).abs(),
                unit: "apart",
                target: Target::AtMost(0.2),
                note: String::new(),
            });
        }
    }
    Ok(())
}

struct Cost {
    ratio: f64,
    segment_ratio: f64,
    record_bytes: u64,
    commits: u64,
    most_running: usize,
}

async fn durable_deploy(graph: &Arc<DesiredGraph>) -> Result<Cost, Failure> {
    let folder = crate::folder()?;
    let before = written_bytes()?;
    let (store, provider) = (store(folder.path()), Arc::new(Free::default()));
    let session = session(store.clone(), provider.clone())?;
    let report = deploy(&session, graph.clone(), &options()).await?;
    if report.status != RunStatus::Done {
        return Err("a deploy to a free provider failed".into());
    }
    let traffic = store.traffic();
    // Closing the file moves what was appended to its place: that is written too.
    drop((session, store));
    let recorded = traffic.record_bytes as f64;
    let frames = FRAME_BYTES * traffic.lines;
    Ok(Cost {
        ratio: (written_bytes()? - before) as f64 / recorded,
        segment_ratio: (traffic.journal_bytes + traffic.record_bytes + frames) as f64 / recorded,
        record_bytes: traffic.record_bytes / graph.resources.len() as u64,
        commits: traffic.commits,
        most_running: provider.most_running(),
    })
}

/// Bytes this process handed to the system for writing so far.
fn written_bytes() -> Result<u64, Failure> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(written
        .ok_or("the system does not tell what was written")?
        .parse()?)
}

/// Deploys with calls that take a while, against the shortest time they could take.
pub async fn print_latency(report: &mut Report) -> Result<(), Failure> {
    const LATENCY: Duration = Duration::from_millis(20);
    for (shape, count) in [
        (Shape::Wide, 1_000),
        (Shape::Tree, 1_000),
        (Shape::Pairs, 300),
    ] {
        let program = Program::new(shape, count);
        let folder = crate::folder()?;
        let provider = Arc::new(Free::with_latency(LATENCY));
        let session = session(store(folder.path()), provider.clone())?;
        let started = Instant::now();
        let run = begin(&session, Arc::new(program.graph()?), &options()).await?;
        let ideal = LATENCY * least_rounds(run.plan(), options().parallelism);
        run.run().await?;
        let took = started.elapsed();
        report.put(&Figure {
            name: format!("apply of {program} with calls of 20 ms, against ideal"),
            value: took.as_secs_f64() / ideal.as_secs_f64(),
            unit: "times",
            target: Target::AtMost(1.1),
            note: format!(
                "{:.0} ms, ideal {:.0} ms for {} calls; at most {} at a time",
                ms(took),
                ms(ideal),
                provider.calls(),
                provider.most_running()
            ),
        });
    }
    Ok(())
}

/// How many calls one after the other no schedule does without: the longest way through the plan,
/// or all of them shared by so many at a time.
fn least_rounds(plan: &Plan, at_a_time: usize) -> u32 {
    let mut depth: BTreeMap<&StepKey, usize> = BTreeMap::new();
    let (mut longest, mut calls) = (0, 0);
    for step in &plan.steps {
        let before = step.after.iter().filter_map(|key| depth.get(key)).max();
        let is_call = !matches!(
            step.forecast.transition,
            Transition::None | Transition::Settle
        );
        let here = before.copied().unwrap_or(0) + usize::from(is_call);
        calls += usize::from(is_call);
        longest = longest.max(here);
        depth.insert(&step.key, here);
    }
    u32::try_from(longest.max(calls.div_ceil(at_a_time))).unwrap_or(u32::MAX)
}

/// A session that keeps nothing.
pub fn fleeting(provider: Arc<Free>) -> Result<Session, Failure> {
    session(Arc::new(MemoryStore::new()), provider)
}
