//! What of a resource can be referred to: every field of its type, and parts of those that have
//! parts.

use std::fmt;

use crate::{Field, FieldKind, ResourceType, Segment, Text};

/// Why a path leads to no output of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoOutput {
    /// The path is empty.
    Empty,
    /// The type has no such field.
    Unknown {
        /// The first step of the path.
        name: Text,
    },
    /// The field is one value without parts.
    NoParts {
        /// The field.
        name: Text,
        /// What it is.
        kind: FieldKind,
        /// The part that the path asks for.
        part: Text,
    },
}

impl fmt::Display for NoOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoOutput::Empty => f.write_str("no output is named"),
            NoOutput::Unknown { name } => write!(f, "there is no output `{name}`"),
            NoOutput::NoParts { name, kind, part } => {
                let kind = format!("{kind:?}").to_lowercase();
                write!(f, "`{name}` is a {kind} and has no `{part}`")
            }
        }
    }
}

impl ResourceType {
    /// The field that a path into the outputs reads, with its name.
    ///
    /// Errors: the path is empty, leads to no field, or into one that has no parts.
    pub fn reads(&self, path: &[Segment]) -> Result<(Text, &Field), NoOutput> {
        let spoken = |segment: &Segment| match segment {
            Segment::Key(key) => key.clone(),
            Segment::Index(index) => index.to_string().into(),
        };
        let name = spoken(path.first().ok_or(NoOutput::Empty)?);
        let Some(field) = self.fields.get(name.as_str()) else {
            return Err(NoOutput::Unknown { name });
        };
        let whole = match field.kind {
            FieldKind::Text | FieldKind::Number | FieldKind::Bool => true,
            FieldKind::List | FieldKind::Map | FieldKind::Json | FieldKind::Module => false,
        };
        match path.get(1) {
            Some(part) if whole => Err(NoOutput::NoParts {
                name,
                kind: field.kind.clone(),
                part: spoken(part),
            }),
            Some(_) | None => Ok((name, field)),
        }
    }
}
