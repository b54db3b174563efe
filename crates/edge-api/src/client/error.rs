//! What can go wrong between the client and a host.

use crate::ErrorCode;
use std::error::Error;
use std::io;
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

    /// True when somebody answers there who speaks no TLS or has no certificate that is trusted:
    /// asking again changes nothing.
    pub fn is_untrusted(&self) -> bool {
        let ClientError::Transport(error) = self else {
            return false;
        };
        let first: &(dyn Error + 'static) = error;
        let mut causes = std::iter::successors(Some(first), |&error| error.source());
        let handshake = |cause: &(dyn Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(is_invalid)
        };
        error.is_connect() && causes.any(handshake)
    }

    /// True when the connection could not even be made, so that nothing was carried out.
    pub fn is_connect(&self) -> bool {
        match self {
            ClientError::Transport(error) => error.is_connect(),
            ClientError::Api(_) | ClientError::Protocol(_) => false,
        }
    }
}

/// What a handshake finds wrong comes as invalid data, perhaps in another error; failures to reach
/// anybody do not. An error of the system's kind hides what it wraps from the chain of causes.
fn is_invalid(error: &io::Error) -> bool {
    let wrapped = || error.get_ref()?.downcast_ref::<io::Error>();
    error.kind() == io::ErrorKind::InvalidData || wrapped().is_some_and(is_invalid)
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
