//! Everything a run needs from outside.

use std::sync::Arc;

use notation_model::DeploymentId;
use notation_planner::PlanOptions;
use notation_provider::{Assets, NoAssets, Registry};
use notation_state::{Machine, StateStore};

use crate::{Clock, EventSink, Interrupt, NoEvents, SystemClock};

/// One deployment and everything that is needed to work on it. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    /// Which deployment.
    pub deployment: DeploymentId,
    /// Where its state is.
    pub store: Arc<dyn StateStore>,
    /// Who makes what.
    pub registry: Registry,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who hears what happens.
    pub sink: Arc<dyn EventSink>,
    /// Bytes of assets that the program names.
    pub assets: Arc<dyn Assets>,
    /// Where this run lives; written into its hold.
    pub machine: Machine,
    /// How a person stops it.
    pub interrupt: Interrupt,
}

impl Session {
    /// A session with the system's clock, no assets, nobody listening, on a machine called
    /// `localhost`.
    pub fn new(
        deployment: DeploymentId,
        store: Arc<dyn StateStore>,
        registry: Registry,
    ) -> Session {
        Session {
            deployment,
            store,
            registry,
            clock: Arc::new(SystemClock),
            sink: Arc::new(NoEvents),
            assets: Arc::new(NoAssets),
            machine: Machine::here("localhost"),
            interrupt: Interrupt::new(),
        }
    }
}

/// Whether the providers are asked what is really there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriftCheck {
    /// Believe the records (`--no-refresh`).
    Skip,
    /// Read every recorded object.
    #[default]
    Read,
}

/// What a failure does to steps that do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// They go on.
    #[default]
    KeepGoing,
    /// No new one starts (`--fail-fast`).
    Stop,
}

/// What to do when another run holds the deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldWait {
    /// Wait until it is free.
    #[default]
    Wait,
    /// Give up (`--no-wait`).
    GiveUp,
}

/// What a person asked for besides the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether the providers are asked for every recorded object before planning, or the records
    /// are believed (`--no-refresh`).
    pub drift: DriftCheck,
    /// Whether steps go on that do not depend on a failed one (`--fail-fast` ends them).
    pub on_failure: OnFailure,
    /// Whether to wait while another run holds the deployment (`--no-wait` gives up with
    /// [`crate::EngineError::Held`]).
    pub hold: HoldWait,
    /// Provider calls at a time over all types, at least 1 (10; `--parallelism`). Types and
    /// providers may take fewer.
    pub parallelism: usize,
    /// Calls per step and run before it fails as out of attempts, at least 1 (30;
    /// `--max-attempts`).
    pub max_attempts: u32,
    /// What to replace, which part of the program to run, whose objects to take over, and how long
    /// to look for the best order.
    pub plan: PlanOptions,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            drift: DriftCheck::default(),
            on_failure: OnFailure::default(),
            hold: HoldWait::default(),
            parallelism: 10,
            max_attempts: 30,
            plan: PlanOptions::default(),
        }
    }
}
