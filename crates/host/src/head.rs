//! Method, target and headers of a request as the rest of the host reads them.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

/// Everything of a request but its body.
#[derive(Debug, Clone)]
pub struct Head {
    /// Method, upper case.
    pub method: String,
    /// Path and query exactly as received.
    pub target: String,
    /// Escaped path.
    pub path: String,
    /// Escaped query without the question mark; empty when there is none.
    pub query: String,
    authority: Option<String>,
    headers: HeaderMap,
}

impl Head {
    /// The head of a request.
    pub fn of(parts: &Parts) -> Head {
        Head {
            method: parts.method.as_str().to_owned(),
            target: parts.uri.path_and_query().map_or_else(
                || parts.uri.path().to_owned(),
                |target| target.as_str().to_owned(),
            ),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            authority: parts
                .uri
                .authority()
                .map(|authority| authority.as_str().to_owned()),
            headers: parts.headers.clone(),
        }
    }

    /// Bytes of the target with all names and values of headers.
    pub fn size_bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
        self.target.len() + headers.sum::<usize>()
    }

    /// A header's value. An empty one counts as absent (host API §1.3).
    pub fn header(&self, name: &str) -> Option<String> {
        let value = String::from_utf8_lossy(self.headers.get(name)?.as_bytes()).into_owned();
        (!value.is_empty()).then_some(value)
    }

    /// Host and port the caller used, as it wrote them.
    pub fn authority(&self) -> Option<String> {
        self.authority.clone().or_else(|| self.header("host"))
    }

    /// The bearer token.
    pub fn bearer(&self) -> Option<&str> {
        let value = self.headers.get("authorization")?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }
}

/// Percent-decodes; `None` for a broken escape or bytes that are no UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let digits = rest.get(at + 1..at + 3)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        rest = &rest[at + 3..];
    }
    percent_decode_str(text)
        .decode_utf8()
        .ok()
        .map(std::borrow::Cow::into_owned)
}
