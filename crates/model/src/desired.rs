//! The desired graph: what a program asks for, as data (`engine.md` §1).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use ecow::eco_format;
use indexmap::IndexMap;

use crate::{Expr, Map, OutputRef, ResourceId, ResourceType, SecretName, Text, TypeName, TypeSet};

/// Marks a program puts on a resource; recorded, so that they outlive the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Refuse to delete, replace or revert.
    pub protect: bool,
    /// `placeholder: "never"`.
    pub never_bare: bool,
}

/// Everything a program asks for. The empty graph asks for nothing: it destroys.
#[derive(Debug, Clone, Default)]
pub struct DesiredGraph {
    /// Resources in declaration order.
    pub resources: IndexMap<ResourceId, Desired>,
    /// What the entry exports.
    pub exports: BTreeMap<String, Expr>,
}

/// One declared resource.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Unique in the program.
    pub id: ResourceId,
    /// Its type.
    pub ty: TypeName,
    /// What the constructor was given; together with defaults this is the placeholder.
    pub config: Map<Expr>,
    /// Values added after construction, in call order.
    pub contributions: Vec<Contribution>,
    /// Ordering without a value, in call order.
    pub depend_on: Vec<DependOn>,
    /// `protect`, `placeholder: "never"`.
    pub marks: Marks,
    /// Earlier ids.
    pub formerly: Vec<ResourceId>,
    /// Where it was constructed.
    pub origin: Origin,
}

/// A value added to another resource's config after construction (RFC 0004).
#[derive(Debug, Clone)]
pub struct Contribution {
    /// The field it goes to.
    pub field: Text,
    /// The value.
    pub value: Expr,
    /// Where `contribute` was called.
    pub origin: Origin,
}

/// An ordering edge without a value.
#[derive(Debug, Clone)]
pub struct DependOn {
    /// What must come first.
    pub target: ResourceId,
    /// Where `dependOn` was called.
    pub origin: Origin,
}

/// A place in the user's own source. Lines and columns from 1; `file` relative to the project.
/// `file` is empty for a graph that a Rust program built.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Relative to the project, with `/`.
    pub file: Arc<str>,
    /// From 1; 0 when not known.
    pub line: u32,
    /// From 1; 0 when not known.
    pub column: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How one resource refers to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// A reference at this place of the config, e.g. `vars.PEER`.
    Config(Text),
    /// A reference in a value contributed to this field.
    Contribution(Text),
    /// `dependOn`.
    DependOn,
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Via::Config(path) | Via::Contribution(path) => f.write_str(path),
            Via::DependOn => f.write_str("dependOn"),
        }
    }
}

/// One reference, from the resource that makes it to the one it names.
#[derive(Debug, Clone)]
pub struct Edge<'a> {
    /// Who refers.
    pub from: &'a ResourceId,
    /// To whom.
    pub to: &'a ResourceId,
    /// What it reads of it; `None` for `dependOn`.
    pub output: Option<&'a OutputRef>,
    /// How.
    pub via: Via,
    /// The field (top level) that reads it; `None` for `dependOn`.
    pub field: Option<&'a str>,
    /// Where it was written.
    pub origin: &'a Origin,
}

impl Edge<'_> {
    /// Whether the target cannot go while this edge stands (`engine.md` §1, table).
    pub fn holds(&self, ty: &ResourceType) -> bool {
        match (&self.via, self.field) {
            (Via::Config(_), Some(field)) => ty.fields.get(field).is_some_and(|field| field.holds),
            (Via::Contribution(_), _) => true,
            (Via::Config(_), None) | (Via::DependOn, _) => false,
        }
    }
}

