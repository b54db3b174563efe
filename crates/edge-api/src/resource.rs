//! Resource documents (host API §7, §8, §10).

use crate::{Form, FormRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Body of validate, prepare, apply and import; which optional members a route takes differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResourceBody {
    /// Group of the resource.
    pub api_version: String,
    /// Kind of the resource.
    pub kind: String,
    /// Exact Form, required by every route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Name and space.
    pub metadata: RequestMetadata,
    /// Desired state; any JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// Apply only: the review that is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Apply only: the incarnation that must be current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_uid: Option<String>,
    /// Apply only: second place of the generation fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_generation: Option<String>,
    /// Import only: identity of the object that is adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

impl ResourceBody {
    /// What is asked for under a name, of a Form and no matter which package of it; without a
    /// review and without a fence.
    pub fn of(form: &FormRef, name: &str, space: &str, spec: Option<Value>) -> ResourceBody {
        ResourceBody {
            api_version: form.api_version.clone(),
            kind: form.kind.clone(),
            form: Some(Form {
                form_ref: form.clone(),
                package_digest: None,
            }),
            metadata: RequestMetadata {
                name: name.to_owned(),
                space: space.to_owned(),
                uid: None,
                generation: None,
                revision: None,
            },
            spec,
            review: None,
            expected_uid: None,
            expected_generation: None,
            native_id: None,
        }
    }
}

/// `metadata` of a request; the counters are accepted and, except on import, ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestMetadata {
    /// Name of the resource.
    #[serde(default)]
    pub name: String,
    /// Space of the resource.
    #[serde(default)]
    pub space: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// On import a second place of the generation fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// `review` of an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Review {
    /// The opaque value prepare gave.
    pub prepare_digest: String,
}

/// One stored resource as every route shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Resource {
    /// Group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Recorded Form and installed package.
    pub form: Form,
    /// Identity and counters.
    pub metadata: Metadata,
    /// Desired state with defaults filled in.
    pub spec: Value,
    /// What the host says about it.
    pub status: Status,
}

/// Identity and counters of a stored resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Space.
    pub space: String,
    /// Incarnation.
    pub uid: String,
    /// Moves with the desired state; a decimal string.
    pub generation: String,
    /// Moves with the representation; a decimal string.
    pub revision: String,
}

/// Status of a stored resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// Equal to the generation.
    pub observed_generation: String,
    /// Exactly one `Ready` condition from this host.
    pub conditions: Vec<Condition>,
    /// Free host object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Map<String, Value>>,
    /// Present exactly when the Form declares outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Condition {
    /// `Ready` and its siblings.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word of the closed vocabulary.
    pub reason: String,
    /// The host's own sentence, at most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_reason: Option<String>,
    /// A longer text, at most 4096 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// RFC 3339 in UTC; moves when status or reason move.
    pub last_transition_time: String,
}

/// `{"resource": ...}`: observe and operation results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceEnvelope {
    /// The resource.
    pub resource: Resource,
}

/// Answer of prepare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedReply {
    /// The document as it would be applied.
    pub resource: PreparedResource,
    /// What an apply of exactly this document presents.
    pub review: ReviewReply,
}

/// The echoed document of a prepare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PreparedResource {
    /// Group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Form as sent.
    pub form: Form,
    /// Name and space.
    pub metadata: ScopeMetadata,
    /// Desired state with defaults filled in.
    pub spec: Value,
}

/// Name and space, nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeMetadata {
    /// Name.
    pub name: String,
    /// Space.
    pub space: String,
}

/// `review` of a prepare answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReviewReply {
    /// Opaque; goes into the apply.
    pub prepare_digest: String,
    /// Canonical digest of the echoed spec.
    pub spec_digest: String,
}
