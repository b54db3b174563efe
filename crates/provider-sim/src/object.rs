//! One live object, as `objects.json` shows it.

use std::collections::BTreeMap;

use notation_model::{Owner, Params, SecretValue, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// A live object. Members that a hand-written one leaves out are taken as empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimObject {
    /// Its type without the provider's name, e.g. `Worker`.
    #[serde(rename = "type")]
    pub ty: String,
    /// What identifies it; its name.
    #[serde(default)]
    pub key: String,
    /// Parameters as last written, in clear: a cloud has what it was given.
    #[serde(default)]
    pub params: Map<String, Json>,
    /// What the cloud made.
    #[serde(default)]
    pub outputs: Map<String, Json>,
    /// Owner tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// How often it was written, its creation included.
    #[serde(default)]
    pub writes: u64,
}

impl SimObject {
    /// Whether it is of this type; a hand-written `sim/Worker` counts as `Worker`.
    pub(crate) fn is_a(&self, ty: &str) -> bool {
        self.ty == ty || self.ty.strip_prefix("sim/") == Some(ty)
    }

    /// Names of the objects it refers to, in order, with repetitions.
    pub(crate) fn targets(&self) -> Vec<&str> {
        targets(&self.params)
    }

    /// Whether its tags are exactly those of the owner, generation included.
    pub(crate) fn belongs_to(&self, owner: &Owner) -> bool {
        owner
            .tags()
            .iter()
            .all(|(key, value)| self.tags.get(*key) == Some(value))
    }
}

/// Names that `bindings[].service` and `parent` hold.
pub(crate) fn targets(params: &Map<String, Json>) -> Vec<&str> {
    let services = params
        .get("bindings")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("service"));
    services
        .chain(params.get("parent"))
        .filter_map(Json::as_str)
        .collect()
}

/// Parameters in clear; `None` when a part is unknown.
pub(crate) fn to_json(params: &Params) -> Option<Map<String, Json>> {
    params
        .iter()
        .map(|(name, value)| Some((name.to_string(), value.to_plain_json()?)))
        .collect()
}

/// Parameters or outputs from JSON; those whose field is sensitive come as secrets.
pub(crate) fn from_json(members: &Map<String, Json>, sensitive: impl Fn(&str) -> bool) -> Params {
    members
        .iter()
        .map(|(name, json)| {
            let value = Value::from(json.clone());
            let value = if sensitive(name) && value != Value::Null {
                Value::Secret(SecretValue::new(value))
            } else {
                value
            };
            (name.clone(), value)
        })
        .collect()
}
