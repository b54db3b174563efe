//! Incarnations in play: those that stay (new or kept), in declaration order, then those that
//! leave (`engine.md` §3, §10 step 2).

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use notation_model::{Incarnation, Standing, Value, Via};

use crate::{
    graph::Graph,
    lists::Lists,
    outlook::{Lineage, Survey},
    past::{History, Past},
    program::{Program, is_config},
};

/// One incarnation in play.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub incarnation: Incarnation,
    pub fate: Fate,
    /// Its live record; `None` when it is new.
    pub past: Option<usize>,
    /// It can be created or reverted without contributions.
    pub can_be_bare: bool,
    pub cycle: Option<usize>,
}

/// What becomes of an incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is, or will be, this desired resource, whose number is its own.
    Stays(usize),
    /// It goes.
    Leaves {
        /// The staying incarnation of its resource.
        successor: Option<usize>,
    },
}

/// All references of one resource to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Need {
    pub to: usize,
    /// One of them is part of the placeholder.
    pub config: bool,
}

/// All recorded references of one live incarnation to a leaving one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Holder {
    pub who: usize,
    /// The recorded config itself refers to it, so that a revert does not let go.
    pub in_config: bool,
    /// Only ordering edges.
    pub only_order: bool,
    /// The provider refuses to delete the target while one of them stands.
    pub holds: bool,
}

impl Life {
    /// Number of the desired resource; `None` when it leaves.
    pub fn wanted(&self) -> Option<usize> {
        match self.fate {
            Fate::Stays(number) => Some(number),
            Fate::Leaves { .. } => None,
        }
    }

    /// Of a leaving one the staying incarnation of its resource.
    pub fn successor(&self) -> Option<usize> {
        match self.fate {
            Fate::Stays(_) => None,
            Fate::Leaves { successor } => successor,
        }
    }

    pub fn stays(&self) -> bool {
        self.wanted().is_some()
    }
    pub fn is_new(&self) -> bool {
        self.past.is_none()
    }
    pub fn is_kept(&self) -> bool {
        self.stays() && self.past.is_some()
    }
}

/// Everything in play.
pub(crate) struct Play {
    pub lives: Vec<Life>,
    /// By life: what a staying one refers to, each target once.
    pub needs: Lists<Need>,
    /// By life: who is recorded to refer to a leaving one; sorted.
    pub holders: Lists<Holder>,
    /// By life: new incarnations made again that the recorded config of a live one refers to.
    pub missing: Graph,
    /// By life: leaving incarnations with the identity of a new one.
    pub slots: Graph,
    /// How many of them stay; they come first.
    pub staying: usize,
    pub cycle_count: usize,
    /// Members of each cycle, in declaration order.
    pub cycles: Vec<Vec<usize>>,
    /// Life of each record that is live or made again.
    pub life_of_past: Vec<Option<usize>>,
    /// Records that would leave, and stay since the object of another one that stays would not let
    /// go: by place, with the place of that other one.
    pub left_in_place: BTreeMap<usize, usize>,
}

impl Play {
    /// What an incarnation holds of a leaving one.
    pub fn held_by(&self, who: usize, leaving: usize) -> Option<&Holder> {
        let holders = &self.holders[leaving];
        let at = holders.binary_search_by_key(&who, |holder| holder.who);
        at.ok().map(|at| &holders[at])
    }
}

/// Puts the incarnations together. `in_scope` tells which resources this plan is about.
pub(crate) fn play(
    survey: &Survey<'_, '_>,
    in_scope: &dyn Fn(&notation_model::ResourceId) -> bool,
) -> Play {
    let (program, history) = (survey.program, survey.history);
    let mut lives: Vec<Life> = (0..program.wanted.len())
        .map(|number| staying(survey, number))
        .collect();
    let needs = needs(program);
    let mut life_of_past: Vec<Option<usize>> = vec![None; history.past.len()];
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        if let Lineage::Kept(past) | Lineage::Gone(past) = outlook.lineage {
            life_of_past[past] = Some(number);
        }
    }
    let mut leaving: Vec<usize> = (0..history.past.len())
        .filter(|index| {
            let past = &history.past[*index];
            !past.gone()
                && past.ty.is_some()
                && life_of_past[*index].is_none()
                && in_scope(&past.incarnation.resource)
        })
        .collect();
    let left_in_place = left_in_place(survey, &leaving);
    leaving.retain(|index| !left_in_place.contains_key(index));
    leaving.sort_by_key(|index| {
        let declared = program.get(&history.past[*index].incarnation.resource);
        (declared.unwrap_or(usize::MAX), *index)
    });
    let staying_count = lives.len();
    lives.reserve_exact(leaving.len());
    for index in leaving {
        life_of_past[index] = Some(lives.len());
        let past = &history.past[index];
        lives.push(Life {
            incarnation: past.incarnation.clone(),
            fate: Fate::Leaves {
                successor: program.get(&past.incarnation.resource),
            },
            past: Some(index),
            can_be_bare: past.record.can_be_bare,
            cycle: None,
        });
    }
    let References { missing, holders } =
        recorded_references(survey, &mut lives, &life_of_past, staying_count);
    let missing = Graph::of(lives.len(), missing.iter().copied());
    let holders = Lists::of(lives.len(), holders.iter().copied());
    let slots = slots(survey, &lives, staying_count);
    let slots = Graph::of(lives.len(), slots.iter().copied());
    Play {
        needs,
        holders,
        missing,
        slots,
        staying: staying_count,
        cycle_count: program.cycles.len(),
        cycles: program.cycles.clone(),
        lives,
        life_of_past,
        left_in_place,
    }
}

