//! Exact identities of definitions: of Forms, of Interfaces, of Bindings.

use serde_json::Value;
use std::sync::Arc;

/// The exact four-member identity of a Form Definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FormRef {
    /// Group.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// SemVer of the definition.
    pub definition_version: Arc<str>,
    /// Canonical digest of the whole definition.
    pub schema_digest: Arc<str>,
}

macro_rules! contract_ref {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name {
            /// Group of the contract family.
            pub api_version: Arc<str>,
            /// Name.
            pub name: Arc<str>,
            /// SemVer.
            pub version: Arc<str>,
            /// Canonical digest of the whole definition.
            pub schema_digest: Arc<str>,
        }

        impl $name {
            /// Reads the four members; `None` when one is missing or no string.
            pub fn read(value: &Value) -> Option<$name> {
                Some($name {
                    api_version: text(value, "apiVersion")?,
                    name: text(value, "name")?,
                    version: text(value, "version")?,
                    schema_digest: text(value, "schemaDigest")?,
                })
            }
        }
    };
}

contract_ref!(
    /// Exact identity of an Interface Definition.
    InterfaceRef
);
contract_ref!(
    /// Exact identity of a Binding Definition.
    BindingRef
);

impl FormRef {
    /// Reads the four members; `None` when one is missing or no string.
    pub fn read(value: &Value) -> Option<FormRef> {
        Some(FormRef {
            api_version: text(value, "apiVersion")?,
            kind: text(value, "kind")?,
            definition_version: text(value, "definitionVersion")?,
            schema_digest: text(value, "schemaDigest")?,
        })
    }
}

/// A member that is a string.
pub(crate) fn text(value: &Value, member: &str) -> Option<Arc<str>> {
    value.get(member)?.as_str().map(Arc::from)
}
