//! A run from its first plan to its report: it is planned once more where running shows what the
//! plan could not know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use notation_model::{Incarnation, ResourceId, Value};
use notation_planner::{Cycle, Goal, Plan, Role, StepKey, Subject, Transition};
use notation_state::OpenIntent;

use crate::{
    Blocked, BlockedStep, DoneStep, EngineError, EngineEvent, FailedStep, Planned, Report,
    RunStatus, StepError, StepEvent,
    anew::{Again, Anew, left_alone, not_replaced, plan_what_can_be},
    board::{Board, Played},
    books::{close_books, open_books, recorded_by_now},
    line::Line,
    planned::as_observed,
    play::play,
    recover::not_recorded,
    run::{Before, Run, Shared, forecast, resource_of},
    step::{tell_done, tell_failed},
    unrecorded::{Met, take_up},
    world::{Exported, World},
};

/// Everything the rounds of one run need.
pub(crate) struct Rounds {
    pub shared: Shared,
    pub planned: Planned,
    pub open: Vec<OpenIntent>,
    /// What was exported before.
    pub exports: BTreeMap<String, Value>,
    pub started_ms: u64,
}

/// Runs the plan, and plans once more when running shows a replacement that was announced
/// (`engine.md` §6, *Found while running*) or an object of ours that no record knew (§8). What
/// failed by then is not tried again, and whoever waits for it stays blocked; a failure that left
/// a call open is for the next run to look up first, before anything is planned.
pub(crate) async fn rounds(rounds: Rounds) -> Result<Report, EngineError> {
    let Rounds {
        shared,
        mut planned,
        mut open,
        exports,
        started_ms,
    } = rounds;
    let Shared {
        line,
        desired,
        secrets,
    } = &shared;
    let mut total = Played::default();
    let mut replaced = BTreeSet::new();
    let mut made = BTreeSet::new();
    let mut failed = BTreeMap::new();
    // A cycle that was written in an earlier round settles in this one.
    let mut written = BTreeSet::new();
    let records = planned.prior.records.keys();
    let recorded: BTreeSet<ResourceId> = records
        .map(|incarnation| incarnation.resource.clone())
        .collect();
    let mut announced = BTreeSet::new();
    // From the first step on, whatever goes wrong is a failed run and not none.
    let mut replanned = false;
    loop {
        announced.extend(removed(&planned.plan).cloned());
        let (live, gone) = as_observed(&line.session, &planned);
        let mut world = World::new(live, gone, open);
        world.written = std::mem::take(&mut written);
        let before = Before {
            replaced: replaced.clone(),
            made: made.clone(),
            failed: failed.clone(),
        };
        let run = Arc::new(Run::new(&shared, planned.plan, world, before));
        if let Err(error) = open_books(&run).await {
            if !replanned {
                return Err(not_recorded(&error));
            }
            return Ok(finish(&run, total, exports, Some(error), started_ms).await);
        }
        replanned = true;
        let played = play(&run).await;
        line.met.store(false, Ordering::Relaxed);
        for step in &played.failed {
            for subject in failed_with(&run, step) {
                failed.entry(subject).or_insert_with(|| step.key.clone());
            }
        }
        made.extend(made_for_others(&run.plan, &played.done));
        total.done.extend(played.done);
        total.failed.extend(played.failed);
        total.interrupted |= played.interrupted;
        total.recorded.extend(recorded_by_now(&run));
        let stops = total.interrupted || line.stops();
        let met = played.met;
        let anew = !played.replace.is_empty() || !met.is_empty();
        // What is ours is recorded, whatever else went wrong.
        let taken_up = if met.is_empty() || stops {
            Ok(BTreeSet::new())
        } else {
            take_up(line, desired, secrets, &recorded, &met).await
        };
        let again = anew && !stops && (total.failed.is_empty() || nothing_open(&run).await);
        if !again && taken_up.is_ok() {
            // What an interrupt keeps from being tried is told by nobody.
            if let Some(first) = total.failed.first() {
                let replace = played.replace.into_iter().map(|step| step.key);
                let left = match total.interrupted {
                    true => Vec::new(),
                    false => played.left_over,
                };
                let left = replace.chain(left).map(|key| left_by(key, &first.key));
                total.blocked.extend(left);
                total.blocked.extend(played.blocked);
            }
            return Ok(finish(&run, total, exports, None, started_ms).await);
        }
        let mut next: BTreeMap<ResourceId, Vec<String>> = played
            .replace
            .iter()
            .map(|step| (step.resource.clone(), step.error.fields().to_vec()))
            .collect();
        let anew = Anew {
            replace: not_replaced(&run, &total.done),
            left: left_alone(&run, &failed),
        };
        let round = match taken_up {
            Ok(_) => plan_what_can_be(&run, &anew, &mut next).await,
            Err(error) => Err(error),
        };
        // Calls were made: from here on, whatever goes wrong is a failed run and not none.
        let stopped = match round {
            Ok(Again {
                planned: now,
                open: left_open,
                refused,
            }) => {
                for step in played.replace {
                    let Some(error) = refused.get(&step.resource) else {
                        continue;
                    };
                    let step = not_replaced_for(error, step);
                    tell_failed(&run, &step, line.session.clock.now_ms());
                    failed.insert(step.key.subject.clone(), step.key.clone());
                    total.failed.push(step);
                }
                let sudden = match met.is_empty() {
                    true => Vec::new(),
                    false => unannounced(&now.plan, &announced, &total.done),
                };
                // What was there already is done, now that it is recorded.
                for met in &met {
                    let resource = &met.incarnation.resource;
                    tell_done(&run, &met.key, resource, None, met.started_ms);
                }
                (planned, open) = (now, left_open);
                sudden
            }
            Err(error) => {
                let error = Arc::new(error);
                let refused = not_planned(&error, played.replace, met);
                for step in &refused {
                    tell_failed(&run, step, line.session.clock.now_ms());
                }
                let left = played.left_over.into_iter();
                let left = left.filter(|key| refused.iter().all(|step| step.key != *key));
                if let Some(first) = refused.first() {
                    let left = left.map(|key| left_by(key, &first.key));
                    total.blocked.extend(left);
                }
                total.blocked.extend(played.blocked);
                total.failed.extend(refused);
                return Ok(finish(&run, total, exports, None, started_ms).await);
            }
        };
        if !stopped.is_empty() {
            let before = Before {
                failed: failed.clone(),
                ..Before::default()
            };
            let run = Run::new(&shared, planned.plan, World::default(), before);
            let played = Board::new(&run).refused(stopped);
            total.failed.extend(played.failed);
            total.blocked.extend(played.blocked);
            return Ok(finish(&run, total, exports, None, started_ms).await);
        }
        written = std::mem::take(&mut run.world().written);
        replaced.extend(next.into_keys());
    }
}

