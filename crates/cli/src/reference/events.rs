//! `docs/reference/events.md`: the lines of `--json`, made from their published schema.

use std::fmt::Write as _;

use serde_json::Value as Json;

const SCHEMA: &str = include_str!("../../../../docs/events.schema.json");

/// The whole document.
pub fn document() -> String {
    let schema: Json = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let mut text = String::from(
        "# JSON events\n\nMade from the schema, [`docs/events.schema.json`](../events.schema.json). `--json` prints one object per line on stdout and nothing else there. Every object has `event` and `at` (RFC 3339, UTC).\n",
    );
    for shape in schema["oneOf"].as_array().into_iter().flatten() {
        let event = &shape["properties"]["event"];
        let one = event["const"].as_str().into_iter();
        let several = event["enum"].as_array().into_iter().flatten();
        let names: Vec<_> = one
            .chain(several.filter_map(Json::as_str))
            .map(|name| format!("`{name}`"))
            .collect();
        let doc = shape["description"].as_str().unwrap_or_default();
        assert!(!doc.is_empty(), "{names:?} has no description");
        let _ = write!(text, "\n## {}\n\n{doc}\n\n", names.join(", "));
        fields(&mut text, shape);
    }
    text.push_str("\n# Parts of events\n");
    for (name, shape) in schema["$defs"].as_object().into_iter().flatten() {
        if shape["properties"].is_object() {
            let _ = write!(text, "\n## {name}\n\n");
            fields(&mut text, shape);
        }
    }
    text
}

fn fields(text: &mut String, shape: &Json) {
    let required = |name: &str| {
        let names = shape["required"].as_array().into_iter().flatten();
        names.filter_map(Json::as_str).any(|one| one == name)
    };
    let _ = writeln!(text, "| field | | type |\n|---|---|---|");
    for (name, field) in shape["properties"].as_object().into_iter().flatten() {
        if matches!(name.as_str(), "event" | "at") {
            continue;
        }
        let always = if required(name) {
            ""
        } else {
            "where it applies"
        };
        let _ = writeln!(text, "| `{name}` | {always} | {} |", kind(field));
    }
}

/// A type in words.
fn kind(field: &Json) -> String {
    if let Some(reference) = field["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return match name {
            "deployment" => "`app:stage:entry`".into(),
            name => format!("[{name}](#{name})"),
        };
    }
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<_> = values
            .iter()
            .map(|value| format!("`{}`", plain(value)))
            .collect();
        return values.join(", ");
    }
    if let Some(several) = field["oneOf"].as_array() {
        let kinds: Vec<_> = several.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    match &field["type"] {
        Json::String(name) if name == "array" => match &field["items"] {
            Json::Null => "list".into(),
            items => format!("list of {}", kind(items)),
        },
        Json::String(name) if name == "object" => match field["properties"].as_object() {
            Some(members) => {
                let names: Vec<_> = members.keys().map(|name| format!("`{name}`")).collect();
                format!("object of {}", names.join(", "))
            }
            None => "object".into(),
        },
        Json::String(name) => name.clone(),
        Json::Array(names) => {
            let names: Vec<_> = names.iter().map(plain).collect();
            names.join(" or ")
        }
        _ => "any".into(),
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
