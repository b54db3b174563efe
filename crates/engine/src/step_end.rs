//! How steps end.

use notation_model::{Incarnation, ResourceId};
use notation_planner::{StepKey, Transition};
use notation_provider::Found;

use crate::{StepError, call::CallEnd};

/// How a step ended.
pub(crate) enum StepEnd {
    /// Its goal is reached; what was done last, and after how many calls.
    Done(Option<(Transition, u32)>),
    /// It is not.
    Failed {
        error: StepError,
        transition: Transition,
        attempt: u32,
    },
    /// The run stops; nothing was tried.
    NotStarted,
    /// The run stops; what was tried goes on with the next run.
    Interrupted,
    /// An object of ours is there that no record knows; nothing was made.
    Met {
        incarnation: Incarnation,
        found: Box<Found>,
    },
    /// The resource must be replaced, as the plan announced; `error` says so if it is not.
    Replace {
        resource: ResourceId,
        error: StepError,
        attempt: u32,
    },
    /// A write of a settle pass ended it, and this is how.
    Write { key: StepKey, end: Box<StepEnd> },
}

impl StepEnd {
    pub(crate) fn failed(error: StepError) -> StepEnd {
        StepEnd::Failed {
            error,
            transition: Transition::None,
            attempt: 0,
        }
    }

    /// The end of the step that this write is a part of.
    pub(crate) fn of_write(self, key: StepKey) -> StepEnd {
        let end = match self {
            StepEnd::Failed {
                error,
                transition: Transition::None,
                attempt,
            } => StepEnd::Failed {
                error,
                transition: Transition::Update,
                attempt,
            },
            end => end,
        };
        StepEnd::Write {
            key,
            end: Box::new(end),
        }
    }

    pub(crate) fn of(end: CallEnd, transition: Transition) -> StepEnd {
        match end {
            CallEnd::Failed { error, attempt } => StepEnd::Failed {
                error,
                transition,
                attempt,
            },
            CallEnd::NotStarted | CallEnd::Met(_) => StepEnd::NotStarted,
            CallEnd::Interrupted => StepEnd::Interrupted,
        }
    }
}
