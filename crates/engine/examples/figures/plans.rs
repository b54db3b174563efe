//! What planning costs when there is nothing to do, state load included, and how it grows.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use notation_engine::plan;
use notation_model::DesiredGraph;
use notation_state::StateStore as _;
use tempfile::TempDir;

use crate::{
    Failure,
    deployment::{deployment, fill, options, recorded, session, store},
    figure::{Figure, Report, Target},
    free::Free,
    memory,
    programs::{Program, Shape},
    stopwatch::{TIMES, Time, Took, median},
    turns::{Growth, Worker, in_turn, serve},
};

/// First argument of the process of a size.
pub const CHILD: &str = "--plan-recorded";

/// What the process of a size does when asked.
const PLAN: &str = "plan";
const LOAD: &str = "load";

const SHAPES: [Shape; 4] = [Shape::Tree, Shape::Chain, Shape::Wide, Shape::Star];

/// How many resources, and what planning them may take.
const SIZES: [(usize, Target); 3] = [
    (1_000, Target::None),
    (10_000, Target::Under(300.0)),
    (100_000, Target::Under(3_000.0)),
];

/// Prints everything of this group.
pub async fn print(report: &mut Report) -> Result<(), Failure> {
    for shape in SHAPES {
        let mut before: Option<(Worker, TempDir)> = None;
        for (count, target) in SIZES {
            let program = Program::new(shape, count);
            let folder = state_of(&program.graph()?).await?;
            let mut worker = start(program, folder.path())?;
            let grown = match &mut before {
                Some((less, _)) => Some(in_turn(less, &mut worker, PLAN)?),
                None => None,
            };
            let took = match &grown {
                Some(grown) => grown.more,
                None => Took::of(&times(&mut worker, PLAN)?),
            };
            let load_ms = median(times(&mut worker, LOAD)?.iter().map(Time::wall));
            report.put(&Figure {
                name: format!("plan of {program}, nothing to do"),
                value: took.median_ms,
                unit: "ms",
                target,
                note: format!("{}; loading state {load_ms:.1} ms of it", took.note()),
            });
            if let Some(grown) = grown {
                report.put(&growth(program, &grown));
            }
            if count == 100_000 && matches!(shape, Shape::Tree | Shape::Chain) {
                report.put(&memory::figure(program, folder.path())?);
            }
            if let Some((less, _)) = before.replace((worker, folder)) {
                less.end()?;
            }
        }
        if let Some((last, _)) = before {
            last.end()?;
        }
    }
    Ok(())
}

fn growth(program: Program, grown: &Growth) -> Figure {
    let Growth {
        wall, cpu, rounds, ..
    } = grown;
    Figure {
        name: format!("plan of {program}: against a tenth of it"),
        value: *wall,
        unit: "times",
        target: Target::AtMost(15.0),
        note: format!("cpu {cpu:.1} times; {rounds}"),
    }
}

/// A folder with the state of the deployed program.
async fn state_of(graph: &DesiredGraph) -> Result<TempDir, Failure> {
    let folder = crate::folder()?;
    fill(folder.path(), &recorded(graph.clone()).await?).await?;
    Ok(folder)
}

fn times(worker: &mut Worker, work: &str) -> Result<Vec<Time>, Failure> {
    (0..TIMES).map(|_| worker.time(work)).collect()
}

fn start(program: Program, folder: &Path) -> Result<Worker, Failure> {
    let (shape, count) = (program.shape.to_string(), program.count.to_string());
    let folder = folder
        .to_str()
        .ok_or("the folder has a name that is no text")?;
    Worker::start(&[CHILD, &shape, &count, folder])
}

/// The process of a size: plans the program that is deployed as the folder says, or loads its
/// state only.
pub async fn child(arguments: &[String]) -> Result<(), Failure> {
    let [shape, count, folder] = arguments else {
        return Err(format!("{CHILD} SHAPE COUNT FOLDER").into());
    };
    let shape = Shape::named(shape).ok_or("no such shape")?;
    let graph = Program::new(shape, count.parse()?).graph()?;
    let folder = PathBuf::from(folder);
    serve(async |work| match work {
        PLAN => quiet_plan(&folder, &graph).await,
        LOAD => Ok(store(&folder).load(&deployment()?).await?.records.len()),
        _ => Err("no such work".into()),
    })
    .await
}

/// How many resources are as they should be: all of them.
async fn quiet_plan(folder: &Path, graph: &DesiredGraph) -> Result<usize, Failure> {
    let session = session(store(folder), Arc::new(Free::default()))?;
    let plan = plan(&session, graph, &options()).await?.plan;
    match plan.steps.len() {
        0 => Ok(plan.unchanged),
        steps => Err(format!("{steps} steps where nothing is to do").into()),
    }
}
