//! The plan that a run makes once more, with what running showed and without what failed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use notation_model::ResourceId;
use notation_planner::{Observed, PlanOptions, Role, StepKey, Subject, Transition};
use notation_state::OpenIntent;

use crate::{
    DoneStep, EngineError,
    planned::{Planned, make_plan},
    run::Run,
};

/// Resources whose recorded object failed to be brought up to date.
pub(crate) fn left_alone(run: &Run, failed: &BTreeMap<Subject, StepKey>) -> BTreeSet<ResourceId> {
    let world = run.world();
    let of = |(subject, key): (&Subject, &StepKey)| match subject {
        Subject::Incarnation(incarnation)
            if matches!(key.role, Role::Complete | Role::Settle { .. })
                && world.live.contains_key(incarnation) =>
        {
            Some(incarnation.resource.clone())
        }
        Subject::Incarnation(_) | Subject::Cycle(_) => None,
    };
    failed.iter().filter_map(of).collect()
}

/// What a person asked to replace and this run did not replace yet.
pub(crate) fn not_replaced(run: &Run, done: &[DoneStep]) -> BTreeSet<ResourceId> {
    let created = done
        .iter()
        .filter(|done| done.transition == Transition::Create)
        .map(|done| &done.resource);
    let created: BTreeSet<&ResourceId> = created.collect();
    let asked = run.line.options.plan.replace.iter();
    asked.filter(|id| !created.contains(id)).cloned().collect()
}

/// What the next plan of a run is about, beside the replacements that running asked for.
pub(crate) struct Anew {
    /// What a person asked to replace.
    pub replace: BTreeSet<ResourceId>,
    /// What failed.
    pub left: BTreeSet<ResourceId>,
}

/// The next plan of a run.
pub(crate) struct Again {
    pub planned: Planned,
    pub open: Vec<OpenIntent>,
    /// Replacements that cannot be planned, and why.
    pub refused: BTreeMap<ResourceId, Arc<EngineError>>,
}

/// The plan with as many of the replacements as can be planned; the others are taken out of them
/// and left alone. Errors: none can be.
pub(crate) async fn plan_what_can_be(
    run: &Run,
    anew: &Anew,
    turned_out: &mut BTreeMap<ResourceId, Vec<String>>,
) -> Result<Again, EngineError> {
    let mut refused = BTreeMap::new();
    let whole = match plan_again(run, anew, &anew.left, turned_out).await {
        Ok((planned, open)) => {
            return Ok(Again {
                planned,
                open,
                refused,
            });
        }
        Err(error) => error,
    };
    let asked = std::mem::take(turned_out);
    let mut left = anew.left.clone();
    left.extend(asked.keys().cloned());
    let mut best = None;
    for (resource, fields) in asked {
        left.remove(&resource);
        turned_out.insert(resource.clone(), fields);
        match plan_again(run, anew, &left, turned_out).await {
            Ok(round) => best = Some(round),
            Err(error) => {
                turned_out.remove(&resource);
                left.insert(resource.clone());
                refused.insert(resource, Arc::new(error));
            }
        }
    }
    let (planned, open) = best.ok_or(whole)?;
    Ok(Again {
        planned,
        open,
        refused,
    })
}

/// The plan with the replacements that running asked for.
async fn plan_again(
    run: &Run,
    anew: &Anew,
    left: &BTreeSet<ResourceId>,
    turned_out: &BTreeMap<ResourceId, Vec<String>>,
) -> Result<(Planned, Vec<OpenIntent>), EngineError> {
    let session = &run.line.session;
    let state = session.store.load(&session.deployment).await?;
    let options = PlanOptions {
        replace: anew.replace.clone(),
        turned_out: turned_out.clone(),
        left: left.clone(),
        ..run.line.options.plan.clone()
    };
    let planned = make_plan(
        session,
        &run.desired,
        state.records,
        Observed::default(),
        &run.secrets,
        &options,
    )?;
    Ok((planned, state.open))
}
