//! One step: resolve, decide, announce, call, record.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use notation_model::{
    Expr, Incarnation, Look, Params, Record, ResourceId, ResourceType, Role as FieldRole, Shape,
};
use notation_planner::{
    Act, Goal, Intended, ParamsError, Role, Step, StepKey, Subject, Transition, contributions_of,
    decide, differing, fixed_among, params_of,
};
use notation_provider::{Found, OpError};
use notation_state::{Call, Change, Event, Outcome};

use crate::{
    DoneStep, EngineEvent, StepError, StepEvent,
    call::{CallEnd, Job, Now},
    draft::{self, Resolved},
    run::{Run, forecast},
    settle,
    unread::still_ours,
    unrecorded::Search,
    world::{Moment, Seen, World, puts},
};

/// How a step ended.
pub(crate) enum StepEnd {
    /// Its goal is reached; what was done last, and after how many calls.
    Done(Option<(Transition, u32)>),
    /// It is not.
    Failed {
        error: StepError,
        transition: Transition,
        attempt: u32,
    },
    /// The run stops; nothing was tried.
    NotStarted,
    /// The run stops; what was tried goes on with the next run.
    Interrupted,
    /// An object of ours is there that no record knows; nothing was made.
    Met {
        incarnation: Incarnation,
        found: Box<Found>,
    },
    /// The resource must be replaced, as the plan announced; `error` says so if it is not.
    Replace {
        resource: ResourceId,
        error: StepError,
        attempt: u32,
    },
}

impl StepEnd {
    pub(crate) fn failed(error: StepError) -> StepEnd {
        StepEnd::Failed {
            error,
            transition: Transition::None,
            attempt: 0,
        }
    }

    fn of(end: CallEnd, transition: Transition) -> StepEnd {
        match end {
            CallEnd::Failed { error, attempt } => StepEnd::Failed {
                error,
                transition,
                attempt,
            },
            CallEnd::NotStarted | CallEnd::Met(_) => StepEnd::NotStarted,
            CallEnd::Interrupted => StepEnd::Interrupted,
        }
    }
}

/// What a write is about.
pub(crate) struct Write<'a> {
    /// Its step.
    pub key: StepKey,
    /// Whom it is about.
    pub incarnation: &'a Incarnation,
    /// What is to be reached.
    pub goal: Goal,
    /// What peers' outputs are seen.
    pub moment: Moment,
}

/// A write that was decided.
struct Aim<'r> {
    ty: &'r ResourceType,
    before: Option<Record>,
    draft: Record,
    act: Act,
}

/// Runs one step of the plan.
pub(crate) async fn run_step(run: &Run, index: usize) -> StepEnd {
    let step: &Step = &run.plan.steps[index];
    let incarnation = match &step.key.subject {
        Subject::Cycle(cycle) => return settle::settle(run, &step.key, cycle).await,
        Subject::Incarnation(incarnation) => incarnation,
    };
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
            Now::Gone => {
                return StepEnd::failed(StepError::Provider(OpError::NotFound));
            }
        };
        let changes = run.world().changes_for(record);
        let outcome = Event::Outcome(Outcome::Done);
        let entry = run
            .line
            .entry(&write.key.to_string(), carried.attempt, outcome);
        if let Err(error) = run.line.append(vec![entry], puts(&changes)).await {
            return StepEnd::Failed {
                error,
                transition,
                attempt: carried.attempt,
            };
        }
        {
            let mut world = run.world();
            world.written.insert(write.incarnation.clone());
            world.recorded(changes);
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
        Err(error) => Some(StepEnd::failed(StepError::Provider(error))),
    }
}

/// Records edges, shape and marks of what needs no write.
async fn restate(run: &Run, aim: Aim<'_>, done: Option<(Transition, u32)>) -> StepEnd {
    if let Some(before) = &aim.before
        && *before != aim.draft
    {
        let changes = run.world().changes_for(aim.draft);
        if let Err(error) = run.line.append(Vec::new(), puts(&changes)).await {
            return StepEnd::failed(error);
        }
        run.world().recorded(changes);
    }
    StepEnd::Done(done)
}

/// Resolves and decides. Pure but for reading the world. `taken_over` is an object that is not
/// recorded yet.
fn aim<'r>(
    run: &'r Run,
    world: &World,
    write: &Write<'_>,
    taken_over: Option<&Record>,
) -> Result<Aim<'r>, StepEnd> {
    let before = world.live.get(write.incarnation).or(taken_over);
    let intended = run.plan.intended.get(write.incarnation);
    let types = run.line.session.registry.types();
    let name = match (intended, before) {
        (Some(intended), _) => &intended.ty,
        (None, Some(record)) => &record.ty,
        (None, None) => return Err(StepEnd::Done(None)),
    };
    let ty = types
        .get(name)
        .expect("the planner plans only what is registered");
    // A revert writes the recorded config, so it needs nothing (`engine.md` §3).
    if write.goal == Goal::Placeholder
        && let Some(record) = before
    {
        let draft = draft::reverted(ty, record);
        return Ok(Aim {
            act: decide(Some(record), write.goal, ty, &draft.applied),
            ty,
            before: Some(record.clone()),
            draft,
        });
    }
    let Some(intended) = intended else {
        return Err(StepEnd::Done(None));
    };
    let shape = match write.goal {
        Goal::Placeholder => Shape::Placeholder,
        Goal::Complete | Goal::Settled | Goal::Absent => Shape::Complete,
    };
    let seen = Seen {
        world,
        plan: &run.plan,
        secrets: &run.secrets,
        ty,
        reader: intended,
        moment: write.moment,
    };
    let resolved = resolve(ty, intended, shape, &seen)?;
    if let Some(record) = before {
        let changed = differing(ty, &record.applied, &resolved.params);
        if let Some(end) = replacement(run, ty, write.incarnation, intended, &changed) {
            return Err(end);
        }
    }
    let mut draft = draft::staying(ty, write.incarnation, intended, shape, resolved, before);
    // Its tags may still name an earlier id, also when the record of that id was lost.
    for former in run.line.former(&write.incarnation.resource) {
        if !draft.former.contains(former) {
            draft.former.push(former.clone());
        }
    }
    Ok(Aim {
        act: decide(before, write.goal, ty, &draft.applied),
        ty,
        before: before.cloned(),
        draft,
    })
}

