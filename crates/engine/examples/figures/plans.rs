//! What planning costs when there is nothing to do, state load included, and how it grows.

use std::sync::Arc;

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
    stopwatch::{Took, timed},
};

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
        let mut before: Option<Took> = None;
        for (count, target) in SIZES {
            let program = Program::new(shape, count);
            let graph = program.graph()?;
            let folder = state_of(&graph).await?;
            let (load, _) = timed(async || {
                let store = store(folder.path());
                Ok(store.load(&deployment()?).await?.records.len())
            })
            .await?;
            let (took, steps) = timed(async || quiet_plan(&folder, &graph).await).await?;
            if steps > 0 {
                return Err(format!("{program}: {steps} steps where nothing is to do").into());
            }
            report.put(&Figure {
                name: format!("plan of {program}, nothing to do"),
                value: took.median_ms,
                unit: "ms",
                target,
                note: format!(
                    "{}; loading state {:.1} ms of it",
                    took.note(),
                    load.median_ms
                ),
            });
            if let Some(before) = before.replace(took) {
                report.put(&growth(&format!("plan of {program}"), &took, &before));
            }
            if count == 100_000 && matches!(shape, Shape::Tree | Shape::Chain) {
                drop(graph);
                report.put(&memory::figure(program, folder.path())?);
            }
        }
    }
    Ok(())
}

/// Ten times the work in at most fifteen times the time.
pub fn growth(name: &str, took: &Took, before: &Took) -> Figure {
    Figure {
        name: format!("{name}: against a tenth of it"),
        value: took.over(before),
        unit: "times",
        target: Target::AtMost(15.0),
        note: format!("cpu {:.1} times", took.cpu_ms / before.cpu_ms),
    }
}

/// A folder with the state of the deployed program.
async fn state_of(graph: &DesiredGraph) -> Result<TempDir, Failure> {
    let folder = crate::folder()?;
    fill(folder.path(), &recorded(graph.clone()).await?).await?;
    Ok(folder)
}

async fn quiet_plan(folder: &TempDir, graph: &DesiredGraph) -> Result<usize, Failure> {
    let session = session(store(folder.path()), Arc::new(Free::default()))?;
    Ok(plan(&session, graph, &options()).await?.plan.steps.len())
}
