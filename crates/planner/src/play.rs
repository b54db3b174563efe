//! Incarnations in play: those that stay (new or kept), in declaration order, then those that
//! leave (`engine.md` §3, §10 step 2).

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use notation_model::{Incarnation, Standing, Text, Value, Via};

use crate::{
    graph::Graph,
    outlook::Survey,
    past::{History, Past},
    program::is_config,
};

/// One incarnation in play.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub incarnation: Incarnation,
    /// Number of the desired resource; `None` when it leaves.
    pub wanted: Option<usize>,
    /// Its live record; `None` when it is new.
    pub past: Option<usize>,
    /// It can be created or reverted without contributions.
    pub can_be_bare: bool,
    pub cycle: Option<usize>,
    /// References of a staying one, one per target.
    pub needs: Vec<Need>,
    /// Who is recorded to refer to a leaving one; sorted.
    pub holders: Vec<Holder>,
    /// The staying incarnation of the resource of a leaving one.
    pub successor: Option<usize>,
}

/// All references of one resource to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub to: usize,
    /// One of them is part of the placeholder.
    pub config: bool,
}

/// All recorded references of one live incarnation to a leaving one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub who: usize,
    /// The recorded config itself refers to it, so that a revert does not let go.
    pub in_config: bool,
    /// Only ordering edges.
    pub only_order: bool,
    /// The provider refuses to delete the target while one of them stands.
    pub holds: bool,
    /// The place of a reference, for people.
    pub place: Text,
}

impl Life {
    pub fn stays(&self) -> bool {
        self.wanted.is_some()
    }
    pub fn is_new(&self) -> bool {
        self.past.is_none()
    }
    pub fn is_kept(&self) -> bool {
        self.wanted.is_some() && self.past.is_some()
    }

    /// What one incarnation holds of this one.
    pub fn held_by(&self, who: usize) -> Option<&Holder> {
        let at = self.holders.binary_search_by_key(&who, |holder| holder.who);
        at.ok().map(|at| &self.holders[at])
    }
}

/// Everything in play.
pub(crate) struct Play {
    pub lives: Vec<Life>,
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

/// Puts the incarnations together. `in_scope` tells which resources this plan is about.
pub(crate) fn play(
    survey: &Survey<'_, '_>,
    in_scope: &dyn Fn(&notation_model::ResourceId) -> bool,
) -> Play {
    let (program, history) = (survey.program, survey.history);
    let mut place = vec![None; program.wanted.len()];
    let mut lives: Vec<Life> = (0..program.wanted.len())
        .map(|number| staying(survey, number, &mut place))
        .collect();
    let mut life_of_past: Vec<Option<usize>> = vec![None; history.past.len()];
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        for past in outlook.kept.into_iter().chain(outlook.made_again) {
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
            wanted: None,
            past: Some(index),
            can_be_bare: past.record.can_be_bare,
            cycle: None,
            needs: Vec::new(),
            holders: Vec::new(),
            successor: program.get(&past.incarnation.resource),
        });
    }
    let missing = recorded_references(survey, &mut lives, &life_of_past, staying_count);
    let missing = Graph::of(lives.len(), missing.iter().copied());
    let slots = slots(survey, &lives, staying_count);
    let slots = Graph::of(lives.len(), slots.iter().copied());
    Play {
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

/// `place`, nothing for each, tells where one stands among the needs.
fn staying(survey: &Survey<'_, '_>, number: usize, place: &mut [Option<usize>]) -> Life {
    let wanted = &survey.program.wanted[number];
    let outlook = &survey.outlooks[number];
    let mut needs: Vec<Need> = Vec::with_capacity(wanted.edges.len());
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
    let can_be_bare = match outlook.kept {
        None => wanted.can_be_bare,
        Some(past) => {
            let marked = wanted.desired.marks.never_bare || wanted.ty.never_bare;
            survey.history.past[past].record.can_be_bare && !marked
        }
    };
    Life {
        incarnation: survey.incarnation(number),
        wanted: Some(number),
        past: outlook.kept,
        can_be_bare,
        cycle: wanted.cycle,
        needs,
        holders: Vec::new(),
        successor: None,
    }
}

/// Who is recorded to refer to whom, among what is in play. Returns who refers to what is made again
/// from its config; sorted, each once.
fn recorded_references(
    survey: &Survey<'_, '_>,
    lives: &mut [Life],
    life_of_past: &[Option<usize>],
    staying_count: usize,
) -> BTreeSet<(usize, usize)> {
    let history = survey.history;
    let mut missing = BTreeSet::new();
    if lives.len() == staying_count && !history.past.iter().any(Past::gone) {
        return missing;
    }
    for who in 0..lives.len() {
        let Some(past) = lives[who].past else {
            continue;
        };
        for edge in &history.past[past].record.edges {
            let in_config = matches!(edge.via, Via::Config(_));
            let Some(target) = history.meant(&edge.to) else {
                // Forgotten: nobody looks whether it is there.
                lives[who].can_be_bare &= !in_config;
                continue;
            };
            let life = life_of_past[target];
            if history.past[target].gone() {
                match comes_back(survey, life_of_past, target) {
                    Some(made_again) if in_config => {
                        missing.insert((who, made_again));
                    }
                    Some(_) => {}
                    None if in_config => lives[who].can_be_bare = false,
                    None => {}
                }
                continue;
            }
            let Some(target) = life.filter(|life| *life >= staying_count) else {
                continue;
            };
            let order = edge.via == Via::DependOn;
            let holders = &mut lives[target].holders;
            match holders.last_mut().filter(|last| last.who == who) {
                Some(holder) => {
                    holder.in_config |= in_config;
                    holder.only_order &= order;
                    holder.holds |= edge.holds;
                }
                None => holders.push(Holder {
                    who,
                    in_config,
                    only_order: order,
                    holds: edge.holds,
                    place: match &edge.via {
                        Via::Config(place) | Via::Contribution(place) => place.clone(),
                        Via::DependOn => edge.via.to_string().into(),
                    },
                }),
            }
        }
    }
    // Ordering orders two removals; whoever stays is held to nothing by it.
    for life in &mut lives[staying_count..] {
        let holds = |holder: &Holder| !holder.only_order || holder.who >= staying_count;
        life.holders.retain(holds);
    }
    missing
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
        if outlook.kept.is_some() {
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
    let declared = life
        .wanted
        .or(life.successor)
        .map(|number| survey.program.wanted[number].desired.marks.protect);
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
