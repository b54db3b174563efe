//! Answers and how they look on the wire. A reply owns status, `ETag` and body.

use crate::error::ApiError;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

/// A 2xx answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// The quoted revision.
    pub etag: Option<String>,
    /// Seconds until asking again makes sense.
    pub retry_after: Option<u32>,
    /// JSON; `None` for no bytes at all.
    pub body: Option<Vec<u8>>,
}

impl Reply {
    /// A document.
    pub fn json(status: u16, body: Vec<u8>) -> Reply {
        Reply {
            status,
            etag: None,
            retry_after: None,
            body: Some(body),
        }
    }

    /// No body.
    pub fn empty(status: u16) -> Reply {
        Reply {
            status,
            etag: None,
            retry_after: None,
            body: None,
        }
    }

    /// The response.
    pub fn into_response(self) -> Response {
        let has_body = self.body.is_some();
        let mut response = Response::new(self.body.map_or_else(Body::empty, Body::from));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(etag) = self.etag.and_then(|etag| HeaderValue::from_str(&etag).ok()) {
            headers.insert(ETAG, etag);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The response of an error.
pub fn refusal(error: &ApiError, request_id: &str) -> Response {
    let body = crate::document::bytes(&error.envelope(request_id));
    let mut reply = Reply::json(error.code.status(), body);
    // Without it a client repeats at once, and again (host API §5.3).
    if error.code.retryable() {
        reply.retry_after = Some(1);
    }
    reply.into_response()
}
