//! Holders that no waypoint makes let go (`engine.md` §6, §10 step 4).

use crate::{
    loops,
    order::{Rules, Which},
};

/// What one loop that placeholders cannot open asks for.
pub(crate) enum Stuck {
    /// Nothing is stuck.
    No,
    /// The delete goes ahead although this holder still refers: (holder, leaving).
    Waive(usize, usize),
    /// This holder is replaced too, because of the leaving one.
    Replace(usize, usize),
    /// This one is not reverted: its revert would wait for something that was found gone, which
    /// in turn waits for the revert (ADR 0010).
    KeepWhole(usize),
    /// Nobody can give way: the lives on the loop, in order.
    Refuse(Vec<usize>),
}

/// Looks for a loop that is left when everyone who can be bare is.
pub(crate) fn stuck(rules: &Rules<'_>) -> Stuck {
    let lives = &rules.play.lives;
    let all: Vec<bool> = lives.iter().map(|life| life.can_be_bare).collect();
    let graph = rules.graph(&all);
    let Some(part) = loops::looping_parts(&graph).into_iter().next() else {
        return Stuck::No;
    };
    let Some(walked) = loops::shortest_loop(&loops::within(&graph, &part)) else {
        return Stuck::No;
    };
    let walked: Vec<usize> = walked.into_iter().map(|node| part[node]).collect();
    let life_at = |position: usize| match rules.which(walked[position % walked.len()]) {
        Which::Last(life) | Which::Placeholder(life) => Some(life),
        Which::Settled(_) => None,
    };
    // A waypoint only weakens the graph, but for the one that waits for what is made again. A
    // loop through it is there whatever else is bare, so it cannot be the way out.
    let waits_for_remade = (0..walked.len()).find_map(|position| {
        let Which::Placeholder(life) = rules.which(walked[position]) else {
            return None;
        };
        let on = walked[(position + 1) % walked.len()];
        let me = &lives[life];
        let remade = me
            .missing
            .iter()
            .any(|missing| rules.first(*missing, &all) == on);
        (!me.is_new() && remade).then_some(life)
    });
    if let Some(life) = waits_for_remade {
        return Stuck::KeepWhole(life);
    }
    let mut entered: Vec<(usize, usize)> = (0..walked.len())
        .filter_map(|position| {
            let (from, to) = (life_at(position)?, life_at(position + 1)?);
            let from_absent = rules.which(walked[position]) == Which::Last(from);
            (from_absent && !lives[from].stays() && lives[to].is_kept()).then_some((to, from))
        })
        .collect();
    entered.sort_unstable();
    let holds = |(who, leaving): &(usize, usize)| {
        lives[*leaving]
            .holders
            .iter()
            .any(|holder| holder.who == *who && holder.holds)
    };
    if let Some(&(who, leaving)) = entered.iter().find(|pair| !holds(pair)) {
        return Stuck::Waive(who, leaving);
    }
    match entered.first() {
        Some(&(who, leaving)) => Stuck::Replace(who, leaving),
        None => {
            let mut on_loop: Vec<usize> = (0..walked.len()).filter_map(life_at).collect();
            on_loop.dedup();
            Stuck::Refuse(on_loop)
        }
    }
}
