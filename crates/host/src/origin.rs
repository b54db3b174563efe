//! Origins: what discovery builds endpoints from (host API §2).

use axum::http::uri::Authority;
use std::net::IpAddr;
use std::str::FromStr;

/// Scheme and authority of a URL, e.g. `https://edge.example:8443`; nothing else of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// Why a text is no origin that clients can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It is no scheme with an authority, or it is more than that.
    #[error("it must be an origin like https://edge.example, with nothing behind the port")]
    NoOrigin,
    /// Clients refuse plain HTTP outside loopback (host API §1.1).
    #[error("it must start with https://; clients use plain http:// on loopback only")]
    Plain,
}

impl Origin {
    /// The origin of a scheme with host and port as a caller wrote them; `None` when these are no
    /// host with or without a port.
    pub fn asked(scheme: &str, authority: &str) -> Option<Origin> {
        host_of(authority).map(|_| Origin(format!("{scheme}://{authority}")))
    }

    /// Its host, in lower case.
    pub fn host(&self) -> String {
        let authority = self.0.split_once("://").map_or("", |(_, rest)| rest);
        host_of(authority).unwrap_or_default().to_ascii_lowercase()
    }

    /// The origin as text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Origin, OriginError> {
        let (scheme, rest) = text.split_once("://").ok_or(OriginError::NoOrigin)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let host = host_of(authority).ok_or(OriginError::NoOrigin)?;
        match scheme {
            "https" => {}
            "http" if is_loopback(&host) => {}
            "http" => return Err(OriginError::Plain),
            _ => return Err(OriginError::NoOrigin),
        }
        Ok(Origin(format!("{scheme}://{authority}")))
    }
}

/// The host of an authority without userinfo and escapes, whose port, if any, is a number.
fn host_of(text: &str) -> Option<String> {
    if text.contains(['@', '%']) {
        return None;
    }
    let authority: Authority = text.parse().ok()?;
    let host = authority.host();
    let port = text.strip_prefix(host)?;
    let numbered =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let fits = port.is_empty() || port.strip_prefix(':').is_some_and(numbered);
    (fits && !host.is_empty()).then(|| host.to_owned())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_with_host_and_port() {
        for (text, kept) in [
            ("https://edge.example", "https://edge.example"),
            ("https://edge.example:8443/", "https://edge.example:8443"),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
            ("http://localhost:8700", "http://localhost:8700"),
            ("http://[::1]:8700", "http://[::1]:8700"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().as_str(), kept);
        }
        for text in [
            "",
            "edge.example",
            "https://",
            "https:///",
            "https://edge.example/api",
            "https://edge.example//",
            "https://edge.example?x",
            "https://me@edge.example",
            "https://edge%2eexample",
            "https://edge.example:",
            "https://edge.example:+1",
            "https://edge.example:65536",
            "https://:8443",
            "ftp://edge.example",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(OriginError::NoOrigin), "{text}");
        }
        assert_eq!(
            "http://edge.example".parse::<Origin>(),
            Err(OriginError::Plain)
        );
    }
}
