//! Loops in small directed graphs: strongly connected parts, shortest loops, disjoint loops.
//!
//! Nodes are numbers in the order in which choices are made; equal inputs give equal answers.

use std::collections::VecDeque;

use petgraph::{algo::kosaraju_scc, graph::DiGraph};

/// Successors of each node.
pub(crate) type Graph = Vec<Vec<usize>>;

/// Strongly connected parts, each sorted; a part comes before those that lead to it.
pub(crate) fn parts(graph: &Graph) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = kosaraju_scc(&copy(graph))
        .into_iter()
        .map(|part| part.into_iter().map(|node| node.index()).collect())
        .collect();
    parts
        .iter_mut()
        .for_each(|part: &mut Vec<usize>| part.sort_unstable());
    parts
}

/// The same graph as the library has it.
pub(crate) fn copy(graph: &Graph) -> DiGraph<(), (), usize> {
    let edge_count = graph.iter().map(Vec::len).sum();
    let mut copy: DiGraph<(), (), usize> = DiGraph::with_capacity(graph.len(), edge_count);
    for _ in graph {
        copy.add_node(());
    }
    for (from, targets) in graph.iter().enumerate() {
        for to in targets {
            copy.add_edge(from.into(), (*to).into(), ());
        }
    }
    copy
}

/// Parts that have a loop, ordered by their first node. Costs little where there is none.
pub(crate) fn looping_parts(graph: &Graph) -> Vec<Vec<usize>> {
    let mut alive = vec![true; graph.len()];
    Degrees::new(graph, &alive).peel_all(graph, &mut alive);
    let left: Vec<usize> = (0..graph.len()).filter(|node| alive[*node]).collect();
    if left.is_empty() {
        return Vec::new();
    }
    let local = within(graph, &left);
    let mut found: Vec<Vec<usize>> = parts(&local)
        .into_iter()
        .filter(|part| match part.as_slice() {
            [alone] => local[*alone].contains(alone),
            _ => true,
        })
        .map(|part| part.into_iter().map(|node| left[node]).collect())
        .collect();
    found.sort_unstable_by_key(|part| part[0]);
    found
}

/// The graph among some nodes (sorted), which become 0, 1, ...
pub(crate) fn within(graph: &Graph, nodes: &[usize]) -> Graph {
    nodes
        .iter()
        .map(|node| {
            graph[*node]
                .iter()
                .filter_map(|to| nodes.binary_search(to).ok())
                .collect()
        })
        .collect()
}

/// A shortest loop, starting at its first node; `None` when there is none. Among shortest ones
/// the one with the earliest first node.
pub(crate) fn shortest_loop(graph: &Graph) -> Option<Vec<usize>> {
    shortest_among(graph, vec![true; graph.len()], 1).pop()
}

/// What `shortest_loop` finds, and after it others as short from the same node: one to every last
/// node. Found in one search.
pub(crate) fn shortest_loops(graph: &Graph) -> Vec<Vec<usize>> {
    shortest_among(graph, vec![true; graph.len()], usize::MAX)
}

/// How many loops without a common node are found by taking shortest ones: a lower bound for
/// the number of nodes that open all of them.
pub(crate) fn disjoint_loops(graph: &Graph, owner: impl Fn(usize) -> usize) -> usize {
    let mut alive = vec![true; graph.len()];
    let mut count = 0;
    while let Some(found) = shortest_among(graph, alive.clone(), 1).pop() {
        count += 1;
        let gone: Vec<usize> = found.into_iter().map(&owner).collect();
        for (node, alive) in alive.iter_mut().enumerate() {
            *alive &= !gone.contains(&owner(node));
        }
    }
    count
}

/// Shortest loops through the first node that is on one, at most so many.
fn shortest_among(graph: &Graph, mut alive: Vec<bool>, most: usize) -> Vec<Vec<usize>> {
    let mut best: Vec<Vec<usize>> = Vec::new();
    let mut degrees = Degrees::new(graph, &alive);
    degrees.peel_all(graph, &mut alive);
    for start in 0..graph.len() {
        if !alive[start] {
            continue;
        }
        let limit = best.first().map_or(usize::MAX, Vec::len);
        let found = loops_through(graph, &alive, start, limit, most);
        if let Some(length) = found.first().map(Vec::len) {
            best = found;
            if length == 1 || (length == 2 && !has_self_loop(graph, &alive)) {
                break;
            }
        }
        // Every other loop avoids this node, and with it whatever hangs on it alone.
        degrees.remove(graph, &mut alive, start);
    }
    best
}

