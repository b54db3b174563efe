//! `--target`: expanded to whole cycles, to what they need and to what must let go of them or of
//! their names (`spec/cli.md`, *Commands*).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{Expr, ResourceId, Standing, Value, Via};

use crate::{
    Goal, Plan, PlanInput, PlanProblem, Subject, graph::Graph, past::History, program::Program,
};

/// What `--target` takes in. It only grows: what a plan of it asks for besides is taken in too.
pub(crate) struct Scope<'s, 'a> {
    input: &'s PlanInput<'a>,
    whole: &'s Program<'a>,
    history: &'s History<'a>,
    /// Live records that hold each record by more than order.
    holders: Graph,
    /// Records that may be left in place for what nobody knows how to make let go.
    may_stay: Vec<bool>,
    /// Components of the program that were taken in.
    entered: Vec<bool>,
    pub ids: BTreeSet<ResourceId>,
}

impl<'s, 'a> Scope<'s, 'a> {
    /// The targets and whatever comes along whichever else does.
    pub fn of_targets(
        input: &'s PlanInput<'a>,
        whole: &'s Program<'a>,
        history: &'s History<'a>,
    ) -> Scope<'s, 'a> {
        let mut scope = Scope {
            input,
            whole,
            history,
            holders: holders(history),
            may_stay: held_by_unknown(history),
            entered: vec![false; whole.components.len()],
            ids: BTreeSet::new(),
        };
        scope.take_in(input.options.target.iter().cloned());
        scope
    }

    /// Takes these in, with their cycles, what they need, and who must let go of those that leave
    /// in every plan of them: a chain of removals is so walked at once, not with a plan per link.
    pub fn take_in(&mut self, ids: impl IntoIterator<Item = ResourceId>) {
        let mut pending: Vec<ResourceId> = ids.into_iter().collect();
        while let Some(id) = pending.pop() {
            if self.ids.contains(&id) {
                continue;
            }
            if let Some(number) = self.whole.get(&id) {
                let wanted = &self.whole.wanted[number];
                let id = |number: &usize| self.whole.wanted[*number].desired.id.clone();
                if !std::mem::replace(&mut self.entered[wanted.component], true) {
                    pending.extend(self.whole.components[wanted.component].iter().map(id));
                }
                pending.extend(wanted.edges.iter().map(|(to, _)| id(to)));
            }
            for past in self
                .history
                .of(&id)
                .filter(|past| self.leaves_anyway(*past))
            {
                pending.extend(self.holders_of(past).cloned());
            }
            self.ids.insert(id);
        }
    }

    /// Resources outside that a plan of what is inside asks for: who holds what leaves, and who has
    /// the identity of what is made.
    pub fn asked_by(&self, plan: &Plan) -> BTreeSet<ResourceId> {
        let leaving = plan.steps.iter().filter(|step| step.goal == Goal::Absent);
        let leaving = leaving.filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => self.history.find(incarnation),
            Subject::Cycle(_) => None,
        });
        leaving
            .flat_map(|past| self.holders_of(past))
            .filter(|holder| !self.ids.contains(*holder))
            .cloned()
            .chain(outside_namesakes(self.input, self.history, plan, &self.ids))
            .collect()
    }

    fn holders_of(&self, past: usize) -> impl Iterator<Item = &'s ResourceId> {
        let history = self.history;
        let holders = self.holders[past].iter();
        holders.map(|holder| &history.past[*holder].incarnation.resource)
    }

    /// True for what leaves in every plan that has its resource in scope.
    fn leaves_anyway(&self, past: usize) -> bool {
        let may_stay = self.may_stay[past];
        let past = &self.history.past[past];
        let undeclared = self.whole.get(&past.incarnation.resource).is_none();
        let superseded = past.record.standing == Standing::Superseded;
        past.ty.is_some() && !past.gone() && !may_stay && (undeclared || superseded)
    }
}

