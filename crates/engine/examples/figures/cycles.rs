//! What cycles cost: searching for the fewest placeholders, writes, passes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
};

use notation_engine::{EngineEvent, EventSink, deploy};
use notation_model::DesiredGraph;
use notation_planner::{Observed, Plan, PlanInput, PlanOptions, Prior};

use crate::{
    Failure,
    applies::fleeting,
    deployment::{deployment, options, recorded},
    figure::{Figure, Report, Target},
    free::Free,
    programs::{Program, Shape},
    stopwatch::{Took, timed},
};

/// Programs that are one cycle after the other, how many placeholders each needs, and the least
/// number of searches that finds them (`engine.md` §10).
const CYCLES: [(Shape, usize, f64, Target); 3] = [
    (Shape::Pairs, 1_000, 500.0, Target::None),
    (Shape::Ring, 1_000, 1.0, Target::AtMost(2.0)),
    (Shape::Complete, 10, 9.0, Target::AtMost(214.0)),
];

/// Prints everything of this group.
pub async fn print(report: &mut Report) -> Result<(), Failure> {
    for (shape, count, placeholders, searches) in CYCLES {
        let program = Program::new(shape, count);
        let desired = program.graph()?;
        let nothing = Prior::default();
        let (took, plan) = timed_plan(&desired, &nothing).await?;
        report.put(&Figure {
            name: format!("planner: {program}, all new"),
            value: took.median_ms,
            unit: "ms",
            target: Target::Under(50.0),
            note: took.note(),
        });
        let bare: usize = plan
            .cycles
            .iter()
            .map(|cycle| cycle.placeholders.len())
            .sum();
        report.put(&Figure {
            name: format!("{program}: placeholders"),
            value: bare as f64,
            unit: "",
            target: Target::Exactly(placeholders),
            note: String::new(),
        });
        report.put(&Figure {
            name: format!("{program}: searches in the largest part"),
            value: f64::from(searches_of(&desired)?),
            unit: "",
            target: searches,
            note: String::new(),
        });
        let run = run(&desired).await?;
        report.put(&Figure {
            name: format!("{program}: writes"),
            value: run.writes as f64,
            unit: "",
            target: Target::Exactly(count as f64 + placeholders),
            note: "each once, and placeholders once more".to_owned(),
        });
        report.put(&Figure {
            name: format!("{program}: passes"),
            value: f64::from(run.passes),
            unit: "",
            target: Target::Exactly(1.0),
            note: format!(
                "the most of any cycle; {} allowed",
                plan.cycles
                    .iter()
                    .map(|cycle| cycle.passes)
                    .max()
                    .unwrap_or(0)
            ),
        });
        let prior = recorded_of(&desired).await?;
        for (what, desired, options) in [
            ("nothing to do", &desired, PlanOptions::default()),
            ("removed", &DesiredGraph::default(), PlanOptions::default()),
            (
                "all replaced",
                &desired,
                PlanOptions {
                    replace: desired.resources.keys().cloned().collect(),
                    ..PlanOptions::default()
                },
            ),
        ] {
            let (took, _) = timed(async || plan_with(desired, &prior, &options)).await?;
            report.put(&Figure {
                name: format!("planner: {program}, {what}"),
                value: took.median_ms,
                unit: "ms",
                target: Target::Under(50.0),
                note: took.note(),
            });
        }
    }
    Ok(())
}

/// What is recorded once a program is deployed.
pub async fn recorded_of(desired: &DesiredGraph) -> Result<Prior, Failure> {
    Ok(Prior {
        records: recorded(desired.clone()).await?,
    })
}

async fn timed_plan(desired: &DesiredGraph, prior: &Prior) -> Result<(Took, Plan), Failure> {
    timed(async || plan_with(desired, prior, &PlanOptions::default())).await
}

/// One plan of the planner alone.
pub fn plan_with(
    desired: &DesiredGraph,
    prior: &Prior,
    options: &PlanOptions,
) -> Result<Plan, Failure> {
    let types = notation_model::TypeSet::new(notation_provider_sim::types());
    Ok(notation_planner::plan(&PlanInput {
        deployment: &deployment()?,
        types: &types,
        desired,
        prior,
        observed: &Observed::default(),
        secrets: &BTreeMap::new(),
        options,
    })?)
}

/// The least budget with which no part is given up.
fn searches_of(desired: &DesiredGraph) -> Result<u32, Failure> {
    let (mut too_few, mut enough) = (0, PlanOptions::default().search_budget);
    while too_few + 1 < enough {
        let middle = too_few.midpoint(enough);
        let options = PlanOptions {
            search_budget: middle,
            ..PlanOptions::default()
        };
        let plan = plan_with(desired, &Prior::default(), &options)?;
        match plan.notes.iter().any(|note| note.code == "greedy_choice") {
            true => too_few = middle,
            false => enough = middle,
        }
    }
    Ok(enough)
}

struct Ran {
    writes: usize,
    passes: u32,
}

/// Hears how many passes a cycle took.
struct Passes(Arc<AtomicU32>);

impl EventSink for Passes {
    fn event(&self, event: &EngineEvent) {
        if let EngineEvent::SettlePass { pass, .. } = event {
            self.0.fetch_max(*pass, SeqCst);
        }
    }
}

async fn run(desired: &DesiredGraph) -> Result<Ran, Failure> {
    let (provider, passes) = (Arc::new(Free::default()), Arc::new(AtomicU32::new(0)));
    let mut session = fleeting(provider.clone())?;
    session.sink = Arc::new(Passes(passes.clone()));
    deploy(&session, Arc::new(desired.clone()), &options()).await?;
    Ok(Ran {
        writes: provider.calls(),
        passes: passes.load(SeqCst),
    })
}
