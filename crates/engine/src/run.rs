//! One plan being run: what its steps share, and where they stand in it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard},
};

use notation_model::{DesiredGraph, Incarnation, ResourceId, SecretName, Value};
use notation_planner::{Cycle, CycleKey, Goal, Plan, Role, StepKey, Subject, Transition};
use notation_state::{Change, Entry};

use crate::{
    StepError,
    commit::{Became, Turns},
    line::Line,
    world::{World, puts},
};

/// One plan being run.
pub(crate) struct Run {
    pub line: Arc<Line>,
    pub plan: Plan,
    /// Where steps and cycles stand in the plan.
    steps: HashMap<StepKey, usize>,
    cycles: HashMap<CycleKey, usize>,
    pub desired: Arc<DesiredGraph>,
    pub secrets: Arc<BTreeMap<SecretName, Value>>,
    world: Mutex<World>,
    /// Who commits next, per resource.
    pub turns: Turns,
    /// What earlier rounds of this run did.
    pub before: Before,
}

/// What the rounds before one did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    /// Asked to replace.
    pub replaced: BTreeSet<ResourceId>,
    /// Made in the place of others.
    pub made: BTreeSet<Incarnation>,
    /// Objects a step of which failed, and cycles that did not settle with their members, each
    /// with the step that was told as failed: they are left alone for the rest of the run.
    pub failed: BTreeMap<Subject, StepKey>,
}

/// What a failure in an earlier round is to a step.
pub(crate) enum Left<'r> {
    /// It is what failed, whatever it is called by now: it was told.
    Told(&'r StepKey),
    /// It is another one of the same object or cycle: it waits for that.
    Behind(&'r StepKey),
}

/// What the rounds of one run share.
pub(crate) struct Shared {
    pub line: Arc<Line>,
    pub desired: Arc<DesiredGraph>,
    pub secrets: Arc<BTreeMap<SecretName, Value>>,
}

impl Run {
    /// Nothing of the plan was done yet.
    pub(crate) fn new(shared: &Shared, plan: Plan, world: World, before: Before) -> Run {
        Run {
            line: shared.line.clone(),
            steps: places(plan.steps.iter().map(|step| &step.key)),
            cycles: places(plan.cycles.iter().map(|cycle| &cycle.key)),
            plan,
            desired: shared.desired.clone(),
            secrets: shared.secrets.clone(),
            world: Mutex::new(world),
            turns: Turns::default(),
            before,
        }
    }

    /// The step of an earlier round that failed and keeps this one from being tried. What brings
    /// a member of a cycle that did not settle up to date is part of settling it.
    pub(crate) fn left_before(&self, key: &StepKey) -> Option<Left<'_>> {
        let failed = self.before.failed.get(&key.subject)?;
        let settles = matches!(failed.role, Role::Settle { .. });
        let is_member = matches!(key.subject, Subject::Incarnation(_));
        match failed == key || (settles && is_member) {
            true => Some(Left::Told(failed)),
            false => Some(Left::Behind(failed)),
        }
    }

    /// The place of a step in the plan.
    pub(crate) fn place(&self, key: &StepKey) -> Option<usize> {
        self.steps.get(key).copied()
    }

    pub(crate) fn cycle(&self, key: &CycleKey) -> Option<&Cycle> {
        Some(&self.plan.cycles[*self.cycles.get(key)?])
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes journal lines and what became of an incarnation durable in one commit, then known to
    /// the other steps.
    ///
    /// Errors: `Store` when it could not be written; nothing is known then.
    pub(crate) async fn commit(
        &self,
        entries: Vec<Entry>,
        became: Became,
    ) -> Result<(), StepError> {
        let _turn = self.turns.of(became.resource()).await;
        match became {
            Became::Is(record) => {
                let records = self.world().changes_for(record);
                self.line.append(entries, puts(&records)).await?;
                self.world().recorded(records);
            }
            Became::Lost(incarnation) => {
                let gone = self.world().as_gone(&incarnation);
                let changes = gone.iter().cloned().map(Change::put).collect();
                self.line.append(entries, changes).await?;
                self.world().lost(gone);
            }
            Became::Gone(incarnation) => {
                let change = Change::Remove(incarnation.clone());
                self.line.append(entries, vec![change]).await?;
                self.world().live.remove(&incarnation);
            }
        }
        Ok(())
    }
}

fn places<'k, K: Clone + Eq + Hash + 'k>(keys: impl Iterator<Item = &'k K>) -> HashMap<K, usize> {
    let places = keys.enumerate().map(|(place, key)| (key.clone(), place));
    places.collect()
}

/// Whom a step is about.
pub(crate) fn resource_of(key: &StepKey) -> ResourceId {
    match &key.subject {
        Subject::Incarnation(incarnation) => incarnation.resource.clone(),
        Subject::Cycle(cycle) => cycle.0.clone(),
    }
}

/// What the plan expected of a step.
pub(crate) fn forecast(run: &Run, key: &StepKey) -> Transition {
    let step = run.place(key).map(|place| &run.plan.steps[place]);
    match step {
        Some(step) if step.goal == Goal::Settled => Transition::Settle,
        Some(step) => step.forecast.transition,
        None => Transition::None,
    }
}
