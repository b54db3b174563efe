//! `notation outputs ENTRY`: what the entry exported at its last deploy.

use std::collections::BTreeMap;

use notation_model::Value;
use serde_json::{Map, Value as Json, json};

use crate::{
    args::{Global, Outputs},
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    project, session,
};

/// Prints them from state.
pub fn run(global: &Global, args: &Outputs, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "outputs")?;
    let store = session::store(&config)?;
    let state = session::block_on(async { Ok(store.load(&deployment).await?) })?;
    session::known(&state, in_config)?;
    session::was_deployed(store.as_ref(), &deployment, &state)?;
    let shown = if args.show_secrets {
        Sensitive::Clear
    } else {
        Sensitive::Hidden
    };
    printer.event(
        "outputs",
        json!({ "deployment": deployment.to_string(), "outputs": to_json(&state.exports, shown) }),
    );
    if state.exports.is_empty() {
        printer.say(format!("{deployment} has no outputs"));
    } else {
        printer.out(to_text(&state.exports, shown));
    }
    Ok(Exit::Done)
}

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
