//! Names that are checked once, where they enter (RFC 0005).

use std::{fmt, str::FromStr};

use crate::Text;

/// Why a text is not a name of the wanted kind. Source: `engine.md` §9, *Name-safe*.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("{what} is empty; it needs 1 to {max} of {allowed}")]
    Empty {
        /// What the text was to name, e.g. `stage`.
        what: &'static str,
        /// Longest allowed length, in characters.
        max: usize,
        /// The allowed characters, for people.
        allowed: &'static str,
    },
    /// More characters than the kind of name allows.
    #[error("{what} {text:?} has {length} characters; at most {max} are allowed")]
    TooLong {
        /// What the text was to name.
        what: &'static str,
        /// The text as given.
        text: String,
        /// Its length, in characters.
        length: usize,
        /// Longest allowed length, in characters.
        max: usize,
    },
    /// A character outside the grammar.
    #[error("{what} {text:?} contains {found:?}; only {allowed} are allowed")]
    Character {
        /// What the text was to name.
        what: &'static str,
        /// The text as given.
        text: String,
        /// First character outside the grammar.
        found: char,
        /// The grammar, for people.
        allowed: &'static str,
    },
    /// A hyphen (or, for resource ids, a mark) where only a letter or digit may stand.
    #[error("{what} {text:?} {place}")]
    Edge {
        /// What the text was to name.
        what: &'static str,
        /// The text as given.
        text: String,
        /// Which end is wrong.
        place: &'static str,
    },
}

/// What a kind of name may be.
struct Rule {
    /// What it names, e.g. `stage`.
    what: &'static str,
    /// Most characters; each is one byte.
    max: usize,
    allows: fn(char) -> bool,
    /// The same, for people.
    allowed: &'static str,
    /// What must not be at an end of it.
    edges: &'static [Edge],
}

/// Something that must not be, with the words for it.
type Edge = (fn(&str) -> bool, &'static str);

impl Rule {
    /// Name of an app, an entry or a stage.
    const fn name_safe(what: &'static str, max: usize) -> Rule {
        Rule {
            what,
            max,
            allows: |c| matches!(c, 'a'..='z' | '0'..='9' | '-'),
            allowed: "a-z, 0-9 and -",
            edges: &[
                (|text| text.starts_with('-'), "starts with a hyphen"),
                (|text| text.ends_with('-'), "ends with a hyphen"),
            ],
        }
    }

    const RESOURCE_ID: Rule = Rule {
        what: "resource id",
        max: 128,
        allows: |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'),
        allowed: "A-Z, a-z, 0-9, '.', '_' and '-'",
        edges: &[(
            |text| !text.starts_with(|c: char| c.is_ascii_alphanumeric()),
            "does not start with a letter or digit",
        )],
    };

    const SECRET_NAME: Rule = Rule {
        what: "secret name",
        max: 128,
        allows: |c| c.is_ascii_alphanumeric() || c == '_',
        allowed: "A-Z, a-z, 0-9 and '_'",
        edges: &[(
            |text| text.starts_with(|c: char| c.is_ascii_digit()),
            "starts with a digit",
        )],
    };

    fn judge(&self, text: &str) -> Result<(), NameError> {
        let Rule {
            what, max, allowed, ..
        } = *self;
        if text.is_empty() {
            return Err(NameError::Empty { what, max, allowed });
        }
        if let Some(found) = text.chars().find(|c| !(self.allows)(*c)) {
            return Err(NameError::Character {
                what,
                text: text.into(),
                found,
                allowed,
            });
        }
        if let Some((_, place)) = self.edges.iter().find(|(is_wrong, _)| is_wrong(text)) {
            return Err(NameError::Edge {
                what,
                text: text.into(),
                place,
            });
        }
        if text.len() > max {
            return Err(NameError::TooLong {
                what,
                text: text.into(),
                length: text.len(),
                max,
            });
        }
        Ok(())
    }
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> Result<(), NameError> = $check;
                check(text)?;
                Ok($name(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(&self.0) }
        }
    };
}

text_name!(
    /// Name of an app: 1-63 of `[a-z0-9-]`, no hyphen at either end (RFC 0005).
    AppName, |text| Rule::name_safe("app", 63).judge(text)
);
text_name!(
    /// Name of an entry: 1-63 of `[a-z0-9-]`, no hyphen at either end (RFC 0005).
    EntryName, |text| Rule::name_safe("entry", 63).judge(text)
);
text_name!(
    /// Name of a stage: 1-32 of `[a-z0-9-]`, no hyphen at either end (RFC 0005).
    StageName, |text| Rule::name_safe("stage", 32).judge(text)
);
text_name!(
    /// Id of a resource in its program: 1-128 of `[A-Za-z0-9._-]`, a letter or digit first.
    ResourceId, |text| Rule::RESOURCE_ID.judge(text)
);
text_name!(
    /// Name of a secret: 1-128 of `[A-Za-z0-9_]`, a letter or `_` first.
    SecretName, |text| Rule::SECRET_NAME.judge(text)
);
text_name!(
    /// Name of a resource type, `<provider>/<Type>`, e.g. `edge/Worker`.
    TypeName, type_name
);

fn type_name(text: &str) -> Result<(), NameError> {
    let what = "type name";
    match text.split_once('/') {
        Some((provider, kind)) if !provider.is_empty() && !kind.is_empty() => Ok(()),
        _ => Err(NameError::Edge {
            what,
            text: text.into(),
            place: "is not of the form provider/Type",
        }),
    }
}

impl TypeName {
    /// The provider's part, before the slash.
    pub fn provider(&self) -> &str {
        self.0.split_once('/').map_or("", |(provider, _)| provider)
    }
}

/// `app:stage:entry`. Keys state, journal and hold (RFC 0005).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeploymentId {
    /// The app.
    pub app: AppName,
    /// The stage.
    pub stage: StageName,
    /// The entry.
    pub entry: EntryName,
}

impl fmt::Display for DeploymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.app, self.stage, self.entry)
    }
}

impl FromStr for DeploymentId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().unwrap_or("");
        Ok(DeploymentId {
            app: part().parse()?,
            stage: part().parse()?,
            entry: part().parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_name_safe_and_at_most_32_long() {
        for good in ["a", "prod", "a-b", "0", &"a".repeat(32)] {
            assert!(good.parse::<StageName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "Prod",
            "-a",
            "a-",
            "a_b",
            "--help",
            "ä",
            &"a".repeat(33),
        ] {
            assert!(bad.parse::<StageName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_deployment_id_reads_back() {
        let id: DeploymentId = "orders-app:prod:orders".parse().unwrap();
        assert_eq!(id.to_string(), "orders-app:prod:orders");
    }

    #[test]
    fn an_empty_name_is_told_what_its_own_kind_may_have() {
        let said = |error: NameError| error.to_string();
        assert_eq!(
            said("".parse::<ResourceId>().unwrap_err()),
            "resource id is empty; it needs 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-'"
        );
        assert_eq!(
            said("".parse::<StageName>().unwrap_err()),
            "stage is empty; it needs 1 to 32 of a-z, 0-9 and -"
        );
    }
}
