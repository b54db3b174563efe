//! The desired graph with numbers in place of ids: what refers to what, and its cycles.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use notation_model::{Desired, Edge, ResourceId, ResourceType, Via};

use crate::{PlanInput, graph::Graph};

/// One desired resource.
pub(crate) struct Wanted<'a> {
    pub desired: &'a Desired,
    pub ty: &'a ResourceType,
    /// Every reference with the number of its target.
    pub edges: Vec<(usize, Edge<'a>)>,
    /// It can be created without its contributions.
    pub can_be_bare: bool,
    /// Position in `Program::components`.
    pub component: usize,
    /// Position in `Program::cycles`.
    pub cycle: Option<usize>,
}

/// Desired resources in declaration order.
pub(crate) struct Program<'a> {
    pub wanted: Vec<Wanted<'a>>,
    pub number: IndexMap<&'a ResourceId, usize>,
    /// Strongly connected parts; what others refer to comes first.
    pub components: Graph,
    /// Parts with a loop, by their first member; members in declaration order.
    pub cycles: Vec<Vec<usize>>,
}

impl<'a> Program<'a> {
    pub fn get(&self, id: &ResourceId) -> Option<usize> {
        self.number.get(id).copied()
    }
}

/// The program, or the part of it that `scope` names (closed under references). References
/// resolve and types are registered: `problems` was empty.
pub(crate) fn program<'a>(
    input: &PlanInput<'a>,
    scope: Option<&BTreeSet<ResourceId>>,
) -> Program<'a> {
    let chosen: Vec<(&Desired, &ResourceType)> = input
        .desired
        .resources
        .values()
        .filter(|desired| scope.is_none_or(|scope| scope.contains(&desired.id)))
        .filter_map(|desired| Some((desired, input.types.get(&desired.ty)?)))
        .collect();
    let number: IndexMap<&ResourceId, usize> = chosen
        .iter()
        .enumerate()
        .map(|(number, (desired, _))| (&desired.id, number))
        .collect();
    let mut wanted: Vec<Wanted<'a>> = chosen
        .into_iter()
        .map(|(desired, ty)| Wanted {
            desired,
            ty,
            edges: numbered(desired, &number),
            can_be_bare: desired.obstacle(ty).is_none(),
            component: 0,
            cycle: None,
        })
        .collect();
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
        number,
        components,
        cycles,
    }
}

/// References with the number of their target, in a list of just their count.
fn numbered<'a>(
    desired: &'a Desired,
    number: &IndexMap<&ResourceId, usize>,
) -> Vec<(usize, Edge<'a>)> {
    let edges = desired.edges().into_iter();
    let numbered = edges.filter_map(|edge| Some((*number.get(edge.to)?, edge)));
    numbered.collect::<Box<[_]>>().into_vec()
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
