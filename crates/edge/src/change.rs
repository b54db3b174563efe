//! What a request wants to change, already decoded and materialised.

use crate::{FormRef, Generation, Key, Uid};
use serde_json::Value;
use std::sync::Arc;

/// One wanted change of a tenant's world.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Create or update, by apply or import.
    Put(Put),
    /// Delete.
    Delete(Delete),
    /// Look at a resource, possibly with a host-side status change.
    Observe(Observe),
    /// Set or remove a sealed value.
    Seal(Seal),
}

/// Create or update.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// Address.
    pub key: Key,
    /// Requested Form.
    pub form_ref: FormRef,
    /// Desired spec with defaults and canonical spellings.
    pub spec: Arc<Value>,
    /// Canonical digest of `spec`.
    pub spec_digest: Arc<str>,
    /// What must be true of the name.
    pub fence: Fence,
    /// Apply or import.
    pub origin: Origin,
    /// Incarnation that an accepted operation is bound to.
    pub accepted: Option<Uid>,
    /// Uid to issue if this creates.
    pub fresh: Uid,
    /// Place in the order of makings to issue if this creates.
    pub made: u64,
}

/// What must be true of the name (host API §11.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fence {
    /// Nothing holds it.
    Free,
    /// A resource of the requested Form holds it.
    Current {
        /// At this generation.
        generation: Generation,
        /// As this incarnation.
        uid: Option<String>,
    },
}

/// Where a put comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Apply, with the review it spends.
    Apply(Review),
    /// Import of an object that exists already.
    Import {
        /// Its identifier, trimmed.
        native_id: Arc<str>,
    },
}

/// Whether a presented review binds exactly this document, address and incarnation. Whoever can
/// verify reviews answers for the incarnation that holds the name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// It does.
    Fits,
    /// It does not.
    Stale,
}

/// Delete.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// Address.
    pub key: Key,
    /// Requested Form.
    pub form_ref: FormRef,
    /// Generation fence as written; compared as text.
    pub generation: String,
    /// `If-Match` as written.
    pub if_match: Option<String>,
    /// Incarnation that an accepted operation is bound to.
    pub accepted: Option<Uid>,
    /// Asked for or observed.
    pub removal: Removal,
}

/// Why a resource goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Somebody asked; dependents refuse.
    Asked,
    /// The object behind it vanished; nobody can refuse.
    Vanished,
}

/// A look at a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Observe {
    /// Address.
    pub key: Key,
    /// Requested Form.
    pub form_ref: FormRef,
    /// Generation fence as written; compared as text.
    pub generation: String,
    /// Whether the host changed its status meanwhile.
    pub touch: Touch,
}

/// Host-side status change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// None.
    Leave,
    /// One.
    Count,
}

/// Set or remove a sealed value of a ModuleWorker.
#[derive(Debug, Clone, PartialEq)]
pub struct Seal {
    /// The worker.
    pub worker: Uid,
    /// Name of the value.
    pub name: Arc<str>,
    /// Whether it is set afterwards.
    pub present: bool,
}
