//! Late removals, and room made last (`engine.md` §3, §10 step 6).
//!
//! Both add waits that no loop can come of: late ones go from steps that nothing staying waits
//! for to staying ones; room is left out where it would close a loop.

use std::collections::BTreeSet;

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
    let is_late = |step: usize| !urgent[step];
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
    // One gate per group of loop mates: its own waits, and the gates of those that refer to it.
    let groups = loops::parts(&referred);
    let mut gate_of = vec![0; lives.len() - start];
    for members in &groups {
        let gate = graph.len();
        let mut waits: BTreeSet<usize> = BTreeSet::new();
        for &member in members {
            gate_of[member] = gate;
        }
        for &member in members {
            waits.extend(&own[member]);
            for &who in &referred[member] {
                if !members.contains(&who) {
                    waits.insert(gate_of[who]);
                }
            }
        }
        graph.push(waits.into_iter().collect());
    }
    for members in &groups {
        for &member in members {
            let life = start + member;
            // A single one behind late deletes waits for their gates through them already.
            let through_deletes = members.len() == 1
                && !waypoints[life]
                && referred[member]
                    .iter()
                    .all(|who| !waypoints[start + who] && is_late(start + who));
            let steps = [Some(life), waypoints[life].then(|| rules.placeholder(life))];
            for step in steps.into_iter().flatten().filter(|step| is_late(*step)) {
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
    for (life, me) in lives.iter().enumerate() {
        if me.slots.is_empty() {
            continue;
        }
        let makes_room: Vec<usize> = reached(graph, &me.slots)
            .into_iter()
            .filter(|step| *step < rules.count())
            .filter(|step| match rules.which(*step) {
                Which::Last(other) => !lives[other].stays(),
                Which::Placeholder(other) => !lives[other].is_new(),
                Which::Settled(_) => false,
            })
            .collect();
        let first = rules.first(life, waypoints);
        let needs: Vec<usize> = graph[first]
            .iter()
            .copied()
            .filter(|step| !me.slots.contains(step))
            .collect();
        for need in needs {
            let before: BTreeSet<usize> = reached(graph, &[need]);
            for &step in &makes_room {
                if !before.contains(&step) && !graph[step].contains(&need) {
                    graph[step].push(need);
                }
            }
        }
    }
}

/// The steps themselves and everything they wait for.
fn reached(graph: &Graph, from: &[usize]) -> BTreeSet<usize> {
    let mut seen: BTreeSet<usize> = from.iter().copied().collect();
    let mut pending: Vec<usize> = from.to_vec();
    while let Some(step) = pending.pop() {
        for &next in &graph[step] {
            if seen.insert(next) {
                pending.push(next);
            }
        }
    }
    seen
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
