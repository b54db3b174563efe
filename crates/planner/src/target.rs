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

/// Ids given on the command line that name nothing the flag could be about. Only what is declared
/// can be replaced; a recorded object can be left alone or taken back without being declared.
pub(crate) fn unknown_ids(
    input: &PlanInput<'_>,
    whole: &Program<'_>,
    history: &History<'_>,
) -> Vec<PlanProblem> {
    let target = input.options.target.iter().map(|id| ("--target", id));
    let flagged = flagged(input).chain(target);
    flagged
        .filter_map(|(flag, id)| {
            let recorded = !history.of(id).is_empty();
            match (whole.get(id), flag, recorded) {
                (Some(_), _, _) => None,
                (None, "--replace", true) => Some(PlanProblem::NotDeclared {
                    flag,
                    resource: id.clone(),
                }),
                (None, _, true) => None,
                (None, _, false) => Some(PlanProblem::UnknownId {
                    flag,
                    resource: id.clone(),
                }),
            }
        })
        .collect()
}

/// Ids given on the command line that `--target`, expanded to this scope, leaves out.
pub(crate) fn left_out(input: &PlanInput<'_>, scope: &BTreeSet<ResourceId>) -> Vec<PlanProblem> {
    let left_out = flagged(input).filter(|(_, id)| !scope.contains(*id));
    left_out
        .map(|(flag, id)| PlanProblem::LeftOut {
            flag,
            resource: id.clone(),
            target: input.options.target.iter().cloned().collect(),
        })
        .collect()
}

/// What was asked for single resources, with the flag that asked.
fn flagged<'i>(input: &PlanInput<'i>) -> impl Iterator<Item = (&'static str, &'i ResourceId)> {
    let replace = input.options.replace.iter().map(|id| ("--replace", id));
    let adopt = input.options.adopt.iter().map(|id| ("--adopt", id));
    replace.chain(adopt)
}
