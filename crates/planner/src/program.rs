//! The desired graph with numbers in place of ids: what refers to what, and its cycles.

use std::{collections::BTreeSet, ops::Deref};

use notation_model::{Desired, DesiredGraph, Edge, ResourceId, ResourceType, Via};

use crate::{declared::Declarations, graph::Graph};

/// One desired resource.
pub(crate) struct Wanted<'a> {
    pub desired: &'a Desired,
    /// Its place in the order of declaration.
    pub declared: usize,
    pub ty: &'a ResourceType,
    /// Every reference with the number of its target.
    pub edges: Edges<'a>,
    /// It can be created without its contributions.
    pub can_be_bare: bool,
    /// Position in `Program::components`.
    pub component: usize,
    /// Position in `Program::cycles`.
    pub cycle: Option<usize>,
}

/// References with the numbers of their targets.
pub(crate) enum Edges<'a> {
    AsDeclared(&'a [(usize, Edge<'a>)]),
    Renumbered(Vec<(usize, Edge<'a>)>),
}

impl<'a> Deref for Edges<'a> {
    type Target = [(usize, Edge<'a>)];
    fn deref(&self) -> &Self::Target {
        match self {
            Edges::AsDeclared(edges) => edges,
            Edges::Renumbered(edges) => edges,
        }
    }
}

/// Desired resources in declaration order: all of them, or a part closed under references.
pub(crate) struct Program<'a> {
    pub wanted: Vec<Wanted<'a>>,
    desired: &'a DesiredGraph,
    /// Of a part: the number of each declared resource that is in it.
    number: Option<Vec<Option<usize>>>,
    /// Strongly connected parts; what others refer to comes first.
    pub components: Graph,
    /// Parts with a loop, by their first member; members in declaration order.
    pub cycles: Vec<Vec<usize>>,
}

impl<'a> Program<'a> {
    /// All of it. References resolve and types are registered: `problems` was empty.
    pub fn whole(desired: &'a DesiredGraph, declared: &'a Declarations<'a>) -> Program<'a> {
        let resources = declared.resources.iter().zip(declared.edges.iter());
        let wanted = resources
            .enumerate()
            .filter_map(|(number, (resource, edges))| {
                Some(Wanted {
                    desired: resource.desired,
                    declared: number,
                    ty: resource.ty?,
                    edges: Edges::AsDeclared(edges),
                    can_be_bare: resource.can_be_bare,
                    component: 0,
                    cycle: None,
                })
            });
        Program::of(desired, wanted.collect(), None)
    }

    /// The part that `ids` names.
    pub fn part(&self, ids: &BTreeSet<ResourceId>) -> Program<'a> {
        let mut count = 0;
        let number: Vec<Option<usize>> = self
            .wanted
            .iter()
            .map(|wanted| {
                let number = ids.contains(&wanted.desired.id).then_some(count);
                count += usize::from(number.is_some());
                number
            })
            .collect();
        let chosen = self.wanted.iter().zip(&number);
        let chosen = chosen.filter(|(_, number)| number.is_some());
        let wanted = chosen.map(|(wanted, _)| {
            let edges = wanted.edges.iter();
            let edges = edges.filter_map(|(to, edge)| Some((number[*to]?, edge.clone())));
            Wanted {
                edges: Edges::Renumbered(edges.collect()),
                cycle: None,
                ..*wanted
            }
        });
        let wanted = wanted.collect();
        Program::of(self.desired, wanted, Some(number))
    }

    fn of(
        desired: &'a DesiredGraph,
        mut wanted: Vec<Wanted<'a>>,
        number: Option<Vec<Option<usize>>>,
    ) -> Program<'a> {
        let graph: Graph = wanted
            .iter()
            .map(|wanted| wanted.edges.iter().map(|(to, _)| *to))
            .collect();
        let components = graph.parts();
        let looping = components.iter().filter(|part| graph.has_loop(part));
        let mut cycles: Vec<Vec<usize>> = looping.map(<[_]>::to_vec).collect();
        cycles.sort_unstable_by_key(|members| members[0]);
        for (component, members) in components.iter().enumerate() {
            for member in members {
                wanted[*member].component = component;
            }
        }
        for (cycle, members) in cycles.iter().enumerate() {
            for member in members {
                wanted[*member].cycle = Some(cycle);
            }
        }
        Program {
            wanted,
            desired,
            number,
            components,
            cycles,
        }
    }

    /// Whom a reference of a resource means. Most refer to few, and looking among these is quicker
    /// than among all.
    pub fn target(&self, from: usize, id: &ResourceId) -> Option<usize> {
        const FEW: usize = 8;
        let edges = &self.wanted[from].edges;
        let mut few = edges.iter().take(FEW);
        let found = few.find(|(_, edge)| edge.to == id);
        found.map_or_else(|| self.get(id), |(number, _)| Some(*number))
    }

    pub fn get(&self, id: &ResourceId) -> Option<usize> {
        let declared = self.desired.resources.get_index_of(id)?;
        match &self.number {
            Some(number) => number[declared],
            None => Some(declared),
        }
    }
}

/// Fields that a placeholder lacks contributions for, each once, in call order.
pub(crate) fn contributed_fields(desired: &Desired) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for contribution in &desired.contributions {
        if !fields.iter().any(|field| *field == contribution.field) {
            fields.push(contribution.field.to_string());
        }
    }
    fields
}

/// Whether an edge belongs to the placeholder as well.
pub(crate) fn is_config(edge: &Edge<'_>) -> bool {
    matches!(edge.via, Via::Config(_))
}
