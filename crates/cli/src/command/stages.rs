//! `notation stages`: deployments that have state.

use serde_json::json;

use crate::{
    args::Global, exit::Exit, failure::Outcome, printer::Printer, project, render::cell, session,
};

/// Lists them.
pub fn run(global: &Global, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let mut found = session::deployments(&config)?;
    found.retain(|summary| summary.deployment.app == config.app);
    let rows: Vec<_> = found
        .iter()
        .map(|summary| {
            json!({
                "app": summary.deployment.app.as_str(),
                "stage": summary.deployment.stage.as_str(),
                "entry": summary.deployment.entry.as_str(),
                "resources": summary.records,
                "last_run": summary.last_run_ms.map(session::time),
                "held": summary.hold.is_some(),
            })
        })
        .collect();
    printer.event("stages", json!({ "stages": rows }));
    if found.is_empty() {
        printer.say("no deployment has state; `notation deploy ENTRY --stage STAGE` makes one");
        return Ok(Exit::Done);
    }
    let width =
        |of: &dyn Fn(&notation_state::Summary) -> usize| found.iter().map(of).max().unwrap_or(0);
    let app = width(&|row| row.deployment.app.as_str().len());
    let stage = width(&|row| row.deployment.stage.as_str().len());
    let entry = width(&|row| row.deployment.entry.as_str().len());
    for summary in &found {
        let id = &summary.deployment;
        let records = cell::count(
            usize::try_from(summary.records).unwrap_or(usize::MAX),
            "resource",
        );
        let last = summary
            .last_run_ms
            .map_or_else(|| "never run".into(), session::time);
        let held = if summary.hold.is_some() {
            "   held"
        } else {
            ""
        };
        printer.out(format!(
            "{:app$}   {:stage$}   {:entry$}   {records:>13}   {last}{held}",
            id.app, id.stage, id.entry,
        ));
    }
    Ok(Exit::Done)
}
