//! One step: resolve, decide, announce, call, record.

use std::sync::atomic::Ordering;

use notation_model::{Incarnation, Look, Record, ResourceId, ResourceType};
use notation_planner::{Act, Goal, Role, Step, StepKey, Transition};
use notation_state::{Call, Event, Outcome};

use crate::{
    DoneStep, EngineEvent, FailedStep, StepError, StepEvent,
    aim::{Aim, Write, aim},
    call::CallEnd,
    commit::Became,
    job::{Job, Now},
    run::{Run, forecast},
    step_end::StepEnd,
    unread::still_ours,
    unrecorded::Search,
    world::Moment,
};

/// Runs one step of the plan, about an incarnation.
pub(crate) async fn run_step(run: &Run, step: &Step, incarnation: &Incarnation) -> StepEnd {
    let started_ms = run.line.session.clock.now_ms();
    let end = match step.goal {
        Goal::Absent => remove(run, &step.key, incarnation).await,
        goal @ (Goal::Placeholder | Goal::Complete | Goal::Settled) => {
            let is_new = !run.world().live.contains_key(incarnation);
            let write = Write {
                key: step.key.clone(),
                incarnation,
                goal,
                moment: Moment::Step,
            };
            let end = reach(run, &write).await;
            // A new one's first step is what its peers wait for; so is a revert.
            if matches!(end, StepEnd::Done(_)) && (is_new || step.key.role == Role::Placeholder) {
                run.world().first_step_done(incarnation);
            }
            end
        }
    };
    if let StepEnd::Done(done) = &end {
        tell_done(run, &step.key, &incarnation.resource, *done, started_ms);
    }
    end
}

pub(crate) fn tell_done(
    run: &Run,
    key: &StepKey,
    resource: &ResourceId,
    done: Option<(Transition, u32)>,
    started_ms: u64,
) {
    let session = &run.line.session;
    let (transition, attempt) = done.unwrap_or((Transition::None, 0));
    session.sink.event(&EngineEvent::StepDone(StepEvent {
        key: key.clone(),
        resource: resource.clone(),
        transition,
        attempt,
        took_ms: session.clock.now_ms().saturating_sub(started_ms),
        error: None,
    }));
}

/// Tells of a step that failed, tried or not.
pub(crate) fn tell_failed(run: &Run, failed: &FailedStep, started_ms: u64) {
    let session = &run.line.session;
    session.sink.event(&EngineEvent::StepFailed(StepEvent {
        key: failed.key.clone(),
        resource: failed.resource.clone(),
        transition: failed.transition,
        attempt: failed.attempt,
        took_ms: session.clock.now_ms().saturating_sub(started_ms),
        error: Some(failed.error.to_string()),
    }));
}

/// Brings a staying incarnation to a shape, or reverts a leaving one. An object that was found
/// where one was to be made is recorded, and brought to the goal like any other.
pub(crate) async fn reach(run: &Run, write: &Write<'_>) -> StepEnd {
    let mut done = None;
    let mut taken_over: Option<Record> = None;
    loop {
        let aim = {
            let world = run.world();
            match aim(run, &world, write, taken_over.as_ref()) {
                Ok(aim) => aim,
                Err(end) => return end,
            }
        };
        let (call, transition) = match &aim.act {
            Act::Nothing | Act::Delete => return restate(run, aim, done).await,
            Act::Create(_) => (Call::Create, Transition::Create),
            Act::Update { .. } if write.goal == Goal::Placeholder => {
                (Call::Update, Transition::Revert)
            }
            Act::Update { .. } => (Call::Update, Transition::Update),
        };
        if call == Call::Create
            && let Some(end) = beside_create(run, aim.ty, &aim.draft).await
        {
            return end;
        }
        if let (Call::Update, Some(before)) = (call, &aim.before)
            && let Err(error) = still_ours(run, aim.ty, before).await
        {
            return not_touched(error, transition);
        }
        let taken = run.world().take_over(call, &aim.draft);
        let job = Job {
            step: write.key.to_string(),
            key: write.key.clone(),
            transition,
            call,
            draft: aim.draft,
            before: aim.before,
            taken,
        };
        let carried = match run.line.carry_out(aim.ty, job).await {
            Ok(carried) => carried,
            Err(CallEnd::Met(found)) => {
                return StepEnd::Met {
                    incarnation: write.incarnation.clone(),
                    found,
                };
            }
            Err(end) => return StepEnd::of(end, transition),
        };
        let (record, found) = match carried.now {
            Now::Made(record) => (record, false),
            Now::Found(record) => (record, true),
            // Its intent stays open: the write that takes it over goes on under the same step.
            Now::Taken(record) => {
                taken_over = Some(record);
                continue;
            }
            Now::Gone => return vanished(run, write, transition, carried.attempt).await,
        };
        let outcome = Event::Outcome(Outcome::Done);
        let entry = run
            .line
            .entry(&write.key.to_string(), carried.attempt, outcome);
        if let Err(error) = run.commit(vec![entry], Became::Is(record)).await {
            return StepEnd::Failed {
                error,
                transition,
                attempt: carried.attempt,
            };
        }
        {
            let mut world = run.world();
            world.written.insert(write.incarnation.clone());
            world.done.push(DoneStep {
                key: write.key.clone(),
                resource: write.incarnation.resource.clone(),
                transition,
                attempt: carried.attempt,
            });
        }
        done = Some((transition, carried.attempt));
        if !found {
            return StepEnd::Done(done);
        }
    }
}

