//! Parameters of one resource in one shape (`engine.md` §1, §2).

use std::collections::BTreeMap;

use notation_model::{
    CollectError, Contribution, Desired, Expr, Map, Params, Presence, ResourceType, Scope,
    SecretValue, Shape, Text, Value,
};

use crate::Intended;

/// Why parameters cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {source}")]
pub struct ParamsError {
    /// The field that takes the contributions.
    pub field: String,
    /// What is wrong with a value.
    pub source: CollectError,
}

/// Parameters of a staying incarnation in one shape: config resolved, for `Complete` with the
/// contributions collected per field, defaults filled in, sensitive fields wrapped as secrets.
///
/// A field without config value, contribution or default is left out. What the scope cannot
/// tell is `Value::Unknown`. Errors: a contribution that its field's collector cannot take.
/// Source: `engine.md` §1, `collect`.
pub fn params_of(
    ty: &ResourceType,
    intended: &Intended,
    shape: Shape,
    scope: &dyn Scope,
) -> Result<Params, ParamsError> {
    let parts = Parts {
        config: &intended.config,
        key: None,
        contributions: &intended.contributions,
    };
    assemble(ty, &parts, shape, scope)
}

/// Parameters of the placeholder of a desired resource, as [`params_of`] says.
pub fn placeholder_of(
    ty: &ResourceType,
    desired: &Desired,
    scope: &dyn Scope,
) -> Result<Params, ParamsError> {
    let parts = Parts {
        config: &desired.config,
        key: None,
        contributions: &[],
    };
    assemble(ty, &parts, Shape::Placeholder, scope)
}

/// The resolved contributions of an incarnation, in call order, for its record; sensitive
/// fields wrapped as secrets.
pub fn contributions_of(
    ty: &ResourceType,
    intended: &Intended,
    scope: &dyn Scope,
) -> Vec<(Text, Value)> {
    intended
        .contributions
        .iter()
        .map(|contribution| {
            let value = hide(ty, &contribution.field, contribution.value.resolve(scope));
            (contribution.field.clone(), value)
        })
        .collect()
}

/// What parameters are made of.
pub(crate) struct Parts<'a> {
    pub config: &'a Map<Expr>,
    /// A key that stands in place of what the config says, or does not say.
    pub key: Option<(&'a str, &'a Value)>,
    pub contributions: &'a [Contribution],
}

pub(crate) fn assemble(
    ty: &ResourceType,
    parts: &Parts<'_>,
    shape: Shape,
    scope: &dyn Scope,
) -> Result<Params, ParamsError> {
    let mut given: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (field, expr) in parts.config {
        given.insert(field, vec![expr.resolve(scope)]);
    }
    if let Some((field, value)) = parts.key {
        given.insert(field, vec![value.clone()]);
    }
    match shape {
        Shape::Placeholder => {}
        Shape::Complete => {
            for contribution in parts.contributions {
                let values = given.entry(&contribution.field).or_default();
                values.push(contribution.value.resolve(scope));
            }
        }
    }
    let mut params = Params::new();
    for (field, mut values) in given {
        let collector = ty.fields.get(field).and_then(|field| field.collect);
        let value = match collector {
            Some(collector) => collector.collect(values).map_err(|source| ParamsError {
                field: field.to_owned(),
                source,
            })?,
            None => match values.pop() {
                Some(value) => value,
                None => continue,
            },
        };
        params.insert(field.to_owned(), hide(ty, field, value));
    }
    for (field, declared) in ty.params() {
        if let Presence::Default(value) = &declared.presence
            && !params.contains_key(field)
        {
            params.insert(field.to_owned(), hide(ty, field, value.clone()));
        }
    }
    Ok(params)
}

/// Wraps the value of a sensitive field; an unknown stays visible as its source.
pub fn hide(ty: &ResourceType, field: &str, value: Value) -> Value {
    let sensitive = ty.fields.get(field).is_some_and(|field| field.sensitive);
    if sensitive { hidden(value) } else { value }
}

/// Wraps what was found in a field, when the field is sensitive or what is known of it is made of
/// a secret: what stands there instead may be another secret, or the same with a text around it
/// changed (`engine.md` §7).
pub fn hide_found(ty: &ResourceType, field: &str, known: Option<&Value>, found: Value) -> Value {
    if known.is_some_and(|known| !known.sensitive().is_empty()) {
        hidden(found)
    } else {
        hide(ty, field, found)
    }
}

/// A value as a secret; an unknown stays visible as its source.
pub fn hidden(value: Value) -> Value {
    match value {
        hidden @ (Value::Unknown(_) | Value::Secret(_)) => hidden,
        value => Value::Secret(SecretValue::new(value)),
    }
}
