//! The planner: a pure function `(desired, prior, observed) -> Plan` (`engine.md` §10).
//!
//! No async, no clock, no IO, no randomness.

#[cfg(test)]
extern crate self as notation_planner;

// The road of one plan, in order.
mod planning;

mod declared;
mod fallback;
mod finish;
mod forecast;
mod judge;
mod lacking;
mod last;
mod let_go;
mod notes;
mod open;
mod order;
mod outlook;
mod pairing;
mod past;
mod play;
mod program;
mod secrecy;
mod steps;
mod target;
mod unbreakable;
mod view;
mod writing;

// What running asks as well.
mod decide;
mod params;
mod settle;

// Words.
mod graph;
mod lists;
mod loopless;
mod loops;
mod plan;
mod problem;
mod recorded;
mod refusal;
mod repair;
mod summary;

pub use decide::{Act, decide, differing, fixed_among, reverted};
pub use judge::judge;
pub use params::{
    ParamsError, Unfit, contributions_of, hidden, hide, hide_found, params_of, placeholder_of,
    read_from,
};
pub use plan::{
    Change, Cycle, CycleKey, Forecast, Goal, Intended, Note, Observation, Observed, Plan,
    PlanInput, PlanOptions, Prior, Recorded, Role, Step, StepKey, Subject, Transition, Why,
};
pub use planning::plan;
pub use problem::{Claimant, LoopMember, PlanProblem, Referrer, UnbreakableLoop};
pub use refusal::PlanError;
pub use secrecy::Secrecy;
pub use settle::{Culprit, Reader, SettleHistory, SettleWrite, Unsettled, culprits};
pub use summary::Summary;

#[cfg(test)]
#[path = "../tests/world/mod.rs"]
mod world;
