//! `notation stages`: deployments that have state.

use notation_state::Summary;
use serde_json::json;

use crate::{
    args::Global, exit::Exit, failure::Outcome, printer::Printer, project, render::cell, session,
};

/// Lists them, with those of apps that the project had before its app was renamed.
pub fn run(global: &Global, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let found = session::deployments(&config)?;
    let rows: Vec<_> = found
        .iter()
        .map(|summary| {
            json!({
                "app": summary.deployment.app.as_str(),
                "stage": summary.deployment.stage.as_str(),
                "entry": summary.deployment.entry.as_str(),
                "resources": summary.records,
                "last_run": summary.last_run_ms.map(cell::time),
                "held": summary.hold.is_some(),
            })
        })
        .collect();
    printer.event("stages", json!({ "stages": rows }));
    if found.is_empty() {
        printer.say("no deployment has state; `notation deploy ENTRY --stage STAGE` makes one");
        return Ok(Exit::Done);
    }
    printer.out(table(&found));
    let (others, gone): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|summary| {
            let id = &summary.deployment;
            id.app != config.app || !config.entries.contains_key(&id.entry)
        })
        .partition(|summary| summary.deployment.app != config.app);
    let remark = |what: String, rows: &[&Summary]| {
        if rows.is_empty() {
            return;
        }
        let mut text = format!("\n{what}\n");
        for row in rows {
            let id = &row.deployment;
            text.push_str(&format!(
                "  notation destroy {} --stage {}",
                id.entry, id.stage
            ));
            if id.app != config.app {
                text.push_str(&format!(" --app {}", id.app));
            }
            text.push('\n');
        }
        printer.say(text);
    };
    remark(
        format!(
            "Of another app than {}, which is what the config says now; to take it down:",
            config.app
        ),
        &others,
    );
    remark(
        "Of an entry that is not in the config any more; to take it down:".into(),
        &gone,
    );
    Ok(Exit::Done)
}

fn table(found: &[Summary]) -> String {
    let mut rows = vec![["APP", "STAGE", "ENTRY", "RESOURCES", "LAST RUN", ""].map(str::to_owned)];
    rows.extend(found.iter().map(|summary| {
        let id = &summary.deployment;
        let held = if summary.hold.is_some() { "held" } else { "" };
        [
            id.app.to_string(),
            id.stage.to_string(),
            id.entry.to_string(),
            summary.records.to_string(),
            summary
                .last_run_ms
                .map_or_else(|| "never".into(), cell::time),
            held.to_owned(),
        ]
    }));
    cell::table(&rows)
}