/// Who is left alone after a failed step: its object, or the cycle that does not settle and every
/// member of it.
fn failed_with(run: &Run, step: &FailedStep) -> Vec<Subject> {
    let own = step.key.subject.clone();
    if !matches!(step.key.role, Role::Settle { .. }) {
        return vec![own];
    }
    let of = |cycle: &&Cycle| match &own {
        Subject::Cycle(key) => cycle.key == *key,
        Subject::Incarnation(incarnation) => cycle.members.contains(incarnation),
    };
    let cycle = run.plan.cycles.iter().find(of);
    let with = cycle.map(|cycle| {
        let members = cycle.members.iter().cloned().map(Subject::Incarnation);
        members.chain([Subject::Cycle(cycle.key.clone())])
    });
    with.into_iter().flatten().chain([own]).collect()
}

/// Whether it is known of every call of this run what became of it. State that cannot be read
/// tells nothing.
async fn nothing_open(run: &Run) -> bool {
    let Line { session, hold, .. } = &*run.line;
    let state = session.store.load(&session.deployment).await;
    state.is_ok_and(|state| state.open.iter().all(|open| open.run != hold.run))
}

/// A step that is left for the next run, since this one stopped at a failure.
fn left_by(key: StepKey, first: &StepKey) -> BlockedStep {
    BlockedStep {
        resource: resource_of(&key),
        key,
        by: first.clone(),
        why: Blocked::Stopped,
    }
}

/// Whom a plan removes.
fn removed(plan: &Plan) -> impl Iterator<Item = &Incarnation> {
    plan.steps
        .iter()
        .filter(|step| step.goal == Goal::Absent)
        .filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => Some(incarnation),
            Subject::Cycle(_) => None,
        })
}

