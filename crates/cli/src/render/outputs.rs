//! What an entry exports, as lines and as a JSON object.

use std::collections::BTreeMap;

use notation_model::Value;
use serde_json::{Map, Value as Json};

/// Whether sensitive values are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sensitive {
    /// As `(secret)`.
    Hidden,
    /// In clear.
    Clear,
}

/// Outputs as a JSON object.
pub fn to_json(outputs: &BTreeMap<String, Value>, sensitive: Sensitive) -> Json {
    let members: Map<String, Json> = outputs
        .iter()
        .map(|(name, value)| (name.clone(), one(value, sensitive)))
        .collect();
    Json::Object(members)
}

fn one(value: &Value, sensitive: Sensitive) -> Json {
    match sensitive {
        Sensitive::Hidden => value.to_display_json(),
        Sensitive::Clear => value.to_plain_json().unwrap_or(Json::Null),
    }
}

/// Outputs as lines `name = value`; a text stands without quotes, so that it can be copied.
pub fn to_text(outputs: &BTreeMap<String, Value>, sensitive: Sensitive) -> String {
    let width = outputs.keys().map(String::len).max().unwrap_or(0);
    let lines = outputs.iter().map(|(name, value)| {
        let text = match (value, sensitive) {
            (Value::Secret(_), Sensitive::Hidden) => "(secret)".to_owned(),
            (value, _) => match one(value, sensitive) {
                Json::String(text) => text,
                other => other.to_string(),
            },
        };
        format!("{name:width$} = {text}\n")
    });
    lines.collect()
}
