//! The one decision: forecasting and running ask the same function (`architecture.md` §0, 3).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{Params, Record, ResourceType, Text, Value};

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
    match (record.filter(|record| !record.gone), goal) {
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
    let known = ty
        .fields
        .keys()
        .map(String::as_str)
        .filter(|name| before.contains_key(name) || after.contains_key(name));
    let others: BTreeSet<&str> = before
        .keys()
        .chain(after.keys())
        .map(Text::as_str)
        .filter(|name| !ty.fields.contains_key(*name))
        .collect();
    known
        .chain(others)
        .filter(|name| !same_field(ty, name, before.get(name), after.get(name)))
        .map(str::to_owned)
        .collect()
}

/// Those of these fields that no update changes: all of a type without update, else what is
/// immutable or the key.
pub fn fixed_among(ty: &ResourceType, fields: &[String]) -> Vec<String> {
    let fixed = fields.iter().filter(|name| {
        let field = ty.fields.get(*name);
        !ty.updates || field.is_some_and(|field| field.immutable || field.key)
    });
    fixed.cloned().collect()
}

/// What a revert writes: the recorded config, which needs nothing; but what no update changes stays
/// as it is found, for the provider would refuse anything else (`engine.md` §3, §5).
pub fn reverted(ty: &ResourceType, record: &Record) -> Params {
    let mut params = record.config.clone();
    for (name, field) in ty.params() {
        if !(field.immutable || field.key) {
            continue;
        }
        match record.applied.get(name) {
            found if params.get(name) == found => {}
            Some(found) => {
                params.insert(name.to_owned(), found.clone());
            }
            None => {
                params.remove(name);
            }
        }
    }
    params
}

/// Whether one field counts as unchanged.
pub(crate) fn same_field(
    ty: &ResourceType,
    name: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) -> bool {
    compare(ty, name, before, after, &same)
}

/// Whether one field could turn out unchanged once every unknown part is known.
pub(crate) fn may_be_same_field(
    ty: &ResourceType,
    name: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) -> bool {
    compare(ty, name, before, after, &may_be_same)
}

fn compare(
    ty: &ResourceType,
    name: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    equal: &dyn Fn(&Value, &Value) -> bool,
) -> bool {
    let field = ty.fields.get(name);
    if field.is_some_and(|field| field.volatile) {
        return true;
    }
    let (before, after) = match (before, after) {
        (None, None) => return true,
        (Some(before), Some(after)) => (clear(before), clear(after)),
        (None, Some(_)) | (Some(_), None) => return false,
    };
    match (before, after) {
        (Value::List(one), Value::List(other)) if field.is_some_and(|field| field.unordered) => {
            same_multiset(one, other, equal)
        }
        (before, after) => equal(before, after),
    }
}

/// Equal up to order. Items that are equal without unknown parts take each other away first: where
/// they stand, then by how they read. What is left is searched, without unknown parts first, so
/// that a wildcard does not take the partner of an exact item.
fn same_multiset(one: &[Value], other: &[Value], equal: &dyn Fn(&Value, &Value) -> bool) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let exact = |one: &Value, other: &Value| one.is_known() && other.is_known() && same(one, other);
    let (rest, sought): (Vec<&Value>, Vec<&Value>) = one
        .iter()
        .zip(other)
        .filter(|(one, other)| !exact(one, other))
        .unzip();
    let (mut rest, sought) = without_common(rest, sought);
    let (known, open): (Vec<&Value>, Vec<&Value>) =
        sought.into_iter().partition(|item| item.is_known());
    known.into_iter().chain(open).all(|item| {
        rest.iter()
            .position(|candidate| equal(candidate, item))
            .map(|at| rest.swap_remove(at))
            .is_some()
    })
}

/// Both lists less the items without unknown parts that they have in common.
fn without_common<'v>(
    mut one: Vec<&'v Value>,
    mut other: Vec<&'v Value>,
) -> (Vec<&'v Value>, Vec<&'v Value>) {
    // As a provider that speaks JSON is told it: equal texts, equal items.
    let text = |item: &Value| item.to_plain_json().map(|json| json.to_string());
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for text in other.iter().filter_map(|item| text(item)) {
        *there.entry(text).or_default() += 1;
    }
    let mut common: BTreeMap<String, usize> = BTreeMap::new();
    one.retain(|item| {
        let Some(text) = text(item) else { return true };
        let Some(left) = there.get_mut(&text).filter(|left| **left > 0) else {
            return true;
        };
        *left -= 1;
        *common.entry(text).or_default() += 1;
        false
    });
    other.retain(|item| {
        let taken = text(item).and_then(|text| common.get_mut(&text).filter(|left| **left > 0));
        match taken {
            Some(left) => {
                *left -= 1;
                false
            }
            None => true,
        }
    });
    (one, other)
}

fn clear(value: &Value) -> &Value {
    match value {
        Value::Secret(secret) => secret.reveal(),
        other => other,
    }
}

/// Equal as a provider sees them: a secret is its value, an asset its digest.
fn same(one: &Value, other: &Value) -> bool {
    equal_parts(one, other, &|one, other| match (one, other) {
        (Value::Unknown(one), Value::Unknown(other)) => one == other,
        _ => false,
    })
}

fn may_be_same(one: &Value, other: &Value) -> bool {
    equal_parts(one, other, &|_, _| true)
}

fn equal_parts(one: &Value, other: &Value, unknown: &dyn Fn(&Value, &Value) -> bool) -> bool {
    match (clear(one), clear(other)) {
        (one @ Value::Unknown(_), other) | (one, other @ Value::Unknown(_)) => unknown(one, other),
        (Value::Asset(asset), Value::Text(text)) | (Value::Text(text), Value::Asset(asset)) => {
            asset.digest == *text
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| equal_parts(one, other, unknown))
        }
        (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|((key, one), (same_key, other))| {
                        key == same_key && equal_parts(one, other, unknown)
                    })
        }
        (one, other) => one == other,
    }
}
