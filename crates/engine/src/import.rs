//! Import: an existing object becomes a resource of the program (`engine.md` §8).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{DesiredGraph, Incarnation, Owner, Record, ResourceId, owner_tags};
use notation_provider::LookFor;
use notation_state::Change;

use crate::{
    EngineError, RunOptions, Session, draft,
    given::{give_placeholder, known},
    line::Line,
    look::{has_owner, owner_text, owns},
    observe,
    prepare::recovered,
    recover::not_recorded,
    references::{link, ordered},
    verbs::{finished, hold_line},
    world::{changes_for, recorded_as},
};

/// Adopts an existing object under a resource id of the program. The next deploy writes it in
/// full, tags included.
///
/// Errors: [`EngineError::Foreign`] when its tags name another owner and `options.plan.adopt` does
/// not name the resource; [`EngineError::NotReadable`] when its type cannot be read;
/// [`EngineError::Interrupted`] when the person broke it off.
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
    if !observe::is_readable(ty) {
        return Err(EngineError::NotReadable {
            resource: id.clone(),
            ty: ty.name.clone(),
        });
    }
    let of_resource = recovered
        .records
        .values()
        .filter(|record| record.incarnation.resource == *id);
    // An id has one object, and an object has one id.
    let has_one = |record: &&Record| !record.gone && record.incarnation.resource == *id;
    let has_it = || recorded_as(&recovered.records, &ty.name, key);
    if let Some(record) = recovered.records.values().find(has_one).or_else(has_it) {
        return Err(EngineError::already_recorded(record));
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
            EngineError::Look(vec![crate::ObserveFailure {
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
    let incarnation = Incarnation {
        resource: id.clone(),
        generation,
    };
    let taken_from = (!ours).then(|| owner_tags(&found.tags).into());
    let secrets = match desired.secrets().is_empty() {
        true => BTreeMap::new(),
        false => session.store.secrets(&session.deployment).await?,
    };
    let mut record = draft::taken_up(ty, wanted, incarnation.clone(), found);
    record.in_doubt = ty.updates && !ours;
    record.taken_from = taken_from;
    give_placeholder(
        ty,
        wanted,
        &known(&recovered.records),
        &secrets,
        &mut record,
    );
    record.edges = ordered(wanted, &recovered.records);
    let mut records = recovered.records;
    let mut changed = BTreeSet::from([incarnation.clone()]);
    for record in changes_for(&records, None, record) {
        changed.insert(record.incarnation.clone());
        records.insert(record.incarnation.clone(), record);
    }
    changed.extend(link(
        types,
        &mut records,
        &BTreeSet::from([incarnation.clone()]),
    ));
    let changes = changed.iter().filter_map(|changed| records.get(changed));
    let changes = changes.cloned().map(Change::put).collect();
    let appended = line.append(Vec::new(), changes).await;
    appended.map_err(|error| not_recorded(&error))?;
    Ok(records.remove(&incarnation).expect("it was put there"))
}