fn staying(survey: &Survey<'_, '_>, number: usize) -> Life {
    let wanted = &survey.program.wanted[number];
    let outlook = &survey.outlooks[number];
    let can_be_bare = match outlook.kept() {
        None => wanted.can_be_bare,
        Some(past) => {
            let marked = wanted.desired.marks.never_bare || wanted.ty.never_bare;
            survey.history.past[past].record.can_be_bare && !marked
        }
    };
    Life {
        incarnation: survey.incarnation(number),
        fate: Fate::Stays(number),
        past: outlook.kept(),
        can_be_bare,
        cycle: wanted.cycle,
    }
}

/// What each resource of a program refers to.
fn needs(program: &Program<'_>) -> Lists<Need> {
    let mut all = Lists::with_room(program.wanted.len());
    let mut needs: Vec<Need> = Vec::new();
    // Where each one stands among the needs of one that refers to it.
    let mut place: Vec<Option<usize>> = vec![None; program.wanted.len()];
    for wanted in &program.wanted {
        for (to, edge) in wanted.edges.iter() {
            let config = is_config(edge);
            match place[*to] {
                Some(at) => needs[at].config |= config,
                None => {
                    place[*to] = Some(needs.len());
                    needs.push(Need { to: *to, config });
                }
            }
        }
        needs.iter().for_each(|need| place[need.to] = None);
        all.push(needs.drain(..));
    }
    all
}

/// What records say of references to what leaves and to what is made again.
#[derive(Default)]
struct References {
    /// Who refers to what is made again from its config; each once.
    missing: BTreeSet<(usize, usize)>,
    /// Of the leaving: (leaving, who refers to it), by who refers, each pair once.
    holders: Vec<(usize, Holder)>,
}

/// Who is recorded to refer to whom, among what is in play.
fn recorded_references(
    survey: &Survey<'_, '_>,
    lives: &mut [Life],
    life_of_past: &[Option<usize>],
    staying_count: usize,
) -> References {
    let history = survey.history;
    let mut recorded = References::default();
    if lives.len() == staying_count && !history.past.iter().any(Past::gone) {
        return recorded;
    }
    let References { missing, holders } = &mut recorded;
    // Where the newest holder of each leaving one stands.
    let mut newest: Vec<usize> = vec![usize::MAX; lives.len() - staying_count];
    for (who, life) in lives.iter_mut().enumerate() {
        let Some(past) = life.past else {
            continue;
        };
        for edge in &history.past[past].record.edges {
            let in_config = matches!(edge.via, Via::Config(_));
            let Some(target) = history.meant(&edge.to) else {
                // Forgotten: nobody looks whether it is there.
                life.can_be_bare &= !in_config;
                continue;
            };
            let target_life = life_of_past[target];
            if history.past[target].gone() {
                match comes_back(survey, life_of_past, target) {
                    Some(made_again) if in_config => {
                        missing.insert((who, made_again));
                    }
                    Some(_) => {}
                    None if in_config => life.can_be_bare = false,
                    None => {}
                }
                continue;
            }
            let Some(target) = target_life.filter(|life| *life >= staying_count) else {
                continue;
            };
            let order = edge.via == Via::DependOn;
            let newest = &mut newest[target - staying_count];
            match holders.get_mut(*newest) {
                Some((_, holder)) if holder.who == who => {
                    holder.in_config |= in_config;
                    holder.only_order &= order;
                    holder.holds |= edge.holds;
                }
                _ => {
                    *newest = holders.len();
                    let holder = Holder {
                        who,
                        in_config,
                        only_order: order,
                        holds: edge.holds,
                    };
                    holders.push((target, holder));
                }
            }
        }
    }
    // Ordering orders two removals; whoever stays is held to nothing by it.
    holders.retain(|(_, holder)| !holder.only_order || holder.who >= staying_count);
    recorded
}

/// Who makes again what was found gone. Under another name it is not what a recorded config
/// refers to.
fn comes_back(
    survey: &Survey<'_, '_>,
    life_of_past: &[Option<usize>],
    gone: usize,
) -> Option<usize> {
    let key = Value::text(survey.history.past[gone].record.key.clone());
    let life = life_of_past[gone];
    life.filter(|life| survey.outlooks[*life].key.as_ref() == Some(&key))
}

