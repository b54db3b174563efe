//! What a plan will do to the exports of the entry.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{
    DEEPEST_VALUE, Expr, Incarnation, Origin, OutputRef, Record, ResourceId, Scope, SecretName,
    Unknown, Value,
};
use notation_planner::{PlanError, PlanProblem, Subject, Transition};

use crate::{
    ExportChange, Planned, Session,
    planned::laid_over,
    world::{Exported, World},
};

/// The exports that certainly change: new ones, those that go, and those whose value is known
/// already and differs. One that an update may change is left out, as most updates do not.
///
/// Errors: those that are known and nest too deep to be stored.
pub(crate) fn changed(
    session: &Session,
    planned: &Planned,
    before: &BTreeMap<String, Value>,
    secrets: &BTreeMap<SecretName, Value>,
) -> Result<Vec<ExportChange>, PlanError> {
    if before.is_empty() && planned.plan.exports.is_empty() {
        return Ok(Vec::new());
    }
    let live = live(session, planned);
    let world = World::new(live, BTreeMap::new(), Vec::new());
    let ahead = Ahead {
        written: written(planned),
        now: Exported {
            world: &world,
            secrets,
        },
    };
    let runs = !ahead.written.is_empty();
    let mut after: BTreeMap<&String, Value> = planned
        .plan
        .exports
        .iter()
        .map(|(name, expr)| (name, expr.resolve(&ahead)))
        .collect();
    let problems = too_deep(&after, planned);
    if !problems.is_empty() {
        return Err(PlanError { problems });
    }
    let mut changes: Vec<ExportChange> = before
        .iter()
        .filter_map(|(name, stored)| {
            let after = after.remove(name);
            let same = match &after {
                Some(value) => !value.is_known() || value == stored,
                None => false,
            };
            (!same).then(|| ExportChange {
                name: name.clone(),
                before: Some(stored.clone()),
                after,
            })
        })
        .collect();
    // Without a step nothing becomes known, and what is not known is not stored.
    let new = after
        .into_iter()
        .filter(|(_, value)| runs || value.is_known());
    changes.extend(new.map(|(name, value)| ExportChange {
        name: name.clone(),
        before: None,
        after: Some(value),
    }));
    changes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(changes)
}

/// Exports that nest deeper than a value may, as far as they are known.
fn too_deep(after: &BTreeMap<&String, Value>, planned: &Planned) -> Vec<PlanProblem> {
    let deep = after.iter().filter_map(|(name, value)| {
        let levels = value.depth();
        (levels > DEEPEST_VALUE).then(|| {
            let read: BTreeSet<String> = planned.plan.exports[*name]
                .references()
                .into_iter()
                .map(|(_, source)| source.to_string())
                .collect();
            let read: Vec<String> = read.into_iter().collect();
            PlanProblem::TooDeep {
                what: format!("the export `{name}`"),
                levels,
                read_from: format!(" (read from {})", read.join(", ")),
                origin: Origin::default(),
            }
        })
    });
    deep.collect()
}

/// Records that the exports read, as observed; a deployment may have very many others.
fn live(session: &Session, planned: &Planned) -> BTreeMap<Incarnation, Record> {
    let sources = planned.plan.exports.values().flat_map(Expr::references);
    let resources: BTreeSet<&ResourceId> = sources.map(|(_, source)| &source.resource).collect();
    let first = |resource: &ResourceId| Incarnation {
        resource: resource.clone(),
        generation: 0,
    };
    resources
        .into_iter()
        .flat_map(|resource| {
            let records = planned.prior.records.range(first(resource)..);
            records.take_while(move |(incarnation, _)| incarnation.resource == *resource)
        })
        .map(|(incarnation, record)| {
            let record = laid_over(session, &planned.observed, record);
            (incarnation.clone(), record)
        })
        .filter(|(_, record)| !record.gone)
        .collect()
}

/// Resources whose outputs a step of the plan may change.
fn written(planned: &Planned) -> BTreeSet<ResourceId> {
    let resource = |incarnation: &Incarnation| incarnation.resource.clone();
    let steps = planned
        .plan
        .steps
        .iter()
        .filter(|step| step.forecast.transition != Transition::None)
        .filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => Some(resource(incarnation)),
            Subject::Cycle(_) => None,
        });
    let settled = planned
        .plan
        .cycles
        .iter()
        .flat_map(|cycle| cycle.may_write.iter().map(resource));
    steps.chain(settled).collect()
}

/// The exports as far as they can be told before the run.
struct Ahead<'a> {
    written: BTreeSet<ResourceId>,
    now: Exported<'a>,
}

impl Scope for Ahead<'_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        if self.written.contains(&source.resource) {
            return Some(Unknown::output(source.clone()).into());
        }
        self.now.output(source)
    }

    fn name(&self) -> Option<Value> {
        self.now.name()
    }

    fn secret(&self, name: &SecretName) -> Option<Value> {
        self.now.secret(name)
    }
}
