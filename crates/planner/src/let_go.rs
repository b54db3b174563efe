//! Holders that no waypoint makes let go (`engine.md` §6, §10 step 4).

use std::collections::BTreeSet;

use crate::{
    graph::Graph,
    loops,
    order::{Rules, StepNumber, Which},
};

/// What the loops that placeholders cannot open ask for.
pub(crate) enum Stuck {
    /// Nothing is stuck.
    No,
    /// Deletes go ahead although these holders still refer: (holder, leaving).
    Waive(Vec<(usize, usize)>),
    /// These holders are replaced too, because of the leaving ones: (holder, leaving).
    Replace(Vec<(usize, usize)>),
    /// This one is not reverted: its revert would wait for something that was found gone, which
    /// in turn waits for the revert (ADR 0010).
    KeepWhole(usize),
    /// Nobody can give way.
    Refuse(Vec<Held>),
}

/// A loop in which nobody lets go.
pub(crate) struct Held {
    /// The lives on it, in order.
    pub on_loop: Vec<usize>,
    /// Who should let go of whom: (holder, leaving), all of them leaving.
    pub released: Vec<(usize, usize)>,
}

/// Looks for loops that are left when everyone who can be bare is. Says what a shortest one asks
/// for, and with it what others ask for that neither changes nor is changed by that, so that
/// thousands of holders of one thing are not thousands of searches.
pub(crate) fn stuck(rules: &Rules<'_>) -> Stuck {
    let all: Vec<bool> = rules
        .play
        .lives
        .iter()
        .map(|life| life.can_be_bare)
        .collect();
    let graph = rules.graph(&all);
    let mut waived: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut replaced: Vec<(usize, usize)> = Vec::new();
    let mut held: Vec<Held> = Vec::new();
    for walked in shortest_of_each_part(&graph) {
        let walked = Walked {
            rules,
            steps: walked,
        };
        let released = walked.released();
        if released.iter().any(|pair| waived.contains(pair)) {
            continue;
        }
        match (walked.asks(&all, &released), replaced.as_slice()) {
            (Stuck::Waive(pairs), []) => waived.extend(pairs),
            (Stuck::Replace(pairs), []) if waived.is_empty() => replaced.extend(pairs),
            (Stuck::Replace(pairs), [_, ..]) => {
                replaced.extend(pairs.into_iter().filter(|(who, _)| walked.is_apart(*who)));
            }
            (Stuck::Refuse(loops), []) if waived.is_empty() => held.extend(loops),
            (first, []) if waived.is_empty() => return first,
            _ => break,
        }
    }
    match (waived.is_empty(), replaced.is_empty(), held.is_empty()) {
        (false, _, _) => Stuck::Waive(waived.into_iter().collect()),
        (true, false, _) => Stuck::Replace(replaced),
        (true, true, false) => Stuck::Refuse(held),
        (true, true, true) => Stuck::No,
    }
}

/// Shortest loops of each strongly connected part, by its first step.
fn shortest_of_each_part(graph: &Graph) -> impl Iterator<Item = Vec<StepNumber>> {
    let parts = graph.looping_parts().into_iter();
    parts.flat_map(|part| {
        let found = loops::shortest_loops(&graph.within(&part));
        let whole = |walked: Vec<usize>| walked.into_iter().map(|node| part[node]).collect();
        found.into_iter().map(whole).collect::<Vec<_>>()
    })
}

/// One loop of steps, each waiting for the next.
struct Walked<'r, 'p> {
    rules: &'r Rules<'p>,
    steps: Vec<StepNumber>,
}

impl Walked<'_, '_> {
    fn life_at(&self, position: usize) -> Option<usize> {
        match self.rules.which(self.steps[position % self.steps.len()]) {
            Which::Last(life) | Which::Placeholder(life) => Some(life),
            Which::Settled(_) => None,
        }
    }

    fn lives(&self) -> impl Iterator<Item = usize> {
        (0..self.steps.len()).filter_map(|position| self.life_at(position))
    }

    /// Kept and leaving holders that it enters by a delete that waits for them, with what is
    /// deleted; sorted, those that stay first.
    fn released(&self) -> Vec<(usize, usize)> {
        let lives = &self.rules.play.lives;
        let mut released: Vec<(usize, usize)> = (0..self.steps.len())
            .filter_map(|position| {
                let (from, to) = (self.life_at(position)?, self.life_at(position + 1)?);
                let from_absent = self.rules.which(self.steps[position]) == Which::Last(from);
                let holds_on = from != to && !lives[to].is_new();
                (from_absent && !lives[from].stays() && holds_on).then_some((to, from))
            })
            .collect();
        released.sort_unstable();
        released
    }

    fn asks(&self, all: &[bool], released: &[(usize, usize)]) -> Stuck {
        let lives = &self.rules.play.lives;
        // A waypoint only weakens the graph, but for the one that waits for what is made again. A
        // loop through it is there whatever else is bare, so it cannot be the way out.
        let waits_for_remade = (0..self.steps.len()).find_map(|position| {
            let Which::Placeholder(life) = self.rules.which(self.steps[position]) else {
                return None;
            };
            let on = self.steps[(position + 1) % self.steps.len()];
            let remade = self.rules.play.missing[life]
                .iter()
                .any(|missing| self.rules.first(*missing, all) == on);
            (!lives[life].is_new() && remade).then_some(life)
        });
        if let Some(life) = waits_for_remade {
            return Stuck::KeepWhole(life);
        }
        let holds = |(who, leaving): &(usize, usize)| {
            let held = self.rules.play.held_by(*who, *leaving);
            held.is_some_and(|held| held.holds)
        };
        // Who stays gives way first; among those that leave only what holds nothing can.
        let stays = |(who, _): &&(usize, usize)| lives[*who].stays();
        let kept: Vec<(usize, usize)> = released.iter().filter(stays).copied().collect();
        let asked = if kept.is_empty() { released } else { &kept };
        if let Some(pair) = asked.iter().find(|pair| !holds(pair)) {
            return Stuck::Waive(vec![*pair]);
        }
        match kept.first() {
            Some(pair) => Stuck::Replace(vec![*pair]),
            None => {
                let mut on_loop: Vec<usize> = self.lives().collect();
                on_loop.dedup();
                Stuck::Refuse(vec![Held {
                    on_loop,
                    released: released.to_vec(),
                }])
            }
        }
    }

    /// True where no other replacement can change what this loop asks for: its holder needs
    /// nobody but those on the loop, and all of these are new or leave in any case.
    fn is_apart(&self, holder: usize) -> bool {
        let lives = &self.rules.play.lives;
        let on_loop: BTreeSet<usize> = self.lives().collect();
        let others = on_loop.iter().filter(|life| **life != holder);
        let mut needs = self.rules.play.needs[holder].iter();
        others.into_iter().all(|life| !lives[*life].is_kept())
            && needs.all(|need| on_loop.contains(&need.to))
    }
}
