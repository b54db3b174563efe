//! What else the project's state has, as far as a plan concerns it: names that another deployment
//! owns, and deployments from before the app was renamed.

use std::collections::{BTreeMap, BTreeSet};

use notation_engine::Planned;
use notation_model::{DeploymentId, Expr, Record, ResourceId, TypeSet, Value};
use notation_planner::{Intended, Note, Subject, Transition};
use notation_state::StateStore;

use crate::{failure::Failure, session};

/// Notes for the plan. Reads other deployments only when this one is about to create something.
pub async fn notes(
    store: &dyn StateStore,
    planned: &Planned,
    adopt: &BTreeSet<ResourceId>,
) -> Result<Vec<Note>, Failure> {
    let types = session::types();
    let wanted = names(planned, &types);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let own = &planned.plan.deployment;
    let mut notes = Vec::new();
    for other in store.deployments().await? {
        let id = other.deployment;
        if id == *own || other.records == 0 {
            continue;
        }
        if planned.prior.records.is_empty() && is_before_renaming(&id, own) {
            notes.push(left_behind(&id, other.records));
        }
        let records = store.load(&id).await?.records;
        notes.extend(
            records
                .values()
                .filter(|record| !record.gone)
                .filter_map(|record| {
                    let space = types.get(&record.ty)?.identity_space.as_str();
                    let wanted = wanted.get(&(space, record.key.as_str()))?;
                    Some(match adopt.contains(*wanted) {
                        true => taken_over(wanted, record, &id),
                        false => owned(wanted, record, &id),
                    })
                }),
        );
    }
    Ok(notes)
}

/// Names that the plan is about to give, in the spaces in which they exclude each other, with whom
/// to.
fn names<'a>(
    planned: &'a Planned,
    types: &'a TypeSet,
) -> BTreeMap<(&'a str, &'a str), &'a ResourceId> {
    let name = |intended: &'a Intended| {
        let ty = types.get(&intended.ty)?;
        let (field, _) = ty.key_field()?;
        match intended.config.get(field) {
            Some(Expr::Known(Value::Text(name))) => {
                Some((ty.identity_space.as_str(), name.as_str()))
            }
            _ => None,
        }
    };
    planned
        .plan
        .steps
        .iter()
        .filter(|step| step.forecast.transition == Transition::Create)
        .filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => Some(incarnation),
            Subject::Cycle(_) => None,
        })
        .filter_map(|incarnation| {
            let intended = planned.plan.intended.get(incarnation)?;
            Some((name(intended)?, &incarnation.resource))
        })
        .collect()
}

/// Same stage and entry, another app: most probably the app was renamed.
fn is_before_renaming(other: &DeploymentId, own: &DeploymentId) -> bool {
    other.app != own.app && other.stage == own.stage && other.entry == own.entry
}

fn left_behind(other: &DeploymentId, records: u64) -> Note {
    Note {
        code: "other_app",
        resource: None,
        message: format!(
            "{other} has {} from before: another app is another deployment, and nothing moves over. \
             Give the config its old app back, or take them down with:\n\
             notation destroy {} --stage {} --app {}",
            crate::render::cell::count(usize::try_from(records).unwrap_or(usize::MAX), "resource"),
            other.entry,
            other.stage,
            other.app
        ),
        about: Vec::new(),
    }
}

fn owned(wanted: &ResourceId, record: &Record, owner: &DeploymentId) -> Note {
    Note {
        code: "name_owned",
        resource: Some(wanted.clone()),
        message: format!(
            "the name of {wanted}, {}, belongs to {} of {owner}; deploying stops there unless it is \
             given up first",
            record.key, record.incarnation
        ),
        about: Vec::new(),
    }
}

fn taken_over(wanted: &ResourceId, record: &Record, owner: &DeploymentId) -> Note {
    Note {
        code: "name_taken_over",
        resource: Some(wanted.clone()),
        message: format!(
            "{wanted} takes {} over from {} of {owner}: it is written as this program asks, and is \
             lost to {owner}",
            record.key, record.incarnation
        ),
        about: Vec::new(),
    }
}
