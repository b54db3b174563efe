//! Parameters of one resource in one shape (`engine.md` §1, §2).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{
    CollectError, Contribution, DEEPEST_VALUE, Desired, Expr, Field, Map, Params, Presence,
    ResourceType, Role, Scope, SecretValue, Shape, Text, Value,
};

use crate::Intended;

/// Why parameters cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {source}")]
pub struct ParamsError {
    /// The field.
    pub field: String,
    /// What is wrong with its value.
    pub source: Unfit,
}

/// A value that its field cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A contribution that cannot be collected.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// It nests deeper than [`DEEPEST_VALUE`], by what it reads of others.
    #[error("it nests {levels} levels deep{read_from}")]
    TooDeep {
        /// How deep.
        levels: usize,
        /// ` (read from b.code)`, or empty.
        read_from: String,
    },
    /// It names the object, and turned out not to be a text.
    #[error("it takes a text, not {found}{read_from}")]
    NoText {
        /// What it is, with its article: `a number`.
        found: &'static str,
        /// ` (read from b.code)`, or empty.
        read_from: String,
    },
}

/// Parameters of a staying incarnation in one shape: config resolved, for `Complete` with the
/// contributions collected per field, defaults filled in, sensitive fields wrapped as secrets.
///
/// A field without config value, contribution or default is left out. What the scope cannot
/// tell is `Value::Unknown`. Errors: a value that its field cannot take, as [`Unfit`] says.
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

impl Parts<'_> {
    /// What is put together by reading others is bounded, as whoever keeps or shows it is.
    fn not_too_deep(&self, field: &str, value: &Value) -> Result<(), Unfit> {
        match value.depth() {
            levels if levels > DEEPEST_VALUE => Err(Unfit::TooDeep {
                levels,
                read_from: read_from(self.config, self.contributions, &[field]),
            }),
            _ => Ok(()),
        }
    }

    /// A name is a text; one that is read from another resource may turn out to be none.
    fn names(&self, ty: &ResourceType, field: &str, value: &Value) -> Result<(), Unfit> {
        let is_name =
            |(key, declared): (&str, &Field)| key == field && declared.role == Role::Param;
        let found = match value {
            _ if !ty.key_field().is_some_and(is_name) => return Ok(()),
            Value::Text(text) if text.is_empty() => "an empty one",
            // A secret is no name either; whoever knows whose it is says so.
            Value::Text(_) | Value::Unknown(_) | Value::Secret(_) => return Ok(()),
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Asset(_) => "a file",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        };
        Err(Unfit::NoText {
            found,
            read_from: read_from(self.config, self.contributions, &[field]),
        })
    }
}

/// ` (read from b.id)`: what fields read of other resources; empty when they read nothing.
pub fn read_from(config: &Map<Expr>, contributions: &[Contribution], fields: &[&str]) -> String {
    let given = config
        .iter()
        .filter(|(name, _)| fields.iter().any(|field| *name == field))
        .map(|(_, expr)| expr);
    let contributed = contributions
        .iter()
        .filter(|contribution| fields.iter().any(|field| contribution.field == *field))
        .map(|contribution| &contribution.value);
    let read: BTreeSet<String> = given
        .chain(contributed)
        .flat_map(Expr::references)
        .map(|(_, source)| source.to_string())
        .collect();
    if read.is_empty() {
        return String::new();
    }
    let read: Vec<String> = read.into_iter().collect();
    format!(" (read from {})", read.join(", "))
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
        let unfit = |source: Unfit| ParamsError {
            field: field.to_owned(),
            source,
        };
        // Contributions are recorded as they are given, also those that a later one replaces.
        for value in &values {
            parts.not_too_deep(field, value).map_err(unfit)?;
        }
        let collector = ty.fields.get(field).and_then(|field| field.collect);
        let value = match collector {
            Some(collector) => {
                let collected = collector.collect(values);
                let value = collected.map_err(|error| unfit(error.into()))?;
                parts.not_too_deep(field, &value).map_err(unfit)?;
                value
            }
            None => match values.pop() {
                Some(value) => value,
                None => continue,
            },
        };
        parts.names(ty, field, &value).map_err(unfit)?;
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
    if known.is_some_and(Value::has_secret) {
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
