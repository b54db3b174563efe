//! What can go wrong between the client and a host.

use crate::ErrorCode;
use std::time::Duration;

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The host answered with an error envelope.
    #[error(transparent)]
    Api(ApiError),
    /// No complete answer arrived; whether the request was carried out is unknown.
    #[error("the host cannot be reached")]
    Transport(#[source] reqwest::Error),
    /// The answer breaks the wire contract.
    #[error("the host's answer is not understood: {0}")]
    Protocol(String),
}

impl ClientError {
    /// The error code, when the host gave one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Api(error) => Some(error.code),
            ClientError::Transport(_) | ClientError::Protocol(_) => None,
        }
    }

    /// True when the connection could not even be made, so that nothing was carried out.
    pub fn is_connect(&self) -> bool {
        match self {
            ClientError::Transport(error) => error.is_connect(),
            ClientError::Api(_) | ClientError::Protocol(_) => false,
        }
    }
}

/// One error envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ApiError {
    /// The code.
    pub code: ErrorCode,
    /// The HTTP status, always the code's own.
    pub status: u16,
    /// The host's sentence.
    pub message: String,
    /// Names the request in the host's log.
    pub request_id: String,
    /// Whether the identical request may be repeated.
    pub retryable: bool,
    /// How long to wait before that, when the host says so.
    pub retry_after: Option<Duration>,
}
