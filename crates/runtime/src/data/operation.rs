//! One operation on the wire between entry modules and host.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::{Request, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::body::{self, OutBody};

const DOCUMENT: HeaderName = HeaderName::from_static("x-edge-doc");
/// Longest document that is not accompanied by bytes: a hundred queue messages or SQL
/// statements of the longest kind, with room.
const MOST_DOCUMENT_BYTES: usize = 64 << 20;

/// An operation as it arrived. Its bytes, if any, have not been read.
pub(crate) struct Call {
    pub(crate) operation: String,
    document: Vec<u8>,
    /// Bytes the operation carries.
    pub(crate) bytes: Option<Incoming>,
}

/// What an operation gives.
pub(crate) enum Answer {
    /// A document.
    Document(Vec<u8>),
    /// Bytes with a document beside them.
    Bytes(Vec<u8>, OutBody),
}

/// Why an operation was not carried out: a code of its interface.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
        }
    }

    /// The host could not do its part. The reason is for the log, not for tenant code.
    pub(crate) fn unavailable(reason: impl std::fmt::Display) -> Refusal {
        tracing::warn!(%reason, "an operation of a binding failed");
        Refusal::new(
            "backend_unavailable",
            "the host could not carry out the operation",
        )
    }

    pub(crate) fn into_response(self) -> Response<OutBody> {
        let document = serde_json::json!({ "code": self.code, "message": self.message });
        respond(409, None, body::whole(document.to_string()))
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Refusal {
        Refusal::unavailable(error)
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        Refusal::unavailable(error)
    }
}

impl Call {
    pub(crate) async fn read(request: Request<Incoming>) -> Result<Call, Refusal> {
        let (parts, incoming) = request.into_parts();
        let operation = parts
            .uri
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        match parts.headers.get(DOCUMENT) {
            Some(document) => {
                let document = STANDARD
                    .decode(document.as_bytes())
                    .map_err(Refusal::unavailable)?;
                Ok(Call {
                    operation,
                    document,
                    bytes: Some(incoming),
                })
            }
            None => {
                let document = collect(incoming, MOST_DOCUMENT_BYTES).await?;
                let document =
                    document.ok_or_else(|| Refusal::unavailable("the document is too long"))?;
                Ok(Call {
                    operation,
                    document: document.to_vec(),
                    bytes: None,
                })
            }
        }
    }

    /// The document as the operation's input; one that is not is refused with `code`.
    pub(crate) fn input<T: DeserializeOwned>(&self, code: &'static str) -> Result<T, Refusal> {
        serde_json::from_slice(&self.document)
            .map_err(|error| Refusal::new(code, error.to_string()))
    }

    /// The operation's bytes whole; none when there are more than `limit`.
    ///
    /// Errors: the transfer broke off, so nothing may take effect.
    pub(crate) async fn whole(&mut self, limit: usize) -> Result<Option<Bytes>, Refusal> {
        match self.bytes.take() {
            Some(incoming) => collect(incoming, limit).await,
            None => Err(Refusal::unavailable("the operation carries no bytes")),
        }
    }

    /// The interface has no such operation.
    pub(crate) fn unknown(&self) -> Refusal {
        Refusal::unavailable(format!("there is no operation {}", self.operation))
    }
}

impl Answer {
    pub(crate) fn document(document: &impl Serialize) -> Answer {
        Answer::Document(serde_json::to_vec(document).expect("our documents are JSON"))
    }

    pub(crate) fn nothing() -> Answer {
        Answer::Document(b"{}".to_vec())
    }

    pub(crate) fn bytes(document: &impl Serialize, body: OutBody) -> Answer {
        Answer::Bytes(
            serde_json::to_vec(document).expect("our documents are JSON"),
            body,
        )
    }

    pub(crate) fn into_response(self) -> Response<OutBody> {
        match self {
            Answer::Document(document) => respond(200, None, body::whole(document)),
            Answer::Bytes(document, body) => respond(200, Some(document), body),
        }
    }
}

fn respond(status: u16, document: Option<Vec<u8>>, body: OutBody) -> Response<OutBody> {
    let response = Response::builder().status(status);
    let response = match document {
        Some(document) => response.header(DOCUMENT, STANDARD.encode(document)),
        None => response.header(CONTENT_TYPE, "application/json"),
    };
    response.body(body).expect("a status and a header of ASCII")
}

async fn collect(mut incoming: Incoming, limit: usize) -> Result<Option<Bytes>, Refusal> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame.map_err(Refusal::unavailable)?.into_data() {
            if bytes.len() + data.len() > limit {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Some(bytes.freeze()))
}

/// Bytes inside a document. Source: edge runtime contract, "Encoded bytes"; exactly two
/// members, canonical base64 only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncodedBytes {
    encoding: Encoding,
    data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Base64,
}

impl EncodedBytes {
    pub(crate) fn of(bytes: &[u8]) -> EncodedBytes {
        EncodedBytes {
            encoding: Encoding::Base64,
            data: STANDARD.encode(bytes),
        }
    }

    /// The bytes; none when `data` is not canonical base64.
    pub(crate) fn decode(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.data).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_base64_is_decoded() {
        let decode = |data: &str| {
            EncodedBytes {
                encoding: Encoding::Base64,
                data: data.into(),
            }
            .decode()
        };
        assert_eq!(decode("AAECg/8="), Some(vec![0, 1, 2, 131, 255]));
        for wrong in [
            "AAECg/8",
            "AAECg_8=",
            "AAEC g/8=",
            "AB==",
            "A",
            "AAECg/8=\n",
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        let extra = r#"{"encoding":"base64","data":"","more":1}"#;
        assert!(serde_json::from_str::<EncodedBytes>(extra).is_err());
    }
}
