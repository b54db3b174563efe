//! Forms: their exact identity, availability, definition view and validation (host API §9).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The exact four-member identity of a Form Definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FormRef {
    /// Group, e.g. `edge.forms.takoform.com/v1beta1`.
    pub api_version: String,
    /// Kind, e.g. `ModuleWorker`.
    pub kind: String,
    /// SemVer of the definition.
    pub definition_version: String,
    /// Canonical digest of the whole definition document.
    pub schema_digest: String,
}

/// The `form` member of resource documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Form {
    /// Exact identity.
    pub form_ref: FormRef,
    /// Audit evidence only; never identity, query or fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_digest: Option<String>,
}

/// The `identity` member of form answers; same shape as [`Form`].
pub type FormIdentity = Form;

/// Answer of `GET /forms`: exactly one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormsReply {
    /// The one Form that was asked for.
    pub forms: Vec<FormAvailability>,
}

/// Whether and how a Form can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FormAvailability {
    /// Exact identity and installed package.
    pub identity: FormIdentity,
    /// Always true.
    pub definition_known: bool,
    /// Always true.
    pub installed: bool,
    /// Always true.
    pub executable: bool,
    /// Always true.
    pub activated: bool,
    /// Always true.
    pub available_to_principal: bool,
    /// Capabilities in the order of the definition.
    pub operations: Vec<String>,
    /// Set on Forms that should not be used any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
}

/// Answer of `GET /form-definitions/...`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FormDefinition {
    /// Exact identity and installed package.
    pub identity: FormIdentity,
    /// The definition's title.
    pub display_name: String,
    /// The definition's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The definition's desired schema, unchanged.
    pub desired_schema: Value,
}

/// Answer of `POST /resources/validate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateReply {
    /// True exactly when no diagnostic is an error.
    pub valid: bool,
    /// Empty when valid.
    pub diagnostics: Vec<Diagnostic>,
}

/// One remark about a spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// JSON Pointer into the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// A sentence for people.
    pub message: String,
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The spec cannot be applied.
    Error,
    /// The spec can be applied.
    Warning,
}
