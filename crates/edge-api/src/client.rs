//! A typed client of the host API.
//!
//! One method per route. It sends exactly what it is given and retries nothing by itself: the
//! caller knows its tokens and its patience. Every answer is decoded strictly; what does not
//! decode is [`ClientError::Protocol`], never a guess.

mod artifacts;
mod error;
mod resources;

pub use error::{ApiError, ClientError};
pub use resources::{Applied, Fence, FormQuery, Outcome, ReadResource};

use crate::{Discovery, JsonError};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Everything but the characters RFC 3986 leaves unreserved.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Largest answer that is read (host API §0.4).
const MAX_RESPONSE_BYTES: u64 = 8_388_608;

/// A connection to one host as one principal. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    origin: String,
    token: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("origin", &self.origin)
            .field("token", &"(secret)")
            .finish()
    }
}

impl Client {
    /// A client of the host at `endpoint`, e.g. `http://127.0.0.1:8080`, with one bearer token.
    ///
    /// Makes no request. Errors: `ClientError::Transport` when no HTTP stack can be set up.
    pub fn new(endpoint: &str, token: &str) -> Result<Client, ClientError> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(120))
            .build()
            .map_err(ClientError::Transport)?;
        Ok(Client {
            http,
            origin: endpoint.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
        })
    }

    /// The origin every request goes to, without a trailing slash.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What the host says it is.
    pub async fn discovery(&self) -> Result<Discovery, ClientError> {
        self.ask(Call::get(crate::DISCOVERY_PATH.to_owned()))
            .await?
            .document()
    }

    /// Sends one request and reads the whole answer. Non-2xx answers become `ClientError::Api`.
    async fn ask(&self, call: Call) -> Result<Answer, ClientError> {
        let mut request = self
            .http
            .request(call.method, format!("{}{}", self.origin, call.target))
            .bearer_auth(&self.token);
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        if let Some((media_type, body)) = call.body {
            request = request
                .header(reqwest::header::CONTENT_TYPE, media_type)
                .body(body);
        }
        let response = request.send().await.map_err(ClientError::Transport)?;
        let status = response.status();
        let headers = response.headers().clone();
        if response
            .content_length()
            .is_some_and(|length| length > MAX_RESPONSE_BYTES)
        {
            return Err(ClientError::Protocol(
                "the answer is larger than 8 MiB".to_owned(),
            ));
        }
        let body = response.bytes().await.map_err(ClientError::Transport)?;
        let answer = Answer {
            status,
            headers,
            body,
        };
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(answer.refusal())
        }
    }
}

/// One request, ready to be sent.
struct Call {
    method: Method,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Option<(&'static str, Bytes)>,
}

impl Call {
    fn new(method: Method, target: String) -> Call {
        Call {
            method,
            target,
            headers: Vec::new(),
            body: None,
        }
    }

    fn get(target: String) -> Call {
        Call::new(Method::GET, target)
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Call {
        self.headers.push((name, value.into()));
        self
    }

    fn json(mut self, document: &impl serde::Serialize) -> Call {
        let body = serde_json::to_vec(document).expect("wire documents serialise to JSON");
        self.body = Some(("application/json", body.into()));
        self
    }

    fn raw(mut self, body: Bytes) -> Call {
        self.body = Some(("application/octet-stream", body));
        self
    }
}

/// One answer, read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn document<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let value = crate::parse(&self.body)
            .map_err(|error: JsonError| ClientError::Protocol(format!("answer: {error}")))?;
        serde_json::from_value(value)
            .map_err(|error| ClientError::Protocol(format!("answer: {error}")))
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    fn refusal(&self) -> ClientError {
        match self.document::<crate::ErrorEnvelope>() {
            Ok(envelope) if envelope.error.code.status() == self.status.as_u16() => {
                ClientError::Api(ApiError {
                    code: envelope.error.code,
                    status: self.status.as_u16(),
                    message: envelope.error.message,
                    request_id: envelope.error.request_id,
                    retryable: envelope.error.retryable,
                    retry_after: self.retry_after(),
                })
            }
            Ok(envelope) => ClientError::Protocol(format!(
                "status {} with code {}",
                self.status, envelope.error.code
            )),
            Err(_) => {
                ClientError::Protocol(format!("status {} without an error envelope", self.status))
            }
        }
    }
}

fn component(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}
