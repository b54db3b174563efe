//! Records as a call will leave them, and as its answer, or a look, makes them.

use notation_model::{
    Desired, Incarnation, Params, Record, ResourceType, Role, Shape, Standing, Text, Value, Via,
};
use notation_planner::{Intended, differing, hide, hide_found};
use notation_provider::{Found, Object};

/// What resolving gave for one staying incarnation.
pub(crate) struct Resolved {
    /// Parameters of the goal's shape.
    pub params: Params,
    /// Parameters of the placeholder.
    pub config: Params,
    /// Contributions in call order; empty for a placeholder.
    pub contributions: Vec<(Text, Value)>,
}

/// The record of a staying incarnation once it has `shape`. Outputs are those of `before`, with
/// the parameters laid over.
pub(crate) fn staying(
    ty: &ResourceType,
    incarnation: &Incarnation,
    intended: &Intended,
    shape: Shape,
    resolved: Resolved,
    before: Option<&Record>,
) -> Record {
    let Resolved {
        params,
        config,
        contributions,
    } = resolved;
    let edges = intended.edges.iter().filter(|edge| match shape {
        Shape::Complete => true,
        Shape::Placeholder => matches!(edge.via, Via::Config(_)),
    });
    let key = match before {
        Some(record) => record.key.clone(),
        None => key_in(ty, &params).into(),
    };
    Record {
        incarnation: incarnation.clone(),
        ty: ty.name.clone(),
        shape,
        standing: before.map_or(Standing::Current, |record| record.standing),
        key,
        outputs: outputs_after(before, &params),
        // Of two that are the same one is kept, as where the record is read back.
        config: if config == params {
            params.clone()
        } else {
            config
        },
        applied: params,
        contributions,
        edges: edges.cloned().collect(),
        marks: intended.marks,
        can_be_bare: intended.can_be_bare,
        gone: false,
        in_doubt: false,
        former: before.map_or_else(Vec::new, |record| record.former.clone()),
        taken_from: None,
        version: before.map_or(0, |record| record.version),
    }
}

/// The record once it is reverted to its placeholder.
pub(crate) fn reverted(ty: &ResourceType, record: &Record) -> Record {
    let edges = record.edges.iter();
    let params = notation_planner::reverted(ty, record);
    Record {
        shape: Shape::Placeholder,
        outputs: outputs_after(Some(record), &params),
        applied: params,
        contributions: Vec::new(),
        edges: edges
            .filter(|edge| matches!(edge.via, Via::Config(_)))
            .cloned()
            .collect(),
        in_doubt: false,
        taken_from: None,
        ..record.clone()
    }
}

/// The record after the provider carried the call out.
pub(crate) fn answered(ty: &ResourceType, draft: &Record, object: Object) -> Record {
    let mut outputs = draft.applied.clone();
    for (name, value) in object.outputs {
        let value = hide_found(ty, &name, draft.applied.get(&name), value);
        outputs.insert(name, value);
    }
    Record {
        key: object.key.into(),
        outputs,
        ..draft.clone()
    }
}

/// The record of an object that was found where the draft was to be: parameters as they are
/// there, so that what still differs is written.
pub(crate) fn found(ty: &ResourceType, draft: &Record, found: Found) -> Record {
    let mut record = answered(ty, draft, found.object);
    let seen = found.params.into_iter().filter(|(name, _)| {
        ty.fields
            .get(name.as_str())
            .is_some_and(|field| field.role == Role::Param)
    });
    let seen: Params = seen
        .map(|(name, value)| {
            let value = hide_found(ty, &name, draft.applied.get(&name), value);
            (name, value)
        })
        .collect();
    for name in differing(ty, &draft.applied, &seen) {
        let sensitive = ty.fields.get(&name).is_some_and(|field| field.sensitive);
        match seen.get(&name) {
            Some(value) => {
                record.applied.insert(name, value.clone());
            }
            // Providers may keep sensitive values to themselves.
            None if sensitive => {}
            None => {
                record.applied.remove(&name);
            }
        }
    }
    record
}

