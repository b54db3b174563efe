//! How a line of the journal is written.

use serde::{Deserialize, Serialize};

use super::{Format, ReadError, bounded, record::RecordText, text};
use crate::{Call, Entry, Event, Intent, Outcome, RunId, StoreError};

#[derive(Serialize, Deserialize)]
struct EntryText {
    run: String,
    step: String,
    attempt: u32,
    at: u64,
    event: EventText,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventText {
    Intent {
        call: CallText,
        token: String,
        draft: Box<RecordText>,
    },
    Waiting {
        /// Sealed: it is opaque and may hold anything.
        resume: String,
        due: u64,
        reason: String,
    },
    Done,
    Closed,
    Failed(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallText {
    Create,
    Update,
    Delete,
}

impl Format<'_> {
    pub(crate) fn entry(&self, entry: &Entry) -> Result<String, StoreError> {
        let event = match &entry.event {
            Event::Intent(intent) => EventText::Intent {
                call: match intent.call {
                    Call::Create => CallText::Create,
                    Call::Update => CallText::Update,
                    Call::Delete => CallText::Delete,
                },
                token: intent.token.clone(),
                draft: Box::new(self.record_text(&intent.draft)?),
            },
            Event::Waiting {
                resume,
                due_ms,
                reason,
            } => EventText::Waiting {
                resume: {
                    let levels = notation_model::Value::from(resume.clone()).depth();
                    bounded("data of a wait", levels)?;
                    self.seal(text(resume).as_bytes())?
                },
                due: *due_ms,
                reason: reason.clone(),
            },
            Event::Outcome(Outcome::Done) => EventText::Done,
            Event::Outcome(Outcome::Closed) => EventText::Closed,
            Event::Failed { error } => EventText::Failed(error.clone()),
        };
        Ok(text(&EntryText {
            run: entry.run.0.clone(),
            step: entry.step.clone(),
            attempt: entry.attempt,
            at: entry.at_ms,
            event,
        }))
    }

    pub(crate) fn read_entry(&self, text: &str) -> Result<Entry, ReadError> {
        let entry: EntryText = serde_json::from_str(text)?;
        let event = match entry.event {
            EventText::Intent { call, token, draft } => Event::Intent(Box::new(Intent {
                call: match call {
                    CallText::Create => Call::Create,
                    CallText::Update => Call::Update,
                    CallText::Delete => Call::Delete,
                },
                token,
                draft: self.record_back(*draft)?,
            })),
            EventText::Waiting {
                resume,
                due,
                reason,
            } => Event::Waiting {
                resume: serde_json::from_slice(&self.open(&resume)?)?,
                due_ms: due,
                reason,
            },
            EventText::Done => Event::Outcome(Outcome::Done),
            EventText::Closed => Event::Outcome(Outcome::Closed),
            EventText::Failed(error) => Event::Failed { error },
        };
        Ok(Entry {
            run: RunId(entry.run),
            step: entry.step,
            attempt: entry.attempt,
            at_ms: entry.at,
            event,
        })
    }
}
