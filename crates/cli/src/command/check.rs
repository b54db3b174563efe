//! `notation check ENTRY`: evaluates the program and judges its graph; no state, no calls.

use notation_model::SecretName;
use notation_planner::{PlanError, judge};
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
    judge(graph, &types)
        .map_err(|problems| Failure::refused(&config.root, &PlanError { problems }))?;
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
        let stage = args.stage.as_ref().or(config.default_stage.as_ref());
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