/// What objects of an unknown type hold, directly or not.
fn held_by_unknown(history: &History<'_>) -> Vec<bool> {
    let mut held = vec![false; history.past.len()];
    let past = history.past.iter().enumerate();
    let unknown = past.filter(|(_, past)| past.ty.is_none() && !past.gone());
    let mut pending: Vec<usize> = unknown.map(|(index, _)| index).collect();
    while let Some(holder) = pending.pop() {
        let edges = history.past[holder].record.edges.iter();
        let holds = edges.filter(|edge| edge.holds);
        for target in holds.filter_map(|edge| history.meant(&edge.to)) {
            if !std::mem::replace(&mut held[target], true) {
                pending.push(target);
            }
        }
    }
    held
}

/// Who of the live holds each record by more than order.
fn holders(history: &History<'_>) -> Graph {
    let past = history.past.iter().enumerate();
    let held = past
        .filter(|(_, past)| !past.gone())
        .flat_map(|(who, past)| {
            let edges = past.record.edges.iter();
            let edges = edges.filter(|edge| edge.via != Via::DependOn);
            edges.filter_map(move |edge| Some((history.meant(&edge.to)?, who)))
        });
    Graph::of(history.past.len(), held)
}

/// Resources outside the scope that are recorded with the identity of something to be made.
fn outside_namesakes(
    input: &PlanInput<'_>,
    history: &History<'_>,
    plan: &Plan,
    scope: &BTreeSet<ResourceId>,
) -> BTreeSet<ResourceId> {
    let outside: BTreeMap<(&str, &str), &ResourceId> = history
        .past
        .iter()
        .filter(|past| !past.gone() && !scope.contains(&past.incarnation.resource))
        .filter_map(|past| {
            let identity = (past.ty?.identity_space.as_str(), past.record.key.as_str());
            Some((identity, &past.incarnation.resource))
        })
        .collect();
    let made = plan.intended.iter().filter(|(incarnation, _)| {
        let past = history.find(incarnation);
        past.is_none_or(|past| history.past[past].gone())
    });
    made.filter_map(|(_, intended)| {
        let ty = input.types.get(&intended.ty)?;
        let (field, _) = ty.key_field()?;
        let Expr::Known(Value::Text(key)) = intended.config.get(field)? else {
            return None;
        };
        let identity = (ty.identity_space.as_str(), key.as_str());
        outside.get(&identity).map(|resource| (*resource).clone())
    })
    .collect()
}

/// Ids given on the command line that name nothing the flag could be about. Only what is declared
/// can be replaced; a recorded object can be left alone or taken back without being declared.
pub(crate) fn unknown_ids(
    input: &PlanInput<'_>,
    whole: &Program<'_>,
    history: &History<'_>,
) -> Vec<PlanProblem> {
    let target = input.options.target.iter().map(|id| ("--target", id));
    let flagged = flagged(input).chain(target);
    flagged
        .filter_map(|(flag, id)| {
            let recorded = !history.of(id).is_empty();
            match (whole.get(id), flag, recorded) {
                (Some(_), _, _) => None,
                (None, "--replace", true) => Some(PlanProblem::NotDeclared {
                    flag,
                    resource: id.clone(),
                }),
                (None, _, true) => None,
                (None, _, false) => Some(PlanProblem::UnknownId {
                    flag,
                    resource: id.clone(),
                }),
            }
        })
        .collect()
}

/// Ids given on the command line that `--target`, expanded to this scope, leaves out.
pub(crate) fn left_out(input: &PlanInput<'_>, scope: &BTreeSet<ResourceId>) -> Vec<PlanProblem> {
    let left_out = flagged(input).filter(|(_, id)| !scope.contains(*id));
    left_out
        .map(|(flag, id)| PlanProblem::LeftOut {
            flag,
            resource: id.clone(),
            target: input.options.target.iter().cloned().collect(),
        })
        .collect()
}

/// What was asked for single resources, with the flag that asked.
fn flagged<'i>(input: &PlanInput<'i>) -> impl Iterator<Item = (&'static str, &'i ResourceId)> {
    let replace = input.options.replace.iter().map(|id| ("--replace", id));
    let adopt = input.options.adopt.iter().map(|id| ("--adopt", id));
    replace.chain(adopt)
}

#[cfg(test)]
mod rounds;
