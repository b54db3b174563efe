//! `notation graph ENTRY`: the program's graph as text or picture.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{DeploymentId, ResourceId, StageName};
use notation_planner::{Observed, PlanInput, PlanOptions, Prior};
use notation_program::{Limits, evaluate};
use serde_json::json;

use crate::{
    args::{Global, Graph, GraphFormat},
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
    project,
    render::graph::{Drawing, dot, mermaid, svg},
    session,
};

/// Draws it. Placeholders are those of a fresh stage: state is not read.
pub fn run(global: &Global, args: &Graph, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let entry = project::entry(&config, &args.entry, "graph")?;
    let types = session::types();
    let evaluated = evaluate(&config, &entry, &types, &Limits::default())?;
    let stage = args
        .entry
        .stage
        .clone()
        .or_else(|| config.default_stage.clone());
    let fresh: StageName = "fresh".parse().expect("it is name-safe");
    let deployment = DeploymentId {
        app: config.app.clone(),
        stage: stage.unwrap_or(fresh),
        entry,
    };
    let plan = notation_planner::plan(&PlanInput {
        deployment: &deployment,
        types: &types,
        desired: &evaluated.graph,
        prior: &Prior::default(),
        observed: &Observed::default(),
        secrets: &BTreeMap::new(),
        options: &PlanOptions::default(),
    })
    .map_err(|error| Failure::refused(&config.root, &error))?;
    let placeholders: BTreeSet<ResourceId> = plan
        .cycles
        .iter()
        .flat_map(|cycle| &cycle.placeholders)
        .map(|incarnation| incarnation.resource.clone())
        .collect();
    let drawing = Drawing::of(&evaluated.graph, &placeholders);
    let text = match args.format {
        GraphFormat::Mermaid => mermaid(&drawing),
        GraphFormat::Dot => dot(&drawing),
        GraphFormat::Svg => svg(&drawing),
    };
    if printer.json {
        let mut fields = drawing.to_json();
        fields["text"] = json!(text);
        printer.event("graph", fields);
    } else {
        printer.raw(&text);
    }
    Ok(Exit::Done)
}
