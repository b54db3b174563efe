//! The planner, step by step (`engine.md` §10).

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use notation_model::{Expr, Incarnation, Record, ResourceId, Value};

use crate::{
    Note, Plan, PlanError, PlanInput, PlanProblem,
    declared::declared,
    fallback,
    finish::{finish, mixed_state},
    graph::Graph,
    judge,
    let_go::{Held, Stuck, stuck},
    order::Rules,
    outlook::Survey,
    pairing::pair,
    past::{self, History},
    play::{self, Play},
    program::Program,
    refusal::fail_on,
    secrecy::given,
    steps::Lives,
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
    Ok(finish(lives, paired.survey, paired.loopless)?)
}

/// Who stays, who leaves, and which holders a delete does not wait for (steps 2 to 4).
pub(crate) struct Paired<'p, 'a> {
    pub survey: Survey<'p, 'a>,
    pub play: Play,
    pub waived: BTreeSet<(usize, usize)>,
    /// The graph of steps, when it needs no waypoints.
    pub loopless: Option<Graph>,
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
        let mut loopless = None;
        let verdict = loop {
            let rules = Rules {
                play: &play,
                waived: waived_here,
            };
            // The program was judged: needs alone leave no loop that placeholders do not open.
            let found = if rules.only_needs() {
                Stuck::No
            } else {
                loopless = rules.loopless();
                match &loopless {
                    Some(_) => Stuck::No,
                    None => stuck(&rules),
                }
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
                    loopless,
                });
            }
            Stuck::Refuse(held) => return Err(fall_back(history, &play, held)),
            Stuck::Replace(holders) => {
                for (who, leaving) in holders {
                    let because = dragged(history, &play, who, leaving);
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

fn dragged(history: &History<'_>, play: &Play, who: usize, leaving: usize) -> String {
    let life_meant = |to: &Incarnation| play.life_of_past[history.meant(to)?];
    let past = play.lives[who].past.map(|past| &history.past[past]);
    let edge = past.and_then(|past| {
        let mut edges = past.record.edges.iter();
        edges.find(|edge| life_meant(&edge.to) == Some(leaving))
    });
    format!(
        "`{}` holds {}, which is {}",
        edge.map_or(String::new(), |edge| edge.via.to_string()),
        play.lives[leaving].incarnation.resource,
        if play.lives[leaving].successor().is_some() {
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
    let secret = wanted.filter(|(_, key)| key.as_ref().is_some_and(Value::has_secret));
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
            let is_new = |number: &usize| survey.outlooks[*number].kept().is_none();
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
