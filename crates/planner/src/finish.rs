//! What a plan says once it is known who stays and who leaves (`engine.md` §10 steps 5 to 8).

use std::collections::BTreeMap;

use notation_model::{Incarnation, Record, ResourceId};

use crate::{
    Note, Plan, PlanError, PlanProblem, Transition,
    forecast::{self, Expected},
    graph::Graph,
    last::with_last,
    notes::notes,
    open::{Opened, open},
    order::Rules,
    outlook::{Lineage, Survey},
    play::{self, Play, is_protected},
    recorded::recorded,
    refusal::fail_on,
    steps::{Lives, put_intended, put_steps},
    writing::Writing,
};

/// Says what each one does, and in which order (steps 5 to 8).
pub(crate) fn finish(
    lives: Lives<'_, '_>,
    mut survey: Survey<'_, '_>,
    loopless: Option<Graph>,
) -> Result<Plan, PlanError> {
    let (input, play, rules) = (lives.input, lives.play, lives.rules);
    let Opened {
        waypoints,
        greedy,
        graph,
    } = open(rules, loopless, input.options.search_budget).map_err(|on_loop| PlanError {
        problems: vec![mixed_state(play, on_loop)],
    })?;
    survey.look_again(waypoints[..play.staying].to_vec());
    let mut expected = Expected::with_room(play.lives.len());
    let mut problems = Vec::new();
    for (index, life) in play.lives.iter().enumerate() {
        match forecast::of(&survey, life, waypoints[index]) {
            Ok(forecast) => expected.push(forecast),
            Err(problem) => problems.push(*problem),
        }
    }
    fail_on(problems)?;
    let mut problems = protected(&survey, play, &expected);
    problems.extend(held(&survey, play));
    fail_on(problems)?;
    let writing = Writing::of(&survey, play, &expected);
    let mut plan = Plan {
        deployment: input.deployment.clone(),
        steps: Vec::new(),
        cycles: Vec::new(),
        notes: Vec::new(),
        intended: BTreeMap::new(),
        restated: restated(&survey, play, &mut expected, lives.in_scope),
        forgotten: play::forgotten(survey.history, play, lives.in_scope),
        recorded: recorded(&survey, &writing),
        unchanged: 0,
        exports: input.desired.exports.clone(),
    };
    if writing.lives.contains(&true) {
        let graph = graph.unwrap_or_else(|| rules.graph(&waypoints));
        let graph = with_last(rules, &waypoints, graph);
        put_steps(
            &lives, &survey, &waypoints, &graph, expected, &writing, &mut plan,
        );
    }
    put_intended(&lives, &survey, &writing, &mut plan);
    plan.notes = notes(&survey, play, &waypoints, &writing, &plan);
    plan.notes.extend(waived_notes(play, rules, &writing));
    plan.notes
        .extend(greedy.iter().map(|part| greedy_note(play, part)));
    Ok(plan)
}

/// New incarnations that need the place of one that cannot go.
fn held(survey: &Survey<'_, '_>, play: &Play) -> Vec<PlanProblem> {
    if play.left_in_place.is_empty() {
        return Vec::new();
    }
    let past = &survey.history.past;
    let place = |index: usize| {
        let space = past[index].ty?.identity_space.as_str();
        Some((space, past[index].record.key.as_str()))
    };
    let left = play.left_in_place.keys();
    let places: BTreeMap<(&str, &str), usize> = left
        .filter_map(|index| Some((place(*index)?, *index)))
        .collect();
    let wanted = survey.program.wanted.iter().zip(&survey.outlooks);
    let new = wanted.filter(|(_, outlook)| outlook.kept().is_none());
    let problems = new.filter_map(|(wanted, outlook)| {
        let key = outlook.key.as_ref()?.as_text()?;
        let left = *places.get(&(wanted.ty.identity_space.as_str(), key))?;
        let mut holder = left;
        while let Some(next) = play.left_in_place.get(&holder) {
            holder = *next;
        }
        Some(PlanProblem::HeldByUnknown {
            resource: past[left].incarnation.resource.clone(),
            holder: past[holder].incarnation.resource.clone(),
            ty: past[holder].record.ty.clone(),
        })
    });
    problems.collect()
}

