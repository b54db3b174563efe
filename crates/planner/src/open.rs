//! Loops of steps are opened by as few waypoints as possible (`engine.md` §10 step 5).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    graph::Graph,
    lists::Lists,
    loops,
    order::{Asks, Rules, StepNumber, Wait, Which},
};

/// Who gets a `Placeholder` waypoint.
pub(crate) struct Opened {
    pub waypoints: Vec<bool>,
    /// Members of parts in which the search ran out of its budget.
    pub greedy: Vec<Vec<usize>>,
    /// The graph of steps with these waypoints, where it was needed to know them.
    pub graph: Option<Graph>,
}

/// Chooses the waypoints; none where the graph without them is `loopless`. Errors: the lives on a
/// loop that nobody opens.
pub(crate) fn open(
    rules: &Rules<'_>,
    loopless: Option<Graph>,
    budget: u32,
) -> Result<Opened, Vec<usize>> {
    let mut opened = Opened {
        waypoints: vec![false; rules.play.lives.len()],
        greedy: Vec::new(),
        graph: loopless,
    };
    if opened.graph.is_some() || rules.is_plainly_open() {
        return Ok(opened);
    }
    opened.waypoints = leaving_loops(rules);
    loop {
        let graph = rules.graph(&opened.waypoints);
        let parts = graph.looping_parts();
        if parts.is_empty() {
            opened.graph = Some(graph);
            return Ok(opened);
        }
        for part in parts {
            open_part(rules, part, budget, &mut opened)?;
        }
    }
}

/// Leaving incarnations that hold each other: all of them that can be bare are reverted.
fn leaving_loops(rules: &Rules<'_>) -> Vec<bool> {
    let lives = &rules.play.lives;
    let mut waypoints = vec![false; lives.len()];
    let start = rules.play.staying;
    if start == lives.len() {
        return waypoints;
    }
    for part in rules.referred().looping_parts() {
        for node in part {
            waypoints[start + node] = lives[start + node].can_be_bare;
        }
    }
    waypoints
}

/// One strongly connected part of the step graph.
struct Part<'r, 'p> {
    rules: &'r Rules<'p>,
    /// Steps that can be on a loop, waypoints apart; sorted.
    steps: Vec<StepNumber>,
    /// Incarnations with a step in it; sorted.
    lives: Vec<usize>,
    searches_left: u32,
    /// Sets that were found not to do with so many more.
    failed: BTreeMap<Vec<usize>, usize>,
}

enum Search {
    Found,
    Failed,
    OutOfBudget,
}

fn open_part(
    rules: &Rules<'_>,
    steps: Vec<StepNumber>,
    budget: u32,
    opened: &mut Opened,
) -> Result<(), Vec<usize>> {
    let mut lives: Vec<usize> = steps
        .iter()
        .filter_map(|step| match rules.which(*step) {
            Which::Last(life) | Which::Placeholder(life) => Some(life),
            Which::Settled(_) => None,
        })
        .collect();
    lives.sort_unstable();
    lives.dedup();
    let mut all: Vec<StepNumber> = lives.clone();
    all.extend(
        steps
            .iter()
            .filter(|step| matches!(rules.which(**step), Which::Settled(_))),
    );
    let mut part = Part {
        rules,
        steps: all,
        lives,
        searches_left: budget,
        failed: BTreeMap::new(),
    };
    let waypoints = &mut opened.waypoints;
    let first = part.take_only(waypoints)?;
    // Numbers of this part alone: there may be thousands of small ones.
    let owner = |node: usize| match rules.which(first.steps[node]) {
        Which::Last(life) | Which::Placeholder(life) => {
            part.lives.binary_search(&life).unwrap_or_else(|at| at)
        }
        Which::Settled(_) => part.lives.len() + node,
    };
    let fewest = loops::disjoint_loops(&first.targets, owner);
    let most = part.lives.iter().filter(|life| !waypoints[**life]).count();
    for count in fewest..=most {
        let mut added = Vec::new();
        match part.search(waypoints, &mut added, count) {
            Search::Found => return Ok(()),
            Search::Failed => {}
            Search::OutOfBudget => {
                opened.greedy.push(part.lives.clone());
                return part.take_first(waypoints);
            }
        }
    }
    // Only possible where step 4 let something pass that it should not have.
    Err(part.lives)
}

/// The graph inside a part.
struct Local {
    steps: Vec<StepNumber>,
    targets: Graph,
    /// The same with what is waited for, by target.
    waits: Lists<(usize, Wait)>,
}

impl Local {
    fn wait(&self, from: usize, to: usize) -> Option<Wait> {
        let waits = &self.waits[from];
        let at = waits.binary_search_by_key(&to, |(to, _)| *to).ok()?;
        Some(waits[at].1)
    }
}

