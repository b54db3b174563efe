//! The planner, step by step (`engine.md` §10).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{ResourceId, Value};

use crate::{
    Cycle, CycleKey, Forecast, Goal, Note, Plan, PlanError, PlanInput, PlanProblem, Role, Step,
    StepKey, Subject, Transition, Why,
    forecast::{self, Expected},
    last::{sorted, with_last},
    let_go::{Stuck, stuck},
    notes::notes,
    open::{Opened, open},
    order::{Rules, Which},
    outlook::{Survey, pair},
    past::{self, History},
    play::{self, Life, Play, is_protected},
    program::{self, Program},
    target,
};

/// Plans the way from what is recorded and was found to what is desired. Pure.
///
/// Errors: every problem of the program at once; then, when the program is fine, everything
/// that keeps this state from being brought there. Source: `engine.md` §10.
pub fn plan(input: &PlanInput<'_>) -> Result<Plan, PlanError> {
    let mut problems = program::problems(input);
    let history = past::history(input, &mut problems);
    fail_on(problems)?;
    let whole = program::program(input, None);
    fail_on(target::unknown_ids(input, &whole, &history))?;
    if input.options.target.is_empty() {
        return plan_scope(input, &history, &whole, None);
    }
    let mut also: BTreeSet<ResourceId> = BTreeSet::new();
    loop {
        let scope = target::scope(input, &whole, &also).unwrap_or_default();
        let part = program::program(input, Some(&scope));
        match plan_scope(input, &history, &part, Some(&scope)) {
            Ok(mut plan) => {
                let more = holders_of_leaving(&history, &plan, &scope);
                if more.is_empty() {
                    plan.notes.extend(expanded(input, &scope));
                    return Ok(plan);
                }
                also.extend(more);
            }
            Err(error) => return Err(error),
        }
    }
}

fn holders_of_leaving(
    history: &History<'_>,
    plan: &Plan,
    scope: &BTreeSet<ResourceId>,
) -> BTreeSet<ResourceId> {
    let leaving: BTreeSet<usize> = plan
        .steps
        .iter()
        .filter(|step| step.goal == Goal::Absent)
        .filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => history.find(incarnation),
            Subject::Cycle(_) => None,
        })
        .collect();
    target::outside_holders(history, scope, &leaving)
}

fn expanded(input: &PlanInput<'_>, scope: &BTreeSet<ResourceId>) -> Option<Note> {
    let added: Vec<&ResourceId> = scope.difference(&input.options.target).collect();
    (!added.is_empty()).then(|| Note {
        code: "target_expanded",
        resource: None,
        message: format!(
            "the target is expanded by {}: whole cycles, what they need and what must let go of them",
            crate::problem::list(&added)
        ),
        about: Vec::new(),
    })
}

fn fail_on(problems: Vec<PlanProblem>) -> Result<(), PlanError> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(PlanError { problems })
    }
}

fn plan_scope<'a>(
    input: &PlanInput<'a>,
    history: &History<'a>,
    program: &Program<'a>,
    scope: Option<&BTreeSet<ResourceId>>,
) -> Result<Plan, PlanError> {
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
    finish(lives, paired.survey)
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
) -> Result<Paired<'p, 'a>, PlanError> {
    let mut forced: BTreeMap<usize, Vec<String>> = input
        .options
        .replace
        .iter()
        .filter_map(|id| Some((program.get(id)?, vec!["--replace".to_owned()])))
        .collect();
    // By desired resource and record, so that they outlive another pairing.
    let mut waived: BTreeSet<(usize, usize)> = BTreeSet::new();
    loop {
        let survey = pair(input, program, history, forced.clone())
            .map_err(|problems| PlanError { problems })?;
        fail_on(duplicates(&survey))?;
        let play = play::play(&survey, in_scope);
        let mut rules = Rules {
            play: &play,
            waived: waived_lives(&play, &waived),
        };
        if rules.only_needs() {
            // The program was judged: needs alone leave no loop that placeholders do not open.
            return Ok(Paired {
                survey,
                waived: BTreeSet::new(),
                play,
            });
        }
        let verdict = loop {
            match stuck(&rules) {
                Stuck::Waive(who, leaving) => {
                    rules.waived.insert((who, leaving));
                    waived.extend(play.lives[leaving].past.map(|past| (who, past)));
                }
                other => break other,
            }
        };
        match verdict {
            Stuck::No | Stuck::Waive(..) => {
                let waived = rules.waived;
                return Ok(Paired {
                    survey,
                    play,
                    waived,
                });
            }
            Stuck::Refuse(on_loop) => {
                return Err(PlanError {
                    problems: vec![mixed_state(&play, on_loop)],
                });
            }
            Stuck::Replace(who, leaving) => {
                let because = dragged(&play, who, leaving);
                forced.insert(who, vec![because]);
            }
        }
    }
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
    let place = play.lives[leaving]
        .holders
        .iter()
        .find(|holder| holder.who == who)
        .map_or("", |holder| holder.place.as_str());
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
        .filter_map(|(who, past)| Some((*who, *play.life_of_past.get(past)?)))
        .collect()
}

