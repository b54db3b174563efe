//! What a program declared, before its values are judged.

use indexmap::IndexMap;
use notation_model::{Origin, ResourceId, ResourceType, TypeSet};

use crate::{
    raw::{Raw, RawResource, RawStep},
    source::Sources,
    trace::Trace,
};

/// What building the graph needs to know.
pub(crate) struct Program<'a> {
    pub raw: &'a Raw,
    pub trace: &'a Trace,
    pub sources: &'a Sources,
    pub types: &'a TypeSet,
    /// The entry file, relative to the project.
    pub entry: &'a str,
}

/// A declared resource with what is known about it before its values are judged.
pub(crate) struct Declared<'a> {
    pub raw: &'a RawResource,
    pub id: ResourceId,
    pub origin: Origin,
    pub ty: Option<&'a ResourceType>,
}

/// Everything that was declared, in order and by id.
pub(crate) struct Declarations<'a>(pub IndexMap<ResourceId, Declared<'a>>);

impl<'a> Declarations<'a> {
    /// The resource of that id.
    pub fn get(&self, id: &ResourceId) -> Option<&Declared<'a>> {
        self.0.get(id)
    }
}

pub(crate) fn key(name: &str) -> RawStep {
    RawStep::Key(name.to_owned())
}
