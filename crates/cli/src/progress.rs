//! What a run tells while it goes on: JSON events, moving lines on a terminal, plain lines elsewhere.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use notation_engine::{EngineEvent, EventSink, StepEvent, TakenUp};
use notation_model::ResourceId;
use notation_planner::{Plan, Role, StepKey, Subject};
use serde_json::{Value as Json, json};

use crate::{
    printer::Printer,
    render::{
        cell, hold,
        transition::{self, past, verb},
    },
};

/// Tells a person or a script what happens.
pub struct Teller {
    printer: Printer,
    moving: Option<Moving>,
    /// Columns of the widest name that will be told.
    names: AtomicUsize,
}

/// Lines of running steps, at the bottom of the terminal.
struct Moving {
    lines: MultiProgress,
    running: Mutex<BTreeMap<StepKey, ProgressBar>>,
}

impl Teller {
    /// One for this process's streams.
    pub fn new(printer: &Printer) -> Teller {
        Teller {
            printer: *printer,
            moving: printer.moving().then(|| Moving {
                lines: MultiProgress::new(),
                running: Mutex::default(),
            }),
            names: AtomicUsize::new(0),
        }
    }

    /// Makes room for the names of a plan, so that what is told of them stands in columns.
    pub fn fit(&self, plan: &Plan) {
        let names = plan
            .steps
            .iter()
            .filter_map(|step| match &step.key.subject {
                Subject::Incarnation(incarnation) => {
                    Some(cell::columns(incarnation.resource.as_str()))
                }
                Subject::Cycle(_) => None,
            });
        let widest = names.max().unwrap_or(0).min(28);
        self.names.store(widest, Ordering::Relaxed);
    }

    /// A name in its column.
    fn name(&self, resource: &ResourceId) -> String {
        cell::pad(resource.as_str(), self.names.load(Ordering::Relaxed))
    }

    /// Takes the moving lines away; what was said above them stays.
    pub fn finish(&self) {
        if let Some(moving) = &self.moving {
            let mut running = moving
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            for (_, bar) in std::mem::take(&mut *running) {
                bar.finish_and_clear();
            }
        }
    }

    /// Says a line above the moving ones.
    pub fn line(&self, text: &str) {
        match &self.moving {
            // The moving lines are on this very terminal; hiding them while printing keeps it whole.
            Some(moving) => moving.lines.suspend(|| self.printer.say(text)),
            None => self.printer.say(text),
        }
    }