/// The record of an object that no plan made: as it is there, complete, with everything that the
/// program contributes taken for contributed. Its edges are not known yet.
pub(crate) fn taken_up(
    ty: &ResourceType,
    wanted: &Desired,
    incarnation: Incarnation,
    found: Found,
) -> Record {
    let there = found.params.into_iter().filter(|(name, _)| {
        let field = ty.fields.get(name.as_str());
        field.is_some_and(|field| field.role == Role::Param)
    });
    let applied: Params = there
        .map(|(name, value)| {
            let value = hide(ty, &name, value);
            (name, value)
        })
        .collect();
    let mut config = applied.clone();
    for contribution in &wanted.contributions {
        config.remove(&contribution.field);
    }
    let draft = Record {
        incarnation,
        ty: ty.name.clone(),
        shape: Shape::Complete,
        standing: Standing::Current,
        key: Text::new(),
        applied,
        config,
        contributions: Vec::new(),
        outputs: Params::new(),
        edges: Vec::new(),
        marks: wanted.marks,
        can_be_bare: wanted.cannot_be_bare(ty).is_none(),
        gone: false,
        in_doubt: false,
        former: wanted.formerly.clone(),
        taken_from: None,
        version: 0,
    };
    answered(ty, &draft, found.object)
}

/// The record with what a read found laid over it. Compared are the parameters last set; a
/// sensitive one that is not answered cannot be compared (`engine.md` §8).
pub(crate) fn observed(
    ty: &ResourceType,
    record: &Record,
    params: &Params,
    outputs: &Params,
) -> Record {
    let mut now = record.clone();
    now.gone = false;
    let seen: Params = params
        .iter()
        .filter(|(name, _)| record.applied.contains_key(name))
        .map(|(name, value)| {
            let known = record.applied.get(name);
            (name.clone(), hide_found(ty, name, known, value.clone()))
        })
        .collect();
    for name in differing(ty, &record.applied, &seen) {
        let sensitive = ty.fields.get(&name).is_some_and(|field| field.sensitive);
        match seen.get(&name) {
            Some(value) => {
                now.applied.insert(name.clone(), value.clone());
                now.outputs.insert(name, value.clone());
            }
            None if sensitive || record.applied.get(&name) == Some(&Value::Null) => {}
            None => {
                now.applied.remove(&name);
                now.outputs.remove(&name);
            }
        }
    }
    let news = outputs
        .iter()
        .filter(|(name, _)| !record.applied.contains_key(name));
    for (name, value) in news {
        let value = hide_found(ty, name, record.outputs.get(name), value.clone());
        now.outputs.insert(name.clone(), value);
    }
    now
}

/// Whether a read says what is recorded: the parameters last set, and outputs seen before.
pub(crate) fn is_as_recorded(ty: &ResourceType, record: &Record, found: &Found) -> bool {
    let now = observed(ty, record, &found.params, &found.object.outputs);
    let computed = |outputs: &Params| -> Params {
        let known = outputs.iter().filter(|(name, _)| {
            record.outputs.contains_key(name) && !record.applied.contains_key(name)
        });
        known
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    now.applied == record.applied
        && differing(ty, &computed(&record.outputs), &computed(&now.outputs)).is_empty()
}

/// The key among parameters; empty when the server makes it.
fn key_in(ty: &ResourceType, params: &Params) -> String {
    ty.key_field()
        .and_then(|(name, _)| params.get(name)?.as_text())
        .unwrap_or_default()
        .to_owned()
}

/// Outputs known before, less parameters that are no longer set, with those that are.
fn outputs_after(before: Option<&Record>, params: &Params) -> Params {
    let mut outputs = before.map_or_else(Params::new, |record| {
        let mut outputs = record.outputs.clone();
        outputs.retain(|name, _| !record.applied.contains_key(name));
        outputs
    });
    outputs.extend(params.clone());
    outputs
}
