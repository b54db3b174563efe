//! A program's graph as a drawing: cycles, placeholders and kinds of edges.

mod dot;
mod layout;
mod mermaid;
mod svg;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{DesiredGraph, ResourceId, Via};
use serde_json::{Value as Json, json};

pub use dot::dot;
pub use mermaid::mermaid;
pub use svg::svg;

/// A graph to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// In declaration order.
    pub nodes: Vec<Node>,
    /// In declaration order of who refers.
    pub edges: Vec<Line>,
    /// Members of each cycle, as positions in `nodes`.
    pub cycles: Vec<Vec<usize>>,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its type.
    pub ty: String,
    /// On a fresh stage it is created as a placeholder.
    pub placeholder: bool,
}

/// One reference; several by the same field are drawn once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Position of who refers.
    pub from: usize,
    /// Position of whom it refers to.
    pub to: usize,
    /// How.
    pub kind: Kind,
    /// The field; empty for `dependOn`.
    pub field: String,
}

/// Kinds of edges (`engine.md` §1, *Edges*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Made at construction: cannot be left out.
    Config,
    /// Made through a contribution: left out of a placeholder.
    Contribution,
    /// Order only.
    DependOn,
}

impl Kind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Config => "config",
            Kind::Contribution => "contribution",
            Kind::DependOn => "dependOn",
        }
    }
}

impl Drawing {
    /// What to draw of a program; `placeholders` are those of a fresh stage.
    pub fn of(graph: &DesiredGraph, placeholders: &BTreeSet<ResourceId>) -> Drawing {
        let position: BTreeMap<&ResourceId, usize> = graph
            .resources
            .keys()
            .enumerate()
            .map(|(at, id)| (id, at))
            .collect();
        let nodes: Vec<Node> = graph
            .resources
            .values()
            .map(|desired| Node {
                id: desired.id.to_string(),
                ty: desired.ty.to_string(),
                placeholder: placeholders.contains(&desired.id),
            })
            .collect();
        let mut edges: BTreeSet<Line> = BTreeSet::new();
        for desired in graph.resources.values() {
            for edge in desired.edges() {
                let (Some(&from), Some(&to)) = (position.get(edge.from), position.get(edge.to))
                else {
                    continue;
                };
                let kind = match edge.via {
                    Via::Config(_) => Kind::Config,
                    Via::Contribution(_) => Kind::Contribution,
                    Via::DependOn => Kind::DependOn,
                };
                let field = edge.field.unwrap_or_default().to_owned();
                edges.insert(Line {
                    from,
                    to,
                    kind,
                    field,
                });
            }
        }
        let edges: Vec<Line> = edges.into_iter().collect();
        let cycles = cycles(nodes.len(), &edges);
        Drawing {
            nodes,
            edges,
            cycles,
        }
    }

    /// The cycle a node belongs to.
    fn cycle_of(&self, node: usize) -> Option<usize> {
        self.cycles
            .iter()
            .position(|members| members.contains(&node))
    }

    /// Fields of the `graph` event.
    pub fn to_json(&self) -> Json {
        let id = |at: &usize| self.nodes[*at].id.clone();
        json!({
            "nodes": self.nodes.iter().map(|node| json!({
                "resource": node.id,
                "type": node.ty,
                "placeholder": node.placeholder,
            })).collect::<Vec<_>>(),
            "edges": self.edges.iter().map(|edge| json!({
                "from": id(&edge.from),
                "to": id(&edge.to),
                "via": edge.kind.name(),
                "field": edge.field,
            })).collect::<Vec<_>>(),
            "cycles": self.cycles.iter().map(|members| members.iter().map(id).collect::<Vec<_>>()).collect::<Vec<_>>(),
        })
    }
}

/// Strongly connected parts with more than one member, and nodes that refer to themselves; in
/// order of their first member.
fn cycles(count: usize, edges: &[Line]) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    for edge in edges {
        next[edge.from].push(edge.to);
    }
    let mut parts = strong_parts(&next);
    parts.retain(|part| part.len() > 1 || next[part[0]].contains(&part[0]));
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort();
    parts
}

/// Tarjan's algorithm with a stack of its own, so that a long chain does no harm.
fn strong_parts(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; next.len()];
    let mut low = vec![0; next.len()];
    let mut on_stack = vec![false; next.len()];
    let (mut stack, mut parts, mut counter) = (Vec::new(), Vec::new(), 0);
    for root in 0..next.len() {
        if index[root] != NEW {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, child)) = work.pop() {
            if child == 0 {
                index[node] = counter;
                low[node] = counter;
                counter += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&to) = next[node].get(child) {
                work.push((node, child + 1));
                if index[to] == NEW {
                    work.push((to, 0));
                } else if on_stack[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            if low[node] == index[node] {
                let mut part = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    part.push(member);
                    if member == node {
                        break;
                    }
                }
                parts.push(part);
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    parts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A pair, an outsider that refers to it, and a worker bound to itself.
    pub(crate) fn sample() -> Drawing {
        let node = |id: &str, placeholder| Node {
            id: id.into(),
            ty: "sim/Worker".into(),
            placeholder,
        };
        let line = |from, to, kind, field: &str| Line {
            from,
            to,
            kind,
            field: field.into(),
        };
        let edges = vec![
            line(0, 1, Kind::Contribution, "bindings"),
            line(1, 0, Kind::Contribution, "bindings"),
            line(2, 0, Kind::Config, "code"),
            line(3, 3, Kind::Contribution, "bindings"),
            line(3, 2, Kind::DependOn, ""),
        ];
        Drawing {
            nodes: vec![
                node("a", true),
                node("b", false),
                node("c", false),
                node("self", true),
            ],
            cycles: cycles(4, &edges),
            edges,
        }
    }

    #[test]
    fn a_pair_and_a_self_reference_are_cycles() {
        assert_eq!(sample().cycles, vec![vec![0, 1], vec![3]]);
    }

    #[test]
    fn a_ring_with_a_tail_is_one_cycle() {
        let line = |from, to| Line {
            from,
            to,
            kind: Kind::Config,
            field: String::new(),
        };
        let edges = [line(0, 1), line(1, 2), line(2, 0), line(2, 3), line(4, 0)];
        assert_eq!(cycles(5, &edges), vec![vec![0, 1, 2]]);
    }
}
