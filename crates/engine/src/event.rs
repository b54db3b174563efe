//! What a run tells while it goes on (`spec`: the JSON events of the command line).

use notation_model::{Incarnation, ResourceId};
use notation_planner::{CycleKey, StepKey, Transition};
use notation_state::Hold;

/// Hears what happens. Called from the run; must not block for long.
pub trait EventSink: Send + Sync {
    /// Something happened.
    fn event(&self, event: &EngineEvent);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _: &EngineEvent) {}
}

/// Something that happened. Holds no secret.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineEvent {
    /// The provider is being called for the first time in this run.
    StepStarted(StepEvent),
    /// The provider is not finished, or the call will be repeated; `error` says why.
    StepWaiting(StepEvent),
    /// The goal is reached and recorded.
    StepDone(StepEvent),
    /// It is not reached.
    StepFailed(StepEvent),
    /// It was not tried, since a step before it failed.
    StepBlocked(StepEvent),
    /// A pass over a cycle ended.
    SettlePass {
        /// The cycle.
        cycle: CycleKey,
        /// From 1.
        pass: u32,
        /// At most so many.
        of: u32,
        /// Members that were written.
        written: Vec<ResourceId>,
    },
    /// Objects of ours that no record knew were found and are recorded now; the run plans once
    /// more.
    TakenUp(Vec<TakenUp>),
    /// Another run holds the deployment; this one waits.
    HoldWaiting(Hold),
    /// The hold was taken over from a run that is dead or lost its lease.
    HoldTakenOver(Hold),
}

/// An object of ours that no record knew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenUp {
    /// What it is recorded as.
    pub incarnation: Incarnation,
    /// Its key at the provider.
    pub key: String,
}

/// One step, as an event tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEvent {
    /// Which step.
    pub key: StepKey,
    /// Whom it is about; the first declared member for a cycle.
    pub resource: ResourceId,
    /// What is done.
    pub transition: Transition,
    /// From 1; 0 when nothing was tried.
    pub attempt: u32,
    /// Milliseconds since the step started.
    pub took_ms: u64,
    /// What went wrong or is waited for.
    pub error: Option<String>,
}
