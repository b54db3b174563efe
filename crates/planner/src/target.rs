//! `--target`: expanded to whole cycles, to what they need and to what must let go of them or of
//! their names (`spec/cli.md`, *Commands*).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{Expr, ResourceId, Value};

use crate::{Plan, PlanInput, PlanProblem, past::History, program::Program};

/// Ids in scope and what was added by expanding; `None` when everything is.
pub(crate) fn scope(
    input: &PlanInput<'_>,
    whole: &Program<'_>,
    also: &BTreeSet<ResourceId>,
) -> Option<BTreeSet<ResourceId>> {
    if input.options.target.is_empty() {
        return None;
    }
    let mut found: BTreeSet<ResourceId> = BTreeSet::new();
    let mut pending: Vec<ResourceId> = input.options.target.iter().chain(also).cloned().collect();
    while let Some(id) = pending.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        let Some(number) = whole.get(&id) else {
            continue;
        };
        let wanted = &whole.wanted[number];
        let mates = whole.components[wanted.component].iter();
        let needed = wanted.edges.iter().map(|(to, _)| to);
        pending.extend(
            mates
                .chain(needed)
                .map(|number| whole.wanted[*number].desired.id.clone()),
        );
    }
    Some(found)
}

/// Resources outside the scope that are recorded to refer to one of these.
pub(crate) fn outside_holders(
    history: &History<'_>,
    scope: &BTreeSet<ResourceId>,
    leaving: &BTreeSet<usize>,
) -> BTreeSet<ResourceId> {
    history
        .past
        .iter()
        .filter(|past| !past.gone() && !scope.contains(&past.incarnation.resource))
        .filter(|past| {
            past.record.edges.iter().any(|edge| {
                edge.via != notation_model::Via::DependOn
                    && history
                        .meant(&edge.to)
                        .is_some_and(|target| leaving.contains(&target))
            })
        })
        .map(|past| past.incarnation.resource.clone())
        .collect()
}

/// Resources outside the scope that are recorded with the identity of something to be made.
pub(crate) fn outside_namesakes(
    input: &PlanInput<'_>,
    history: &History<'_>,
    plan: &Plan,
    scope: &BTreeSet<ResourceId>,
) -> BTreeSet<ResourceId> {
    let outside: BTreeMap<(&str, &str), &ResourceId> = history
        .past
        .iter()
        .filter(|past| !past.gone() && !scope.contains(&past.incarnation.resource))
        .filter_map(|past| {
            let identity = (past.ty?.identity_space.as_str(), past.record.key.as_str());
            Some((identity, &past.incarnation.resource))
        })
        .collect();
    let made = plan.intended.iter().filter(|(incarnation, _)| {
        let past = history.find(incarnation);
        past.is_none_or(|past| history.past[past].gone())
    });
    made.filter_map(|(_, intended)| {
        let ty = input.types.get(&intended.ty)?;
        let (field, _) = ty.key_field()?;
        let Expr::Known(Value::Text(key)) = intended.config.get(field)? else {
            return None;
        };
        let identity = (ty.identity_space.as_str(), key.as_str());
        outside.get(&identity).map(|resource| (*resource).clone())
    })
    .collect()
}

/// Ids given on the command line that nobody knows.
pub(crate) fn unknown_ids(
    input: &PlanInput<'_>,
    whole: &Program<'_>,
    history: &History<'_>,
) -> Vec<PlanProblem> {
    let flags: BTreeMap<&'static str, &BTreeSet<ResourceId>> = BTreeMap::from([
        ("--target", &input.options.target),
        ("--replace", &input.options.replace),
    ]);
    let mut problems = Vec::new();
    for (flag, ids) in flags {
        for id in ids {
            let declared = whole.get(id).is_some();
            let recorded = flag == "--target" && !history.of(id).is_empty();
            if !declared && !recorded {
                problems.push(PlanProblem::UnknownId {
                    flag,
                    resource: id.clone(),
                });
            }
        }
    }
    problems
}
