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
    loops::{self, Graph},
    order::{Rules, Which},
};

/// The whole graph with late and room waits. Nodes past `rules.count()` are no steps: they pass
/// on what they wait for.
pub(crate) fn with_last(rules: &Rules<'_>, waypoints: &[bool]) -> Graph {
    let mut graph = rules.graph(waypoints);
    if rules.play.lives.len() > rules.play.staying {
        late(rules, waypoints, &mut graph);
        room(rules, waypoints, &mut graph);
    }
    graph
}

fn late(rules: &Rules<'_>, waypoints: &[bool], graph: &mut Graph) {
    let lives = &rules.play.lives;
    let start = rules.play.staying;
    let urgent = waited_for_by_staying(rules, waypoints, graph);
    let is_late = |step: &usize| !urgent[*step];
    // What each leaving one waits for on its own account.
    let own: Vec<Vec<usize>> = (start..lives.len())
        .map(|leaving| {
            let mut waits = Vec::new();
            for holder in &lives[leaving].holders {
                if lives[holder.who].stays() {
                    waits.push(rules.let_go(holder.who, holder.in_config, waypoints));
                    waits.push(rules.finished(holder.who));
                }
            }
            waits.extend(lives[leaving].successor.map(|next| rules.finished(next)));
            waits.sort_unstable();
            waits.dedup();
            waits
        })
        .collect();
    if own.iter().all(Vec::is_empty) {
        return;
    }
    let referred: Graph = lives[start..]
        .iter()
        .map(|life| {
            life.holders
                .iter()
                .filter(|holder| holder.who >= start)
                .map(|holder| holder.who - start)
                .collect()
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
    let groups = loops::parts(&referred);
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
        graph.push(waits.into_iter().collect());
    }
    for members in &groups {
        let through_deletes = through_deletes(members);
        for &member in members {
            for step in late_steps(member) {
                if through_deletes {
                    graph[step].extend(&own[member]);
                } else {
                    graph[step].push(gate_of[member]);
                }
            }
        }
    }
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

fn room(rules: &Rules<'_>, waypoints: &[bool], graph: &mut Graph) {
    let lives = &rules.play.lives;
    if lives.iter().all(|life| life.slots.is_empty()) {
        return;
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
                pending.extend(&graph[step]);
                if makes_room(step) && !graph[step].contains(&need) && open.add(step, need) {
                    graph[step].push(need);
                }
            }
        }
    }
}

/// A graph without loops that grows. It keeps an order of its nodes, so that most questions are
/// answered by comparing two positions.
struct Loopless(Acyclic<DiGraph<(), (), usize>>);

impl Loopless {
    fn new(graph: &Graph) -> Loopless {
        let copy = loops::copy(graph);
        Loopless(Acyclic::try_from_graph(copy).expect("placeholders opened every loop"))
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

/// The nodes in an order that respects all waits; among free ones the smallest rank first.
pub(crate) fn sorted(graph: &Graph, rank: &dyn Fn(usize) -> (usize, usize)) -> Vec<usize> {
    let mut open: Vec<usize> = vec![0; graph.len()];
    let mut waiting: Graph = vec![Vec::new(); graph.len()];
    for (step, waits) in graph.iter().enumerate() {
        open[step] = waits.len();
        for &on in waits {
            waiting[on].push(step);
        }
    }
    let mut ready: BTreeSet<((usize, usize), usize)> = (0..graph.len())
        .filter(|step| open[*step] == 0)
        .map(|step| (rank(step), step))
        .collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some((_, step)) = ready.pop_first() {
        order.push(step);
        for &next in &waiting[step] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.insert((rank(next), next));
            }
        }
    }
    order
}
