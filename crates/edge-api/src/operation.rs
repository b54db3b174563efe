//! Long-running operations (host API §23).

use crate::{ErrorCode, Resource};
use serde::{Deserialize, Serialize};

/// `apiVersion` of Operation documents.
pub const OPERATIONS_API_VERSION: &str = "operations.takoform.com/v1alpha1";

/// Body of a 202.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationEnvelope {
    /// The accepted operation.
    pub operation: Operation,
}

/// One accepted mutation. Done documents have exactly one of `result` and `error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Operation {
    /// [`OPERATIONS_API_VERSION`].
    pub api_version: String,
    /// `Operation`.
    pub kind: String,
    /// `op_...`.
    pub id: String,
    /// Whether it has ended.
    pub done: bool,
    /// What it is about, when certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<OperationTarget>,
    /// Progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<OperationMetadata>,
    /// The good end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<OperationResult>,
    /// The bad end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
}

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationTarget {
    /// Incarnation that the commit will issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Manifest that the commit will hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_digest: Option<String>,
}

/// Progress of a pending operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationMetadata {
    /// A PascalCase word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
}

/// How an operation ended well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum OperationResult {
    /// Apply and import.
    Resource {
        /// The resource as it was committed.
        resource: Box<Resource>,
    },
    /// Delete.
    Deleted {
        /// Always true.
        deleted: bool,
    },
    /// Artifact commit.
    Manifest {
        /// Digest of the committed manifest.
        #[serde(rename = "manifestDigest")]
        manifest_digest: String,
    },
}

/// How an operation ended badly; has no request id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OperationError {
    /// The code.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// Whether repeating the request may help.
    pub retryable: bool,
    /// A word of the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_code: Option<String>,
}
