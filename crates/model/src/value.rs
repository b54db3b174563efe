//! Values of parameters and outputs.

use std::{collections::BTreeSet, fmt};

use ecow::eco_format;
use sha2::{Digest as _, Sha256};

use crate::{Map, OutputRef, SecretName, Text};

/// Parameters or outputs of one resource, by field name.
pub type Params = Map<Value>;

/// One value. Maps are ordered by key, so that equal values print and hash equally.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Explicitly nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number without fraction that fits.
    Int(i64),
    /// Any other number; always finite.
    Float(f64),
    /// A text.
    Text(Text),
    /// Bytes known by their digest; the bytes travel beside the graph.
    Asset(Box<Asset>),
    /// A list.
    List(Vec<Value>),
    /// A map.
    Map(Map<Value>),
    /// A value that must not be shown or stored in clear.
    Secret(SecretValue),
    /// Not known before running. Only in forecasts; never reaches a provider.
    Unknown(Box<Unknown>),
}

/// Deepest value of a field, an output or an export ([`Value::depth`]). What a program writes is
/// held to half of that where it is written; this is for what references put together. Whoever
/// stores or shows values has to hold this much and what they wrap around it.
pub const DEEPEST_VALUE: usize = 64;

/// Content-addressed bytes: SHA-256 in lower-case hex, and the length in bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asset {
    /// `sha256:` and 64 lower-case hex digits.
    pub digest: String,
    /// Length in bytes.
    pub size_bytes: u64,
}

impl Asset {
    /// Names the bytes.
    pub fn of(bytes: &[u8]) -> Asset {
        Asset {
            digest: digest(bytes),
            size_bytes: bytes.len() as u64,
        }
    }
}

/// `sha256:` and 64 lower-case hex digits of the bytes' SHA-256.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// A sensitive value. Compares by content; prints as `(secret)`.
#[derive(Clone, PartialEq)]
pub struct SecretValue(Box<Value>);

impl SecretValue {
    /// Hides a value. A secret in a secret is one secret.
    pub fn new(value: Value) -> SecretValue {
        match value {
            Value::Secret(secret) => secret,
            value => SecretValue(Box::new(value)),
        }
    }

    /// The value in clear: for the provider call and for encryption, nothing else.
    pub fn reveal(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A value that only running can tell, and where it will come from (RFC 0011 §3, *Forecast*).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Every output it is made of, sorted; at least one unless it is a missing secret.
    pub sources: Vec<OutputRef>,
    /// How people see it, e.g. `b.ScriptName` or `https://${b.host}/`.
    pub text: Text,
}

impl Unknown {
    /// The token of one output.
    pub fn output(source: OutputRef) -> Unknown {
        Unknown {
            text: eco_format!("{source}"),
            sources: vec![source],
        }
    }

    /// The token of a secret whose value was not given to this planning.
    pub fn secret(name: &SecretName) -> Unknown {
        Unknown {
            sources: Vec::new(),
            text: eco_format!("secret({name})"),
        }
    }
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<Text>) -> Value {
        Value::Text(text.into())
    }