/// Two desired resources with one identity (`engine.md` §1).
fn duplicates(survey: &Survey<'_, '_>) -> Vec<PlanProblem> {
    let mut claimed: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        let wanted = &survey.program.wanted[number];
        let Some(key) = outlook.key.as_ref().and_then(Value::as_text) else {
            continue;
        };
        let space = wanted.ty.identity_space.as_str();
        if let Some(first) = claimed.insert((space, key), number) {
            let first = survey.program.wanted[first].desired;
            problems.push(PlanProblem::DuplicateIdentity {
                first: first.id.clone(),
                second: wanted.desired.id.clone(),
                ty: wanted.desired.ty.clone(),
                key: key.to_owned(),
                first_origin: first.origin.clone(),
                second_origin: wanted.desired.origin.clone(),
            });
        }
    }
    problems
}

/// What is in play and the rules over it.
struct Lives<'r, 'a> {
    input: &'r PlanInput<'a>,
    play: &'r Play,
    rules: &'r Rules<'r>,
    in_scope: &'r dyn Fn(&ResourceId) -> bool,
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
    fail_on(protected(&survey, play, &expected))?;
    let mut plan = Plan {
        deployment: input.deployment.clone(),
        steps: Vec::new(),
        cycles: Vec::new(),
        notes: Vec::new(),
        intended: BTreeMap::new(),
        restated: restated(&survey, play, &expected),
        forgotten: play::forgotten(survey.history, play, lives.in_scope),
        unchanged: 0,
        exports: input.desired.exports.clone(),
    };
    let writing = Writing::of(&survey, play, &expected);
    if writing.lives.contains(&true) {
        put_steps(&lives, &survey, &waypoints, &expected, &writing, &mut plan);
    }
    put_intended(&lives, &survey, &writing, &mut plan);
    plan.notes = notes(&survey, play, &waypoints, &plan);
    plan.notes.extend(waived_notes(play, rules));
    plan.notes
        .extend(greedy.iter().map(|part| greedy_note(play, part)));
    Ok(plan)
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
            (None, None) => ("deleted", "the program does not have it".to_owned()),
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

fn restated(
    survey: &Survey<'_, '_>,
    play: &Play,
    expected: &[Expected],
) -> Vec<notation_model::Record> {
    let again = survey
        .outlooks
        .iter()
        .filter_map(|outlook| outlook.made_again)
        .map(|past| &survey.history.past[past])
        .filter(|past| *past.record != *past.original)
        .map(|past| past.record.clone().into_owned());
    let mut all: Vec<notation_model::Record> = play
        .lives
        .iter()
        .zip(expected)
        .filter_map(|(_, expected)| expected.restated.clone())
        .chain(again)
        .collect();
    all.sort_by(|one, other| one.incarnation.cmp(&other.incarnation));
    all
}

/// Which incarnations and cycles have something to do.
struct Writing {
    lives: Vec<bool>,
    cycles: Vec<bool>,
}

impl Writing {
    fn of(survey: &Survey<'_, '_>, play: &Play, expected: &[Expected]) -> Writing {
        let lives: Vec<bool> = expected.iter().map(Expected::writes).collect();
        let cycles = survey
            .program
            .cycles
            .iter()
            .map(|members| members.iter().any(|member| lives[*member]))
            .collect();
        debug_assert_eq!(lives.len(), play.lives.len());
        Writing { lives, cycles }
    }
}

fn put_steps(
    lives: &Lives<'_, '_>,
    survey: &Survey<'_, '_>,
    waypoints: &[bool],
    expected: &[Expected],
    writing: &Writing,
    plan: &mut Plan,
) {
    let (play, rules) = (lives.play, lives.rules);
    let graph = with_last(rules, waypoints);
    let order = sorted(&graph, &|step| {
        if step >= rules.count() {
            return (0, 0);
        }
        match rules.which(step) {
            Which::Placeholder(life) => (life, 0),
            Which::Last(life) => (life, 1),
            Which::Settled(cycle) => (play.cycles[cycle].first().copied().unwrap_or(0), 2),
        }
    });
    let kept = |step: usize| {
        step < rules.count()
            && rules.exists(step, waypoints)
            && match rules.which(step) {
                Which::Last(life) => writing.lives[life],
                Which::Settled(cycle) => writing.cycles[cycle],
                Which::Placeholder(life) => expected[life]
                    .placeholder
                    .as_ref()
                    .is_some_and(|forecast| forecast.transition != Transition::None),
            }
    };
    // What each node that is no step of the plan passes on.
    let mut passed: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    let mut completing: Vec<Vec<usize>> = vec![Vec::new(); play.cycle_count];
    for &node in &order {
        let mut after: BTreeSet<usize> = BTreeSet::new();
        for &on in &graph[node] {
            if kept(on) {
                after.insert(on);
            } else {
                after.extend(&passed[on]);
            }
        }
        if node < rules.count()
            && let Which::Last(life) = rules.which(node)
            && let Some(cycle) = play.lives[life].cycle
        {
            completing[cycle].push(life);
        }
        if !kept(node) {
            passed[node] = after.into_iter().collect();
            continue;
        }
        let after = after.iter().map(|on| key(lives, *on)).collect();
        let which = rules.which(node);
        let (goal, why, forecast) = match which {
            Which::Settled(_) => (
                Goal::Settled,
                Why::Settles,
                Forecast {
                    transition: Transition::Settle,
                    changes: Vec::new(),
                    leaves_out: Vec::new(),
                },
            ),
            Which::Placeholder(life) => (
                Goal::Placeholder,
                why_bare(&play.lives[life]),
                expected[life].placeholder.clone().unwrap_or(NO_FORECAST),
            ),
            Which::Last(life) => (
                if play.lives[life].stays() {
                    Goal::Complete
                } else {
                    Goal::Absent
                },
                why_last(survey, &play.lives[life]),
                expected[life].last.clone().unwrap_or(NO_FORECAST),
            ),
        };
        plan.steps.push(Step {
            key: key(lives, node),
            goal,
            after,
            why,
            forecast,
        });
    }
    put_cycles(lives, survey, waypoints, writing, completing, plan);
}

const NO_FORECAST: Forecast = Forecast {
    transition: Transition::None,
    changes: Vec::new(),
    leaves_out: Vec::new(),
};

fn key(lives: &Lives<'_, '_>, step: usize) -> StepKey {
    let of = |life: usize| Subject::Incarnation(lives.play.lives[life].incarnation.clone());
    match lives.rules.which(step) {
        Which::Placeholder(life) => StepKey {
            subject: of(life),
            role: Role::Placeholder,
        },
        Which::Last(life) => StepKey {
            subject: of(life),
            role: if lives.play.lives[life].stays() {
                Role::Complete
            } else {
                Role::Absent
            },
        },
        Which::Settled(cycle) => StepKey {
            subject: Subject::Cycle(cycle_key(lives.play, cycle)),
            role: Role::Settle { pass: 0 },
        },
    }
}

fn cycle_key(play: &Play, cycle: usize) -> CycleKey {
    let first = play.cycles[cycle][0];
    CycleKey(play.lives[first].incarnation.resource.clone())
}

fn why_bare(life: &Life) -> Why {
    if life.is_kept() {
        Why::LetsGo
    } else {
        Why::OpensLoop
    }
}

fn why_last(survey: &Survey<'_, '_>, life: &Life) -> Why {
    let Some(number) = life.wanted else {
        return match life.successor {
            Some(_) => Why::Replaced,
            None => Why::Removed,
        };
    };
    let outlook = &survey.outlooks[number];
    let Some(kept) = outlook.kept else {
        return match (outlook.replaces, outlook.made_again) {
            (Some(_), _) => Why::Replaces {
                because: outlook.because.clone(),
            },
            (None, Some(_)) => Why::Gone,
            (None, None) => Why::New,
        };
    };
    let past = &survey.history.past[kept];
    let as_recorded = outlook.written.as_ref().is_some_and(|params| {
        let ty = survey.program.wanted[number].ty;
        crate::decide::differing(ty, &past.original.applied, params).is_empty()
    });
    match (past.drift.is_empty(), as_recorded) {
        (false, true) => Why::Drift,
        (true, true) => Why::LetsGo,
        (_, false) => Why::Changed,
    }
}

fn put_cycles(
    lives: &Lives<'_, '_>,
    survey: &Survey<'_, '_>,
    waypoints: &[bool],
    writing: &Writing,
    completing: Vec<Vec<usize>>,
    plan: &mut Plan,
) {
    let name = |life: &usize| lives.play.lives[*life].incarnation.clone();
    for (cycle, members) in completing.into_iter().enumerate() {
        if !writing.cycles[cycle] {
            continue;
        }
        plan.cycles.push(Cycle {
            key: cycle_key(lives.play, cycle),
            placeholders: members
                .iter()
                .filter(|life| waypoints[**life])
                .map(name)
                .collect(),
            may_write: members
                .iter()
                .filter(|life| survey.outlooks[**life].may_rewrite)
                .map(name)
                .collect(),
            passes: u32::try_from(members.len()).map_or(u32::MAX, |count| count.saturating_add(1)),
            members: members.iter().map(name).collect(),
        });
    }
}

fn put_intended(
    lives: &Lives<'_, '_>,
    survey: &Survey<'_, '_>,
    writing: &Writing,
    plan: &mut Plan,
) {
    for (number, life) in lives.play.lives[..lives.play.staying].iter().enumerate() {
        let settles = life.cycle.is_some_and(|cycle| writing.cycles[cycle]);
        let rewrites = settles && survey.outlooks[number].may_rewrite;
        if !writing.lives[number] && !rewrites {
            plan.unchanged += 1;
        }
        if writing.lives[number] || settles {
            let cycle = life.cycle.map(|cycle| cycle_key(lives.play, cycle));
            let edges = forecast::recorded_edges(survey, number);
            plan.intended.insert(
                life.incarnation.clone(),
                forecast::intended(survey, number, cycle, edges),
            );
        }
    }
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
                    "{} is deleted while {} still names it; {} is updated right after",
                    target.incarnation, holder.incarnation.resource, holder.incarnation.resource
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
