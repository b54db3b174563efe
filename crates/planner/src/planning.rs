//! The planner, step by step (`engine.md` §10).

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use notation_model::{Expr, Incarnation, Record, ResourceId, Value};

use crate::{
    Note, Plan, PlanError, PlanInput, PlanProblem, Transition,
    declared::declared,
    fallback,
    forecast::{self, Expected},
    judge,
    let_go::{Held, Stuck, stuck},
    notes::notes,
    open::{Opened, open},
    order::Rules,
    outlook::Survey,
    pairing::pair,
    past::{self, History},
    play::{self, Play, is_protected},
    program::Program,
    recorded::recorded,
    secrecy::given,
    steps::{Lives, Writing, put_intended, put_steps},
    target::{self, Scope},
};

/// Plans the way from what is recorded and was found to what is desired. Pure.
///
/// Errors: every problem of the program at once; then, when the program is fine, everything
/// that keeps this state from being brought there. Source: `engine.md` §10.
pub fn plan(input: &PlanInput<'_>) -> Result<Plan, PlanError> {
    let declared = declared(input.desired, input.types);
    fail_on(judge::problems(input.desired, input.types, &declared))?;
    let mut history = past::history(input);
    let whole = Program::whole(input.desired, &declared);
    fail_on(target::unknown_ids(input, &whole, &history))?;
    loop {
        match plan_targets(input, &history, &whole) {
            Ok(plan) => return Ok(plan),
            Err(NoPlan::Problems(error)) => return Err(error),
            Err(NoPlan::FallBack(records)) => {
                for (past, record) in records {
                    history.restate(past, record);
                }
            }
        }
    }
}

/// Why there is no plan from records as they stand.
pub(crate) enum NoPlan {
    Problems(PlanError),
    /// There may be one if these fall back to less than their configs.
    FallBack(BTreeMap<usize, Record>),
}

impl From<PlanError> for NoPlan {
    fn from(error: PlanError) -> NoPlan {
        NoPlan::Problems(error)
    }
}

fn plan_targets<'a>(
    input: &PlanInput<'a>,
    history: &History<'a>,
    whole: &Program<'a>,
) -> Result<Plan, NoPlan> {
    if input.options.target.is_empty() {
        return plan_scope(input, history, whole, None);
    }
    let mut scope = Scope::of_targets(input, whole, history);
    loop {
        let part = whole.part(&scope.ids);
        let mut plan = plan_scope(input, history, &part, Some(&scope.ids))?;
        let more = scope.asked_by(&plan);
        if more.is_empty() {
            fail_on(target::left_out(input, &scope.ids))?;
            plan.notes.extend(expanded(input, &scope.ids));
            return Ok(plan);
        }
        scope.take_in(more);
    }
}

pub(crate) fn expanded(input: &PlanInput<'_>, scope: &BTreeSet<ResourceId>) -> Option<Note> {
    let added: Vec<&ResourceId> = scope.difference(&input.options.target).collect();
    (!added.is_empty()).then(|| Note {
        code: "target_expanded",
        resource: None,
        message: format!(
            "the target is expanded by {}: whole cycles, what they need and what must let go of them or of their names",
            crate::problem::list(&added)
        ),
        about: Vec::new(),
    })
}

pub(crate) fn fail_on(problems: Vec<PlanProblem>) -> Result<(), PlanError> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(PlanError { problems })
    }
}

pub(crate) fn plan_scope<'a>(
    input: &PlanInput<'a>,
    history: &History<'a>,
    program: &Program<'a>,
    scope: Option<&BTreeSet<ResourceId>>,
) -> Result<Plan, NoPlan> {
    let in_scope = |id: &ResourceId| scope.is_none_or(|scope| scope.contains(id));
    let paired = paired(input, history, program, &in_scope)?;
    let rules = Rules {
        play: &paired.play,
        waived: paired.waived,
    };
    let lives = Lives {
        input,
        play: &paired.play,
        rules: &rules,
        in_scope: &in_scope,
    };
    Ok(finish(lives, paired.survey)?)
}

/// Who stays, who leaves, and which holders a delete does not wait for (steps 2 to 4).
pub(crate) struct Paired<'p, 'a> {
    pub survey: Survey<'p, 'a>,
    pub play: Play,
    pub waived: BTreeSet<(usize, usize)>,
}

