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

/// The text of a template. A part that is secret, or has a secret anywhere in it, makes the whole
/// text one.
fn join(parts: Vec<Value>) -> Value {
    if parts.iter().all(Value::is_known) {
        let text = Value::Text(parts.iter().map(plain_text).collect());
        return if parts.iter().any(Value::has_secret) {
            Value::Secret(SecretValue::new(text))
        } else {
            text
        };
    }
    let sources: BTreeSet<OutputRef> = parts.iter().flat_map(Value::sources).collect();
    let text = parts
        .iter()
        .map(|part| match part {
            Value::Unknown(unknown) if parts.len() == 1 => unknown.text.clone(),
            part => plain_text(&shown(part)),
        })
        .collect();
    let sources = sources.into_iter().collect();
    Unknown { sources, text }.into()
}

/// A value as a forecast's text may show it: without secrets, with its unknown parts as `${b.x}`.
fn shown(value: &Value) -> Value {
    match value {
        Value::Unknown(unknown) => Value::Text(eco_format!("${{{}}}", unknown.text)),
        Value::Secret(_) => Value::from("(secret)"),
        Value::List(items) => Value::List(items.iter().map(shown).collect()),
        Value::Map(members) => Value::Map(
            members
                .iter()
                .map(|(key, member)| (key.clone(), shown(member)))
                .collect(),
        ),
        plain => plain.clone(),
    }
}

/// Text of a part of a template, as JavaScript would write it; secrets in clear.
fn plain_text(value: &Value) -> Text {
    match value {
        Value::Text(text) => text.clone(),
        Value::Secret(secret) => plain_text(secret.reveal()),
        other => other
            .to_plain_json()
            .map_or_else(Text::new, |json| json.to_string().into()),
    }
}

impl OutputRef {
    /// The value at this property in a resource's outputs (parameters are outputs too).
    /// Inside a secret everything is secret. An unknown on the way is the answer.
    pub fn read(&self, outputs: &crate::Params) -> Option<Value> {
        let (first, rest) = self.path.split_first()?;
        let Segment::Key(field) = first else {
            return None;
        };
        let mut value = outputs.get(field)?;
        let mut is_secret = false;
        if matches!(value, Value::Unknown(_)) {
            return Some(Unknown::output(self.clone()).into());
        }
        for segment in rest {
            while let Value::Secret(secret) = value {
                is_secret = true;
                value = secret.reveal();
            }
            value = match (value, segment) {
                (Value::Map(members), Segment::Key(key)) => members.get(key)?,
                (Value::List(items), Segment::Index(index)) => items.get(*index)?,
                (Value::Unknown(_), _) => return Some(Unknown::output(self.clone()).into()),
                _ => return None,
            };
        }
        Some(match is_secret {
            true => Value::Secret(SecretValue::new(value.clone())),
            false => value.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Params;

    fn secret(value: impl Into<Value>) -> Value {
        Value::Secret(SecretValue::new(value.into()))
    }

    fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(items.into_iter().collect())
    }

    fn map(key: &str, member: Value) -> Value {
        Value::Map([(key.to_owned(), member)].into())
    }

    /// The path of a reference to `w`: texts are members, numbers are items.
    fn path(path: serde_json::Value) -> OutputRef {
        let segments = path.as_array().cloned().unwrap_or_default();
        let segments = segments.into_iter().map(|segment| match segment.as_u64() {
            Some(index) => Segment::Index(usize::try_from(index).unwrap()),
            None => Segment::Key(segment.as_str().unwrap().into()),
        });
        OutputRef {
            resource: "w".parse().unwrap(),
            path: segments.collect(),
        }
    }

    #[test]
    fn a_text_made_of_what_has_a_secret_in_it_is_a_secret() {
        let parts = [
            (secret("A"), "u-A"),
            (list([secret("A"), Value::Int(1)]), r#"u-["A",1]"#),
            (map("k", secret("A")), r#"u-{"k":"A"}"#),
            (list([map("k", list([secret("A")]))]), r#"u-[{"k":["A"]}]"#),
            (list([secret(list([Value::from("A")]))]), r#"u-[["A"]]"#),
        ];
        for (part, text) in parts {
            assert_eq!(join(vec!["u-".into(), part.clone()]), secret(text));
            // Text of a text of it, too.
            let inner = join(vec![part]);
            assert_eq!(join(vec!["u-".into(), inner]), secret(text));
        }
        let plain = join(vec!["u-".into(), list([Value::Int(1)])]);
        assert_eq!(plain, Value::from("u-[1]"));
    }

    #[test]
    fn the_text_of_a_forecast_shows_no_secret_and_every_source() {
        let unknown: Value = Unknown::output(path(json!(["arn"]))).into();
        let parts = vec![
            "u-".into(),
            list([secret("A"), Value::Int(1), unknown.clone()]),
            map("k", secret("A")),
            unknown,
        ];
        let Value::Unknown(joined) = join(parts) else {
            panic!("a part is not known")
        };
        assert_eq!(
            joined.text,
            r#"u-["(secret)",1,"${w.arn}"]{"k":"(secret)"}${w.arn}"#
        );
        assert_eq!(joined.sources, [path(json!(["arn"]))]);
    }

    #[test]
    fn what_is_read_out_of_a_secret_is_a_secret_however_deep_it_lies() {
        let inside = || map("a", list([Value::from("A")]));
        let outputs = Params::from([
            ("whole".to_owned(), secret(inside())),
            ("nested".to_owned(), list([secret(inside())])),
            (
                "later".to_owned(),
                list([Unknown::output(path(json!(["x"]))).into()]),
            ),
        ]);
        let read = |at: serde_json::Value| path(at).read(&outputs);
        assert_eq!(read(json!(["whole", "a", 0])), Some(secret("A")));
        assert_eq!(read(json!(["nested", 0])), Some(secret(inside())));
        assert_eq!(read(json!(["nested", 0, "a", 0])), Some(secret("A")));
        assert_eq!(read(json!(["nested", 0, "b"])), None);
        let later = path(json!(["later", 0, "a"]));
        assert_eq!(later.read(&outputs), Some(Unknown::output(later).into()));
    }
}
