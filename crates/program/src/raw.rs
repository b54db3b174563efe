//! What the sandbox hands over: exactly the shape that `sandbox/prelude.js` writes.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};

/// Everything a program left behind.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Raw {
    pub resources: Vec<RawResource>,
    /// Name and value.
    pub exports: Vec<(String, RawValue)>,
    pub problems: Vec<RawProblem>,
    /// What the program printed, in order.
    pub said: Vec<String>,
}

/// One `new Type({ .. })`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawResource {
    #[serde(rename = "type")]
    pub ty: String,
    pub id: Option<String>,
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
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawStep {
    Index(usize),
    Key(String),
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawValue, D::Error> {
        deserializer.deserialize_any(RawValueVisitor)
    }
}

struct RawValueVisitor;

impl<'de> Visitor<'de> for RawValueVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar or a tagged list")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(truth))
    }

    fn visit_i64<E>(self, int: i64) -> Result<RawValue, E> {
        Ok(RawValue::Int(int))
    }

    fn visit_u64<E>(self, int: u64) -> Result<RawValue, E> {
        Ok(i64::try_from(int).map_or(RawValue::Float(int as f64), RawValue::Int))
    }

    /// A number without fraction is an integer where it fits, as in `Value`.
    fn visit_f64<E>(self, float: f64) -> Result<RawValue, E> {
        Ok(if float.fract() == 0.0 && float.abs() < 9e15 {
            RawValue::Int(float as i64)
        } else {
            RawValue::Float(float)
        })
    }

    fn visit_str<E>(self, text: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawValue, A::Error> {
        fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(seq: &mut A) -> Result<T, A::Error> {
            seq.next_element()?
                .ok_or_else(|| A::Error::custom("a tagged list is too short"))
        }
        let tag: String = next(&mut seq)?;
        match tag.as_str() {
            "o" => Ok(RawValue::Output(next(&mut seq)?, next(&mut seq)?)),
            "s" => Ok(RawValue::Secret(next(&mut seq)?)),
            "l" => Ok(RawValue::List(next(&mut seq)?)),
            "m" => Ok(RawValue::Map(next(&mut seq)?)),
            "j" => Ok(RawValue::Join(next(&mut seq)?)),
            other => Err(A::Error::custom(format!("unknown tag {other:?}"))),
        }
    }
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