impl Part<'_, '_> {
    fn graph(&self, waypoints: &[bool]) -> Local {
        let mut steps = self.steps.clone();
        let with_waypoint = self.lives.iter().filter(|life| waypoints[**life]);
        steps.extend(with_waypoint.map(|life| self.rules.placeholder(*life)));
        let mut scratch = Vec::new();
        // Where each step stands among what one step waits for.
        let mut place: Vec<Option<usize>> = vec![None; steps.len()];
        let mut inside: Vec<(usize, Wait)> = Vec::new();
        let mut targets = Graph::with_room(steps.len());
        let mut waits = Lists::with_room(steps.len());
        for step in &steps {
            self.rules.waits(*step, waypoints, &mut scratch);
            for wait in scratch.drain(..) {
                let Ok(to) = steps.binary_search(&wait.on) else {
                    continue;
                };
                match place[to] {
                    // Two reasons to wait for one step: the stronger one counts.
                    Some(at) => {
                        let known: &mut Wait = &mut inside[at].1;
                        known.lacked &= wait.lacked;
                        if known.asks != wait.asks {
                            known.asks = Asks::More;
                        }
                    }
                    None => {
                        place[to] = Some(inside.len());
                        inside.push((to, wait));
                    }
                }
            }
            inside.iter().for_each(|(to, _)| place[*to] = None);
            targets.push(inside.iter().map(|(to, _)| *to));
            inside.sort_unstable_by_key(|(to, _)| *to);
            waits.push(inside.drain(..));
        }
        Local {
            steps,
            targets,
            waits,
        }
    }

    /// Where a shortest loop has one opener alone, every answer has it: it is taken without a
    /// search. Returns the graph that is left. Errors: the lives on a loop that nobody opens.
    fn take_only(&self, waypoints: &mut [bool]) -> Result<Local, Vec<usize>> {
        loop {
            let local = self.graph(waypoints);
            let mut taken: BTreeSet<usize> = BTreeSet::new();
            for walked in loops::shortest_loops(&local.targets) {
                let openers = self.openers(&local, &walked, waypoints);
                if openers.iter().any(|opener| taken.contains(opener)) {
                    continue;
                }
                match openers[..] {
                    [] => return Err(self.lives.clone()),
                    [only] => taken.insert(only),
                    [_, _, ..] => break,
                };
            }
            if taken.is_empty() {
                return Ok(local);
            }
            taken.into_iter().for_each(|only| waypoints[only] = true);
        }
    }

    /// Looks for `count` more waypoints that leave no loop in this part. On success they are set.
    fn search(
        &mut self,
        waypoints: &mut Vec<bool>,
        added: &mut Vec<usize>,
        count: usize,
    ) -> Search {
        let mut key = added.clone();
        key.sort_unstable();
        if self.failed.get(&key).is_some_and(|tried| *tried >= count) {
            return Search::Failed;
        }
        if self.searches_left == 0 {
            return Search::OutOfBudget;
        }
        self.searches_left -= 1;
        let local = self.graph(waypoints);
        let Some(walked) = loops::shortest_loop(&local.targets) else {
            return Search::Found;
        };
        if count > 0 {
            for opener in self.openers(&local, &walked, waypoints) {
                waypoints[opener] = true;
                added.push(opener);
                match self.search(waypoints, added, count - 1) {
                    Search::Found => return Search::Found,
                    Search::Failed => {}
                    Search::OutOfBudget => {
                        waypoints[opener] = false;
                        added.pop();
                        return Search::OutOfBudget;
                    }
                }
                added.pop();
                waypoints[opener] = false;
            }
        }
        self.failed.insert(key, count);
        Search::Failed
    }

    /// Who opens a loop: entered where existing or letting go is enough, left by a wait that a
    /// placeholder lacks. New before kept before leaving, then in order.
    fn openers(&self, local: &Local, walked: &[usize], waypoints: &[bool]) -> Vec<usize> {
        let lives = &self.rules.play.lives;
        let mut found: Vec<usize> = (0..walked.len())
            .filter_map(|position| {
                let before = walked[(position + walked.len() - 1) % walked.len()];
                let here = walked[position];
                let after = walked[(position + 1) % walked.len()];
                let Which::Last(life) = self.rules.which(local.steps[here]) else {
                    return None;
                };
                let entered = local.wait(before, here)?;
                let left = local.wait(here, after)?;
                let opens = lives[life].can_be_bare
                    && !waypoints[life]
                    && entered.asks != Asks::More
                    && left.lacked;
                opens.then_some(life)
            })
            .collect();
        found.sort_unstable_by_key(|life| {
            let rank = match (lives[*life].is_new(), lives[*life].stays()) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            (rank, *life)
        });
        found
    }

    /// Takes the first opener of each loop, then drops what turns out not to be needed.
    fn take_first(&self, waypoints: &mut [bool]) -> Result<(), Vec<usize>> {
        let mut added = Vec::new();
        loop {
            let local = self.graph(waypoints);
            let Some(walked) = loops::shortest_loop(&local.targets) else {
                break;
            };
            let Some(&opener) = self.openers(&local, &walked, waypoints).first() else {
                return Err(self.lives.clone());
            };
            waypoints[opener] = true;
            added.push(opener);
        }
        for opener in added.into_iter().rev() {
            waypoints[opener] = false;
            if loops::shortest_loop(&self.graph(waypoints).targets).is_some() {
                waypoints[opener] = true;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod fewest;
