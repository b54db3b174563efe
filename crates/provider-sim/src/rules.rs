//! The rules of this cloud: pure functions over what lives.

use notation_model::{ResourceType, Role};
use notation_provider::{HeldBy, OpError};
use serde_json::{Map, Value as Json};

use crate::{
    SimObject,
    object::targets,
    stock::{NAME_CHARSET, NAME_LIMIT},
    table::Table,
};

/// Whether an object may be written with these parameters. `prior` is the object itself, once it
/// exists: until then it cannot name itself.
///
/// Errors: `Refused`, with the first reason.
pub(crate) fn may_write(
    objects: &Table<SimObject>,
    ty: &ResourceType,
    name: &str,
    params: &Map<String, Json>,
    prior: Option<&SimObject>,
) -> Result<(), OpError> {
    well_formed(ty, name, params)?;
    if let Some(prior) = prior {
        unchanged(ty, params, &prior.params)?;
    }
    for target in targets(params) {
        let itself = target == name && prior.is_some();
        if !itself && objects.get(target).is_none() {
            return Err(refused(format!(
                "{name} refers to {target}, which does not exist"
            )));
        }
    }
    Ok(())
}

/// Whether an object may go.
///
/// Errors: `InUse`, naming every other object that refers to it.
pub(crate) fn may_delete(objects: &Table<SimObject>, name: &str) -> Result<(), OpError> {
    let held_by: Vec<String> = objects
        .iter()
        .filter(|(holder, object)| *holder != name && object.targets().contains(&name))
        .map(|(holder, _)| holder.to_owned())
        .collect();
    if held_by.is_empty() {
        Ok(())
    } else {
        Err(OpError::InUse {
            held_by: HeldBy(held_by),
        })
    }
}

fn well_formed(ty: &ResourceType, name: &str, params: &Map<String, Json>) -> Result<(), OpError> {
    let count = name.chars().count();
    if count == 0 || count > NAME_LIMIT || !name.chars().all(|c| NAME_CHARSET.allows(c)) {
        return Err(refused(format!(
            "`{name}` is not a name of 1 to {NAME_LIMIT} letters, digits, `-`, `_` and `.`"
        )));
    }
    let foreign = |field: &&String| {
        let role = ty.fields.get(*field).map(|field| field.role);
        role != Some(Role::Param)
    };
    if let Some(field) = params.keys().find(foreign) {
        return Err(refused(format!("{} has no parameter `{field}`", ty.name)));
    }
    let missing = ty.params().find(|(field, declared)| {
        declared.presence == notation_model::Presence::Required && !params.contains_key(*field)
    });
    if let Some((field, _)) = missing {
        return Err(refused(format!("{} needs `{field}`", ty.name)));
    }
    bindings(params)?;
    match params.get("parent") {
        None | Some(Json::Null | Json::String(_)) => Ok(()),
        Some(_) => Err(refused("`parent` is not a text".into())),
    }
}

/// A list of objects with text values.
fn bindings(params: &Map<String, Json>) -> Result<(), OpError> {
    let items = match params.get("bindings") {
        None | Some(Json::Null) => return Ok(()),
        Some(Json::Array(items)) => items,
        Some(_) => return Err(refused("`bindings` is not a list".into())),
    };
    let texts = |item: &Json| {
        item.as_object()
            .is_some_and(|members| members.values().all(Json::is_string))
    };
    match items.iter().position(|item| !texts(item)) {
        None => Ok(()),
        Some(at) => Err(refused(format!(
            "`bindings[{at}]` is not an object with text values"
        ))),
    }
}

/// No immutable parameter, and not the key, differs from what is stored.
fn unchanged(
    ty: &ResourceType,
    params: &Map<String, Json>,
    stored: &Map<String, Json>,
) -> Result<(), OpError> {
    let changed = ty.params().find(|(name, field)| {
        (field.immutable || field.key)
            && !same(params.get(*name), stored.get(*name), field.unordered)
    });
    match changed {
        None => Ok(()),
        Some((name, _)) => Err(refused(format!(
            "`{name}` of {} cannot be changed after creation",
            ty.name
        ))),
    }
}

fn same(one: Option<&Json>, other: Option<&Json>, unordered: bool) -> bool {
    match (one, other) {
        (Some(Json::Array(one)), Some(Json::Array(other))) if unordered => {
            let text = |items: &[Json]| {
                let mut texts: Vec<String> = items.iter().map(Json::to_string).collect();
                texts.sort();
                texts
            };
            text(one) == text(other)
        }
        (one, other) => one == other,
    }
}

fn refused(message: String) -> OpError {
    OpError::Refused { message }
}