/// An update found nothing to change: recorded in the commit that ends it, so that the next plan
/// makes it again or has nothing to remove.
async fn vanished(run: &Run, write: &Write<'_>, transition: Transition, attempt: u32) -> StepEnd {
    run.line.failed();
    let error = StepError::Vanished {
        wanted: run.plan.intended.contains_key(write.incarnation),
    };
    let event = Event::Failed {
        error: error.to_string(),
    };
    let entry = run.line.entry(&write.key.to_string(), attempt, event);
    let became = Became::Lost(write.incarnation.clone());
    let error = match run.commit(vec![entry], became).await {
        Ok(()) => error,
        Err(store) => store,
    };
    StepEnd::Failed {
        error,
        transition,
        attempt,
    }
}

/// Looks for an object that the create would not run into, and that no record knows: a server-made
/// key refuses nobody, and who had another id may have its name of then. Not for a create that an
/// earlier run began: that was looked up.
async fn beside_create(run: &Run, ty: &ResourceType, draft: &Record) -> Option<StepEnd> {
    let incarnation = &draft.incarnation;
    let desired = run.desired.resources.get(&incarnation.resource)?;
    let hidden = ty.look == Look::Owner || !desired.formerly.is_empty();
    if !hidden || run.world().open.contains_key(incarnation) {
        return None;
    }
    let search = Search {
        looker: &run.line.looker(),
        ty,
        desired,
        is_recorded: &|key| {
            let world = run.world();
            let mut records = world.live.values();
            records.any(|record| record.ty == ty.name && record.key == key)
        },
    };
    match search.beside_create(incarnation.generation).await {
        Ok(None) => None,
        Ok(Some((_, found))) => {
            run.line.met.store(true, Ordering::Relaxed);
            Some(StepEnd::Met {
                incarnation: incarnation.clone(),
                found: Box::new(found),
            })
        }
        Err(error) => Some(StepEnd::failed(StepError::from(error))),
    }
}

/// Records edges, shape and marks of what needs no write.
async fn restate(run: &Run, aim: Aim<'_>, done: Option<(Transition, u32)>) -> StepEnd {
    let changed = aim.before.is_some_and(|before| before != aim.draft);
    if changed && let Err(error) = run.commit(Vec::new(), Became::Is(aim.draft)).await {
        return StepEnd::failed(error);
    }
    StepEnd::Done(done)
}

fn not_touched(error: StepError, transition: Transition) -> StepEnd {
    StepEnd::Failed {
        error,
        transition,
        attempt: 0,
    }
}

/// Removes an object and its record.
async fn remove(run: &Run, key: &StepKey, incarnation: &Incarnation) -> StepEnd {
    let Some(record) = run.world().live.get(incarnation).cloned() else {
        return StepEnd::Done(None);
    };
    let types = run.line.session.registry.types();
    let ty = types
        .get(&record.ty)
        .expect("the planner plans only what is registered");
    if let Err(error) = still_ours(run, ty, &record).await {
        return not_touched(error, Transition::Delete);
    }
    let taken = run.world().take_over(Call::Delete, &record);
    let job = Job {
        step: key.to_string(),
        key: key.clone(),
        transition: Transition::Delete,
        call: Call::Delete,
        draft: record.clone(),
        before: Some(record),
        taken,
    };
    let carried = match run.line.carry_out(ty, job).await {
        Ok(carried) => carried,
        Err(end) => return StepEnd::of(end, forecast(run, key)),
    };
    let outcome = Event::Outcome(Outcome::Done);
    let entry = run.line.entry(&key.to_string(), carried.attempt, outcome);
    let became = Became::Gone(incarnation.clone());
    if let Err(error) = run.commit(vec![entry], became).await {
        return StepEnd::Failed {
            error,
            transition: Transition::Delete,
            attempt: carried.attempt,
        };
    }
    run.world().done.push(DoneStep {
        key: key.clone(),
        resource: incarnation.resource.clone(),
        transition: Transition::Delete,
        attempt: carried.attempt,
    });
    StepEnd::Done(Some((Transition::Delete, carried.attempt)))
}