pub(crate) fn paired<'p, 'a>(
    input: &'p PlanInput<'a>,
    history: &'p History<'a>,
    program: &'p Program<'a>,
    in_scope: &dyn Fn(&ResourceId) -> bool,
) -> Result<Paired<'p, 'a>, NoPlan> {
    let options = input.options;
    let asked = options.replace.iter();
    let asked = asked.map(|id| (id, vec!["--replace".to_owned()]));
    let found = options.turned_out.iter();
    let found = found.map(|(id, fields)| (id, fields.clone()));
    let mut forced: BTreeMap<usize, Vec<String>> = asked
        .chain(found)
        .filter_map(|(id, why)| Some((program.get(id)?, why)))
        .collect();
    // Those of who is kept, by desired resource and record, so that they outlive another pairing.
    let mut waived: BTreeSet<(usize, usize)> = BTreeSet::new();
    loop {
        let survey = pair(input, program, history, forced.clone())
            .map_err(|problems| PlanError { problems })?;
        fail_on(secret_keys(&survey))?;
        fail_on(duplicates(&survey))?;
        let mut play = play::play(&survey, in_scope);
        let mut waived_here = waived_lives(&play, &waived);
        let verdict = loop {
            let rules = Rules {
                play: &play,
                waived: waived_here,
            };
            // The program was judged: needs alone leave no loop that placeholders do not open.
            let found = match rules.only_needs() {
                true => Stuck::No,
                false => stuck(&rules),
            };
            waived_here = rules.waived;
            match found {
                Stuck::Waive(holders) => {
                    for (who, leaving) in holders {
                        waived_here.insert((who, leaving));
                        let past = play.lives[leaving].past;
                        let past = past.filter(|_| play.lives[who].is_kept());
                        waived.extend(past.map(|past| (who, past)));
                    }
                }
                Stuck::KeepWhole(life) => play.lives[life].can_be_bare = false,
                other => break other,
            }
        };
        match verdict {
            Stuck::No | Stuck::Waive(_) | Stuck::KeepWhole(_) => {
                return Ok(Paired {
                    survey,
                    play,
                    waived: waived_here,
                });
            }
            Stuck::Refuse(held) => return Err(fall_back(history, &play, held)),
            Stuck::Replace(holders) => {
                for (who, leaving) in holders {
                    let because = dragged(&play, who, leaving);
                    forced.insert(who, vec![because]);
                }
            }
        }
    }
}

/// Of each loop the first holder that lets go of what it holds when it falls back to less than its
/// config; a refusal when one has none.
fn fall_back(history: &History<'_>, play: &Play, held: Vec<Held>) -> NoPlan {
    let mut records: BTreeMap<usize, Record> = BTreeMap::new();
    for Held { on_loop, released } in held {
        let past_of = |life: &usize| play.lives[*life].past;
        if on_loop
            .iter()
            .filter_map(past_of)
            .any(|past| records.contains_key(&past))
        {
            continue;
        }
        let lets_go = |(who, leaving): &(usize, usize)| {
            let past = past_of(who)?;
            let record = fallback::without_references(history, past)?;
            let held = &play.lives[*leaving].incarnation;
            (!record.config_names(held)).then_some((past, record))
        };
        match released.iter().find_map(lets_go) {
            Some((past, record)) => records.insert(past, record),
            None => {
                return NoPlan::Problems(PlanError {
                    problems: vec![mixed_state(play, on_loop)],
                });
            }
        };
    }
    NoPlan::FallBack(records)
}

fn mixed_state(play: &Play, on_loop: Vec<usize>) -> PlanProblem {
    PlanProblem::MixedState {
        members: on_loop
            .into_iter()
            .map(|life| play.lives[life].incarnation.clone())
            .collect(),
    }
}

fn dragged(play: &Play, who: usize, leaving: usize) -> String {
    let held = play.lives[leaving].held_by(who);
    let place = held.map_or("", |held| held.place.as_str());
    format!(
        "`{place}` holds {}, which is {}",
        play.lives[leaving].incarnation.resource,
        if play.lives[leaving].successor.is_some() {
            "replaced"
        } else {
            "deleted"
        }
    )
}

fn waived_lives(play: &Play, waived: &BTreeSet<(usize, usize)>) -> BTreeSet<(usize, usize)> {
    waived
        .iter()
        .filter(|(who, _)| play.lives[*who].is_kept())
        .filter_map(|(who, past)| Some((*who, play.life_of_past[*past]?)))
        .collect()
}

/// Refuses names that turn out to be secrets by what is recorded, or was found: a provider may
/// answer one where its type does not say so.
fn secret_keys(survey: &Survey<'_, '_>) -> Vec<PlanProblem> {
    let keys = survey.outlooks.iter().map(|outlook| &outlook.key);
    let wanted = survey.program.wanted.iter().zip(keys);
    let secret =
        wanted.filter(|(_, key)| key.as_ref().is_some_and(|key| !key.sensitive().is_empty()));
    let problems = secret.filter_map(|(wanted, _)| {
        let (field, _) = wanted.ty.key_field()?;
        let written = given(wanted.desired, field).flat_map(Expr::references);
        let made_of = written.map(|(_, source)| source.to_string()).next();
        Some(PlanProblem::SecretKey {
            resource: wanted.desired.id.clone(),
            field: field.to_owned(),
            made_of: made_of.unwrap_or_else(|| "(secret)".to_owned()),
            origin: wanted.desired.origin.clone(),
        })
    });
    problems.collect()
}