    /// The text of a `Text`, also inside a secret.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Secret(secret) => secret.reveal().as_text(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Asset(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Unknown(_) => None,
        }
    }

    /// True when no part is unknown.
    pub fn is_known(&self) -> bool {
        match self {
            Value::Unknown(_) => false,
            Value::List(items) => items.iter().all(Value::is_known),
            Value::Map(members) => members.values().all(Value::is_known),
            Value::Secret(secret) => secret.reveal().is_known(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Asset(_) => true,
        }
    }

    /// Every output that some part waits for. Empty also for a missing secret alone.
    pub fn sources(&self) -> BTreeSet<OutputRef> {
        self.unknowns()
            .into_iter()
            .flat_map(|unknown| unknown.sources.iter().cloned())
            .collect()
    }

    /// Every unknown part, in order.
    pub fn unknowns(&self) -> Vec<&Unknown> {
        let mut found = Vec::new();
        self.walk(&mut |value| {
            if let Value::Unknown(unknown) = value {
                found.push(&**unknown)
            }
        });
        found
    }

    /// Every asset named, in order.
    pub fn assets(&self) -> Vec<&Asset> {
        let mut found = Vec::new();
        self.walk(&mut |value| {
            if let Value::Asset(asset) = value {
                found.push(&**asset)
            }
        });
        found
    }

    /// True when it is secret or some part of it is.
    pub fn has_secret(&self) -> bool {
        match self {
            Value::Secret(_) => true,
            Value::List(items) => items.iter().any(Value::has_secret),
            Value::Map(members) => members.values().any(Value::has_secret),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Asset(_)
            | Value::Unknown(_) => false,
        }
    }

    /// How many lists and maps lie in each other at the deepest place; 0 for what is neither.
    /// Secrets and assets add nothing.
    pub fn depth(&self) -> usize {
        let deepest = |depths: &mut dyn Iterator<Item = usize>| 1 + depths.max().unwrap_or(0);
        match self {
            Value::List(items) => deepest(&mut items.iter().map(Value::depth)),
            Value::Map(members) => deepest(&mut members.values().map(Value::depth)),
            Value::Secret(secret) => secret.reveal().depth(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Asset(_)
            | Value::Unknown(_) => 0,
        }
    }

    /// Everything inside secrets, in order: for whoever must hide it.
    pub fn sensitive(&self) -> Vec<&Value> {
        let mut found = Vec::new();
        self.walk(&mut |value| {
            if let Value::Secret(secret) = value {
                secret.reveal().walk(&mut |inside| found.push(inside));
            }
        });
        found
    }

    fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Value)) {
        visit(self);
        match self {
            Value::List(items) => items.iter().for_each(|item| item.walk(visit)),
            Value::Map(members) => members.values().for_each(|member| member.walk(visit)),
            Value::Secret(secret) => secret.reveal().walk(visit),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Asset(_)
            | Value::Unknown(_) => {}
        }
    }
}

impl From<Unknown> for Value {
    fn from(unknown: Unknown) -> Value {
        Value::Unknown(Box::new(unknown))
    }
}
impl From<Asset> for Value {
    fn from(asset: Asset) -> Value {
        Value::Asset(Box::new(asset))
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text.into())
    }
}
impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}
impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

/// Plain JSON to a value. Numbers without fraction become `Int` where they fit.
impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(truth),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Value::Int(int),
                (None, Some(float)) if float.fract() == 0.0 && float.abs() < 9e15 => {
                    Value::Int(float as i64)
                }
                (None, float) => Value::Float(float.unwrap_or(f64::MAX)),
            },
            Json::String(text) => Value::Text(text.into()),
            Json::Array(items) => Value::List(items.into_iter().map(Value::from).collect()),
            Json::Object(members) => Value::Map(
                members
                    .into_iter()
                    .map(|(key, value)| (key, value.into()))
                    .collect(),
            ),
        }
    }
}

/// How a value is shown as JSON to people and scripts: secrets become `{"secret": true}`,
/// unknowns `{"unknown": "b.ScriptName"}`, assets `{"asset": digest, "bytes": size}`.
impl Value {
    /// JSON for display (see the impl's text). Not reversible, and safe to print.
    pub fn to_display_json(&self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Value::Secret(_) => json!({ "secret": true }),
            Value::Unknown(unknown) => json!({ "unknown": unknown.text.as_str() }),
            Value::Asset(asset) => json!({ "asset": asset.digest, "bytes": asset.size_bytes }),
            other => other.map_json(&|value| value.to_display_json()),
        }
    }

    /// JSON in clear, for a provider that speaks JSON: secrets revealed, assets as their
    /// digest. `None` when a part is unknown.
    pub fn to_plain_json(&self) -> Option<serde_json::Value> {
        if !self.is_known() {
            return None;
        }
        Some(self.plain())
    }

    fn plain(&self) -> serde_json::Value {
        match self {
            Value::Secret(secret) => secret.reveal().plain(),
            Value::Asset(asset) => serde_json::Value::String(asset.digest.clone()),
            other => other.map_json(&|value| value.plain()),
        }
    }

    fn map_json(&self, each: &dyn Fn(&Value) -> serde_json::Value) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(int) => Json::from(*int),
            Value::Float(float) => Json::from(*float),
            Value::Text(text) => Json::String(text.to_string()),
            Value::List(items) => Json::Array(items.iter().map(each).collect()),
            Value::Map(members) => Json::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.to_string(), each(value)))
                    .collect(),
            ),
            Value::Null | Value::Asset(_) | Value::Secret(_) | Value::Unknown(_) => Json::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Value::Secret(SecretValue::new(Value::text("hunter2")));
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert_eq!(
            secret.to_display_json(),
            serde_json::json!({ "secret": true })
        );
        assert_eq!(secret.to_plain_json(), Some(serde_json::json!("hunter2")));
    }
}
