//! Names that are checked once, where they enter (RFC 0005).

use std::{fmt, str::FromStr, sync::Arc};

/// Why a text is not a name of the wanted kind. Source: `engine.md` §9, *Name-safe*.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("{what} is empty; it needs 1 to {max} of a-z, 0-9 and -")]
    Empty {
        /// What the text was to name, e.g. `stage`.
        what: &'static str,
        /// Longest allowed length, in characters.
        max: usize,
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

fn name_safe(what: &'static str, text: &str, max: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what, max });
    }
    if let Some(found) = text
        .chars()
        .find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-'))
    {
        let allowed = "a-z, 0-9 and -";
        return Err(NameError::Character {
            what,
            text: text.into(),
            found,
            allowed,
        });
    }
    if text.starts_with('-') {
        return Err(NameError::Edge {
            what,
            text: text.into(),
            place: "starts with a hyphen",
        });
    }
    if text.ends_with('-') {
        return Err(NameError::Edge {
            what,
            text: text.into(),
            place: "ends with a hyphen",
        });
    }
    let length = text.len();
    if length > max {
        return Err(NameError::TooLong {
            what,
            text: text.into(),
            length,
            max,
        });
    }
    Ok(())
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

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
    AppName, |text| name_safe("app", text, 63)
);
text_name!(
    /// Name of an entry: 1-63 of `[a-z0-9-]`, no hyphen at either end (RFC 0005).
    EntryName, |text| name_safe("entry", text, 63)
);
text_name!(
    /// Name of a stage: 1-32 of `[a-z0-9-]`, no hyphen at either end (RFC 0005).
    StageName, |text| name_safe("stage", text, 32)
);
text_name!(
    /// Id of a resource in its program: 1-128 of `[A-Za-z0-9._-]`, a letter or digit first.
    ResourceId, resource_id
);
text_name!(
    /// Name of a secret: 1-128 of `[A-Za-z0-9_]`, a letter or `_` first.
    SecretName, secret_name
);
text_name!(
    /// Name of a resource type, `<provider>/<Type>`, e.g. `edge/Worker`.
    TypeName, type_name
);

fn resource_id(text: &str) -> Result<(), NameError> {
    let what = "resource id";
    if text.is_empty() {
        return Err(NameError::Empty { what, max: 128 });
    }
    if let Some(found) = text
        .chars()
        .find(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-'))
    {
        return Err(NameError::Character {
            what,
            text: text.into(),
            found,
            allowed: "A-Z, a-z, 0-9, '.', '_' and '-'",
        });
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(NameError::Edge {
            what,
            text: text.into(),
            place: "does not start with a letter or digit",
        });
    }
    if text.len() > 128 {
        return Err(NameError::TooLong {
            what,
            text: text.into(),
            length: text.len(),
            max: 128,
        });
    }
    Ok(())
}

fn secret_name(text: &str) -> Result<(), NameError> {
    let what = "secret name";
    if text.is_empty() {
        return Err(NameError::Empty { what, max: 128 });
    }
    if let Some(found) = text
        .chars()
        .find(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_'))
    {
        return Err(NameError::Character {
            what,
            text: text.into(),
            found,
            allowed: "A-Z, a-z, 0-9 and '_'",
        });
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(NameError::Edge {
            what,
            text: text.into(),
            place: "starts with a digit",
        });
    }
    if text.len() > 128 {
        return Err(NameError::TooLong {
            what,
            text: text.into(),
            length: text.len(),
            max: 128,
        });
    }
    Ok(())
}

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
}
