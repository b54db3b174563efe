//! Late removals, and room made last (`engine.md` §3, §10 step 6).
//!
//! Both add waits that no loop can come of: late ones go from steps that nothing staying waits
//! for to staying ones; room is left out where it would close a loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::{
    Direction::{self, Incoming, Outgoing},
    acyclic::Acyclic,
    graph::{DiGraph, WalkNeighbors},
};

use crate::{
    graph::Graph,
    order::{Rules, Which},
};

/// The whole graph with late and room waits. Nodes past `rules.count()` are no steps: they pass
/// on what they wait for.
pub(crate) fn with_last(rules: &Rules<'_>, waypoints: &[bool]) -> Graph {
    let mut graph = rules.graph(waypoints);
    if rules.play.lives.len() > rules.play.staying {
        let waits = late(rules, waypoints, &mut graph);
        graph = graph.with(&waits);
        let waits = room(rules, waypoints, &graph);
        graph = graph.with(&waits);
    }
    graph
}

/// Puts gates into the graph. Returns what late steps wait for besides.
fn late(rules: &Rules<'_>, waypoints: &[bool], graph: &mut Graph) -> Vec<(usize, usize)> {
    let lives = &rules.play.lives;
    let start = rules.play.staying;
    let urgent = waited_for_by_staying(rules, waypoints, graph);
    let is_late = |step: &usize| !urgent[*step];
    // What each leaving one waits for on its own account.
    let mut waits = Vec::new();
    let mut own = Graph::with_room(lives.len() - start);
    for life in &lives[start..] {
        for holder in &life.holders {
            if lives[holder.who].stays() {
                waits.push(rules.let_go(holder.who, holder.in_config, waypoints));
                waits.push(rules.finished(holder.who));
            }
        }
        waits.extend(life.successor.map(|next| rules.finished(next)));
        waits.sort_unstable();
        waits.dedup();
        own.push(waits.drain(..));
    }
    if own.iter().all(<[_]>::is_empty) {
        return Vec::new();
    }
    let referred: Graph = lives[start..]
        .iter()
        .map(|life| {
            life.holders
                .iter()
                .filter(|holder| holder.who >= start)
                .map(|holder| holder.who - start)
        })
        .collect();
    let late_steps = |member: usize| {
        let life = start + member;
        let steps = [Some(life), waypoints[life].then(|| rules.placeholder(life))];
        steps.into_iter().flatten().filter(is_late)
    };
    // A single one behind late deletes waits for what they wait for through them already.
    let through_deletes = |members: &[usize]| {
        let [member] = members else { return false };
        let deleted = |who: &usize| !waypoints[start + who] && is_late(&(start + who));
        !waypoints[start + member] && referred[*member].iter().all(deleted)
    };
    let groups = referred.parts();
    let mut gated = vec![false; lives.len() - start];
    for members in groups.iter().rev() {
        let asked = members.iter().any(|member| gated[*member]);
        let is_late = members
            .iter()
            .any(|member| late_steps(*member).next().is_some());
        if asked || (is_late && !through_deletes(members)) {
            for &member in members {
                gated[member] = true;
                referred[member].iter().for_each(|who| gated[*who] = true);
            }
        }
    }
    // What takes over from a gated one waits for these successors already.
    let renewed: BTreeSet<(usize, usize)> = (0..gated.len())
        .filter(|who| gated[*who])
        .filter_map(|who| Some((who, lives[start + who].successor?)))
        .flat_map(|(who, next)| lives[next].needs.iter().map(move |need| (who, need.to)))
        .collect();
    // One gate per group of loop mates: its own waits, and the gates of those that refer to it.
    let mut gate_of = vec![0; lives.len() - start];
    for members in groups.iter().filter(|members| gated[members[0]]) {
        let gate = graph.len();
        members.iter().for_each(|member| gate_of[*member] = gate);
        let mut waits: BTreeSet<usize> = BTreeSet::new();
        for &member in members {
            let others = referred[member]
                .iter()
                .filter(|who| members.binary_search(who).is_err());
            waits.extend(others.clone().map(|who| gate_of[*who]));
            waits.extend(&own[member]);
            if let Some(next) = lives[start + member].successor
                && others.clone().any(|who| renewed.contains(&(*who, next)))
            {
                waits.remove(&rules.finished(next));
            }
        }
        graph.push(waits);
    }
    let mut waits = Vec::new();
    for members in groups.iter() {
        let through_deletes = through_deletes(members);
        for &member in members {
            for step in late_steps(member) {
                if through_deletes {
                    waits.extend(own[member].iter().map(|on| (step, *on)));
                } else {
                    waits.push((step, gate_of[member]));
                }
            }
        }
    }
    waits
}

/// Steps that some step of a staying incarnation waits for, directly or not.
fn waited_for_by_staying(rules: &Rules<'_>, waypoints: &[bool], graph: &Graph) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut pending: Vec<usize> = (0..rules.count())
        .filter(|step| rules.exists(*step, waypoints))
        .filter(|step| match rules.which(*step) {
            Which::Settled(_) => true,
            Which::Last(life) | Which::Placeholder(life) => rules.play.lives[life].stays(),
        })
        .collect();
    for step in &pending {
        seen[*step] = true;
    }
    while let Some(step) = pending.pop() {
        for &next in &graph[step] {
            if !std::mem::replace(&mut seen[next], true) {
                pending.push(next);
            }
        }
    }
    seen
}

fn room(rules: &Rules<'_>, waypoints: &[bool], graph: &Graph) -> Vec<(usize, usize)> {
    let lives = &rules.play.lives;
    let mut waits = Vec::new();
    if lives.iter().all(|life| life.slots.is_empty()) {
        return waits;
    }
    let makes_room = |step: usize| {
        step < rules.count()
            && match rules.which(step) {
                Which::Last(other) => !lives[other].stays(),
                Which::Placeholder(other) => !lives[other].is_new(),
                Which::Settled(_) => false,
            }
    };
    let mut open = Loopless::new(graph);
    // By need: steps that wait for it or cannot, and so does whatever they wait for.
    let mut asked: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (life, me) in lives.iter().enumerate() {
        if me.slots.is_empty() {
            continue;
        }
        let needs: Vec<usize> = graph[rules.first(life, waypoints)]
            .iter()
            .copied()
            .filter(|step| !me.slots.contains(step))
            .collect();
        for need in needs {
            let asked = asked.entry(need).or_default();
            let mut pending = me.slots.clone();
            while let Some(step) = pending.pop() {
                if !asked.insert(step) || open.waits(need, step) {
                    continue;
                }
                pending.extend(open.waits_for(step));
                if makes_room(step) && !graph[step].contains(&need) && open.add(step, need) {
                    waits.push((step, need));
                }
            }
        }
    }
    waits
}

/// A graph without loops that grows. It keeps an order of its nodes, so that most questions are
/// answered by comparing two positions.
struct Loopless(Acyclic<DiGraph<(), (), usize>>);

impl Loopless {
    fn new(graph: &Graph) -> Loopless {
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
    fn waits_for(&self, node: usize) -> impl Iterator<Item = usize> {
        let on = self.0.inner().neighbors(node.into());
        on.map(|on| on.index())
    }

    /// Whether a node waits for another, directly or not. Looks from both in widening circles, an
    /// edge of the one and an edge of the other in turn: who waits for whom is mostly near, and
    /// where one of them has thousands of edges, the other mostly has few.
    fn waits(&self, from: usize, on: usize) -> bool {
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
    fn add(&mut self, node: usize, on: usize) -> bool {
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
