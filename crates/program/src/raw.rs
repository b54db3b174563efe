//! What the sandbox hands over: exactly the shape that `sandbox/prelude.js` writes.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value as Json;

/// Everything a program left behind.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Raw {
    pub resources: Vec<RawResource>,
    /// Name and value.
    pub exports: Vec<(String, RawValue)>,
    pub problems: Vec<RawProblem>,
    /// What the program printed, in order.
    pub said: Vec<String>,
    /// Every `secret(..)`.
    pub secrets: Vec<RawSecret>,
}

/// `resource.property(..)` or, inside of a property, `resource.property.name(..)`.
#[derive(Debug, Deserialize)]
pub(crate) struct RawCall {
    /// The resource as people call it.
    pub label: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub property: String,
    /// Something inside of the property was called.
    pub inner: bool,
    /// What the resource's class can be asked to do.
    pub methods: Vec<String>,
}

/// `secret("NAME")`.
#[derive(Debug, Deserialize)]
pub(crate) struct RawSecret {
    pub name: String,
    pub stack: String,
}

/// One `new Type({ .. })`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawResource {
    #[serde(rename = "type")]
    pub ty: String,
    pub id: Option<String>,
    /// An id was given that is not a plain text; a problem says so.
    #[serde(default)]
    pub bad_id: bool,
    pub config: Vec<(String, RawValue)>,
    pub contributions: Vec<RawContribution>,
    pub depend_on: Vec<RawDependOn>,
    #[serde(default)]
    pub protect: bool,
    #[serde(default)]
    pub never_bare: bool,
    #[serde(default)]
    pub formerly: Vec<String>,
    /// Options that no resource takes.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Properties that were assigned to.
    #[serde(default)]
    pub assigned: Vec<RawAssignment>,
    pub stack: String,
}

/// `resource.field = ..`.
#[derive(Debug, Deserialize)]
pub(crate) struct RawAssignment {
    pub field: String,
    pub stack: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawContribution {
    pub field: String,
    pub value: RawValue,
    pub stack: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawDependOn {
    /// Index of a resource.
    pub target: usize,
    pub stack: String,
}

/// A problem that did not stop the program.
#[derive(Debug, Deserialize)]
pub(crate) struct RawProblem {
    pub code: String,
    pub message: String,
    pub help: Option<String>,
    /// Keys into the value that was given, outermost first.
    #[serde(default)]
    pub path: Vec<RawStep>,
    pub stack: Option<String>,
    /// The argument it is about, from 0.
    pub argument: Option<usize>,
    /// The export it is about.
    pub exported: Option<String>,
}

/// A value: a scalar as itself, everything else a list that begins with a tag.
#[derive(Debug, Clone)]
pub(crate) enum RawValue {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Index of a resource, and a path into its outputs.
    Output(usize, Vec<RawStep>),
    Secret(String),
    List(Vec<RawValue>),
    Map(Vec<(String, RawValue)>),
    Join(Vec<RawValue>),
    /// In the place of a value that a problem is about.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawStep {
    Index(usize),
    Key(String),
}

/// Through a JSON value: how numbers arrive otherwise depends on features of the parser that any
/// crate of the build may turn on.
impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawValue, D::Error> {
        read(Json::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("an untagged value"))
    }
}

fn read(json: Json) -> Option<RawValue> {
    Some(match json {
        Json::Null => RawValue::Null,
        Json::Bool(truth) => RawValue::Bool(truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => RawValue::Int(int),
            // A number without fraction is an integer where it fits, as in `Value`.
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 9e15 => {
                RawValue::Int(float as i64)
            }
            (None, float) => RawValue::Float(float?),
        },
        Json::String(text) => RawValue::Text(text),
        Json::Array(tagged) => tagged_list(tagged)?,
        Json::Object(_) => return None,
    })
}

fn tagged_list(list: Vec<Json>) -> Option<RawValue> {
    let mut list = list.into_iter();
    let Json::String(tag) = list.next()? else {
        return None;
    };
    let first = list.next()?;
    Some(match (tag.as_str(), first) {
        ("o", resource) => {
            let path = serde_json::from_value(list.next()?).ok()?;
            RawValue::Output(resource.as_u64()? as usize, path)
        }
        ("r", Json::Null) => RawValue::Refused,
        ("s", Json::String(name)) => RawValue::Secret(name),
        ("l", Json::Array(items)) => RawValue::List(read_all(items)?),
        ("j", Json::Array(parts)) => RawValue::Join(read_all(parts)?),
        ("m", Json::Array(members)) => RawValue::Map(
            members
                .into_iter()
                .map(|member| {
                    let Json::Array(pair) = member else {
                        return None;
                    };
                    let mut pair = pair.into_iter();
                    match (pair.next()?, pair.next()?) {
                        (Json::String(key), value) => Some((key, read(value)?)),
                        _ => None,
                    }
                })
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

fn read_all(items: Vec<Json>) -> Option<Vec<RawValue>> {
    items.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_reads() {
        let text = r#"["m",[["a",1],["b",["l",[true,null,1.5,"x"]]],["c",["o",2,["url",0]]],["d",["j",["x",["s","KEY"]]]]]]"#;
        let value: RawValue = serde_json::from_str(text).unwrap();
        let RawValue::Map(members) = value else {
            panic!("{value:?}")
        };
        assert_eq!(members.len(), 4);
        assert!(matches!(&members[2].1, RawValue::Output(2, path) if path.len() == 2));
    }
}
