//! What is recorded beside calls, in words and as JSON.

use notation_planner::Recorded;
use serde_json::{Value as Json, json};

use crate::render::cell;

/// One row each, ids in a column: `a   becomes protected`.
pub fn rows(recorded: &[Recorded], width: usize) -> Vec<String> {
    let id = |one: &Recorded| cell::columns(one.resource.as_str());
    let widest = recorded.iter().map(id).max().unwrap_or(0).min(28);
    recorded
        .iter()
        .map(|one| {
            let id = cell::pad(&cell::cut(one.resource.as_str(), widest), widest);
            cell::cut(&format!("{id}   {}", words(one)), width)
        })
        .collect()
}

fn words(one: &Recorded) -> String {
    let formerly = one.formerly.as_ref();
    let formerly = formerly.map(|before| format!("is {before} under its new name"));
    let protect = one.protect.map(|now| match now {
        true => "becomes protected".to_owned(),
        false => "is protected no more".to_owned(),
    });
    let never_bare = one.never_bare.map(|now| match now {
        true => "must never be a placeholder".to_owned(),
        false => "may be a placeholder".to_owned(),
    });
    let words: Vec<String> = [formerly, protect, never_bare]
        .into_iter()
        .flatten()
        .collect();
    words.join("; ")
}

/// As in the `plan` and `report` events; what stays as it is, is `null`.
pub fn to_json(recorded: &[Recorded]) -> Vec<Json> {
    let one = |one: &Recorded| {
        json!({
            "resource": one.resource.as_str(),
            "formerly": one.formerly.as_ref().map(ToString::to_string),
            "protect": one.protect,
            "placeholder": one.never_bare.map(|never| if never { "never" } else { "allowed" }),
        })
    };
    recorded.iter().map(one).collect()
}
