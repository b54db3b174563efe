//! What a provider may answer besides success.

use std::collections::BTreeMap;

/// Who holds an object against removal, as far as the provider knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy(pub Vec<String>);

/// A call that did not succeed. Messages carry no secret and no final full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// There is no such object.
    #[error("no such object")]
    NotFound,
    /// The name is taken by an object with these tags (empty when it has none).
    #[error("{name} exists already")]
    Exists {
        /// The name that is taken.
        name: String,
        /// The tags of whoever has it.
        tags: BTreeMap<String, String>,
    },
    /// Something still refers to the object.
    #[error("still in use{}", holders(.held_by))]
    InUse {
        /// Who, when the provider knows.
        held_by: HeldBy,
    },
    /// The remote says no; repeating does not help.
    #[error("refused: {message}")]
    Refused {
        /// Why.
        message: String,
    },
    /// Repeating may help.
    #[error("{message}")]
    Transient {
        /// Why.
        message: String,
        /// What the remote asks for, in milliseconds.
        after_ms: Option<u64>,
    },
    /// The call failed for good; nothing changed.
    #[error("{message}")]
    Failed {
        /// Why.
        message: String,
    },
    /// The provider's code panicked: whether anything changed is not known. The engine makes it of
    /// a panic; a provider never answers it.
    #[error("the provider broke: {message}")]
    Broke {
        /// What the panic said.
        message: String,
    },
}

fn holders(held_by: &HeldBy) -> String {
    if held_by.0.is_empty() {
        String::new()
    } else {
        format!(" by {}", held_by.0.join(", "))
    }
}
