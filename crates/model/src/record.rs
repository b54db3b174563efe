//! Records: what state knows of one incarnation (`engine.md` §7).

use std::fmt;

use crate::{Earlier, Marks, Params, ResourceId, Text, TypeName, Value, Via};

/// One physical life of a resource; a replacement is a new one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// Whose life.
    pub resource: ResourceId,
    /// How many times replaced, from 0.
    pub generation: u32,
}

impl fmt::Display for Incarnation {
    /// `a` for generation 0, `a#2` for generation 2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{}", self.resource),
            generation => write!(f, "{}#{generation}", self.resource),
        }
    }
}

/// What a live object has: only its config, or its contributions as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Config without contributions.
    Placeholder,
    /// Everything.
    Complete,
}

/// Whether an incarnation is the resource's present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The one that references mean.
    Current,
    /// A successor exists; it goes once nothing refers to it.
    Superseded,
}

/// What state knows of one incarnation.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Whose life.
    pub incarnation: Incarnation,
    /// Its type.
    pub ty: TypeName,
    /// What was last written.
    pub shape: Shape,
    /// Current or superseded.
    pub standing: Standing,
    /// The object's key at the provider.
    pub key: Text,
    /// Parameters last applied.
    pub applied: Params,
    /// Parameters of the placeholder: config alone, resolved, defaults filled in.
    pub config: Params,
    /// Contributions last applied, resolved, in call order: field and value. Only for people and
    /// diffs; a revert needs `config` alone.
    pub contributions: Vec<(Text, Value)>,
    /// Outputs last seen, applied parameters included.
    pub outputs: Params,
    /// References recorded to the incarnation they were made to.
    pub edges: Vec<RecordedEdge>,
    /// `protect`, `placeholder: "never"` and what else makes it unable to be bare.
    pub marks: Marks,
    /// Can be reverted to `config` (judged when it was written).
    pub can_be_bare: bool,
    /// Was found gone at the provider.
    pub gone: bool,
    /// An update was started whose outcome is not known.
    pub in_doubt: bool,
    /// Earlier ids of the resource: its object's tags may name one of them still.
    pub former: Vec<ResourceId>,
    /// The tags that its object had when a person took it over: those of somebody else, or none.
    /// With exactly these it is ours, until a write gives it our own.
    pub taken_from: Option<Box<str>>,
    /// Grows with every change of the record.
    pub version: u64,
}

/// A reference as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEdge {
    /// The incarnation that was meant.
    pub to: Incarnation,
    /// How.
    pub via: Via,
    /// The provider refuses to delete the target while this stands.
    pub holds: bool,
}

impl Record {
    /// What the tags of its object may say instead of its owner.
    pub fn earlier(&self) -> Earlier<'_> {
        Earlier {
            former: &self.former,
            taken_from: self.taken_from.as_deref(),
        }
    }

    /// True when the recorded config (the placeholder) itself names the incarnation.
    pub fn config_names(&self, target: &Incarnation) -> bool {
        self.edges
            .iter()
            .any(|edge| &edge.to == target && matches!(edge.via, Via::Config(_)))
    }
}