/// What settling asks of a member: its type and parameters from the newest outputs.
pub(crate) fn wanted<'r>(
    run: &'r Run,
    world: &World,
    write: &Write<'_>,
) -> Result<(&'r ResourceType, Params), StepEnd> {
    let aim = aim(run, world, write, None)?;
    Ok((aim.ty, aim.draft.applied))
}

fn resolve(
    ty: &ResourceType,
    intended: &Intended,
    shape: Shape,
    seen: &Seen<'_>,
) -> Result<Resolved, StepEnd> {
    let refused = |error: ParamsError| {
        StepEnd::failed(StepError::Provider(OpError::Refused {
            message: error.to_string(),
        }))
    };
    let params = params_of(ty, intended, shape, seen).map_err(refused)?;
    known(&params)?;
    let config = params_of(ty, intended, Shape::Placeholder, seen).map_err(refused)?;
    let contributions = match shape {
        Shape::Placeholder => Vec::new(),
        Shape::Complete => contributions_of(ty, intended, seen),
    };
    Ok(Resolved {
        params,
        config,
        contributions,
    })
}

/// No call is made with a value that is not known.
fn known(params: &Params) -> Result<(), StepEnd> {
    let unknown = params.values().flat_map(|value| value.unknowns()).next();
    match unknown {
        None => Ok(()),
        Some(unknown) => Err(StepEnd::failed(StepError::Unknown {
            what: unknown.text.to_string(),
        })),
    }
}

/// A value that became known changes what cannot be changed (`engine.md` §6).
fn replacement(
    run: &Run,
    ty: &ResourceType,
    incarnation: &Incarnation,
    intended: &Intended,
    changed: &[String],
) -> Option<StepEnd> {
    let fixed = fixed_among(ty, changed);
    if fixed.is_empty() {
        return None;
    }
    let resource = incarnation.resource.clone();
    // By an earlier round, or by the plan itself.
    if run.replaced.contains(&resource) || intended.supersedes.is_some() {
        return Some(StepEnd::failed(StepError::ReplacedTwice {
            resource,
            fields: fixed,
        }));
    }
    let announced = fixed
        .iter()
        .all(|field| intended.may_replace.contains(field));
    let error = StepError::WouldReplace {
        source_text: sources(intended, &fixed),
        resource: resource.clone(),
        fields: fixed.clone(),
    };
    if announced && side_by_side(run, ty, &resource, &fixed) {
        return Some(StepEnd::Replace {
            resource,
            error,
            attempt: 0,
        });
    }
    Some(StepEnd::failed(error))
}

/// Whether an old and a new incarnation can exist at the same time.
fn side_by_side(run: &Run, ty: &ResourceType, resource: &ResourceId, changed: &[String]) -> bool {
    let Some((field, declared)) = ty.key_field() else {
        return true;
    };
    let written = run
        .desired
        .resources
        .get(resource)
        .and_then(|desired| desired.config.get(field));
    match (declared.role, written) {
        (FieldRole::Computed, _) | (FieldRole::Param, None | Some(Expr::Name)) => true,
        (FieldRole::Param, Some(_)) => changed.iter().any(|name| name == field),
    }
}

/// ` (read from b.id)`: what the fields read.
fn sources(intended: &Intended, fields: &[String]) -> String {
    let config = intended
        .config
        .iter()
        .filter(|(name, _)| fields.iter().any(|field| *name == field))
        .map(|(_, expr)| expr);
    let contributed = intended
        .contributions
        .iter()
        .filter(|contribution| fields.iter().any(|field| contribution.field == *field))
        .map(|contribution| &contribution.value);
    let read: BTreeSet<String> = config
        .chain(contributed)
        .flat_map(Expr::references)
        .map(|(_, source)| source.to_string())
        .collect();
    if read.is_empty() {
        String::new()
    } else {
        let read: Vec<String> = read.into_iter().collect();
        format!(" (read from {})", read.join(", "))
    }
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
    let change = Change::Remove(incarnation.clone());
    if let Err(error) = run.line.append(vec![entry], vec![change]).await {
        return StepEnd::Failed {
            error,
            transition: Transition::Delete,
            attempt: carried.attempt,
        };
    }
    let mut world = run.world();
    world.live.remove(incarnation);
    world.done.push(DoneStep {
        key: key.clone(),
        resource: incarnation.resource.clone(),
        transition: Transition::Delete,
        attempt: carried.attempt,
    });
    StepEnd::Done(Some((Transition::Delete, carried.attempt)))
}