/// Removals that nobody was shown: neither announced, nor of what this run made itself.
fn unannounced(
    plan: &Plan,
    announced: &BTreeSet<Incarnation>,
    done: &[DoneStep],
) -> Vec<FailedStep> {
    let created = done
        .iter()
        .filter(|done| done.transition == Transition::Create);
    let made: BTreeSet<&Subject> = created.map(|done| &done.key.subject).collect();
    let removals = plan.steps.iter().filter(|step| step.goal == Goal::Absent);
    let sudden = removals.filter_map(|step| match &step.key.subject {
        Subject::Incarnation(incarnation)
            if !announced.contains(incarnation) && !made.contains(&step.key.subject) =>
        {
            Some(FailedStep {
                key: step.key.clone(),
                resource: incarnation.resource.clone(),
                transition: Transition::Delete,
                attempt: 0,
                error: StepError::Unannounced {
                    what: incarnation.clone(),
                },
            })
        }
        Subject::Incarnation(_) | Subject::Cycle(_) => None,
    });
    sudden.collect()
}

/// What was made in the place of others.
fn made_for_others<'p>(
    plan: &'p Plan,
    done: &'p [DoneStep],
) -> impl Iterator<Item = Incarnation> + 'p {
    let created = done
        .iter()
        .filter(|done| done.transition == Transition::Create);
    created.filter_map(|done| {
        let Subject::Incarnation(incarnation) = &done.key.subject else {
            return None;
        };
        let intended = plan.intended.get(incarnation)?;
        intended.supersedes.as_ref().map(|_| incarnation.clone())
    })
}

/// The steps that asked for another plan, when there is none.
fn not_planned(
    error: &Arc<EngineError>,
    replace: Vec<FailedStep>,
    met: Vec<Met>,
) -> Vec<FailedStep> {
    let replace = replace
        .into_iter()
        .map(|step| not_replaced_for(error, step));
    let met = met.into_iter().map(|met| FailedStep {
        key: met.key,
        resource: met.incarnation.resource,
        transition: Transition::Create,
        attempt: 0,
        error: StepError::NotTakenUp {
            key: met.found.object.key,
            error: error.clone(),
        },
    });
    replace.chain(met).collect()
}

/// A step that asked to replace its resource, which cannot be planned.
fn not_replaced_for(error: &Arc<EngineError>, step: FailedStep) -> FailedStep {
    FailedStep {
        error: StepError::NotReplaced {
            wanted: Box::new(step.error),
            error: error.clone(),
        },
        ..step
    }
}

/// Resolves and stores the exports of a run that did everything, and writes the report.
/// `unwritten` is why state could not be written between two steps.
async fn finish(
    run: &Run,
    total: Played,
    before: BTreeMap<String, Value>,
    mut unwritten: Option<StepError>,
    started_ms: u64,
) -> Report {
    let line = &run.line;
    let failed = total.failed;
    let mut outputs = before.clone();
    let mut changed_outputs = 0;
    let undone = !total.blocked.is_empty() || unwritten.is_some();
    if failed.is_empty() && !undone && !total.interrupted {
        let now = exports(run, &before);
        match close_books(run, &before, &now).await {
            Ok(()) => {
                changed_outputs = differences(&before, &now);
                outputs = now;
            }
            Err(error) => unwritten = Some(error),
        }
    }
    for blocked in &total.blocked {
        line.session
            .sink
            .event(&EngineEvent::StepBlocked(StepEvent {
                key: blocked.key.clone(),
                resource: blocked.resource.clone(),
                transition: forecast(run, &blocked.key),
                attempt: 0,
                took_ms: 0,
                error: Some(blocked.to_string()),
            }));
    }
    let status = match (failed.is_empty(), total.interrupted) {
        (_, true) => RunStatus::Interrupted,
        (true, false) => RunStatus::Done,
        (false, false) => RunStatus::Failed,
    };
    let took_ms = line.session.clock.now_ms().saturating_sub(started_ms);
    let mut report = Report {
        status,
        done: total.done,
        failed,
        blocked: total.blocked,
        recorded: total.recorded,
        not_recorded: None,
        outputs,
        changed_outputs,
        took: Duration::from_millis(took_ms),
    };
    if let Some(StepError::Store(error)) = unwritten {
        report.unrecorded(error);
    }
    report
}

/// How many exports are new, gone or another value.
fn differences(before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> usize {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .count()
}

/// The exports as they are now; one that reads something that was not deployed (`--target`)
/// keeps its value.
fn exports(run: &Run, before: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let world = run.world();
    let scope = Exported {
        world: &world,
        secrets: &run.secrets,
    };
    let resolved = run.plan.exports.iter().filter_map(|(name, expr)| {
        let value = expr.resolve(&scope);
        if value.is_known() {
            Some((name.clone(), value))
        } else {
            Some((name.clone(), before.get(name)?.clone()))
        }
    });
    resolved.collect()
}
