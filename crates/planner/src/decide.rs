//! The one decision: forecasting and running ask the same function (`architecture.md` §0, 3).

use notation_model::{Params, Record, ResourceType};

use crate::Goal;

/// What one step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// The goal is reached.
    Nothing,
    /// Make it with these parameters.
    Create(Params),
    /// Bring it to these parameters; the changed fields are named.
    Update {
        /// All parameters.
        params: Params,
        /// Fields that differ; empty for an update in doubt, which is written in full.
        changed: Vec<String>,
    },
    /// Remove it.
    Delete,
}

/// What must happen to bring one incarnation to `goal` with these parameters (those of the
/// goal's shape). Unknown parts count as different. Pure: used to forecast and to execute.
pub fn decide(record: Option<&Record>, goal: Goal, ty: &ResourceType, params: &Params) -> Act {
    match (record, goal) {
        (None, Goal::Absent | Goal::Settled) => Act::Nothing,
        (None, Goal::Placeholder | Goal::Complete) => Act::Create(params.clone()),
        (Some(_), Goal::Absent) => Act::Delete,
        (Some(record), Goal::Placeholder | Goal::Complete | Goal::Settled) => {
            let changed = differing(ty, &record.applied, params);
            if changed.is_empty() && !record.in_doubt {
                Act::Nothing
            } else {
                Act::Update {
                    params: params.clone(),
                    changed,
                }
            }
        }
    }
}

/// Fields whose values differ: volatile ones never do, unordered ones compare as multisets.
/// In field order of the type; fields the type does not know come last.
pub fn differing(ty: &ResourceType, before: &Params, after: &Params) -> Vec<String> {
    let known = ty.fields.keys();
    let others = before
        .keys()
        .chain(after.keys())
        .filter(|name| !ty.fields.contains_key(*name));
    let mut names: Vec<&String> = known.chain(others).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
        .into_iter()
        .filter(|name| !same(ty, name, before.get(*name), after.get(*name)))
        .cloned()
        .collect()
}

fn same(
    ty: &ResourceType,
    name: &str,
    before: Option<&notation_model::Value>,
    after: Option<&notation_model::Value>,
) -> bool {
    use notation_model::Value;
    let field = ty.fields.get(name);
    if field.is_some_and(|field| field.volatile) {
        return true;
    }
    match (before, after) {
        (Some(Value::List(one)), Some(Value::List(other)))
            if field.is_some_and(|field| field.unordered) =>
        {
            let mut rest: Vec<&Value> = other.iter().collect();
            one.len() == other.len()
                && one.iter().all(|item| {
                    rest.iter()
                        .position(|candidate| *candidate == item)
                        .map(|at| rest.swap_remove(at))
                        .is_some()
                })
        }
        (before, after) => before == after,
    }
}
