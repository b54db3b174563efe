//! Rows and their explicit conversions; domain types never define the stored format.

use notation_edge::{
    BindingRef, Condition, FormRef, Generation, Key, Pin, Reason, Resource, Revision, Uid,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Key of an idempotency record (host API §14.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayKey {
    /// Tenant.
    pub tenant: Arc<str>,
    /// Principal.
    pub principal: Arc<str>,
    /// Space of the request; empty on artifact routes.
    pub space: String,
    /// The header's value.
    pub key: String,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Hash over everything that makes the request what it is.
    pub fingerprint: [u8; 32],
    /// Status.
    pub status: u16,
    /// `ETag`, quoted.
    pub etag: Option<String>,
    /// Body; `None` for a 204.
    pub body: Option<Vec<u8>>,
    /// What the answer claims to be alive.
    pub bound: Bound,
}

/// What a recorded answer claims to be alive (host API §14.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// Nothing.
    Nothing,
    /// An incarnation.
    Uid(Uid),
    /// Whatever an operation made.
    Operation(String),
}

impl Bound {
    pub(super) fn columns(&self) -> (&'static str, &str) {
        match self {
            Bound::Nothing => ("nothing", ""),
            Bound::Uid(uid) => ("uid", uid.as_str()),
            Bound::Operation(id) => ("operation", id),
        }
    }

    pub(super) fn read(kind: &str, id: String) -> Bound {
        match kind {
            "uid" => Bound::Uid(Uid::new(id)),
            "operation" => Bound::Operation(id),
            _ => Bound::Nothing,
        }
    }
}

/// An accepted operation.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    /// `op_...`.
    pub id: String,
    /// Owner.
    pub principal: Arc<str>,
    /// The accepted request as JSON text.
    pub request: String,
    /// Incarnation it is bound to.
    pub bound_uid: Option<Uid>,
    /// Polls of the owner so far.
    pub polls: u32,
    /// The terminal document.
    pub terminal: Option<Vec<u8>>,
    /// Incarnation that it committed.
    pub result_uid: Option<Uid>,
    /// Whether it ended in an error.
    pub failed: bool,
    /// When it was accepted, RFC 3339 in UTC.
    pub created: String,
}

/// An upload session.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadRow {
    /// `up_...`.
    pub id: String,
    /// Owner.
    pub principal: Arc<str>,
    /// The manifest as canonical JSON.
    pub manifest: Vec<u8>,
    /// RFC 3339 in UTC.
    pub created: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PinRow {
    pointer: String,
    relation: String,
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    definition_version: String,
    schema_digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binding: Option<BindingRow>,
}

#[derive(Serialize, Deserialize)]
struct BindingRow {
    api_version: String,
    name: String,
    version: String,
    schema_digest: String,
}

impl PinRow {
    pub(super) fn of(pin: &Pin) -> PinRow {
        PinRow {
            pointer: pin.pointer.to_string(),
            relation: pin.relation.to_string(),
            api_version: pin.api_version.to_string(),
            kind: pin.kind.to_string(),
            name: pin.name.to_string(),
            uid: pin.uid.to_string(),
            definition_version: pin.form_ref.definition_version.to_string(),
            schema_digest: pin.form_ref.schema_digest.to_string(),
            binding: pin.binding.as_ref().map(|binding| BindingRow {
                api_version: binding.api_version.to_string(),
                name: binding.name.to_string(),
                version: binding.version.to_string(),
                schema_digest: binding.schema_digest.to_string(),
            }),
        }
    }

    fn pin(self) -> Pin {
        let api_version: Arc<str> = self.api_version.into();
        let kind: Arc<str> = self.kind.into();
        Pin {
            pointer: self.pointer.into(),
            relation: self.relation.into(),
            form_ref: FormRef {
                api_version: api_version.clone(),
                kind: kind.clone(),
                definition_version: self.definition_version.into(),
                schema_digest: self.schema_digest.into(),
            },
            api_version,
            kind,
            name: self.name.into(),
            uid: Uid::new(self.uid),
            binding: self.binding.map(|binding| BindingRef {
                api_version: binding.api_version.into(),
                name: binding.name.into(),
                version: binding.version.into(),
                schema_digest: binding.schema_digest.into(),
            }),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ConditionRow {
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    since: String,
}

impl ConditionRow {
    pub(super) fn of(condition: &Condition) -> ConditionRow {
        ConditionRow {
            reason: condition.reason.as_str().to_owned(),
            host_reason: condition.host_reason.as_deref().map(str::to_owned),
            message: condition.message.as_deref().map(str::to_owned),
            since: condition.since.to_string(),
        }
    }

    fn condition(self) -> Option<Condition> {
        Some(Condition {
            reason: *Reason::ALL
                .iter()
                .find(|reason| reason.as_str() == self.reason)?,
            host_reason: self.host_reason.map(Arc::from),
            message: self.message.map(Arc::from),
            since: self.since.into(),
        })
    }
}

/// Reads one resource; `None` when the row is damaged.
pub(super) fn resource(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Resource>> {
    let text = |column: &str| row.get::<_, String>(column);
    let counter = |column: &str| row.get::<_, i64>(column);
    let api_version: Arc<str> = text("api_version")?.into();
    let kind: Arc<str> = text("kind")?.into();
    let pins: Option<Vec<PinRow>> = serde_json::from_str(&text("pins")?).ok();
    let condition: Option<ConditionRow> = serde_json::from_str(&text("condition")?).ok();
    let spec = notation_edge_api::parse(text("spec")?.as_bytes()).ok();
    let (Some(pins), Some(condition), Some(spec)) =
        (pins, condition.and_then(ConditionRow::condition), spec)
    else {
        return Ok(None);
    };
    let generation = Generation::parse(&counter("generation")?.to_string());
    let revision = Revision::parse(&counter("revision")?.to_string());
    let (Some(generation), Some(revision)) = (generation, revision) else {
        return Ok(None);
    };
    Ok(Some(Resource {
        uid: Uid::new(text("uid")?),
        form_ref: FormRef {
            api_version: api_version.clone(),
            kind: kind.clone(),
            definition_version: text("definition_version")?.into(),
            schema_digest: text("schema_digest")?.into(),
        },
        key: Key {
            space: text("space")?.into(),
            api_version,
            kind,
            name: text("name")?.into(),
        },
        generation,
        revision,
        spec: Arc::new(spec),
        spec_digest: text("spec_digest")?.into(),
        pins: pins.into_iter().map(PinRow::pin).collect(),
        native_id: row.get::<_, Option<String>>("native_id")?.map(Arc::from),
        touches: u64::try_from(counter("touches")?).unwrap_or_default(),
        made: u64::try_from(counter("made")?).unwrap_or_default(),
        condition,
    }))
}
