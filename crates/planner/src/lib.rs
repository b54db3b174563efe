//! The planner: a pure function `(desired, prior, observed) -> Plan` (`engine.md` §10).
//!
//! No async, no clock, no IO, no randomness.

mod decide;
mod plan;

pub use decide::{Act, decide};
pub use plan::{
    Change, Cycle, CycleKey, Forecast, Goal, Intended, Note, Observation, Observed, Plan,
    PlanInput, PlanOptions, Prior, Role, Step, StepKey, Subject, Transition, Why,
};
