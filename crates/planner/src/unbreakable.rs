//! Loops of the program that nobody opens by starting bare (`engine.md` §2, §10 step 1).

use notation_model::{Desired, Edge, ResourceType, Via};

use crate::{
    declared::Declarations,
    graph::Graph,
    loops,
    problem::{LoopMember, UnbreakableLoop},
};

/// The loops that no resource opens by starting bare: per strongly connected part that is left,
/// one shortest loop; then the same again without the members of reported loops. References to
/// unknown resources and resources of unknown types are not judged here. Source: `engine.md` §2,
/// RFC 0011 §3.
pub(crate) fn unopened(declared: &Declarations<'_>) -> Vec<UnbreakableLoop> {
    let numbers = 0..declared.resources.len();
    let mut graph: Graph = numbers
        .map(|number| declared.firm(number).map(|(to, _)| *to))
        .collect();
    let mut found = Vec::new();
    loop {
        let parts = graph.looping_parts();
        if parts.is_empty() {
            break;
        }
        let mut reported = vec![false; graph.len()];
        for part in parts {
            let walked = loop_in(&graph, &part);
            found.push(report(declared, &walked));
            walked.iter().for_each(|member| reported[*member] = true);
        }
        let left = |(member, targets): (usize, &[usize])| match reported[member] {
            true => Vec::new(),
            false => targets.to_vec(),
        };
        graph = graph.iter().enumerate().map(left).collect();
    }
    found
}

/// A shortest loop of one part, in node numbers of the whole graph.
fn loop_in(graph: &Graph, part: &[usize]) -> Vec<usize> {
    let local = graph.within(part);
    loops::shortest_loop(&local)
        .expect("a strongly connected part with an edge inside has a loop")
        .into_iter()
        .map(|node| part[node])
        .collect()
}

fn report(declared: &Declarations<'_>, walked: &[usize]) -> UnbreakableLoop {
    let members = walked
        .iter()
        .enumerate()
        .map(|(position, &node)| {
            let next = walked[(position + 1) % walked.len()];
            let resource = declared.resources[node].desired;
            let (_, edge) = declared
                .firm(node)
                .find(|(to, _)| *to == next)
                .expect("a loop goes along references");
            let (why, repair) = reason(resource, declared.resources[node].ty, edge);
            LoopMember {
                resource: resource.id.clone(),
                ty: resource.ty.clone(),
                refers_to: edge.to.clone(),
                via: edge.via.clone(),
                origin: edge.origin.clone(),
                why,
                repair,
            }
        })
        .collect();
    UnbreakableLoop { members }
}

fn reason(resource: &Desired, ty: Option<&ResourceType>, edge: &Edge<'_>) -> (String, String) {
    let obstacle = ty.and_then(|ty| resource.obstacle(ty));
    match (&edge.via, obstacle) {
        (Via::Config(path), _) => {
            let field = edge.field.unwrap_or(path);
            (
                format!("`{path}` is part of its config, which it cannot be created without"),
                format!(
                    "contribute `{field}` to {} after construction instead of giving it in the config",
                    resource.id
                ),
            )
        }
        (Via::Contribution(_) | Via::DependOn, Some(obstacle)) => {
            (obstacle.to_string(), obstacle.repair())
        }
        (Via::Contribution(_) | Via::DependOn, None) => (
            format!("{} is needed first", edge.to),
            format!("drop the reference of {} to {}", resource.id, edge.to),
        ),
    }
}
