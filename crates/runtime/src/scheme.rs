//! What clients of the ingress speak.

/// Scheme of the URL that a client used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// The client speaks to the listener itself.
    #[default]
    Http,
    /// TLS ends at a proxy in front of the listener.
    Https,
}

impl Scheme {
    /// The scheme as it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}
