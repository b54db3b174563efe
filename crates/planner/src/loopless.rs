//! A graph without loops, and who waits for whom in it.

use std::collections::{BTreeSet, VecDeque};

use petgraph::{
    Direction::{self, Incoming, Outgoing},
    acyclic::Acyclic,
    graph::{DiGraph, WalkNeighbors},
};

use crate::graph::Graph;

/// A graph without loops that grows. It keeps an order of its nodes, so that most questions are
/// answered by comparing two positions.
pub(crate) struct Loopless(Acyclic<DiGraph<(), (), usize>>);

impl Loopless {
    /// Panics where the graph has a loop.
    pub fn new(graph: &Graph) -> Loopless {
        let mut copy: DiGraph<(), (), usize> = DiGraph::with_capacity(graph.len(), 0);
        for _ in 0..graph.len() {
            copy.add_node(());
        }
        for (from, to) in graph.edges() {
            copy.add_edge(from.into(), to.into(), ());
        }
        Loopless(Acyclic::try_from_graph(copy).expect("placeholders opened every loop"))
    }

    /// What a node waits for.
    pub fn waits_for(&self, node: usize) -> impl Iterator<Item = usize> {
        let on = self.0.inner().neighbors(node.into());
        on.map(|on| on.index())
    }

    /// Whether a node waits for another, directly or not. Looks from both in widening circles, an
    /// edge of the one and an edge of the other in turn: who waits for whom is mostly near, and
    /// where one of them has thousands of edges, the other mostly has few.
    pub fn waits(&self, from: usize, on: usize) -> bool {
        if from == on {
            return true;
        }
        let graph = self.0.inner();
        let position = |node: usize| self.0.get_position(node.into());
        let between = position(from)..=position(on);
        let mut circles = [
            Circle::around(graph, from, Outgoing),
            Circle::around(graph, on, Incoming),
        ];
        loop {
            for end in [0, 1] {
                match circles[end].look(graph) {
                    Some(next) if circles[1 - end].seen.contains(&next) => return true,
                    Some(next) if between.contains(&position(next)) => circles[end].widen(next),
                    Some(_) => {}
                    None => return false,
                }
            }
        }
    }

    /// Lets a node wait for another; false where that would close a loop.
    pub fn add(&mut self, node: usize, on: usize) -> bool {
        self.0.try_add_edge(node.into(), on.into(), ()).is_ok()
    }
}

/// What lies ever further from one node, in one direction.
struct Circle {
    direction: Direction,
    seen: BTreeSet<usize>,
    edges: WalkNeighbors<usize>,
    pending: VecDeque<usize>,
}

impl Circle {
    fn around(graph: &DiGraph<(), (), usize>, node: usize, direction: Direction) -> Circle {
        Circle {
            direction,
            seen: BTreeSet::from([node]),
            edges: graph.neighbors_directed(node.into(), direction).detach(),
            pending: VecDeque::new(),
        }
    }

    /// The other end of the next edge; `None` when all were looked at.
    fn look(&mut self, graph: &DiGraph<(), (), usize>) -> Option<usize> {
        loop {
            if let Some(next) = self.edges.next_node(graph) {
                return Some(next.index());
            }
            let node = self.pending.pop_front()?;
            self.edges = graph
                .neighbors_directed(node.into(), self.direction)
                .detach();
        }
    }

    fn widen(&mut self, node: usize) {
        if self.seen.insert(node) {
            self.pending.push_back(node);
        }
    }
}
