//! Small directed graphs, their parts and their order.
//!
//! Nodes are numbers in the order in which choices are made; equal inputs give equal answers.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::{Index, Range},
};

/// What each node leads to: lists of numbers in one list.
///
/// A plan of thousands of resources spends its time waiting for memory, so a graph of thousands of
/// nodes is two pieces of it, and walking one goes through them from front to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    targets: Vec<usize>,
    /// Where the targets of each node end.
    ends: Vec<usize>,
}

impl Graph {
    /// Without nodes, with room for so many.
    pub fn with_room(nodes: usize) -> Graph {
        Graph {
            targets: Vec::with_capacity(nodes),
            ends: Vec::with_capacity(nodes),
        }
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no node leads anywhere.
    pub fn is_without_edges(&self) -> bool {
        self.targets.is_empty()
    }

    /// One more node, that leads to these.
    pub fn push(&mut self, targets: impl IntoIterator<Item = usize>) {
        self.targets.extend(targets);
        self.ends.push(self.targets.len());
    }

    /// The targets of each node.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[usize]> + ExactSizeIterator + Clone {
        (0..self.len()).map(|node| &self[node])
    }

    /// From where to where.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        let nodes = self.iter().enumerate();
        nodes.flat_map(|(from, targets)| targets.iter().map(move |to| (from, *to)))
    }

    /// From where each node is led to.
    pub fn reversed(&self) -> Graph {
        Graph::of(self.len(), self.edges().map(|(from, to)| (to, from)))
    }

    /// With more edges.
    pub fn with(self, more: &[(usize, usize)]) -> Graph {
        match more {
            [] => self,
            _ => Graph::of(self.len(), self.edges().chain(more.iter().copied())),
        }
    }

    /// So many nodes with these edges, those of one node in the order in which they are given.
    pub fn of(count: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Graph {
        let mut ends = vec![0; count];
        let mut edge_count = 0;
        for (from, _) in edges.clone() {
            ends[from] += 1;
            edge_count += 1;
        }
        // First where each list begins, and in the end where it ends.
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut targets = vec![0; edge_count];
        for (from, to) in edges {
            targets[ends[from]] = to;
            ends[from] += 1;
        }
        Graph { targets, ends }
    }

    /// The graph among some nodes (sorted), which become 0, 1, ...
    pub fn within(&self, nodes: &[usize]) -> Graph {
        let inside = |to: &usize| nodes.binary_search(to).ok();
        nodes
            .iter()
            .map(|node| self[*node].iter().filter_map(inside))
            .collect()
    }

    fn span(&self, node: usize) -> Range<usize> {
        let begin = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[node]
    }

    /// Strongly connected parts, each sorted; a part comes before those that lead to it.
    pub fn parts(&self) -> Graph {
        let mut parts = Graph::with_room(self.len());
        self.each_part(|part| parts.push(part.iter().copied()));
        parts
    }

    /// Finds the parts by Tarjan's algorithm, which touches each edge once.
    fn each_part(&self, mut found: impl FnMut(&[usize])) {
        const CLOSED: usize = usize::MAX;
        // When each node was met, from 1; the earliest one still open that it leads to.
        let mut met: Vec<usize> = vec![0; self.len()];
        let mut low: Vec<usize> = vec![0; self.len()];
        let mut count = 0;
        let mut open: Vec<usize> = Vec::new();
        // The way to where we are, with what is left to look at on it.
        let mut way: Vec<(usize, Range<usize>)> = Vec::new();
        for root in 0..self.len() {
            let mut next = (met[root] == 0).then_some(root);
            loop {
                if let Some(node) = next.take() {
                    count += 1;
                    (met[node], low[node]) = (count, count);
                    open.push(node);
                    way.push((node, self.span(node)));
                }
                let Some((node, left)) = way.last_mut() else {
                    break;
                };
                let node = *node;
                if let Some(edge) = left.next() {
                    let to = self.targets[edge];
                    match met[to] {
                        0 => next = Some(to),
                        CLOSED => {}
                        earlier => low[node] = low[node].min(earlier),
                    }
                    continue;
                }
                way.pop();
                if let Some((before, _)) = way.last() {
                    low[*before] = low[*before].min(low[node]);
                }
                if low[node] == met[node] {
                    let first = open.iter().rposition(|other| *other == node).unwrap_or(0);
                    open[first..].sort_unstable();
                    open[first..]
                        .iter()
                        .for_each(|member| met[*member] = CLOSED);
                    found(&open[first..]);
                    open.truncate(first);
                }
            }
        }
    }

    /// Parts that have a loop, ordered by their first node.
    pub fn looping_parts(&self) -> Vec<Vec<usize>> {
        let mut looping: Vec<Vec<usize>> = Vec::new();
        self.each_part(|part| {
            if self.has_loop(part) {
                looping.push(part.to_vec());
            }
        });
        looping.sort_unstable_by_key(|part| part[0]);
        looping
    }

    /// Whether a part has a loop.
    pub fn has_loop(&self, part: &[usize]) -> bool {
        match part {
            [alone] => self[*alone].contains(alone),
            _ => true,
        }
    }

    /// The nodes in an order in which each comes after those that it leads to; among free ones the
    /// smallest rank first. Nodes on loops are left out.
    pub fn sorted(&self, rank: &dyn Fn(usize) -> (usize, usize)) -> Vec<usize> {
        let mut open: Vec<usize> = self.iter().map(<[_]>::len).collect();
        let waiting = self.reversed();
        let free = |node: usize| Reverse((rank(node), node));
        let mut ready: BinaryHeap<_> = (0..self.len())
            .filter(|node| open[*node] == 0)
            .map(free)
            .collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(node);
            for &next in &waiting[node] {
                open[next] -= 1;
                if open[next] == 0 {
                    ready.push(free(next));
                }
            }
        }
        order
    }
}

