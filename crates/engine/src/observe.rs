//! Asking the providers what is really there (`engine.md` §8).

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream::FuturesUnordered};
use notation_model::{Incarnation, Look, Owner, Record, ResourceType};
use notation_planner::{Observation, Observed};
use notation_provider::{Found, LookFor};

use crate::{
    EngineError, ObserveFailure, draft,
    look::{Looker, is_ours, owner_text},
};

/// Reads every recorded object that can be read, at most `parallelism` at a time.
///
/// An object whose tags name another deployment, or another resource of this one, is somebody
/// else's by now: ours is gone, and it is not ours to remove. One that has lost tags, all or some, is
/// returned beside what was observed: it must not be written without being asked to
/// (`engine.md` §8, *Ownership*).
/// Errors: [`EngineError::Observe`] with every read that failed.
pub(crate) async fn observe(
    looker: &Looker<'_>,
    records: &BTreeMap<Incarnation, Record>,
    parallelism: usize,
) -> Result<(Observed, Vec<Incarnation>), EngineError> {
    let types = looker.session.registry.types();
    let readable: Vec<(&ResourceType, &Record)> = records
        .values()
        .filter_map(|record| {
            let ty = types.get(&record.ty)?;
            is_readable(ty).then_some((ty, record))
        })
        .collect();
    let mut answers = Vec::with_capacity(readable.len());
    let mut running = FuturesUnordered::new();
    for (ty, record) in readable {
        if running.len() >= parallelism.max(1) {
            answers.extend(running.next().await);
        }
        running.push(read(looker, ty, record));
    }
    while let Some(answer) = running.next().await {
        answers.push(answer);
    }
    let mut observed = Observed::default();
    let mut untagged = Vec::new();
    let mut failures = Vec::new();
    for (record, answer) in answers {
        match answer {
            Ok((observation, tagged)) => {
                if tagged == Tagged::LostItsTags {
                    untagged.push(record.incarnation.clone());
                }
                observed.0.insert(record.incarnation.clone(), observation);
            }
            Err(reason) => failures.push(ObserveFailure {
                resource: record.incarnation.resource.clone(),
                key: record.key.to_string(),
                reason,
            }),
        }
    }
    failures.sort_by(|one, other| one.resource.cmp(&other.resource));
    untagged.sort();
    if failures.is_empty() {
        Ok((observed, untagged))
    } else {
        Err(EngineError::Observe(failures))
    }
}

/// Whether objects of a type can be read by their key.
pub(crate) fn is_readable(ty: &ResourceType) -> bool {
    match ty.look {
        Look::Key | Look::Owner => true,
        Look::IdempotentCreate | Look::Never => false,
    }
}

/// Whether an object says that it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tagged {
    /// It does, or nobody asks.
    Fine,
    /// It lacks tags that ours had, and names nobody else.
    LostItsTags,
}

async fn read<'r>(
    looker: &Looker<'_>,
    ty: &ResourceType,
    record: &'r Record,
) -> (&'r Record, Result<(Observation, Tagged), String>) {
    let deployment = &looker.session.deployment;
    let owner = Owner {
        deployment: deployment.clone(),
        resource: record.incarnation.resource.clone(),
        generation: record.incarnation.generation,
    };
    let look = LookFor::Key(&record.key);
    let is_ours = |found: &Found| is_ours(ty, &owner, record, &found.tags);
    // What differs from the record may be older than it, as long as reads lag.
    let as_recorded = |found: &Option<Found>| match found {
        None => record.gone,
        Some(found) if record.in_doubt => is_ours(found),
        Some(found) => is_ours(found) && !record.gone && draft::is_as_recorded(ty, record, found),
    };
    let found = looker.until_lag(ty, &owner, look, &as_recorded).await;
    let observation = found.map_err(|error| error.to_string()).map(|found| {
        let Some(found) = found else {
            return (Observation::Gone, Tagged::Fine);
        };
        let ours = is_ours(&found);
        let lost = !ours && !record.gone && !owner.is_anothers(&found.tags, record.earlier());
        if !ours && !lost {
            let owner = owner_text(&found.tags);
            return (Observation::Foreign { owner }, Tagged::Fine);
        }
        let there = Observation::There {
            params: found.params,
            outputs: found.object.outputs,
        };
        let tagged = if lost {
            Tagged::LostItsTags
        } else {
            Tagged::Fine
        };
        (there, tagged)
    });
    (record, observation)
}
