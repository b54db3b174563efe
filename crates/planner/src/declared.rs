//! What a program declares, its types and references looked up once.

use notation_model::{Desired, DesiredGraph, Edge, ResourceType, TypeSet, Via};

/// One declared resource.
pub(crate) struct Declared<'a> {
    pub desired: &'a Desired,
    /// `None` when it is not registered.
    pub ty: Option<&'a ResourceType>,
    /// Every reference, with the place of its target in the order of declaration.
    pub edges: Vec<(usize, Edge<'a>)>,
    /// References to what is not declared.
    pub dangling: Vec<Edge<'a>>,
    /// It can be created without its contributions.
    pub can_be_bare: bool,
}

/// All resources, in the order of declaration.
pub(crate) fn declared<'a>(program: &'a DesiredGraph, types: &'a TypeSet) -> Vec<Declared<'a>> {
    let resources = program.resources.values();
    resources
        .map(|desired| {
            let found = desired.edges();
            // Lists of just their count: there are as many as resources, and they stay.
            let mut edges = Vec::with_capacity(found.len());
            let mut dangling = Vec::new();
            for edge in found {
                match program.resources.get_index_of(edge.to) {
                    Some(to) => edges.push((to, edge)),
                    None => dangling.push(edge),
                }
            }
            let ty = types.get(&desired.ty);
            Declared {
                desired,
                ty,
                edges,
                dangling,
                can_be_bare: ty.is_some_and(|ty| desired.obstacle(ty).is_none()),
            }
        })
        .collect()
}

impl<'a> Declared<'a> {
    /// References that a placeholder needs too.
    pub fn firm(&self) -> impl Iterator<Item = &(usize, Edge<'a>)> {
        let known = self.ty.is_some();
        let is_firm = |edge: &Edge<'_>| !self.can_be_bare || matches!(edge.via, Via::Config(_));
        self.edges
            .iter()
            .filter(move |(_, edge)| known && is_firm(edge))
    }
}