impl Desired {
    /// Every edge of this resource, in order: config, contributions, dependOn. One per
    /// reference; the same target may appear more than once.
    pub fn edges(&self) -> Vec<Edge<'_>> {
        let mut edges = Vec::new();
        for (field, expr) in &self.config {
            for (path, source) in expr.references() {
                edges.push(Edge {
                    from: &self.id,
                    to: &source.resource,
                    output: Some(source),
                    via: Via::Config(eco_format!("{field}{path}")),
                    field: Some(field),
                    origin: &self.origin,
                });
            }
        }
        for contribution in &self.contributions {
            for (_, source) in contribution.value.references() {
                edges.push(Edge {
                    from: &self.id,
                    to: &source.resource,
                    output: Some(source),
                    via: Via::Contribution(contribution.field.clone()),
                    field: Some(&contribution.field),
                    origin: &contribution.origin,
                });
            }
        }
        for depend in &self.depend_on {
            edges.push(Edge {
                from: &self.id,
                to: &depend.target,
                output: None,
                via: Via::DependOn,
                field: None,
                origin: &depend.origin,
            });
        }
        edges
    }

    /// Why this resource can neither be created nor reverted without its contributions
    /// (`engine.md` §2), or `None` when it can: then it *can be bare*.
    pub fn cannot_be_bare(&self, ty: &ResourceType) -> Option<String> {
        self.obstacle(ty).map(|obstacle| obstacle.to_string())
    }

    /// What keeps this resource from being bare, as data; `None` when it *can be bare*.
    pub fn obstacle(&self, ty: &ResourceType) -> Option<Obstacle> {
        if self.marks.never_bare {
            return Some(Obstacle::Marked {
                resource: self.id.clone(),
            });
        }
        if ty.never_bare {
            return Some(Obstacle::TypeMarked {
                ty: ty.name.clone(),
            });
        }
        let field_of = |contribution: &Contribution| ty.fields.get(contribution.field.as_str());
        if let Some(contribution) = self.contributions.iter().find(|contribution| {
            field_of(contribution).is_some_and(|field| {
                field.presence == crate::Presence::Required
                    && !self.config.contains_key(&contribution.field)
            })
        }) {
            return Some(Obstacle::Required {
                field: contribution.field.clone(),
                ty: ty.name.clone(),
            });
        }
        if let Some(contribution) = self.contributions.iter().find(|contribution| {
            field_of(contribution).is_some_and(|field| field.immutable || field.key)
        }) {
            return Some(Obstacle::Immutable {
                field: contribution.field.clone(),
                ty: ty.name.clone(),
            });
        }
        if !self.contributions.is_empty() && !ty.updates {
            return Some(Obstacle::NoUpdate {
                ty: ty.name.clone(),
            });
        }
        None
    }
}

/// What keeps a resource from being live without its contributions (`engine.md` §2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The program marks it `placeholder: "never"`.
    Marked {
        /// Who is marked.
        resource: ResourceId,
    },
    /// Its type is marked `placeholder: "never"`.
    TypeMarked {
        /// Which type.
        ty: TypeName,
    },
    /// A required field is given by contribution alone.
    Required {
        /// Which field.
        field: Text,
        /// Of which type.
        ty: TypeName,
    },
    /// A contributed field cannot change after creation.
    Immutable {
        /// Which field.
        field: Text,
        /// Of which type.
        ty: TypeName,
    },
    /// Completing it would be an update, which its type does not have.
    NoUpdate {
        /// Which type.
        ty: TypeName,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Marked { resource } => {
                write!(f, "{resource} is marked placeholder: \"never\"")
            }
            Obstacle::TypeMarked { ty } => {
                write!(f, "type {ty} must never be live without its contributions")
            }
            Obstacle::Required { field, ty } => write!(
                f,
                "`{field}` is required by {ty} and only given by contribution"
            ),
            Obstacle::Immutable { field, ty } => {
                write!(f, "`{field}` of {ty} cannot be changed after creation")
            }
            Obstacle::NoUpdate { ty } => write!(f, "type {ty} has no update"),
        }
    }
}

impl Obstacle {
    /// What a person can do about it.
    pub fn repair(&self) -> String {
        match self {
            Obstacle::Marked { resource } => {
                format!("take placeholder: \"never\" off {resource}")
            }
            Obstacle::TypeMarked { ty } => {
                format!("move one reference out of the {ty} into a resource of its own")
            }
            Obstacle::Required { field, ty } => format!(
                "give `{field}` a value in the config, make it optional in the schema of {ty}, or move one reference into a resource of its own"
            ),
            Obstacle::Immutable { field, ty } => format!(
                "contribute to a field of {ty} that can change, not `{field}`, or move one reference into a resource of its own"
            ),
            Obstacle::NoUpdate { ty } => {
                format!("move the contributed reference of the {ty} into a resource of its own")
            }
        }
    }
}

impl DesiredGraph {
    /// Every secret named anywhere, in order.
    pub fn secrets(&self) -> BTreeSet<&SecretName> {
        let in_resources = self.resources.values().flat_map(|desired| {
            desired.config.values().chain(
                desired
                    .contributions
                    .iter()
                    .map(|contribution| &contribution.value),
            )
        });
        in_resources
            .chain(self.exports.values())
            .flat_map(Expr::secrets)
            .collect()
    }

    /// The type of a desired resource; `None` when it is not registered.
    pub fn type_of<'t>(&self, types: &'t TypeSet, id: &ResourceId) -> Option<&'t ResourceType> {
        types.get(&self.resources.get(id)?.ty)
    }
}
