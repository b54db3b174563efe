//! Loops in small directed graphs: shortest ones, disjoint ones.

use crate::graph::Graph;

/// A shortest loop, starting at its first node; `None` when there is none. Among shortest ones
/// the one with the earliest first node.
pub(crate) fn shortest_loop(graph: &Graph) -> Option<Vec<usize>> {
    Left::of(graph).shortest(1).pop()
}

/// What `shortest_loop` finds, and after it others as short from the same node: one to every last
/// node. Found in one search.
pub(crate) fn shortest_loops(graph: &Graph) -> Vec<Vec<usize>> {
    Left::of(graph).shortest(usize::MAX)
}

/// How many loops without a common owner are found by taking shortest ones: a lower bound for
/// the number of owners that open all of them. Owners are numbers.
pub(crate) fn disjoint_loops(graph: &Graph, owner: impl Fn(usize) -> usize) -> usize {
    let owners = (0..graph.len()).map(&owner);
    let count = owners.clone().max().map_or(0, |last| last + 1);
    let owned = Graph::of(count, owners.enumerate().map(|(node, owner)| (owner, node)));
    let mut left = Left::of(graph);
    let mut found = 0;
    // Whoever is looked at for one of this length need not be looked at again.
    while let Some(length) = left.clone().shortest(1).pop().map(|walked| walked.len()) {
        for start in 0..graph.len() {
            while let Some(walked) = left.loops_through(start, length + 1, 1).pop() {
                found += 1;
                for node in walked {
                    let mates = &owned[owner(node)];
                    mates.iter().for_each(|mate| left.remove(*mate));
                }
            }
        }
    }
    found
}

/// What is left of a graph: nodes that have a way in and a way out, and so may be on a loop.
#[derive(Clone)]
struct Left<'g> {
    graph: &'g Graph,
    sources: Graph,
    alive: Vec<bool>,
    incoming: Vec<usize>,
    outgoing: Vec<usize>,
    /// From where a search came to each node; nowhere between two searches.
    parent: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl<'g> Left<'g> {
    fn of(graph: &'g Graph) -> Left<'g> {
        let sources = graph.reversed();
        let mut left = Left {
            alive: vec![true; graph.len()],
            incoming: sources.iter().map(<[_]>::len).collect(),
            outgoing: graph.iter().map(<[_]>::len).collect(),
            parent: vec![NOWHERE; graph.len()],
            graph,
            sources,
        };
        for node in 0..graph.len() {
            if left.incoming[node] == 0 || left.outgoing[node] == 0 {
                left.remove(node);
            }
        }
        left
    }

    /// Takes a node away, and with it whatever hangs on it alone.
    fn remove(&mut self, node: usize) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut self.alive[node], false) {
                continue;
            }
            for &to in &self.graph[node] {
                self.incoming[to] -= 1;
                if self.alive[to] && self.incoming[to] == 0 {
                    pending.push(to);
                }
            }
            for &from in &self.sources[node] {
                self.outgoing[from] -= 1;
                if self.alive[from] && self.outgoing[from] == 0 {
                    pending.push(from);
                }
            }
        }
    }

    /// Shortest loops through the first node that is on one, at most so many.
    fn shortest(mut self, most: usize) -> Vec<Vec<usize>> {
        let mut best: Vec<Vec<usize>> = Vec::new();
        let mut refers_to_itself = None;
        for start in 0..self.graph.len() {
            if !self.alive[start] {
                continue;
            }
            let limit = best.first().map_or(usize::MAX, Vec::len);
            let found = self.loops_through(start, limit, most);
            if let Some(length) = found.first().map(Vec::len) {
                best = found;
                let mut shorter = || *refers_to_itself.get_or_insert_with(|| self.has_self_loop());
                if length == 1 || (length == 2 && !shorter()) {
                    break;
                }
            }
            // Every other loop avoids this node.
            self.remove(start);
        }
        best
    }

    fn has_self_loop(&self) -> bool {
        let mut nodes = self.graph.iter().enumerate();
        nodes.any(|(node, targets)| self.alive[node] && targets.contains(&node))
    }

    /// Shortest loops through `start`, shorter than `limit`, at most `most` of them.
    fn loops_through(&mut self, start: usize, limit: usize, most: usize) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = Vec::new();
        if !self.alive[start] {
            return found;
        }
        // Whom the search came to, those at one distance after the other.
        let mut seen = vec![start];
        let (mut next, mut circle) = (0, 1);
        let mut length = 1;
        'search: while next < seen.len() {
            if length >= limit || found.first().is_some_and(|first| length > first.len()) {
                break;
            }
            for position in next..circle {
                let node = seen[position];
                for &to in &self.graph[node] {
                    if to == start {
                        found.push(self.walked(start, node));
                        if found.len() == most {
                            break 'search;
                        }
                        break;
                    }
                    if self.alive[to] && self.parent[to] == NOWHERE {
                        self.parent[to] = node;
                        seen.push(to);
                    }
                }
            }
            (next, circle) = (circle, seen.len());
            length += 1;
        }
        for node in seen {
            self.parent[node] = NOWHERE;
        }
        found
    }

    /// The way from `start` that a search went to `end`.
    fn walked(&self, start: usize, end: usize) -> Vec<usize> {
        let mut way = vec![end];
        let mut at = end;
        while at != start {
            at = self.parent[at];
            way.push(at);
        }
        way.reverse();
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[&[usize]]) -> Graph {
        nodes.iter().map(|to| to.iter().copied()).collect()
    }

    #[test]
    fn the_shortest_loop_starts_at_its_first_node() {
        // 0 -> 1 -> 2 -> 0 and 1 <-> 3
        let graph = graph(&[&[1], &[2, 3], &[0], &[1]]);
        assert_eq!(shortest_loop(&graph), Some(vec![1, 3]));
        assert_eq!(disjoint_loops(&graph, |node| node), 1);
    }

    #[test]
    fn a_self_loop_is_the_shortest() {
        let graph = graph(&[&[1], &[0], &[2]]);
        assert_eq!(shortest_loop(&graph), Some(vec![2]));
        assert_eq!(disjoint_loops(&graph, |node| node), 2);
    }

    #[test]
    fn loops_of_one_owner_count_once() {
        let graph = graph(&[&[0], &[1], &[3], &[2]]);
        assert_eq!(disjoint_loops(&graph, |node| node), 3);
        assert_eq!(disjoint_loops(&graph, |node| node.min(1)), 2);
    }

    #[test]
    fn a_graph_without_loop_has_none() {
        assert_eq!(shortest_loop(&graph(&[&[1, 2], &[2], &[]])), None);
    }
}
