//! Expressions: what a program wrote where a value belongs, as data.

use std::{collections::BTreeSet, fmt};

use ecow::eco_format;

use crate::{Map, OutputRef, SecretName, SecretValue, Segment, Text, Unknown, Value};

/// A value that may refer to outputs, names and secrets (`engine.md` §1).
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// Known while planning.
    Known(Value),
    /// A property of another resource (or of this one), parameters included.
    Output(OutputRef),
    /// The generated name of the incarnation that has this expression in its config.
    Name,
    /// A secret of the deployment.
    Secret(SecretName),
    /// Text made of parts.
    Join(Vec<Expr>),
    /// A list.
    List(Vec<Expr>),
    /// A map.
    Map(Map<Expr>),
}

/// What an expression is resolved against.
pub trait Scope {
    /// The value at a property now: known, `Value::Unknown`, or `None` when the resource has
    /// outputs but not this one.
    fn output(&self, source: &OutputRef) -> Option<Value>;
    /// The generated name of the incarnation being resolved.
    fn name(&self) -> Option<Value>;
    /// The secret's value in clear.
    fn secret(&self, name: &SecretName) -> Option<Value>;
}

impl Expr {
    /// The value in a scope. What the scope cannot tell becomes `Value::Unknown`; a part that
    /// is secret makes a joined text secret.
    pub fn resolve(&self, scope: &dyn Scope) -> Value {
        match self {
            Expr::Known(value) => value.clone(),
            Expr::Output(source) => scope.output(source).unwrap_or(Value::Null),
            Expr::Name => scope.name().unwrap_or(Value::Null),
            Expr::Secret(name) => match scope.secret(name) {
                Some(value) => Value::Secret(SecretValue::new(value)),
                None => Unknown::secret(name).into(),
            },
            Expr::Join(parts) => join(parts.iter().map(|part| part.resolve(scope)).collect()),
            Expr::List(items) => {
                Value::List(items.iter().map(|item| item.resolve(scope)).collect())
            }
            Expr::Map(members) => Value::Map(
                members
                    .iter()
                    .map(|(key, member)| (key.clone(), member.resolve(scope)))
                    .collect(),
            ),
        }
    }

    /// Every property referred to, in order of appearance, with the path of the place inside
    /// this expression (`[0].service`).
    pub fn references(&self) -> Vec<(String, &OutputRef)> {
        let mut found = Vec::new();
        self.walk(&Place::Top, &mut |place, expr| {
            if let Expr::Output(source) = expr {
                found.push((place.to_string(), source));
            }
        });
        found
    }

    /// Every secret named.
    pub fn secrets(&self) -> BTreeSet<&SecretName> {
        let mut found = BTreeSet::new();
        self.walk(&Place::Top, &mut |_, expr| {
            if let Expr::Secret(name) = expr {
                found.insert(name);
            }
        });
        found
    }

    fn walk<'a>(&'a self, place: &Place<'_>, visit: &mut impl FnMut(&Place<'_>, &'a Expr)) {
        visit(place, self);
        match self {
            Expr::Join(parts) => parts.iter().for_each(|part| part.walk(place, visit)),
            Expr::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.walk(&Place::Item(place, index), visit);
                }
            }
            Expr::Map(members) => {
                for (key, member) in members {
                    member.walk(&Place::Member(place, key), visit);
                }
            }
            Expr::Known(_) | Expr::Output(_) | Expr::Name | Expr::Secret(_) => {}
        }
    }
}

/// Where a walk stands inside an expression; written out only where somebody asks.
enum Place<'p> {
    Top,
    Item(&'p Place<'p>, usize),
    Member(&'p Place<'p>, &'p str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Top => Ok(()),
            Place::Item(of, index) => write!(f, "{of}[{index}]"),
            Place::Member(of, key) => write!(f, "{of}.{key}"),
        }
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Expr {
        Expr::Known(value)
    }
}
impl From<&str> for Expr {
    fn from(text: &str) -> Expr {
        Expr::Known(Value::from(text))
    }
}

fn join(parts: Vec<Value>) -> Value {
    let secret = parts.iter().any(|part| matches!(part, Value::Secret(_)));
    let sources: BTreeSet<OutputRef> = parts.iter().flat_map(Value::sources).collect();
    if parts.iter().all(Value::is_known) {
        let text: Text = parts.iter().map(plain_text).collect();
        let text = Value::Text(text);
        return if secret {
            Value::Secret(SecretValue::new(text))
        } else {
            text
        };
    }
    let text = parts
        .iter()
        .map(|part| match part {
            Value::Unknown(unknown) if parts.len() == 1 => unknown.text.clone(),
            Value::Unknown(unknown) => eco_format!("${{{}}}", unknown.text),
            Value::Secret(_) => "(secret)".into(),
            known => plain_text(known),
        })
        .collect();
    let sources = sources.into_iter().collect();
    Unknown { sources, text }.into()
}

/// Text of a part of a template, as JavaScript would write it.
fn plain_text(value: &Value) -> Text {
    match value {
        Value::Text(text) => text.clone(),
        Value::Secret(secret) => plain_text(secret.reveal()),
        other => other
            .to_plain_json()
            .map_or_else(Text::new, |json| json.to_string().into()),
    }
}

/// Follows a path into a value. `None` when a member or item is missing.
pub(crate) fn follow<'a>(value: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter()
        .try_fold(value, |value, segment| match (value, segment) {
            (Value::Map(members), Segment::Key(key)) => members.get(key),
            (Value::List(items), Segment::Index(index)) => items.get(*index),
            (Value::Secret(secret), segment) => {
                follow(secret.reveal(), std::slice::from_ref(segment))
            }
            _ => None,
        })
}

impl OutputRef {
    /// The value at this property in a resource's outputs (parameters are outputs too).
    /// Inside a secret everything is secret. An unknown on the way is the answer.
    pub fn read(&self, outputs: &crate::Params) -> Option<Value> {
        let (first, rest) = self.path.split_first()?;
        let Segment::Key(field) = first else {
            return None;
        };
        match outputs.get(field)? {
            Value::Unknown(_) => Some(Unknown::output(self.clone()).into()),
            Value::Secret(secret) => follow(secret.reveal(), rest)
                .map(|value| Value::Secret(SecretValue::new(value.clone()))),
            value => follow(value, rest).cloned(),
        }
    }
}