/// Live records whose config names what this plan gives up: found gone, and dropped or made again
/// under another name. When that is done nothing tells any more that they cannot be reverted, so
/// it is recorded with it.
pub(crate) fn naming_what_is_lost(
    survey: &Survey<'_, '_>,
    play: &Play,
    in_scope: &dyn Fn(&notation_model::ResourceId) -> bool,
) -> Vec<usize> {
    let past = &survey.history.past;
    let lost: BTreeSet<usize> = (0..past.len())
        .filter(|index| {
            let past = &past[*index];
            past.gone() && past.ty.is_some() && in_scope(&past.incarnation.resource)
        })
        .filter(|index| comes_back(survey, &play.life_of_past, *index).is_none())
        .collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let names_one = |past: &Past<'_>| {
        past.record.edges.iter().any(|edge| {
            let meant = survey.history.meant(&edge.to);
            matches!(edge.via, Via::Config(_)) && meant.is_some_and(|meant| lost.contains(&meant))
        })
    };
    (0..past.len())
        .filter(|index| !past[*index].gone() && names_one(&past[*index]))
        .collect()
}

/// Who of the leaving cannot go: the object of a record with an unknown type holds it (nobody knows
/// how to make that let go), or that of another one that cannot go.
fn left_in_place(survey: &Survey<'_, '_>, leaving: &[usize]) -> BTreeMap<usize, usize> {
    let history = survey.history;
    let unknown = |index: &usize| {
        let past = &history.past[*index];
        past.ty.is_none() && !past.gone()
    };
    let mut holding: Vec<usize> = (0..history.past.len()).filter(unknown).collect();
    if holding.is_empty() {
        return BTreeMap::new();
    }
    let leaving: BTreeSet<usize> = leaving.iter().copied().collect();
    let mut left: BTreeMap<usize, usize> = BTreeMap::new();
    while let Some(holder) = holding.pop() {
        let edges = history.past[holder].record.edges.iter();
        for target in edges
            .filter(|edge| edge.holds)
            .filter_map(|edge| history.meant(&edge.to))
        {
            if leaving.contains(&target) && !left.contains_key(&target) {
                left.insert(target, holder);
                holding.push(target);
            }
        }
    }
    left
}

/// A new incarnation needs the place of a leaving one with the same identity: (new, leaving).
fn slots(survey: &Survey<'_, '_>, lives: &[Life], staying_count: usize) -> Vec<(usize, usize)> {
    let mut slots = Vec::new();
    if lives.len() == staying_count {
        return slots;
    }
    let mut taken: IndexMap<(&str, &str), Vec<usize>> = IndexMap::new();
    for (index, life) in lives.iter().enumerate().skip(staying_count) {
        let Some(past) = life.past.map(|past| &survey.history.past[past]) else {
            continue;
        };
        if let Some(ty) = past.ty {
            taken
                .entry((ty.identity_space.as_str(), past.record.key.as_str()))
                .or_default()
                .push(index);
        }
    }
    for number in 0..staying_count {
        let outlook = &survey.outlooks[number];
        if outlook.kept().is_some() {
            continue;
        }
        let key = outlook.key.as_ref().and_then(Value::as_text);
        if let Some(key) = key {
            let space = survey.program.wanted[number].ty.identity_space.as_str();
            let found = taken.get(&(space, key)).into_iter().flatten();
            slots.extend(found.map(|leaving| (number, *leaving)));
        }
    }
    slots
}

/// Recorded incarnations that nothing comes back for: found gone, and not made again.
pub(crate) fn forgotten(
    history: &History<'_>,
    play: &Play,
    in_scope: &dyn Fn(&notation_model::ResourceId) -> bool,
) -> Vec<Incarnation> {
    let gone = history.past.iter().enumerate().filter(|(index, past)| {
        past.gone()
            && past.ty.is_some()
            && in_scope(&past.incarnation.resource)
            && play.life_of_past[*index].is_none()
    });
    let all: BTreeSet<Incarnation> = gone
        .map(|(_, past)| past.original.incarnation.clone())
        .chain(history.renamed.iter().cloned())
        .collect();
    all.into_iter().collect()
}

/// True for a record whose removal its mark forbids: a superseded one has a successor already,
/// and what the program still declares goes by the program's mark.
pub(crate) fn is_protected(survey: &Survey<'_, '_>, life: &Life) -> bool {
    let declared = match life.fate {
        Fate::Stays(number) => Some(number),
        Fate::Leaves { successor } => successor,
    };
    let declared = declared.map(|number| survey.program.wanted[number].desired.marks.protect);
    match (declared, life.past) {
        (Some(protect), _) => {
            let superseded = life.past.is_some_and(|past| {
                survey.history.past[past].record.standing == Standing::Superseded
            });
            protect && !superseded
        }
        (None, Some(past)) => {
            let record = &survey.history.past[past].record;
            record.marks.protect && record.standing == Standing::Current
        }
        (None, None) => false,
    }
}
