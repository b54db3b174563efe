//! Import: an existing object becomes a resource of the program (`engine.md` §8).

use std::collections::BTreeMap;

use notation_model::{
    Desired, DesiredGraph, Incarnation, Owner, Params, Record, RecordedEdge, ResourceId,
    ResourceType, Role as FieldRole, Shape, Standing, TypeSet, Value, Via,
};
use notation_provider::LookFor;
use notation_state::Change;

use crate::{
    EngineError, RunOptions, Session,
    call::Line,
    draft,
    look::{has_owner, owner_text, owns},
    prepare::recovered,
    recover::not_recorded,
    verbs::{finished, hold_line},
    world::changes_for,
};

/// Adopts an existing object under a resource id of the program. The next deploy writes it in
/// full, tags included.
///
/// Errors: [`EngineError::Foreign`] when its tags name another owner and `options.plan.adopt` does
/// not name the resource; [`EngineError::Interrupted`] when the person broke it off.
pub async fn import(
    session: &Session,
    desired: &DesiredGraph,
    id: &ResourceId,
    key: &str,
    options: &RunOptions,
) -> Result<Record, EngineError> {
    let (held, line) = hold_line(session, options, desired).await?;
    let done = import_held(&line, desired, id, key).await;
    finished(held, done).await
}

async fn import_held(
    line: &Line,
    desired: &DesiredGraph,
    id: &ResourceId,
    key: &str,
) -> Result<Record, EngineError> {
    let session = &line.session;
    let state = session.store.load(&session.deployment).await?;
    let recovered = session.interrupt.or(recovered(line, state)).await?;
    let program = || EngineError::NoSuchResource {
        resource: id.clone(),
        place: "the program",
    };
    let wanted = desired.resources.get(id).ok_or_else(program)?;
    let types = session.registry.types();
    let ty = types.get(&wanted.ty).ok_or_else(program)?;
    let of_resource = recovered
        .records
        .values()
        .filter(|record| record.incarnation.resource == *id);
    // An id has one object, and an object has one id.
    let recorded = |record: &&Record| {
        let claims_key = record.ty == ty.name && record.key == key;
        !record.gone && (record.incarnation.resource == *id || claims_key)
    };
    if let Some(record) = recovered.records.values().find(recorded) {
        return Err(EngineError::AlreadyRecorded {
            resource: record.incarnation.resource.clone(),
            key: record.key.clone(),
        });
    }
    let generation = of_resource
        .map(|record| record.incarnation.generation + 1)
        .max()
        .unwrap_or(0);
    let owner = Owner {
        deployment: session.deployment.clone(),
        resource: id.clone(),
        generation,
    };
    let looker = line.looker();
    let looking = async {
        let read = looker.read(ty, &owner, LookFor::Key(key)).await;
        read.map_err(|error| {
            EngineError::Observe(vec![crate::ObserveFailure {
                resource: id.clone(),
                key: key.to_owned(),
                reason: error.to_string(),
            }])
        })
    };
    let interrupt = &session.interrupt;
    let found = interrupt
        .or(looking)
        .await?
        .ok_or_else(|| EngineError::NoSuchObject {
            ty: ty.name.clone(),
            key: key.to_owned(),
        })?;
    let claimed = has_owner(&found.tags);
    let ours = owns(&owner, &found.tags, &wanted.formerly);
    if claimed && !ours && !line.options.plan.adopt.contains(id) {
        return Err(EngineError::Foreign {
            resource: id.clone(),
            key: key.to_owned(),
            owner: owner_text(&found.tags),
        });
    }
    let applied: Params = found
        .params
        .iter()
        .filter(|(name, _)| {
            ty.fields
                .get(*name)
                .is_some_and(|field| field.role == FieldRole::Param)
        })
        .map(|(name, value)| (name.clone(), draft::hidden(ty, name, value.clone())))
        .collect();
    let mut config = applied.clone();
    for contribution in &wanted.contributions {
        config.remove(&contribution.field);
    }
    let draft = Record {
        incarnation: Incarnation {
            resource: id.clone(),
            generation,
        },
        ty: ty.name.clone(),
        shape: Shape::Complete,
        standing: Standing::Current,
        key: key.to_owned(),
        applied,
        config,
        contributions: Vec::new(),
        outputs: Params::new(),
        edges: Vec::new(),
        marks: wanted.marks,
        can_be_bare: wanted.cannot_be_bare(ty).is_none(),
        gone: false,
        in_doubt: ty.updates && !ours,
        former: wanted.formerly.clone(),
        version: 0,
    };
    let mut record = draft::answered(ty, &draft, found.object);
    record.edges = ordered(wanted, &recovered.records);
    let mut changes = linked(types, &mut record, &recovered.records);
    changes.extend(changes_for(&recovered.records, None, record.clone()));
    let appended = line
        .append(Vec::new(), changes.into_iter().map(Change::put).collect())
        .await;
    appended.map_err(|error| not_recorded(&error))?;
    Ok(record)
}