    fn start(&self, step: &StepEvent) {
        let Some(moving) = &self.moving else { return };
        let bar = moving.lines.add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("  {spinner} {msg}  {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style);
        bar.set_message(format!(
            "{}  {}",
            self.name(&step.resource),
            verb(step.transition)
        ));
        bar.enable_steady_tick(Duration::from_millis(120));
        let mut running = moving
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        running.insert(step.key.clone(), bar);
    }

    fn wait(&self, step: &StepEvent) {
        let reason = step.error.as_deref().unwrap_or("not finished yet");
        let text = format!(
            "{}  {}, attempt {}: {reason}",
            self.name(&step.resource),
            verb(step.transition),
            step.attempt
        );
        match &self.moving {
            Some(moving) => {
                let running = moving
                    .running
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if let Some(bar) = running.get(&step.key) {
                    bar.set_message(cell::cut(&text, self.printer.width.saturating_sub(14)));
                }
            }
            None => self.line(&format!("  {} {text}", cell::paint(cell::SETTLE, "…"))),
        }
    }

    fn end(&self, step: &StepEvent) {
        if let Some(moving) = &self.moving {
            let mut running = moving
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(bar) = running.remove(&step.key) {
                bar.finish_and_clear();
            }
        }
    }
}

impl EventSink for Teller {
    fn event(&self, event: &EngineEvent) {
        let (name, fields) = to_json(event);
        self.printer.event(name, fields);
        if self.printer.json {
            return;
        }
        match event {
            EngineEvent::StepStarted(step) => self.start(step),
            // A provider that only notes that it has begun has nothing to tell a person.
            EngineEvent::StepWaiting(step) if step.error.as_deref() == Some("") => {}
            EngineEvent::StepWaiting(step) => self.wait(step),
            // Its passes were told one by one.
            EngineEvent::StepDone(step) if matches!(step.key.role, Role::Settle { pass: 0 }) => {
                self.end(step)
            }
            EngineEvent::StepDone(step) => {
                self.end(step);
                self.line(&format!(
                    "  {} {}  {}  {}",
                    cell::paint(cell::CREATE, "✓"),
                    self.name(&step.resource),
                    cell::pad(past(step.transition), 8),
                    cell::paint(cell::FAINT, &cell::took(step.took_ms)),
                ));
            }
            EngineEvent::StepFailed(step) => {
                self.end(step);
                let line = format!(
                    "  {} {}  {} failed: {}",
                    cell::paint(cell::DELETE, "✗"),
                    self.name(&step.resource),
                    verb(step.transition),
                    step.error.as_deref().unwrap_or_default(),
                );
                // The whole of it stands in the report.
                self.line(&cell::cut(&line, self.printer.width));
            }
            EngineEvent::StepBlocked(step) => self.line(&format!(
                "  {} {}  {} not tried",
                cell::paint(cell::FAINT, "·"),
                self.name(&step.resource),
                verb(step.transition),
            )),
            EngineEvent::SettlePass {
                cycle,
                pass,
                of,
                written,
            } => {
                let written: Vec<_> = written.iter().map(ToString::to_string).collect();
                let found = match written.as_slice() {
                    // The last pass only looks; what it found is told by the step's end.
                    [] if pass == of => "wrote nothing".to_owned(),
                    [] => "no difference".to_owned(),
                    names => format!("wrote {}", names.join(", ")),
                };
                self.line(&format!(
                    "  {} {}  settle pass {pass} of at most {of}: {found}",
                    cell::paint(cell::SETTLE, "="),
                    self.name(&cycle.0)
                ));
            }
            EngineEvent::TakenUp(objects) => {
                let names = objects
                    .iter()
                    .map(|object| format!("{} ({})", object.incarnation.resource, object.key));
                self.line(&format!(
                    "found, not recorded before: {}; planned again from there",
                    names.collect::<Vec<_>>().join(", ")
                ));
            }
            EngineEvent::HoldWaiting(hold) => {
                self.line(&format!("waiting: {}", hold::to_text(hold)));
            }
            EngineEvent::HoldTakenOver(hold) => {
                self.line(&format!(
                    "taken over from a run that is gone: {}",
                    hold::to_text(hold)
                ));
            }
        }
    }
}

fn to_json(event: &EngineEvent) -> (&'static str, Json) {
    match event {
        EngineEvent::StepStarted(one) => ("step_started", step(one)),
        EngineEvent::StepWaiting(one) => ("step_waiting", step(one)),
        EngineEvent::StepDone(one) => ("step_done", step(one)),
        EngineEvent::StepFailed(one) => ("step_failed", step(one)),
        EngineEvent::StepBlocked(one) => ("step_blocked", step(one)),
        EngineEvent::SettlePass {
            cycle,
            pass,
            of,
            written,
        } => {
            let written: Vec<_> = written.iter().map(ToString::to_string).collect();
            (
                "settle_pass",
                json!({ "cycle": cycle.to_string(), "pass": pass, "of": of, "written": written }),
            )
        }
        EngineEvent::TakenUp(objects) => {
            let object = |object: &TakenUp| {
                json!({
                    "resource": object.incarnation.resource.as_str(),
                    "generation": object.incarnation.generation,
                    "key": object.key,
                })
            };
            let objects: Vec<Json> = objects.iter().map(object).collect();
            ("objects_found", json!({ "objects": objects }))
        }
        EngineEvent::HoldWaiting(hold) => ("hold_waiting", hold::to_json(hold)),
        EngineEvent::HoldTakenOver(hold) => ("hold_taken_over", hold::to_json(hold)),
    }
}

fn step(step: &StepEvent) -> Json {
    json!({
        "key": step.key.to_string(),
        "resource": step.resource.as_str(),
        "transition": transition::name(step.transition),
        "attempt": step.attempt,
        "took_ms": step.took_ms,
        "error": step.error,
    })
}
