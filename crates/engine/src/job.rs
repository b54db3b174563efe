//! A call to make, and what there is after it.

use notation_model::{Earlier, Record};
use notation_planner::{StepKey, Transition};
use notation_state::Call;

use crate::world::TakenOver;

/// A call to make.
pub(crate) struct Job {
    /// Its step.
    pub key: StepKey,
    /// Its name in the journal.
    pub step: String,
    /// What it is to people.
    pub transition: Transition,
    /// What is called.
    pub call: Call,
    /// The record as it will be.
    pub draft: Record,
    /// The record as it is; `None` for a create.
    pub before: Option<Record>,
    /// What earlier runs left open for it.
    pub taken: TakenOver,
}

impl Job {
    /// What the object's tags may say before the call: former ids count, of the record and of the
    /// program, and whoever had what a person took over, until it is written.
    pub(crate) fn earlier(&self) -> Earlier<'_> {
        let before = self.before.as_ref();
        Earlier {
            taken_from: before.and_then(|record| record.taken_from.as_deref()),
            ..self.draft.earlier()
        }
    }
}

/// What there is after a call.
pub(crate) enum Now {
    /// The object, as the call left it.
    Made(Record),
    /// An object that was there already and is ours: as it was found.
    Found(Record),
    /// Somebody else's object that a person takes over, as it was found: nothing is recorded of
    /// it before a write has made its tags ours.
    Taken(Record),
    /// Nothing.
    Gone,
}
