//! `notation check ENTRY`: evaluates the program and judges whether it can be set up; no state, no
//! calls.

use notation_model::SecretName;
use serde_json::json;

use crate::{
    args::{Entry, Global},
    command::fresh::Fresh,
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    project,
    render::cell,
};

/// Says that the program can be deployed, or everything that keeps it from that.
pub fn run(global: &Global, args: &Entry, printer: &Printer) -> Outcome {
    let Fresh { entry, graph, .. } = Fresh::of(global, args, "check", printer)?;
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
        let config = project::of(global)?;
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