fn has_self_loop(graph: &Graph, alive: &[bool]) -> bool {
    graph
        .iter()
        .enumerate()
        .any(|(node, targets)| alive[node] && targets.contains(&node))
}

/// Shortest loops through `start`, shorter than `limit`, at most `most` of them.
fn loops_through(
    graph: &Graph,
    alive: &[bool],
    start: usize,
    limit: usize,
    most: usize,
) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut parent: Vec<usize> = vec![usize::MAX; graph.len()];
    let mut depth: Vec<usize> = vec![0; graph.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        let length = depth[node] + 1;
        if length >= limit || found.first().is_some_and(|first| length > first.len()) {
            break;
        }
        for &next in &graph[node] {
            if next == start {
                let mut path = vec![node];
                let mut at = node;
                while at != start {
                    at = parent[at];
                    path.push(at);
                }
                path.reverse();
                found.push(path);
                if found.len() == most {
                    return found;
                }
                break;
            }
            if alive[next] && parent[next] == usize::MAX {
                parent[next] = node;
                depth[next] = depth[node] + 1;
                queue.push_back(next);
            }
        }
    }
    found
}

/// Keeps only nodes that have a way in and a way out.
struct Degrees {
    incoming: Vec<usize>,
    outgoing: Vec<usize>,
    sources: Graph,
}

impl Degrees {
    fn new(graph: &Graph, alive: &[bool]) -> Degrees {
        let mut degrees = Degrees {
            incoming: vec![0; graph.len()],
            outgoing: vec![0; graph.len()],
            sources: vec![Vec::new(); graph.len()],
        };
        for (from, targets) in graph.iter().enumerate() {
            for &to in targets {
                if alive[from] && alive[to] {
                    degrees.incoming[to] += 1;
                    degrees.outgoing[from] += 1;
                    degrees.sources[to].push(from);
                }
            }
        }
        degrees
    }

    fn peel_all(&mut self, graph: &Graph, alive: &mut [bool]) {
        for node in 0..graph.len() {
            if alive[node] && (self.incoming[node] == 0 || self.outgoing[node] == 0) {
                self.remove(graph, alive, node);
            }
        }
    }

    fn remove(&mut self, graph: &Graph, alive: &mut [bool], node: usize) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if !std::mem::replace(&mut alive[node], false) {
                continue;
            }
            for &to in &graph[node] {
                if alive[to] {
                    self.incoming[to] -= 1;
                    if self.incoming[to] == 0 {
                        pending.push(to);
                    }
                }
            }
            for &from in &self.sources[node] {
                if alive[from] {
                    self.outgoing[from] -= 1;
                    if self.outgoing[from] == 0 {
                        pending.push(from);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_loop_starts_at_its_first_node() {
        // 0 -> 1 -> 2 -> 0 and 1 <-> 3
        let graph = vec![vec![1], vec![2, 3], vec![0], vec![1]];
        assert_eq!(shortest_loop(&graph), Some(vec![1, 3]));
        assert_eq!(disjoint_loops(&graph, |node| node), 1);
    }

    #[test]
    fn a_self_loop_is_the_shortest() {
        let graph = vec![vec![1], vec![0], vec![2]];
        assert_eq!(shortest_loop(&graph), Some(vec![2]));
        assert_eq!(disjoint_loops(&graph, |node| node), 2);
    }

    #[test]
    fn a_graph_without_loop_has_none() {
        assert_eq!(shortest_loop(&vec![vec![1, 2], vec![2], vec![]]), None);
        assert!(looping_parts(&vec![vec![1, 2], vec![2], vec![]]).is_empty());
    }

    #[test]
    fn parts_come_before_those_that_lead_to_them() {
        assert_eq!(
            parts(&vec![vec![1], vec![2], vec![1]]),
            [vec![1, 2], vec![0]]
        );
    }
}
