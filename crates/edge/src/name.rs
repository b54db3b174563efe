//! Identities, counters and their grammars (host API §3.3-§3.5).

use std::fmt;
use std::sync::Arc;

/// Identity of one incarnation: issued by the host, never used twice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

impl Uid {
    /// A uid the host minted or stored.
    pub fn new(text: impl Into<Arc<str>>) -> Uid {
        Uid(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({})", self.0)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// Where every incarnation starts.
            pub const FIRST: $name = $name(1);

            /// The next value.
            pub fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// The number.
            pub fn get(self) -> u64 {
                self.0
            }

            /// A canonical decimal: no sign, no leading zero, 1 to 2^63-1.
            pub fn parse(text: &str) -> Option<$name> {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                if !digits || text.starts_with('0') {
                    return None;
                }
                let number = text.parse::<i64>().ok()?;
                u64::try_from(number).ok().map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

counter!(
    /// Moves by one when the desired spec changes.
    Generation
);
counter!(
    /// Moves by one when the representation changes.
    Revision
);

/// Address of a resource inside one tenant. The definition version is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Space.
    pub space: Arc<str>,
    /// Group.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// An address from its parts.
    pub fn new(space: &str, api_version: &str, kind: &str, name: &str) -> Key {
        Key {
            space: space.into(),
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// `^[a-z][a-z0-9-]{0,62}$`.
pub fn is_resource_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && text.len() <= 63
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// `^[A-Za-z_$][A-Za-z0-9_$]*$`, at most 64.
pub fn is_env_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    text.len() <= 64
        && text.bytes().all(word)
        && text
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}

/// `^sha256:[0-9a-f]{64}$`.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// SpaceID: 1 to 255 code points, no boundary white space, no `/`, no control (host API §3.4).
pub fn is_space(text: &str) -> bool {
    let boundary = |c: char| {
        matches!(c, '\u{9}'..='\u{d}' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}'
            | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}'
            | '\u{3000}' | '\u{feff}')
    };
    let forbidden = |c: char| matches!(c, '/' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    let count = text.chars().take(256).count();
    (1..=255).contains(&count)
        && !text.chars().any(forbidden)
        && !text.chars().next().is_some_and(boundary)
        && !text.chars().next_back().is_some_and(boundary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_opaque_but_bounded() {
        let long = "x".repeat(256);
        for bad in [
            "",
            " a",
            "a ",
            "\u{feff}a",
            "a\u{feff}",
            "\u{a0}a",
            "a/b",
            "a\u{1}b",
            "a\u{7f}b",
            &long,
        ] {
            assert!(!is_space(bad), "{bad:?}");
        }
        let most = "é".repeat(255);
        for good in ["prod", "a b", "Ünïcode", &most, "x"] {
            assert!(is_space(good), "{good:?}");
        }
    }

    #[test]
    fn counters_are_canonical() {
        assert_eq!(Generation::parse("12").map(Generation::get), Some(12));
        for bad in ["", "0", "01", "+1", "-1", "1.0", "9223372036854775808", "x"] {
            assert_eq!(Generation::parse(bad), None, "{bad}");
        }
        assert!(Generation::parse("9223372036854775807").is_some());
    }

    #[test]
    fn names_follow_their_grammars() {
        assert!(is_resource_name("a") && is_resource_name("a-1-") && !is_resource_name("-a"));
        assert!(
            !is_resource_name("A") && !is_resource_name("1a") && !is_resource_name(&"a".repeat(64))
        );
        assert!(
            is_env_name("$x_1") && !is_env_name("1x") && !is_env_name("") && !is_env_name("a-b")
        );
    }
}
