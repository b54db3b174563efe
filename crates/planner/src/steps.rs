//! The steps of a plan: what has something to do, in order, with what each waits for.

use std::collections::BTreeMap;

use notation_model::{Params, ResourceId};

use crate::{
    Cycle, CycleKey, Forecast, Goal, Plan, PlanInput, Role, Step, StepKey, Subject, Transition,
    Why,
    forecast::{self, Expected},
    graph::Graph,
    order::{Rules, Which},
    outlook::{Lineage, Survey},
    play::{Life, Play},
    recorded::whose,
    writing::Writing,
};

/// What is in play and the rules over it.
pub(crate) struct Lives<'r, 'a> {
    pub input: &'r PlanInput<'a>,
    pub play: &'r Play,
    pub rules: &'r Rules<'r>,
    pub in_scope: &'r dyn Fn(&ResourceId) -> bool,
}

pub(crate) fn put_steps(
    lives: &Lives<'_, '_>,
    survey: &Survey<'_, '_>,
    waypoints: &[bool],
    graph: &Graph,
    mut expected: Expected,
    writing: &Writing,
    plan: &mut Plan,
) {
    let (play, rules) = (lives.play, lives.rules);
    let order = graph.sorted(&|step| {
        if step >= rules.count() {
            return (0, 0);
        }
        match rules.which(step) {
            Which::Placeholder(life) => (life, 0),
            Which::Last(life) => (life, 1),
            Which::Settled(cycle) => (play.cycles[cycle].first().copied().unwrap_or(0), 2),
        }
    });
    let is_kept = |step: usize| {
        step < rules.count()
            && rules.exists(step, waypoints)
            && match rules.which(step) {
                Which::Last(life) => writing.lives[life],
                Which::Settled(cycle) => writing.cycles[cycle],
                Which::Placeholder(life) => expected.placeholders.contains_key(&life),
            }
    };
    let kept: Vec<bool> = (0..graph.len()).map(is_kept).collect();
    plan.steps
        .reserve_exact(kept.iter().filter(|kept| **kept).count());
    // What each node that is no step of the plan passes on, when it is something.
    let mut passed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut completing: Vec<Vec<usize>> = vec![Vec::new(); play.cycle_count];
    let mut after: Vec<usize> = Vec::new();
    for &node in &order {
        after.clear();
        for &on in &graph[node] {
            match kept[on] {
                true => after.push(on),
                false => after.extend(passed.get(&on).into_iter().flatten()),
            }
        }
        after.sort_unstable();
        after.dedup();
        if node < rules.count()
            && let Which::Last(life) = rules.which(node)
            && let Some(cycle) = play.lives[life].cycle
        {
            completing[cycle].push(life);
        }
        if !kept[node] {
            if !after.is_empty() {
                passed.insert(node, after.clone());
            }
            continue;
        }
        let mut after: Vec<StepKey> = after.iter().map(|on| key(lives, *on)).collect();
        after.sort_unstable();
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
                said(expected.placeholders.remove(&life)),
            ),
            Which::Last(life) => (
                if play.lives[life].stays() {
                    Goal::Complete
                } else {
                    Goal::Absent
                },
                why_last(survey, &play.lives[life]),
                said(expected.last[life].take()),
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

/// Of a last step that is there for its placeholder alone nothing is expected.
fn said(forecast: Option<Forecast>) -> Forecast {
    forecast.unwrap_or(Forecast {
        transition: Transition::None,
        changes: Vec::new(),
        leaves_out: Vec::new(),
    })
}

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
    let Some(number) = life.wanted() else {
        return match life.successor() {
            Some(_) => Why::Replaced,
            None => Why::Removed,
        };
    };
    let outlook = &survey.outlooks[number];
    let kept = match &outlook.lineage {
        Lineage::Kept(kept) => *kept,
        Lineage::Replaced(_, because) => {
            return Why::Replaces {
                because: because.clone(),
            };
        }
        Lineage::Gone(_) => return Why::Gone,
        Lineage::Nothing => return Why::New,
    };
    let past = &survey.history.past[kept];
    let is_asked_for = |applied: &Params| {
        let ty = survey.program.wanted[number].ty;
        let written = outlook.written.as_ref();
        written.is_some_and(|params| crate::decide::differing(ty, applied, params).is_empty())
    };
    let as_recorded = is_asked_for(&past.original.applied);
    let lets_go = survey.revert_writes(number);
    // A revert in doubt is written in full itself.
    let in_doubt = past.record.in_doubt && !lets_go;
    if in_doubt && (as_recorded || is_asked_for(&past.record.applied)) {
        return Why::InDoubt;
    }
    match (past.drift.is_empty(), as_recorded) {
        (false, true) => Why::Drift,
        (true, true) if lets_go => Why::LetsGo,
        (true, true) | (_, false) => Why::Changed,
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

pub(crate) fn put_intended(
    lives: &Lives<'_, '_>,
    survey: &Survey<'_, '_>,
    writing: &Writing,
    plan: &mut Plan,
) {
    let recorded = whose(&plan.recorded);
    for (number, life) in lives.play.lives[..lives.play.staying].iter().enumerate() {
        let settles = life.cycle.is_some_and(|cycle| writing.cycles[cycle]);
        let rewrites = settles && survey.outlooks[number].may_rewrite;
        let writes = writing.lives[number] || rewrites;
        if !writes && !recorded.contains(&life.incarnation.resource) {
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
