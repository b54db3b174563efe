//! What became of a run, as the last lines a person reads and as the `report` event.

use std::collections::BTreeMap;

use notation_engine::{Blocked, BlockedStep, Report, RunStatus};
use notation_planner::{Role, StepKey, Subject, Transition};
use serde_json::{Value as Json, json};

use crate::render::{
    cell,
    outputs::{self, Sensitive},
    recorded,
    transition::{self, verb},
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
                "transition": transition::name(step.transition),
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
                "transition": transition::name(step.transition),
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
        "recorded": recorded::to_json(&report.recorded),
        "outputs": outputs::to_json(&report.outputs, Sensitive::Hidden),
        "took_ms": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The last lines: what was done, what was not, and whether to run again.
pub fn to_text(report: &Report, width: usize) -> String {
    let mut text = String::new();
    if !report.blocked.is_empty() {
        text.push_str("Not tried, since something before it failed:\n");
        let names: Vec<String> = report.blocked.iter().map(blocked).collect();
        let shown = names.len().min(MOST_LISTED);
        let widest = names[..shown].iter().map(|name| cell::columns(name));
        let widest = widest.max().unwrap_or(0).min(width / 2);
        for (step, name) in report.blocked.iter().zip(&names[..shown]) {
            let name = cell::pad(&cell::cut(name, widest), widest);
            let by = waited_for(report, &step.by);
            let line = match step.why {
                Blocked::Waits => format!("  {name}   waits for {by}"),
                Blocked::Stopped => format!("  {name}   the run stopped at {by}"),
            };
            text.push_str(&cell::cut(&line, width));
            text.push('\n');
        }
        if names.len() > shown {
            text.push_str(&format!("  and {} more\n", names.len() - shown));
        }
        text.push('\n');
    }
    if !report.recorded.is_empty() {
        text.push_str("Recorded:\n");
        let shown = report.recorded.len().min(MOST_LISTED);
        for row in recorded::rows(&report.recorded[..shown], width.saturating_sub(2)) {
            text.push_str(&format!("  {row}\n"));
        }
        if report.recorded.len() > shown {
            text.push_str(&format!("  and {} more\n", report.recorded.len() - shown));
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
            "{}: {counts}{} in {took}\nThe state is consistent; the next run goes on from here",
            cell::paint(cell::UPDATE, "Interrupted"),
            match report.failed.len() {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            },
        ),
    };
    text.push_str(&line);
    text.push('\n');
    text
}

/// More than these are counted only.
const MOST_LISTED: usize = 20;

/// What was not tried, in words people wrote.
fn blocked(step: &BlockedStep) -> String {
    match step.key.role {
        Role::Placeholder | Role::Complete => step.resource.to_string(),
        Role::Absent => format!("delete {}", step.resource),
        Role::Settle { .. } => format!("settle {}", step.resource),
    }
}

/// What it waits for, in the same words as the failure above.
fn waited_for(report: &Report, key: &StepKey) -> String {
    let failed = report.failed.iter().find(|step| step.key == *key);
    match (failed, &key.subject) {
        (Some(step), _) => format!("{} ({} failed)", step.resource, verb(step.transition)),
        (None, Subject::Incarnation(incarnation)) => incarnation.resource.to_string(),
        (None, Subject::Cycle(cycle)) => cycle.0.to_string(),
    }
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
    let mut parts: Vec<_> = words
        .iter()
        .filter_map(|(transition, word)| by.get(transition).map(|count| format!("{count} {word}")))
        .collect();
    if !report.recorded.is_empty() {
        parts.push(format!("{} recorded", report.recorded.len()));
    }
    if report.changed_outputs > 0 {
        let outputs = cell::count(report.changed_outputs, "output");
        parts.push(format!("{outputs} changed"));
    }
    if parts.is_empty() {
        "nothing written".into()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use notation_engine::{FailedStep, Report, RunStatus, StepError};
    use notation_planner::{Role, StepKey, Subject, Transition};

    #[test]
    fn an_interrupted_run_counts_what_failed_before() {
        let incarnation = notation_model::Incarnation {
            resource: "a".parse().expect("an id"),
            generation: 0,
        };
        let failed = FailedStep {
            resource: incarnation.resource.clone(),
            key: StepKey {
                subject: Subject::Incarnation(incarnation),
                role: Role::Complete,
            },
            transition: Transition::Update,
            attempt: 1,
            error: StepError::Vanished { wanted: true },
        };
        let report = Report {
            status: RunStatus::Interrupted,
            done: Vec::new(),
            failed: vec![failed],
            blocked: Vec::new(),
            recorded: Vec::new(),
            not_recorded: None,
            outputs: BTreeMap::new(),
            changed_outputs: 0,
            took: Duration::from_millis(980),
        };
        let text = super::to_text(&report, 100);
        assert!(text.contains("nothing written, 1 failed in"), "{text}");
    }
}