/// Two desired resources with one identity (`engine.md` §1).
fn duplicates(survey: &Survey<'_, '_>) -> Vec<PlanProblem> {
    let mut claimed: IndexMap<(&str, &str), usize> = IndexMap::new();
    let mut problems = Vec::new();
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        let wanted = &survey.program.wanted[number];
        let Some(key) = outlook.key.as_ref().and_then(Value::as_text) else {
            continue;
        };
        let space = wanted.ty.identity_space.as_str();
        if let Some(first) = claimed.insert((space, key), number) {
            // Who has its name from before keeps it.
            let generated = |number: &usize| survey.outlooks[*number].key_given;
            let is_new = |number: &usize| survey.outlooks[*number].kept.is_none();
            let nameless = [number, first].into_iter().filter(generated);
            let generated_for = nameless
                .max_by_key(is_new)
                .filter(|_| outlook.key_given)
                .map(|number| survey.program.wanted[number].desired.id.clone());
            let first = survey.program.wanted[first].desired;
            problems.push(PlanProblem::DuplicateIdentity {
                first: first.id.clone(),
                first_ty: first.ty.clone(),
                second: wanted.desired.id.clone(),
                ty: wanted.desired.ty.clone(),
                key: key.to_owned(),
                generated_for,
                first_origin: first.origin.clone(),
                second_origin: wanted.desired.origin.clone(),
            });
        }
    }
    problems
}

fn finish(lives: Lives<'_, '_>, mut survey: Survey<'_, '_>) -> Result<Plan, PlanError> {
    let (input, play, rules) = (lives.input, lives.play, lives.rules);
    let Opened { waypoints, greedy } =
        open(rules, input.options.search_budget).map_err(|on_loop| PlanError {
            problems: vec![mixed_state(play, on_loop)],
        })?;
    survey.look_again(waypoints[..play.staying].to_vec());
    let expected: Vec<Expected> = play
        .lives
        .iter()
        .enumerate()
        .map(|(index, life)| match life.wanted {
            Some(number) => forecast::staying(&survey, number, life, waypoints[index], &|| {
                forecast::recorded_edges(&survey, number)
            }),
            None => forecast::leaving(&survey, life, waypoints[index]),
        })
        .collect();
    let mut problems = protected(&survey, play, &expected);
    problems.extend(held(&survey, play));
    fail_on(problems)?;
    let mut plan = Plan {
        deployment: input.deployment.clone(),
        steps: Vec::new(),
        cycles: Vec::new(),
        notes: Vec::new(),
        intended: BTreeMap::new(),
        restated: restated(&survey, play, &expected, lives.in_scope),
        forgotten: play::forgotten(survey.history, play, lives.in_scope),
        recorded: recorded(&survey),
        unchanged: 0,
        exports: input.desired.exports.clone(),
    };
    let writing = Writing::of(&survey, play, &expected);
    if writing.lives.contains(&true) {
        put_steps(&lives, &survey, &waypoints, expected, &writing, &mut plan);
    }
    put_intended(&lives, &survey, &writing, &mut plan);
    plan.notes = notes(&survey, play, &waypoints, &plan);
    plan.notes.extend(waived_notes(play, rules));
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
    let new = wanted.filter(|(_, outlook)| outlook.kept.is_none());
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

fn protected(survey: &Survey<'_, '_>, play: &Play, expected: &[Expected]) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for (life, expected) in play.lives.iter().zip(expected) {
        if !is_protected(survey, life) {
            continue;
        }
        let resource = life.incarnation.resource.clone();
        let reverted = expected
            .placeholder
            .as_ref()
            .is_some_and(|forecast| forecast.transition == Transition::Revert);
        let replaced = life
            .successor
            .map(|number| &survey.outlooks[number])
            .filter(|outlook| outlook.replaces == life.past);
        let (fate, because) = match (life.wanted, replaced) {
            (None, Some(outlook)) => ("replaced", crate::problem::list(&outlook.because)),
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
    expected: &[Expected],
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
    let all = expected
        .iter()
        .filter_map(|expected| expected.restated.as_deref().cloned());
    let mut all: BTreeMap<Incarnation, Record> = all
        .chain(others)
        .map(|record| (record.incarnation.clone(), record))
        .collect();
    for index in play::naming_what_is_lost(survey, play, in_scope) {
        let life = play.life_of_past[index];
        // Without a write its config is brought up to date here.
        let renewed = life.is_some_and(|life| play.lives[life].stays() && !expected[life].writes());
        let past = &survey.history.past[index];
        if !renewed && past.record.can_be_bare {
            let as_found = || past.record.clone();
            let record = all.entry(past.incarnation.clone()).or_insert_with(as_found);
            record.can_be_bare = false;
        }
    }
    all.into_values().collect()
}

fn waived_notes(play: &Play, rules: &Rules<'_>) -> Vec<Note> {
    rules
        .waived
        .iter()
        .map(|(who, leaving)| {
            let (holder, target) = (&play.lives[*who], &play.lives[*leaving]);
            Note {
                code: "waived_holder",
                resource: Some(holder.incarnation.resource.clone()),
                message: format!(
                    "{} is deleted while {} still names it; {} is {} after",
                    target.incarnation,
                    holder.incarnation,
                    holder.incarnation,
                    if holder.stays() {
                        "updated right"
                    } else {
                        "deleted"
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