impl Index<usize> for Graph {
    type Output = [usize];
    fn index(&self, node: usize) -> &[usize] {
        &self.targets[self.span(node)]
    }
}

impl<T: IntoIterator<Item = usize>> FromIterator<T> for Graph {
    fn from_iter<N: IntoIterator<Item = T>>(nodes: N) -> Graph {
        let nodes = nodes.into_iter();
        let mut graph = Graph::with_room(nodes.size_hint().0);
        nodes.for_each(|targets| graph.push(targets));
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[&[usize]]) -> Graph {
        nodes.iter().map(|to| to.iter().copied()).collect()
    }

    #[test]
    fn parts_come_before_those_that_lead_to_them() {
        let parts = graph(&[&[1], &[2], &[1]]).parts();
        assert_eq!(parts.iter().collect::<Vec<_>>(), [&[1, 2][..], &[0]]);
    }

    #[test]
    fn a_part_is_closed_only_when_all_that_leads_back_was_seen() {
        // 0 -> 1 -> 2 -> 0, 2 -> 3 <-> 4, and 5 leads to both.
        let graph = graph(&[&[1], &[2], &[3, 0], &[4], &[3], &[0, 4]]);
        let parts = graph.parts();
        assert_eq!(
            parts.iter().collect::<Vec<_>>(),
            [&[3, 4][..], &[0, 1, 2], &[5]]
        );
        assert_eq!(graph.looping_parts(), [vec![0, 1, 2], vec![3, 4]]);
    }

    #[test]
    fn a_graph_without_loop_has_no_looping_part() {
        assert!(graph(&[&[1, 2], &[2], &[]]).looping_parts().is_empty());
        assert_eq!(graph(&[&[1], &[1]]).looping_parts(), [vec![1]]);
    }

    #[test]
    fn more_edges_come_after_those_that_are_there() {
        let graph = graph(&[&[2], &[0], &[]]).with(&[(2, 1), (0, 1)]);
        let found: Vec<_> = graph.edges().collect();
        assert_eq!(found, [(0, 2), (0, 1), (1, 0), (2, 1)]);
        let back: Vec<_> = graph.reversed().edges().collect();
        assert_eq!(back, [(0, 1), (1, 0), (1, 2), (2, 0)]);
    }

    #[test]
    fn sorting_takes_the_smallest_rank_among_the_free() {
        let graph = graph(&[&[2], &[], &[]]);
        assert_eq!(graph.sorted(&|node| (9 - node, 0)), [2, 1, 0]);
        assert_eq!(graph.sorted(&|node| (node, 0)), [1, 2, 0]);
    }
}
