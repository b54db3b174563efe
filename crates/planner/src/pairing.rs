//! Which incarnation each desired resource gets, and what is known of its values
//! (`engine.md` §3 *Forecast*, §6, §10 steps 2 and 7).
//!
//! Resources are visited in the order of references, so that a new name is known before those
//! that read it; a cycle is visited again while a member turns out to be replaced.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use indexmap::IndexMap;
use notation_model::{Expr, Owner, Params, ResourceId, Role, Shape, Standing, Value};

use crate::{
    PlanInput, PlanProblem,
    decide::{differing, may_be_same_field},
    outlook::{Differs, Lineage, Outlook, Survey},
    past::History,
    program::{Program, Wanted},
    view::Moment,
};

/// First look: which incarnations there will be. Nothing is reverted yet.
pub(crate) fn pair<'p, 'a>(
    input: &'p PlanInput<'a>,
    program: &'p Program<'a>,
    history: &'p History<'a>,
    forced: BTreeMap<usize, Vec<String>>,
) -> Result<Survey<'p, 'a>, Vec<PlanProblem>> {
    let count = program.wanted.len();
    let mut survey = Survey {
        input,
        program,
        history,
        forced,
        outlooks: vec![Outlook::default(); count],
        bare: vec![false; count],
        written_names: written_names(program),
    };
    let mut problems = Vec::new();
    for members in program.components.iter() {
        for &member in members {
            survey.outlooks[member] = survey.start(member);
        }
        loop {
            let mut replaced = false;
            for &member in members {
                match survey.weigh(member) {
                    Ok(turned) => replaced |= turned,
                    Err(problem) => problems.push(*problem),
                }
            }
            if !replaced || !problems.is_empty() {
                break;
            }
        }
        survey.settle_ahead(members);
    }
    if problems.is_empty() {
        Ok(survey)
    } else {
        problems.dedup();
        Err(problems)
    }
}

fn written_names<'p>(program: &'p Program<'_>) -> IndexMap<(&'p str, &'p str), usize> {
    let name = |wanted: &'p Wanted<'_>| {
        let (field, _) = wanted.ty.key_field()?;
        match wanted.desired.config.get(field)? {
            Expr::Known(Value::Text(name)) => {
                Some((wanted.ty.identity_space.as_str(), name.as_str()))
            }
            _ => None,
        }
    };
    let wanted = program.wanted.iter().enumerate();
    wanted
        .filter_map(|(number, wanted)| Some((name(wanted)?, number)))
        .collect()
}

impl Survey<'_, '_> {
    /// Second look, with the placeholders that are known now. Fates stay as they are.
    pub fn look_again(&mut self, bare: Vec<bool>) {
        let as_before = self.bare == bare;
        self.bare = bare;
        if as_before {
            return;
        }
        for members in self.program.components.iter() {
            for &member in members {
                self.measure(member);
            }
            self.settle_ahead(members);
        }
    }

    fn start(&self, number: usize) -> Outlook {
        let wanted = &self.program.wanted[number];
        let id = &wanted.desired.id;
        let (mut live, mut gone) = (None, None);
        for index in self.history.of_declared(wanted.declared) {
            let past = &self.history.past[index];
            match (past.record.standing, past.gone()) {
                (Standing::Current, false) => live = Some(index),
                (Standing::Current, true) => gone = Some(index),
                (Standing::Superseded, _) => {}
            }
        }
        match (live, gone) {
            (Some(live), _) => {
                let record = &self.history.past[live].record;
                let because = self.forced.get(&number).cloned().unwrap_or_default();
                if !because.is_empty() {
                    return self.successor(number, live, because);
                }
                if record.ty != wanted.desired.ty {
                    let because = vec![format!(
                        "type {} instead of {}",
                        wanted.desired.ty, record.ty
                    )];
                    return self.successor(number, live, because);
                }
                if let Some(other) = self.name_goes_to(number, &record.key) {
                    let because = vec![format!("{other} gets its name")];
                    return self.successor(number, live, because);
                }
                let key = self.kept_key(number, live);
                Outlook {
                    lineage: Lineage::Kept(live),
                    generation: self.history.past[live].incarnation.generation,
                    key_given: key.is_some(),
                    key: key.or_else(|| Some(Value::text(record.key.clone()))),
                    ..Outlook::default()
                }
            }
            (None, Some(gone)) => {
                let generation = self.history.past[gone].incarnation.generation;
                let same_type = self.history.past[gone].record.ty == wanted.desired.ty;
                let key = &self.history.past[gone].record.key;
                let kept_key = (same_type && self.name_goes_to(number, key).is_none())
                    .then(|| self.kept_key(number, gone))
                    .flatten();
                let mut outlook = Outlook {
                    lineage: Lineage::Gone(gone),
                    ..self.newcomer(number, Generation::Exactly(generation))
                };
                if let Some(key) = kept_key {
                    outlook.key = Some(key);
                    outlook.key_given = true;
                    outlook.name_cut = false;
                }
                outlook
            }
            (None, None) => self.newcomer(number, Generation::From(self.next_generation(id))),
        }
    }

