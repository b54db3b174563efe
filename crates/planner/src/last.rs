//! Late removals, and room made last (`engine.md` §3, §10 step 6).
//!
//! Both add waits that no loop can come of: late ones go from steps that nothing staying waits
//! for to staying ones; room is left out where it would close a loop.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    graph::Graph,
    loopless::Loopless,
    order::{Rules, Which},
};

/// The whole graph of steps, with late and room waits. Nodes past `rules.count()` are no steps: they pass
/// on what they wait for.
pub(crate) fn with_last(rules: &Rules<'_>, waypoints: &[bool], mut graph: Graph) -> Graph {
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
    for (index, life) in lives.iter().enumerate().skip(start) {
        for holder in &rules.play.holders[index] {
            if lives[holder.who].stays() {
                waits.push(rules.let_go(holder.who, holder.in_config, waypoints));
                waits.push(rules.finished(holder.who));
            }
        }
        waits.extend(life.successor().map(|next| rules.finished(next)));
        waits.sort_unstable();
        waits.dedup();
        own.push(waits.drain(..));
    }
    if own.iter().all(<[_]>::is_empty) {
        return Vec::new();
    }
    let referred = rules.referred();
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
        .filter_map(|who| Some((who, lives[start + who].successor()?)))
        .flat_map(|(who, next)| {
            let needs = rules.play.needs[next].iter();
            needs.map(move |need| (who, need.to))
        })
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
            if let Some(next) = lives[start + member].successor()
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
    let slots = &rules.play.slots;
    let mut waits = Vec::new();
    if slots.are_empty() {
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
    for (life, slots) in slots.iter().enumerate() {
        if slots.is_empty() {
            continue;
        }
        let needs: Vec<usize> = graph[rules.first(life, waypoints)]
            .iter()
            .copied()
            .filter(|step| !slots.contains(step))
            .collect();
        for need in needs {
            let asked = asked.entry(need).or_default();
            let mut pending = slots.to_vec();
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