fn protected(survey: &Survey<'_, '_>, play: &Play, expected: &Expected) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for (index, life) in play.lives.iter().enumerate() {
        if !is_protected(survey, life) {
            continue;
        }
        let resource = life.incarnation.resource.clone();
        let reverted = expected
            .placeholders
            .get(&index)
            .is_some_and(|forecast| forecast.transition == Transition::Revert);
        let replaced = life
            .successor()
            .and_then(|number| match &survey.outlooks[number].lineage {
                Lineage::Replaced(past, because) if life.past == Some(*past) => Some(because),
                _ => None,
            });
        let (fate, because) = match (life.wanted(), replaced) {
            (None, Some(because)) => ("replaced", crate::problem::list(because)),
            (None, None) => ("deleted", why_removed(survey).to_owned()),
            (Some(_), _) if reverted => (
                "reverted",
                "what it refers to is removed before it can be completed".to_owned(),
            ),
            (Some(_), _) => continue,
        };
        problems.push(PlanProblem::Protected {
            resource,
            fate,
            because,
        });
    }
    problems
}

/// Destroying asks for nothing, whatever the program has.
fn why_removed(survey: &Survey<'_, '_>) -> &'static str {
    match survey.input.desired.resources.is_empty() {
        true => "nothing is asked for",
        false => "the program does not have it",
    }
}

/// Records that say something else now, without any call: those of what has no write, what was
/// found of the others, and whatever carries a new id or can be bare no more, in scope or not.
fn restated(
    survey: &Survey<'_, '_>,
    play: &Play,
    expected: &mut Expected,
    in_scope: &dyn Fn(&ResourceId) -> bool,
) -> Vec<Record> {
    let others = survey
        .history
        .past
        .iter()
        .enumerate()
        .filter(|(index, past)| {
            let life = play.life_of_past[*index];
            let in_play = life.is_some() && !past.gone();
            let dropped = past.gone() && life.is_none() && in_scope(&past.incarnation.resource);
            !in_play && !dropped
        })
        .filter_map(|(_, past)| past.restated().cloned());
    let all = std::mem::take(&mut expected.restated).into_values();
    let mut all: BTreeMap<Incarnation, Record> = all
        .chain(others)
        .map(|record| (record.incarnation.clone(), record))
        .collect();
    for index in play::naming_what_is_lost(survey, play, in_scope) {
        let life = play.life_of_past[index];
        // Without a write its config is brought up to date here.
        let renewed = life.is_some_and(|life| play.lives[life].stays() && !expected.writes(life));
        let past = &survey.history.past[index];
        if !renewed && past.record.can_be_bare {
            let as_found = || past.record.clone();
            let record = all.entry(past.incarnation.clone()).or_insert_with(as_found);
            record.can_be_bare = false;
        }
    }
    all.into_values().collect()
}

fn waived_notes(play: &Play, rules: &Rules<'_>, writing: &Writing) -> Vec<Note> {
    rules
        .waived
        .iter()
        .map(|(who, leaving)| {
            let (holder, target) = (&play.lives[*who], &play.lives[*leaving]);
            Note {
                code: "waived_holder",
                resource: Some(holder.incarnation.resource.clone()),
                message: format!(
                    "{} is deleted while {} still names it; {} {}",
                    target.incarnation,
                    holder.incarnation,
                    holder.incarnation,
                    match (holder.stays(), writing.lives[*who]) {
                        (true, true) => "is updated right after",
                        (true, false) => "stays as it is, for what it reads of it stays the same",
                        (false, _) => "is deleted after",
                    }
                ),
                about: Vec::new(),
            }
        })
        .collect()
}

fn greedy_note(play: &Play, part: &[usize]) -> Note {
    let first = &play.lives[part[0]].incarnation.resource;
    Note {
        code: "greedy_choice",
        resource: Some(first.clone()),
        message: format!(
            "the loops around {first} ({} resources) are too many to search; there may be a way with fewer placeholders",
            part.len()
        ),
        about: Vec::new(),
    }
}

/// A loop of this state that nobody opens.
pub(crate) fn mixed_state(play: &Play, on_loop: Vec<usize>) -> PlanProblem {
    PlanProblem::MixedState {
        members: on_loop
            .into_iter()
            .map(|life| play.lives[life].incarnation.clone())
            .collect(),
    }
}
