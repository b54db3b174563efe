//! What a program declares, its types and references looked up once.

use notation_model::{Desired, DesiredGraph, Edge, ResourceType, TypeSet, Via};

use crate::lists::Lists;

/// One declared resource.
pub(crate) struct Declared<'a> {
    pub desired: &'a Desired,
    /// `None` when it is not registered.
    pub ty: Option<&'a ResourceType>,
    /// It can be created without its contributions.
    pub can_be_bare: bool,
}

/// All of them, in the order of declaration.
pub(crate) struct Declarations<'a> {
    pub resources: Vec<Declared<'a>>,
    /// Every reference, with the place of its target in the order of declaration.
    pub edges: Lists<(usize, Edge<'a>)>,
    /// References to what is not declared.
    pub dangling: Lists<Edge<'a>>,
}

/// Looks everything up.
pub(crate) fn declared<'a>(program: &'a DesiredGraph, types: &'a TypeSet) -> Declarations<'a> {
    let count = program.resources.len();
    let mut all = Declarations {
        resources: Vec::with_capacity(count),
        edges: Lists::with_room(count),
        dangling: Lists::with_room(0),
    };
    for desired in program.resources.values() {
        let mut dangling = Vec::new();
        let edges = desired.edges().into_iter();
        all.edges.push(edges.filter_map(|edge| {
            let Some(to) = program.resources.get_index_of(edge.to) else {
                dangling.push(edge);
                return None;
            };
            Some((to, edge))
        }));
        all.dangling.push(dangling);
        let ty = types.get(&desired.ty);
        all.resources.push(Declared {
            desired,
            ty,
            can_be_bare: ty.is_some_and(|ty| desired.obstacle(ty).is_none()),
        });
    }
    all
}

impl<'a> Declarations<'a> {
    /// References of a resource that a placeholder needs too.
    pub fn firm(&self, number: usize) -> impl Iterator<Item = &(usize, Edge<'a>)> {
        let Declared {
            ty, can_be_bare, ..
        } = self.resources[number];
        let is_firm = move |edge: &Edge<'_>| !can_be_bare || matches!(edge.via, Via::Config(_));
        let edges = self.edges[number].iter();
        edges.filter(move |(_, edge)| ty.is_some() && is_firm(edge))
    }
}
