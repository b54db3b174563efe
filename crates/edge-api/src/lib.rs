//! The wire of the host API: documents, paths, headers, error codes and canonical JSON.
//!
//! Nothing here decides anything. Documents are closed in both directions: an unknown member is
//! an error when reading and never written. Domain types live in `notation-edge`; the host
//! converts explicitly, so a refactor cannot change the wire by accident.

mod artifact;
mod canonical;
mod code;
mod discovery;
mod form;
mod header;
mod json;
mod operation;
mod path;
mod resource;
mod sealed;
mod support;

#[cfg(feature = "client")]
pub mod client;

pub use artifact::{
    ARTIFACTS_API_VERSION, CommittedManifest, Manifest, ManifestFile, ManifestKind, ManifestModule,
    StartUpload, StartedUpload,
};
pub use canonical::{blob_digest, canonical_bytes, digest};
pub use code::{ErrorBody, ErrorCode, ErrorEnvelope};
pub use discovery::{Discovery, Endpoints, Features};
pub use form::{
    Diagnostic, Form, FormAvailability, FormDefinition, FormIdentity, FormRef, FormsReply,
    Severity, ValidateReply,
};
pub use header::{EXPECTED_GENERATION, IDEMPOTENCY_KEY, PROBE};
pub use json::{JsonError, MAX_DEPTH, parse};
pub use operation::{
    OPERATIONS_API_VERSION, Operation, OperationEnvelope, OperationError, OperationMetadata,
    OperationResult, OperationTarget,
};
pub use path::{API_ROOT, DISCOVERY_PATH, FAMILY, LANE, ResourcePath, SEALED_ROOT};
pub use resource::{
    Condition, Metadata, PreparedReply, PreparedResource, RequestMetadata, Resource, ResourceBody,
    ResourceEnvelope, Review, ReviewReply, ScopeMetadata, Status,
};
pub use sealed::{MAX_SEALED_BYTES, SealedNames};
pub use support::{
    BindingRef, BindingSupport, FormSupport, FormSupportList, InterfaceRef, InterfaceSupport,
    SUPPORT_API_VERSION,
};
