//! The one place where refusals become wire errors.

use crate::store::StoreError;
use notation_edge::{Refusal, Why};
use notation_edge_api::{ErrorBody, ErrorCode, ErrorEnvelope};

/// An answer outside 2xx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The code; it fixes the status.
    pub code: ErrorCode,
    /// A sentence for people; never depends on what belongs to somebody else.
    pub message: String,
}

impl ApiError {
    /// An error with a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            message: message.into(),
        }
    }

    /// `invalid_argument`.
    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(ErrorCode::InvalidArgument, message)
    }

    /// `resource_not_found` for routes; the same for every route that does not exist.
    pub fn no_route() -> ApiError {
        ApiError::new(ErrorCode::ResourceNotFound, "no such route")
    }

    /// `resource_not_found`.
    pub fn no_resource() -> ApiError {
        ApiError::new(ErrorCode::ResourceNotFound, "resource does not exist")
    }

    /// `artifact_missing`, the same for what never was and for what belongs to somebody else.
    pub fn no_artifact() -> ApiError {
        ApiError::new(ErrorCode::ArtifactMissing, "no such artifact or upload")
    }

    /// The envelope on the wire.
    pub fn envelope(&self, request_id: &str) -> ErrorEnvelope {
        ErrorEnvelope {
            error: ErrorBody {
                code: self.code,
                message: self.message.clone(),
                request_id: request_id.to_owned(),
                retryable: self.code.retryable(),
                host_code: None,
                details: None,
            },
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let code = match refusal.why {
            Why::InvalidArgument => ErrorCode::InvalidArgument,
            Why::FormUnknown => ErrorCode::FormUnknown,
            Why::NotFound => ErrorCode::ResourceNotFound,
            Why::ArtifactMissing => ErrorCode::ArtifactMissing,
            Why::ArtifactInvalid => ErrorCode::ArtifactInvalid,
            Why::ImportConflict => ErrorCode::ImportConflict,
            Why::DependencyInUse => ErrorCode::DependencyInUse,
            Why::MigrationRequired => ErrorCode::MigrationRequired,
            Why::UidMismatch => ErrorCode::UidMismatch,
            Why::GenerationConflict => ErrorCode::GenerationConflict,
            Why::RevisionConflict => ErrorCode::RevisionConflict,
            Why::UnsupportedCapability => ErrorCode::UnsupportedCapability,
        };
        ApiError::new(code, refusal.message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        tracing::error!(%error, "the store failed");
        ApiError::new(
            ErrorCode::BackendUnavailable,
            "the host's store is not available",
        )
    }
}
