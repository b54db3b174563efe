//! Asking the providers what is really there (`engine.md` §8).

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream::FuturesUnordered};
use notation_model::{Incarnation, Look, Owner, Record, ResourceType};
use notation_planner::{Observation, Observed};
use notation_provider::LookFor;

use crate::{
    EngineError, ObserveFailure,
    look::{Looker, of_deployment},
};

/// Reads every recorded object that can be read, at most `parallelism` at a time.
///
/// An object whose tags name another deployment is somebody else's by now: ours is gone.
/// Errors: [`EngineError::Observe`] with every read that failed.
pub(crate) async fn observe(
    looker: &Looker<'_>,
    records: &BTreeMap<Incarnation, Record>,
    parallelism: usize,
) -> Result<Observed, EngineError> {
    let types = looker.session.registry.types();
    let readable: Vec<(&ResourceType, &Record)> = records
        .values()
        .filter_map(|record| {
            let ty = types.get(&record.ty)?;
            match ty.look {
                Look::Key | Look::Owner => Some((ty, record)),
                Look::IdempotentCreate | Look::Never => None,
            }
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
    let mut failures = Vec::new();
    for (record, answer) in answers {
        match answer {
            Ok(observation) => {
                observed.0.insert(record.incarnation.clone(), observation);
            }
            Err(reason) => failures.push(ObserveFailure {
                resource: record.incarnation.resource.clone(),
                key: record.key.clone(),
                reason,
            }),
        }
    }
    failures.sort_by(|one, other| one.resource.cmp(&other.resource));
    if failures.is_empty() {
        Ok(observed)
    } else {
        Err(EngineError::Observe(failures))
    }
}

async fn read<'r>(
    looker: &Looker<'_>,
    ty: &ResourceType,
    record: &'r Record,
) -> (&'r Record, Result<Observation, String>) {
    let deployment = &looker.session.deployment;
    let owner = Owner {
        deployment: deployment.clone(),
        resource: record.incarnation.resource.clone(),
        generation: record.incarnation.generation,
    };
    let look = LookFor::Key(&record.key);
    let found = looker.until_lag(ty, &owner, look).await;
    let observation = found
        .map_err(|error| error.to_string())
        .map(|found| match found {
            None => Observation::Gone,
            Some(found)
                if ty.tags && !of_deployment(deployment, &found.tags) && !record.in_doubt =>
            {
                Observation::Gone
            }
            Some(found) => Observation::There {
                params: found.params,
                outputs: found.object.outputs,
            },
        });
    (record, observation)
}
