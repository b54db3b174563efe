//! One stored resource.

use crate::{EdgeKind, FormRef, Generation, Key, Pin, Revision, Uid};
use serde_json::Value;
use std::sync::Arc;

/// One incarnation as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Identity.
    pub uid: Uid,
    /// Address.
    pub key: Key,
    /// Form it was created under; never changes.
    pub form_ref: FormRef,
    /// Counts desired specs.
    pub generation: Generation,
    /// Counts representations.
    pub revision: Revision,
    /// Desired spec with defaults and canonical spellings.
    pub spec: Arc<Value>,
    /// Canonical digest of `spec`.
    pub spec_digest: Arc<str>,
    /// Resolved relations in pointer order.
    pub pins: Arc<[Pin]>,
    /// Identity of the adopted object.
    pub native_id: Option<Arc<str>>,
    /// Host-side status changes so far.
    pub touches: u64,
    /// Its place in the order in which this host made resources, whoever's they are. Of several
    /// tenants' claims to one host name the oldest is routed.
    pub made: u64,
    /// The `Ready` condition as last served.
    pub condition: Condition,
}

impl Resource {
    /// Kind, for resources of the family.
    pub fn kind(&self) -> Option<EdgeKind> {
        EdgeKind::of(&self.key)
    }

    /// The pin at a relation that occurs at most once, e.g. `/worker`.
    pub fn pin(&self, relation: &str) -> Option<&Pin> {
        self.pins.iter().find(|pin| &*pin.relation == relation)
    }

    /// The pins of a relation, in pointer order.
    pub fn pins_of<'a>(&'a self, relation: &'a str) -> impl Iterator<Item = &'a Pin> {
        self.pins
            .iter()
            .filter(move |pin| &*pin.relation == relation)
    }

    /// Strings of a top-level list of the spec.
    pub(crate) fn strings<'a>(&'a self, member: &str) -> impl Iterator<Item = &'a str> {
        self.spec
            .get(member)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// A top-level string of the spec.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.spec.get(member)?.as_str()
    }
}

/// Closed vocabulary of reasons this host uses (host API §8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Works.
    Available,
    /// Something is still to be provided.
    Provisioning,
    /// The ledger is not the declared list.
    Reconciling,
    /// A target became another incarnation.
    ExternalChange,
    /// A target is gone.
    DependencyMissing,
    /// The deployment cannot answer requests.
    UnsupportedCapability,
}

impl Reason {
    /// Every reason this host uses.
    pub const ALL: &'static [Reason] = &[
        Reason::Available,
        Reason::Provisioning,
        Reason::Reconciling,
        Reason::ExternalChange,
        Reason::DependencyMissing,
        Reason::UnsupportedCapability,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Available => "Available",
            Reason::Provisioning => "Provisioning",
            Reason::Reconciling => "Reconciling",
            Reason::ExternalChange => "ExternalChange",
            Reason::DependencyMissing => "DependencyMissing",
            Reason::UnsupportedCapability => "UnsupportedCapability",
        }
    }
}

/// The `Ready` condition: status and reason, a sentence, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Why; `Available` is the one that is true.
    pub reason: Reason,
    /// At most 256 characters; present on every false condition.
    pub host_reason: Option<Arc<str>>,
    /// The full sentence, where 256 characters do not hold it.
    pub message: Option<Arc<str>>,
    /// RFC 3339 in UTC; moves with the reason.
    pub since: Arc<str>,
}

impl Condition {
    /// Whether the resource is Ready.
    pub fn is_ready(&self) -> bool {
        self.reason == Reason::Available
    }
}
