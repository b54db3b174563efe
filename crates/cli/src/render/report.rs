//! What became of a run, as the last lines a person reads and as the `report` event.

use std::collections::BTreeMap;

use notation_engine::{Report, RunStatus};
use notation_planner::Transition;
use serde_json::{Value as Json, json};

use crate::{
    command::outputs::{self, Sensitive},
    render::{cell, plan_json},
};

/// Fields of the `report` event.
pub fn to_json(report: &Report) -> Json {
    let done: Vec<_> = report
        .done
        .iter()
        .map(|step| {
            json!({
                "key": step.key.to_string(),
                "resource": step.resource.as_str(),
                "transition": plan_json::transition(step.transition),
                "attempt": step.attempt,
            })
        })
        .collect();
    let failed: Vec<_> = report
        .failed
        .iter()
        .map(|step| {
            json!({
                "key": step.key.to_string(),
                "resource": step.resource.as_str(),
                "transition": plan_json::transition(step.transition),
                "attempt": step.attempt,
                "code": step.error.code(),
                "error": step.error.to_string(),
            })
        })
        .collect();
    let blocked: Vec<_> = report
        .blocked
        .iter()
        .map(|step| {
            json!({
                "key": step.key.to_string(),
                "resource": step.resource.as_str(),
                "by": step.by.to_string(),
            })
        })
        .collect();
    json!({
        "status": match report.status {
            RunStatus::Done => "done",
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "interrupted",
        },
        "done": done,
        "failed": failed,
        "blocked": blocked,
        "outputs": outputs::to_json(&report.outputs, Sensitive::Hidden),
        "took_ms": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The last lines: what was done, what was not, and whether to run again.
pub fn to_text(report: &Report, width: usize) -> String {
    let mut text = String::new();
    if !report.blocked.is_empty() {
        text.push_str("Not tried, since something before it failed:\n");
        for step in &report.blocked {
            let line = format!("  {}   waits for {}", step.resource, step.by);
            text.push_str(&cell::cut(&line, width));
            text.push('\n');
        }
        text.push('\n');
    }
    let took = cell::took(u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX));
    let counts = counts(report);
    let line = match report.status {
        RunStatus::Done => format!("{}: {counts} in {took}", cell::paint(cell::CREATE, "Done")),
        RunStatus::Failed => format!(
            "{}: {counts}, {} failed, {} not tried, in {took}\nThe state is consistent; the next run goes on from here",
            cell::paint(cell::DELETE, "Stopped"),
            report.failed.len(),
            report.blocked.len(),
        ),
        RunStatus::Interrupted => format!(
            "{}: {counts} in {took}\nThe state is consistent; the next run goes on from here",
            cell::paint(cell::UPDATE, "Interrupted"),
        ),
    };
    text.push_str(&line);
    text.push('\n');
    text
}

fn counts(report: &Report) -> String {
    let mut by: BTreeMap<Transition, usize> = BTreeMap::new();
    for step in &report.done {
        *by.entry(step.transition).or_default() += 1;
    }
    let words = [
        (Transition::Create, "created"),
        (Transition::Update, "updated"),
        (Transition::Revert, "reverted"),
        (Transition::Delete, "deleted"),
    ];
    let parts: Vec<_> = words
        .iter()
        .filter_map(|(transition, word)| by.get(transition).map(|count| format!("{count} {word}")))
        .collect();
    if parts.is_empty() {
        "nothing written".into()
    } else {
        parts.join(", ")
    }
}
