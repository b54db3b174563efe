//! The closed error taxonomy and its envelope (host API §5).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $retryable:literal;)*) => {
        /// One of the 26 error codes; each fixes its HTTP status and whether repeating may help.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ErrorCode { $($(#[$doc])* #[serde(rename = $text)] $name,)* }

        impl ErrorCode {
            /// Every code, in the order of the taxonomy.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];
            /// The code as written on the wire.
            pub fn as_str(self) -> &'static str { match self { $(ErrorCode::$name => $text,)* } }
            /// The one HTTP status of the code.
            pub fn status(self) -> u16 { match self { $(ErrorCode::$name => $status,)* } }
            /// Whether the identical request may be repeated.
            pub fn retryable(self) -> bool { match self { $(ErrorCode::$name => $retryable,)* } }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownCode;
            fn from_str(text: &str) -> Result<Self, UnknownCode> {
                match text { $($text => Ok(ErrorCode::$name),)* _ => Err(UnknownCode(text.to_owned())) }
            }
        }
    };
}

codes! {
    /// Malformed requests, schema violations, most rule violations, key reuse.
    InvalidArgument = "invalid_argument", 400, false;
    /// A manifest or blob violates a rule, or a manifest of the wrong kind.
    ArtifactInvalid = "artifact_invalid", 400, false;
    /// No credential, or one that names nobody.
    Unauthenticated = "unauthenticated", 401, false;
    /// Authenticated but not allowed; never for "not yours".
    PermissionDenied = "permission_denied", 403, false;
    /// Refused by host policy.
    PolicyDenied = "policy_denied", 403, false;
    /// The exact FormRef is not installed.
    FormUnknown = "form_unknown", 404, false;
    /// Absent resource, relation target, route, interface or binding profile.
    ResourceNotFound = "resource_not_found", 404, false;
    /// Unknown, expired or foreign operation.
    OperationNotFound = "operation_not_found", 404, false;
    /// Unknown or foreign upload or manifest, or a blob that was not uploaded.
    ArtifactMissing = "artifact_missing", 404, false;
    /// Reserved for hosts that know a Form but did not install it.
    FormNotInstalled = "form_not_installed", 409, false;
    /// Reserved.
    FormUnavailable = "form_unavailable", 409, false;
    /// Reserved.
    FormIdentityConflict = "form_identity_conflict", 409, false;
    /// A conflicting mutation is in flight.
    ResourceBusy = "resource_busy", 409, true;
    /// A native identity is claimed elsewhere.
    ImportConflict = "import_conflict", 409, false;
    /// Others rely on what should be deleted.
    DependencyInUse = "dependency_in_use", 409, false;
    /// Delete refused by policy.
    DeletionProtected = "deletion_protected", 409, false;
    /// Terminal error of a cancelled operation.
    OperationCancelled = "operation_cancelled", 409, false;
    /// Applied migration history would be changed.
    MigrationRequired = "migration_required", 409, false;
    /// The named incarnation is not the current one.
    UidMismatch = "uid_mismatch", 409, false;
    /// Stale generation fence, or create over an existing name.
    GenerationConflict = "generation_conflict", 412, false;
    /// Stale `If-Match`.
    RevisionConflict = "revision_conflict", 412, false;
    /// Well formed, but the needed capability is not there now.
    UnsupportedCapability = "unsupported_capability", 422, false;
    /// Too many requests.
    RateLimited = "rate_limited", 429, true;
    /// The host's own fault.
    InternalError = "internal_error", 500, false;
    /// Something behind the host does not answer.
    BackendUnavailable = "backend_unavailable", 503, true;
    /// The host ran out of time.
    DeadlineExceeded = "deadline_exceeded", 504, true;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no error code.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no error code of the host API")]
pub struct UnknownCode(String);

/// Every answer outside 2xx.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEnvelope {
    /// The one member.
    pub error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ErrorBody {
    /// The code.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// Names the request in the host's log.
    pub request_id: String,
    /// Equal to [`ErrorCode::retryable`].
    pub retryable: bool,
    /// A word of the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_code: Option<String>,
    /// Free detail; this host never sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_26_codes_and_four_of_them_are_worth_repeating() {
        assert_eq!(ErrorCode::ALL.len(), 26);
        let retryable: Vec<_> = ErrorCode::ALL
            .iter()
            .filter(|code| code.retryable())
            .map(|code| code.as_str())
            .collect();
        assert_eq!(
            retryable,
            [
                "resource_busy",
                "rate_limited",
                "backend_unavailable",
                "deadline_exceeded"
            ]
        );
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse::<ErrorCode>().expect("known"), *code);
        }
    }
}