    /// Who is given, by hand, the name that this resource would otherwise keep. Whether a program
    /// is accepted may not depend on who had a name before (`engine.md` §2).
    fn name_goes_to(&self, number: usize, key: &str) -> Option<&ResourceId> {
        let space = self.program.wanted[number].ty.identity_space.as_str();
        let other = *self.written_names.get(&(space, key))?;
        (other != number).then(|| &self.program.wanted[other].desired.id)
    }

    /// The one after all that are recorded.
    fn next_generation(&self, id: &ResourceId) -> u32 {
        let recorded = self.history.of(id);
        recorded
            .map(|index| self.history.past[index].incarnation.generation + 1)
            .max()
            .unwrap_or(0)
    }

    fn successor(&self, number: usize, live: usize, because: Vec<String>) -> Outlook {
        let id = &self.program.wanted[number].desired.id;
        let next = self.next_generation(id);
        Outlook {
            lineage: Lineage::Replaced(live, because),
            ..self.newcomer(number, Generation::From(next))
        }
    }

    /// A new incarnation with its name. A generation whose generated name is that of a recorded
    /// one is skipped (`engine.md` §9).
    fn newcomer(&self, number: usize, generation: Generation) -> Outlook {
        let wanted = &self.program.wanted[number];
        let mut outlook = Outlook {
            generation: match generation {
                Generation::Exactly(generation) | Generation::From(generation) => generation,
            },
            change: Differs::Yes,
            ..Outlook::default()
        };
        let Some((field, declared)) = wanted.ty.key_field() else {
            return outlook;
        };
        if declared.role == Role::Computed {
            return outlook;
        }
        match (wanted.desired.config.get(field), &wanted.ty.naming) {
            (None | Some(Expr::Name), Some(naming)) => loop {
                let made = naming.generate(&Owner {
                    deployment: self.input.deployment.clone(),
                    resource: wanted.desired.id.clone(),
                    generation: outlook.generation,
                });
                let taken = self
                    .history
                    .of(&wanted.desired.id)
                    .any(|index| self.history.past[index].record.key == made.name);
                if taken && matches!(generation, Generation::From(_)) {
                    outlook.generation += 1;
                    continue;
                }
                outlook.name_cut = made.cut;
                outlook.key = Some(Value::text(made.name));
                outlook.key_given = true;
                return outlook;
            },
            (None | Some(Expr::Name), None) => outlook,
            (Some(expr), _) => {
                outlook.key = Some(self.resolve(number, expr, Moment::Step));
                outlook
            }
        }
    }

    /// The key that a record goes on with when the program writes none: its own, for life.
    fn kept_key(&self, number: usize, past: usize) -> Option<Value> {
        let wanted = &self.program.wanted[number];
        let (field, declared) = wanted.ty.key_field()?;
        let written = wanted
            .desired
            .config
            .get(field)
            .is_some_and(|expr| *expr != Expr::Name);
        if written || declared.role == Role::Computed {
            return None;
        }
        let record = &self.history.past[past].record;
        match record.applied.get(field) {
            Some(value) => Some(value.clone()),
            None if wanted.ty.naming.is_some() => Some(Value::text(record.key.clone())),
            None => None,
        }
    }

