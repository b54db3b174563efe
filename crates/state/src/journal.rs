//! The journal: what a run is about to do and what became of it.

use std::{collections::BTreeMap, fmt};

use notation_model::{Incarnation, Record};

use crate::RunId;

/// Which mutating call an intent announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Make the object.
    Create,
    /// Bring it to other parameters (a revert is one).
    Update,
    /// Remove it.
    Delete,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Call::Create => "create",
            Call::Update => "update",
            Call::Delete => "delete",
        })
    }
}

/// A call that is about to be made. Durable before the provider hears from us.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// What will be called.
    pub call: Call,
    /// Makes it repeatable; 32 lower-case hex digits, used for this intent only.
    pub token: String,
    /// The record as it will be when the call succeeds, without what only the answer tells
    /// (for a delete: as it is). Recovery records from it.
    pub draft: Record,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out; the record change is in the same commit.
    Done,
    /// It is known not to have been carried out, or nobody takes it over: closed.
    Closed,
}

/// One event of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A call is about to be made (or made again).
    Intent(Box<Intent>),
    /// The provider is not finished.
    Waiting {
        /// Data for the next call.
        resume: serde_json::Value,
        /// When the next call is due, in milliseconds since 1970.
        due_ms: u64,
        /// What is being waited for.
        reason: String,
    },
    /// The call ended.
    Outcome(Outcome),
    /// The call failed for good; nothing changed.
    Failed {
        /// Why.
        error: String,
    },
}

/// The name of an event, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// [`Event::Intent`].
    Intent,
    /// [`Event::Waiting`].
    Waiting,
    /// [`Event::Outcome`].
    Outcome,
    /// [`Event::Failed`].
    Failed,
}

impl Event {
    /// Its name.
    pub fn kind(&self) -> EventKind {
        match self {
            Event::Intent(_) => EventKind::Intent,
            Event::Waiting { .. } => EventKind::Waiting,
            Event::Outcome(_) => EventKind::Outcome,
            Event::Failed { .. } => EventKind::Failed,
        }
    }
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which run wrote it.
    pub run: RunId,
    /// The step's key as text, e.g. `a:0:complete`.
    pub step: String,
    /// Which attempt of the step, from 1.
    pub attempt: u32,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub event: Event,
}

/// Where a step stands in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Nothing was announced.
    Idle,
    /// Announced; what became of it is not known.
    Open,
    /// The provider is at work.
    Waiting,
    /// Carried out, or closed.
    Done,
    /// Failed; may be tried again.
    Failed,
}

/// An event that a step's status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not allowed while {status:?}")]
pub struct IllegalEvent {
    /// Where the step stood.
    pub status: StepStatus,
    /// What came.
    pub event: EventKind,
}

impl StepStatus {
    /// The one law of the journal, live and on replay.
    pub fn next(self, event: &Event) -> Result<StepStatus, IllegalEvent> {
        use StepStatus::{Done, Failed, Idle, Open, Waiting};
        match (self, event) {
            // Open or waiting: a repeated attempt. Done or failed: the step again in a later run.
            (Idle | Open | Waiting | Done | Failed, Event::Intent(_)) => Ok(Open),
            (Open | Waiting, Event::Waiting { .. }) => Ok(Waiting),
            (Open | Waiting, Event::Outcome(_)) => Ok(Done),
            (Open | Waiting, Event::Failed { .. }) => Ok(Failed),
            (status, event) => Err(IllegalEvent {
                status,
                event: event.kind(),
            }),
        }
    }
}

/// An intent without outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenIntent {
    /// Which step.
    pub step: String,
    /// Which run announced it last.
    pub run: RunId,
    /// Attempts made so far, at least 1.
    pub attempt: u32,
    /// What was announced.
    pub intent: Intent,
    /// Data of the last `Waiting` answer.
    pub resume: Option<serde_json::Value>,
    /// When the next call is due after that answer, in milliseconds since 1970; 0 without one.
    pub due_ms: u64,
    /// Whether that answer is the last that the journal heard. A call that was announced again
    /// since may have been made.
    pub answered: bool,
    /// When the journal last heard of it, in milliseconds since 1970.
    pub at_ms: u64,
}

impl OpenIntent {
    /// Whom it is about.
    pub fn incarnation(&self) -> &Incarnation {
        &self.intent.draft.incarnation
    }
}

/// Replays a journal: intents without outcome, by step key.
///
/// Errors: the step and the event that the table of [`StepStatus::next`] refuses.
pub fn open_intents<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<Vec<OpenIntent>, (String, IllegalEvent)> {
    let mut open: BTreeMap<&str, OpenIntent> = BTreeMap::new();
    for entry in entries {
        let found = open.get(entry.step.as_str());
        let status = match found {
            None => StepStatus::Idle,
            Some(open) if open.resume.is_some() => StepStatus::Waiting,
            Some(_) => StepStatus::Open,
        };
        status
            .next(&entry.event)
            .map_err(|illegal| (entry.step.clone(), illegal))?;
        match &entry.event {
            Event::Intent(intent) => {
                let same = found.filter(|open| open.intent.token == intent.token);
                let resume = same.and_then(|open| open.resume.clone());
                let due_ms = same.map_or(0, |open| open.due_ms);
                let intent = OpenIntent {
                    step: entry.step.clone(),
                    run: entry.run.clone(),
                    attempt: entry.attempt,
                    intent: (**intent).clone(),
                    resume,
                    due_ms,
                    answered: false,
                    at_ms: entry.at_ms,
                };
                open.insert(&entry.step, intent);
            }
            Event::Waiting { resume, due_ms, .. } => {
                if let Some(open) = open.get_mut(entry.step.as_str()) {
                    open.resume = Some(resume.clone());
                    open.due_ms = *due_ms;
                    open.answered = true;
                    open.attempt = entry.attempt;
                    open.at_ms = entry.at_ms;
                }
            }
            Event::Outcome(_) | Event::Failed { .. } => {
                open.remove(entry.step.as_str());
            }
        }
    }
    Ok(open.into_values().collect())
}
