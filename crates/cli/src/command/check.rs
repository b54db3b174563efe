//! `notation check ENTRY`: evaluates the program and judges its graph; no state, no calls.

use std::collections::BTreeMap;

use notation_model::{DeploymentId, DesiredGraph, SecretName, TypeSet};
use notation_planner::{Observed, PlanError, PlanInput, PlanOptions, Prior, judge, plan};
use notation_program::{Limits, evaluate};
use serde_json::json;

use crate::{
    args::{Entry, Global},
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
    project,
    render::cell,
    session,
};

/// Says that the program can be deployed, or everything that keeps it from that.
pub fn run(global: &Global, args: &Entry, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let entry = project::entry(&config, args, "check")?;
    let types = session::types();
    let evaluated = evaluate(&config, &entry, &types, &Limits::default())?;
    let graph = &evaluated.graph;
    let stage = args.stage.as_ref().or(config.default_stage.as_ref());
    let judged = match stage {
        Some(stage) => {
            let deployment = DeploymentId {
                app: config.app.clone(),
                stage: stage.clone(),
                entry: entry.clone(),
            };
            on_a_fresh_stage(graph, &types, &deployment)
        }
        // Generated names have the stage in them; everything else can be judged without it.
        None => judge(graph, &types).map_err(|problems| PlanError { problems }),
    };
    judged.map_err(|error| Failure::refused(&config.root, &error))?;
    let secrets: Vec<&str> = graph
        .secrets()
        .into_iter()
        .map(SecretName::as_str)
        .collect();
    printer.event(
        "check",
        json!({
            "entry": entry.as_str(),
            "resources": graph.resources.len(),
            "outputs": graph.exports.len(),
            "secrets": secrets,
        }),
    );
    printer.out(format!(
        "{entry} can be deployed: {}, {}",
        cell::count(graph.resources.len(), "resource"),
        cell::count(graph.exports.len(), "output")
    ));
    if !secrets.is_empty() {
        let stage = stage.map_or_else(|| "STAGE".to_owned(), ToString::to_string);
        // What is set is state, and a check reads none.
        printer.say(format!(
            "it needs {}, set once per stage:",
            cell::count(secrets.len(), "secret")
        ));
        for name in secrets {
            printer.say(format!(
                "  notation secret set {entry} {name} --stage {stage}"
            ));
        }
    }
    Ok(Exit::Done)
}

/// Whether the program can be set up where nothing of it exists: what every program must be fit
/// for, and all that can be told without state.
fn on_a_fresh_stage(
    graph: &DesiredGraph,
    types: &TypeSet,
    deployment: &DeploymentId,
) -> Result<(), PlanError> {
    let planned = plan(&PlanInput {
        deployment,
        types,
        desired: graph,
        prior: &Prior::default(),
        observed: &Observed::default(),
        secrets: &BTreeMap::new(),
        options: &PlanOptions::default(),
    });
    planned.map(drop)
}
