//! Small directed graphs, their parts and their order.
//!
//! Nodes are numbers in the order in which choices are made; equal inputs give equal answers.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use crate::lists::Lists;

/// What each node leads to.
pub(crate) type Graph = Lists<usize>;

impl Graph {
    /// From where to where.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        self.items().map(|(from, to)| (from, *to))
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

    /// The graph among some nodes (sorted), which become 0, 1, ...
    pub fn within(&self, nodes: &[usize]) -> Graph {
        let inside = |to: &usize| nodes.binary_search(to).ok();
        nodes
            .iter()
            .map(|node| self[*node].iter().filter_map(inside))
            .collect()
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
                    let to = *self.at(edge);
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

    /// Whether there is a loop at all.
    pub fn has_loops(&self) -> bool {
        let mut found = false;
        self.each_part(|part| found |= self.has_loop(part));
        found
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