    /// Measures one resource and replaces it when a value that is known asks for it. True when
    /// it was kept and is replaced now.
    fn weigh(&mut self, number: usize) -> Result<bool, Box<PlanProblem>> {
        let Some(kept) = self.outlooks[number].kept() else {
            self.outlooks[number].key = self.key_again(number);
            if !self.program.wanted[number].desired.contributions.is_empty() {
                self.params(number, Shape::Complete, Moment::Step)?;
            }
            return Ok(false);
        };
        let params = self.params(number, Shape::Complete, Moment::Step)?;
        let past = &self.history.past[kept];
        let ty = self.program.wanted[number].ty;
        let mut because = Vec::new();
        let mut may_replace = Vec::new();
        let changed = differing(ty, &past.record.applied, &params);
        let left = &self.input.options.left;
        let is_left = left.contains(&self.program.wanted[number].desired.id);
        for field in &changed {
            let fixed = !ty.updates
                || ty
                    .fields
                    .get(field)
                    .is_some_and(|declared| declared.immutable || declared.key);
            if !fixed {
                continue;
            }
            let before = past.record.applied.get(field);
            if is_left || may_be_same_field(ty, field, before, params.get(field)) {
                may_replace.push(field.clone());
            } else {
                because.push(field.clone());
            }
        }
        if !because.is_empty() {
            self.outlooks[number] = self.successor(number, kept, because);
            return Ok(true);
        }
        self.outlooks[number].may_replace = may_replace;
        self.note_change(number, kept, changed, params);
        Ok(false)
    }

    /// A written key that reads a peer: again, when that peer got another name.
    fn key_again(&self, number: usize) -> Option<Value> {
        let wanted = &self.program.wanted[number];
        let outlook = &self.outlooks[number];
        let written = wanted
            .ty
            .key_field()
            .and_then(|(field, _)| wanted.desired.config.get(field));
        match written {
            Some(expr) if !outlook.key_given => Some(self.resolve(number, expr, Moment::Step)),
            _ => outlook.key.clone(),
        }
    }

    /// What completing a resource changes.
    fn measure(&mut self, number: usize) {
        self.outlooks[number].may_rewrite = false;
        let Some(kept) = self.outlooks[number].kept() else {
            return;
        };
        let Ok(params) = self.params(number, Shape::Complete, Moment::Step) else {
            return;
        };
        let ty = self.program.wanted[number].ty;
        let changed = differing(ty, &self.history.past[kept].record.applied, &params);
        self.note_change(number, kept, changed, params);
    }

    fn note_change(&mut self, number: usize, kept: usize, changed: Vec<String>, params: Params) {
        let record = &self.history.past[kept].record;
        let ty = self.program.wanted[number].ty;
        let sure = record.in_doubt
            || changed.iter().any(|field| {
                !may_be_same_field(ty, field, record.applied.get(field), params.get(field))
            });
        let outlook = &mut self.outlooks[number];
        outlook.change = match (sure, changed.is_empty()) {
            (true, _) => Differs::Yes,
            (false, false) => Differs::Perhaps,
            (false, true) => Differs::No,
        };
        let writes = self.outlooks[number].change != Differs::No || self.revert_writes(number);
        self.outlooks[number].written = writes.then_some(params);
    }

    /// Which members settling may write: those whose parameters read something that a later
    /// write of this plan changes, or may.
    fn settle_ahead(&mut self, members: &[usize]) {
        let Some(&first) = members.first() else {
            return;
        };
        let in_cycle = self.program.wanted[first].cycle.is_some();
        if !in_cycle || !members.iter().any(|member| self.is_written(*member)) {
            return;
        }
        let mut readers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for &member in members {
            for (to, _) in self.program.wanted[member].edges.iter() {
                readers.entry(*to).or_default().insert(member);
            }
        }
        let mut pending: VecDeque<usize> = members.iter().copied().collect();
        let mut waiting: BTreeSet<usize> = members.iter().copied().collect();
        while let Some(member) = pending.pop_front() {
            waiting.remove(&member);
            if self.outlooks[member].may_rewrite {
                continue;
            }
            let before = self.params(member, Shape::Complete, Moment::Step);
            let after = self.params(member, Shape::Complete, Moment::Settled);
            let (Ok(before), Ok(after)) = (before, after) else {
                continue;
            };
            if differing(self.program.wanted[member].ty, &before, &after).is_empty() {
                continue;
            }
            self.outlooks[member].may_rewrite = true;
            if self.outlooks[member].kept().is_some() {
                self.outlooks[member].written = Some(after);
            }
            for &reader in readers.get(&member).into_iter().flatten() {
                if waiting.insert(reader) {
                    pending.push_back(reader);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Generation {
    /// Of one that is made again.
    Exactly(u32),
    /// The next whose name is free.
    From(u32),
}
