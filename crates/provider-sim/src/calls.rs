//! The call log: one line per call in `calls.ndjson`.

use notation_model::Owner;
use notation_provider::OpError;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

/// Whether calls are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLog {
    /// One line each.
    On,
    /// Not at all: for benchmarks.
    Off,
}

impl CallLog {
    /// What `NOTATION_SIM_CALLS` asks for: `off`, or anything else for on.
    pub fn from_env() -> CallLog {
        match std::env::var("NOTATION_SIM_CALLS").as_deref() {
            Ok("off") => CallLog::Off,
            _ => CallLog::On,
        }
    }
}

/// The four calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    Create,
    Read,
    Update,
    Delete,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    pub seq: u64,
    pub op: Op,
    #[serde(rename = "type")]
    pub ty: &'a str,
    /// The object's name at the cloud.
    pub name: &'a str,
    pub params: Option<&'a Map<String, Json>>,
    pub token: Option<&'a str>,
    pub owner: Json,
    /// Calls running when this one began, itself included.
    pub in_flight: u64,
    pub result: &'static str,
    pub detail: Option<String>,
}

/// How an owner is shown.
pub(crate) fn owner_json(owner: &Owner) -> Json {
    json!({
        "app": owner.deployment.app.to_string(),
        "stage": owner.deployment.stage.to_string(),
        "entry": owner.deployment.entry.to_string(),
        "resource": owner.resource.to_string(),
        "generation": owner.generation,
    })
}

/// The word for an error.
pub(crate) fn word(error: &OpError) -> &'static str {
    match error {
        OpError::NotFound => "not_found",
        OpError::Exists { .. } => "exists",
        OpError::InUse { .. } => "in_use",
        OpError::Refused { .. } => "refused",
        OpError::Transient { .. } => "transient",
        OpError::Failed { .. } => "failed",
        OpError::Broke { .. } => "broke",
    }
}
