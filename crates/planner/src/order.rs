//! The step graph and its three rules: need, release, slot (`engine.md` §3, §10 step 3).

use std::collections::BTreeSet;

use crate::{graph::Graph, play::Play};

/// A step by number: first the last step of each incarnation (`Complete` or `Absent`), then
/// `Settled` of each cycle, then `Placeholder` of each incarnation.
pub(crate) type StepNumber = usize;

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub on: StepNumber,
    pub asks: Asks,
    /// A placeholder of the waiting incarnation would not wait for it.
    pub lacked: bool,
}

/// What a wait asks of the step it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// That the incarnation exists, in whatever shape.
    Existence,
    /// That it has let go of something its recorded config does not name.
    LettingGo,
    /// More than a placeholder gives.
    More,
}

/// The rules over what is in play.
pub(crate) struct Rules<'p> {
    pub play: &'p Play,
    /// Holders that a delete does not wait for: (kept or leaving, leaving).
    pub waived: BTreeSet<(usize, usize)>,
}

/// Which step a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Last(usize),
    Settled(usize),
    Placeholder(usize),
}

impl Rules<'_> {
    pub fn settled(&self, cycle: usize) -> StepNumber {
        self.play.lives.len() + cycle
    }

    pub fn placeholder(&self, life: usize) -> StepNumber {
        self.play.lives.len() + self.play.cycle_count + life
    }

    /// Nobody refers to what leaves, nothing takes its place, and nothing reverts to what is made
    /// again: no release, no slot.
    pub fn only_needs(&self) -> bool {
        self.play.slots.are_empty()
            && self.play.missing.are_empty()
            && self.play.holders.are_empty()
    }

    /// True where no loop can be: only needs, and every member of a cycle exists already.
    pub fn is_plainly_open(&self) -> bool {
        self.only_needs()
            && self
                .play
                .lives
                .iter()
                .all(|life| life.cycle.is_none() || life.is_kept())
    }

    /// The graph without waypoints, when it is free of loops whoever gets one: a waypoint leads
    /// only where its incarnation leads anyway, but for a revert to what is made again.
    pub fn loopless(&self) -> Option<Graph> {
        let mut holders = self.play.holders.items();
        let holds_itself = holders.any(|(life, holder)| holder.who == life);
        if holds_itself || !self.waived.is_empty() || !self.play.missing.are_empty() {
            return None;
        }
        let graph = self.graph(&vec![false; self.play.lives.len()]);
        (!graph.has_loops()).then_some(graph)
    }

    /// How many step numbers there are.
    pub fn count(&self) -> usize {
        2 * self.play.lives.len() + self.play.cycle_count
    }

    pub fn which(&self, step: StepNumber) -> Which {
        let lives = self.play.lives.len();
        if step < lives {
            Which::Last(step)
        } else if step < lives + self.play.cycle_count {
            Which::Settled(step - lives)
        } else {
            Which::Placeholder(step - lives - self.play.cycle_count)
        }
    }

    pub fn exists(&self, step: StepNumber, waypoints: &[bool]) -> bool {
        match self.which(step) {
            Which::Last(_) | Which::Settled(_) => true,
            Which::Placeholder(life) => waypoints[life],
        }
    }

    pub fn first(&self, life: usize, waypoints: &[bool]) -> StepNumber {
        if waypoints[life] {
            self.placeholder(life)
        } else {
            life
        }
    }

    /// When a staying incarnation is complete and its whole cycle settled.
    pub fn finished(&self, life: usize) -> StepNumber {
        self.play.lives[life]
            .cycle
            .map_or(life, |cycle| self.settled(cycle))
    }

    /// When a holder has let go.
    pub fn let_go(&self, holder: usize, in_config: bool, waypoints: &[bool]) -> StepNumber {
        if waypoints[holder] && !in_config {
            self.placeholder(holder)
        } else {
            holder
        }
    }

    /// Who of the leaving refers to each of them; numbered from the first one that leaves.
    pub fn referred(&self) -> Graph {
        let start = self.play.staying;
        let leaving = start..self.play.lives.len();
        leaving
            .map(|life| {
                let holders = self.play.holders[life].iter();
                holders.filter_map(move |holder| holder.who.checked_sub(start))
            })
            .collect()
    }

    /// Everything one step waits for, in a fixed order.
    pub fn waits(&self, step: StepNumber, waypoints: &[bool], out: &mut Vec<Wait>) {
        match self.which(step) {
            Which::Settled(cycle) => {
                out.extend(self.play.cycles[cycle].iter().map(|member| Wait {
                    on: *member,
                    asks: Asks::More,
                    lacked: false,
                }));
            }
            Which::Placeholder(life) => self.placeholder_waits(life, waypoints, out),
            Which::Last(life) if self.play.lives[life].stays() => {
                self.complete_waits(life, waypoints, out);
            }
            Which::Last(life) => self.absent_waits(life, waypoints, out),
        }
    }

    fn placeholder_waits(&self, life: usize, waypoints: &[bool], out: &mut Vec<Wait>) {
        let me = &self.play.lives[life];
        if !me.is_new() {
            out.extend(self.play.missing[life].iter().map(|missing| Wait {
                on: self.first(*missing, waypoints),
                asks: Asks::Existence,
                lacked: false,
            }));
            return;
        }
        for need in self.play.needs[life].iter().filter(|need| need.config) {
            self.need(life, need.to, false, waypoints, out);
        }
        self.slot_waits(life, out);
    }

    fn complete_waits(&self, life: usize, waypoints: &[bool], out: &mut Vec<Wait>) {
        let me = &self.play.lives[life];
        if waypoints[life] {
            out.push(Wait {
                on: self.placeholder(life),
                asks: Asks::More,
                lacked: false,
            });
        }
        for need in &self.play.needs[life] {
            // A revert needs nothing; a bare creation needs what the config refers to.
            let lacked = me.is_kept() || !need.config;
            self.need(life, need.to, lacked, waypoints, out);
        }
        if !waypoints[life] {
            self.slot_waits(life, out);
        }
    }

    fn need(&self, life: usize, to: usize, lacked: bool, waypoints: &[bool], out: &mut Vec<Wait>) {
        let (me, target) = (&self.play.lives[life], &self.play.lives[to]);
        let same_cycle = me.cycle.is_some() && me.cycle == target.cycle;
        if !same_cycle {
            out.push(Wait {
                on: self.finished(to),
                asks: Asks::More,
                lacked,
            });
        } else if target.is_new() || waypoints[to] {
            out.push(Wait {
                on: self.first(to, waypoints),
                asks: Asks::Existence,
                lacked,
            });
        }
    }

    fn slot_waits(&self, life: usize, out: &mut Vec<Wait>) {
        out.extend(self.play.slots[life].iter().map(|taken| Wait {
            on: *taken,
            asks: Asks::More,
            lacked: false,
        }));
    }

    fn absent_waits(&self, life: usize, waypoints: &[bool], out: &mut Vec<Wait>) {
        if waypoints[life] {
            out.push(Wait {
                on: self.placeholder(life),
                asks: Asks::More,
                lacked: false,
            });
        }
        for holder in &self.play.holders[life] {
            let waived = self.waived.contains(&(holder.who, life));
            // Nobody stands in its own way who cannot let go of itself.
            let stuck_on_itself =
                holder.who == life && (holder.in_config || !self.play.lives[life].can_be_bare);
            if waived || stuck_on_itself {
                continue;
            }
            out.push(Wait {
                on: self.let_go(holder.who, holder.in_config, waypoints),
                asks: if holder.in_config {
                    Asks::More
                } else {
                    Asks::LettingGo
                },
                lacked: true,
            });
        }
    }

    /// The whole graph: what each step waits for.
    pub fn graph(&self, waypoints: &[bool]) -> Graph {
        let mut waits = Vec::new();
        let mut graph = Graph::with_room(self.count());
        for step in 0..self.count() {
            if self.exists(step, waypoints) {
                self.waits(step, waypoints, &mut waits);
            }
            graph.push(waits.drain(..).map(|wait| wait.on));
        }
        graph
    }
}