/// Order that the program alone knows: `dependOn` of what is recorded already.
fn ordered(wanted: &Desired, records: &BTreeMap<Incarnation, Record>) -> Vec<RecordedEdge> {
    let targets = wanted.depend_on.iter().filter_map(|depend| {
        records.values().find(|record| {
            record.incarnation.resource == depend.target && record.standing == Standing::Current
        })
    });
    let edges = targets.map(|record| RecordedEdge {
        to: record.incarnation.clone(),
        via: Via::DependOn,
        holds: false,
    });
    edges.collect()
}

/// Gives the imported record the edges that its object has, itself and what is recorded already
/// as targets, and returns the recorded ones whose objects turn out to name it. The program
/// would tell what the object shall refer to, not what it does.
fn linked(
    types: &TypeSet,
    record: &mut Record,
    records: &BTreeMap<Incarnation, Record>,
) -> Vec<Record> {
    let Some(ty) = types.get(&record.ty) else {
        return Vec::new();
    };
    let others = records.values().filter(|other| !other.gone);
    let mut changed = Vec::new();
    let mut edges = named(ty, record, ty, record);
    for other in others {
        let Some(other_ty) = types.get(&other.ty) else {
            continue;
        };
        edges.extend(named(ty, record, other_ty, other));
        let mut backward = named(other_ty, other, ty, record);
        backward.retain(|edge| !other.edges.contains(edge));
        if !backward.is_empty() {
            let mut other = other.clone();
            other.edges.extend(backward);
            other.version += 1;
            changed.push(other);
        }
    }
    record.edges.extend(edges);
    changed
}

/// Edges by which the object of `holder` keeps the one of `target`: fields that hold or were
/// contributed, and have in them what stays the same of the target (its key, its stable outputs).
fn named(
    ty: &ResourceType,
    holder: &Record,
    target_ty: &ResourceType,
    target: &Record,
) -> Vec<RecordedEdge> {
    let stable = target_ty
        .fields
        .iter()
        .filter(|(_, field)| field.stable && field.role == FieldRole::Computed)
        .filter_map(|(name, _)| target.outputs.get(name)?.as_text());
    let names: Vec<&str> = stable
        .chain([target.key.as_str()])
        .filter(|name| !name.is_empty())
        .collect();
    let fields = holder.applied.iter().filter_map(|(name, value)| {
        let field = ty.fields.get(name).filter(|field| !field.key)?;
        let contributed = holder.config.get(name) != Some(value);
        let via = match (contributed, field.holds) {
            (true, _) => Via::Contribution(name.clone()),
            (false, true) => Via::Config(name.clone()),
            (false, false) => return None,
        };
        has(value, &names).then_some(via)
    });
    let edges = fields.map(|via| RecordedEdge {
        to: target.incarnation.clone(),
        via,
        holds: true,
    });
    edges.collect()
}

/// Whether one of these texts stands somewhere in a value.
fn has(value: &Value, texts: &[&str]) -> bool {
    match value {
        Value::Text(text) => texts.contains(&text.as_str()),
        Value::List(items) => items.iter().any(|item| has(item, texts)),
        Value::Map(members) => members.values().any(|member| has(member, texts)),
        Value::Secret(secret) => has(secret.reveal(), texts),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Asset(_)
        | Value::Unknown(_) => false,
    }
}
