//! How steps end.

use notation_model::{Incarnation, ResourceId};
use notation_planner::Transition;
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
}

impl StepEnd {
    pub(crate) fn failed(error: StepError) -> StepEnd {
        StepEnd::Failed {
            error,
            transition: Transition::None,
            attempt: 0,
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
