//! The planner: a pure function `(desired, prior, observed) -> Plan` (`engine.md` §10).
//!
//! No async, no clock, no IO, no randomness.

mod judge;
mod loops;

mod decide;
mod params;

mod plan;
mod problem;
mod settle;
mod summary;

pub use decide::{Act, decide, differing};
pub use judge::judge;
pub use params::{ParamsError, contributions_of, params_of};
pub use plan::{
    Change, Cycle, CycleKey, Forecast, Goal, Intended, Note, Observation, Observed, Plan,
    PlanInput, PlanOptions, Prior, Role, Step, StepKey, Subject, Transition, Why,
};
pub use problem::{LoopMember, PlanError, PlanProblem, UnbreakableLoop};
pub use settle::{Culprit, Reader, SettleHistory, SettleWrite, Unsettled, culprits};
pub use summary::Summary;
