//! What one write of a step must do, decided from the plan and the newest outputs. Pure but for
//! reading the world.

use notation_model::{
    Expr, Incarnation, Params, Record, ResourceId, ResourceType, Role as FieldRole, Shape,
};
use notation_planner::{
    Act, Goal, Intended, ParamsError, StepKey, Subject, Why, contributions_of, decide, differing,
    fixed_among, params_of, read_from,
};

use crate::{
    StepError,
    draft::{self, Resolved},
    run::Run,
    step_end::StepEnd,
    world::{Moment, Seen, World},
};

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
pub(crate) struct Aim<'r> {
    pub ty: &'r ResourceType,
    pub before: Option<Record>,
    pub draft: Record,
    pub act: Act,
}

/// Resolves and decides. `taken_over` is an object that is not
/// recorded yet.
pub(crate) fn aim<'r>(
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
    let resource = &write.incarnation.resource;
    let resolved = resolve(ty, resource, intended, shape, &seen)?;
    in_clear(ty, resource, &resolved.params)?;
    if let Some(end) = replaced_twice(run, write.incarnation, intended) {
        return Err(end);
    }
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
    resource: &ResourceId,
    intended: &Intended,
    shape: Shape,
    seen: &Seen<'_>,
) -> Result<Resolved, StepEnd> {
    let refused = |error: ParamsError| StepEnd::failed(StepError::unfit(resource, error));
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

/// No name is given that is a secret, wherever that came from: it becomes the key of a record.
fn in_clear(ty: &ResourceType, resource: &ResourceId, params: &Params) -> Result<(), StepEnd> {
    let key = ty.key_field();
    let name = key.and_then(|(field, _)| Some((field, params.get(field)?)));
    match name {
        Some((field, name)) if name.has_secret() => Err(StepEnd::failed(StepError::SecretKey {
            resource: resource.clone(),
            field: field.to_owned(),
        })),
        Some(_) | None => Ok(()),
    }
}

/// A later plan of a run takes nothing apart that an earlier one made in the place of another
/// (`engine.md` §6).
fn replaced_twice(run: &Run, incarnation: &Incarnation, intended: &Intended) -> Option<StepEnd> {
    let before = intended.supersedes.as_ref()?;
    if !run.before.made.contains(before) {
        return None;
    }
    let mut steps = run.plan.steps.iter();
    let because = steps.find_map(|step| match (&step.key.subject, &step.why) {
        (Subject::Incarnation(of), Why::Replaces { because }) if of == incarnation => Some(because),
        _ => None,
    });
    Some(StepEnd::failed(StepError::ReplacedTwice {
        resource: incarnation.resource.clone(),
        because: because.map_or_else(Vec::new, Vec::clone),
    }))
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
    if run.before.replaced.contains(&resource) || intended.supersedes.is_some() {
        return Some(StepEnd::failed(StepError::ReplacedTwice {
            resource,
            because: fixed,
        }));
    }
    let announced = fixed
        .iter()
        .all(|field| intended.may_replace.contains(field));
    let error = StepError::WouldReplace {
        source_text: {
            let fields: Vec<&str> = fixed.iter().map(String::as_str).collect();
            read_from(&intended.config, &intended.contributions, &fields)
        },
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
