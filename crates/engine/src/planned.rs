//! A plan with what it was made from.

use std::collections::BTreeMap;

use notation_model::{DesiredGraph, Incarnation, Record, SecretName, Value};
use notation_planner::{Observation, Observed, Plan, PlanInput, PlanOptions, Prior};

use crate::{EngineError, Session, draft};

/// A plan and what it was made from.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What would be done.
    pub plan: Plan,
    /// The records it was made from.
    pub prior: Prior,
    /// What the providers said.
    pub observed: Observed,
    /// The exports of the entry that certainly change.
    pub exports: Vec<ExportChange>,
}

/// An export that is not what the last deploy stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportChange {
    /// Its name in the entry's file.
    pub name: String,
    /// What is stored; `None` when it is new.
    pub before: Option<Value>,
    /// What will be stored, unknown where only the run tells; `None` when it goes.
    pub after: Option<Value>,
}

pub(crate) fn make_plan(
    session: &Session,
    desired: &DesiredGraph,
    records: BTreeMap<Incarnation, Record>,
    observed: Observed,
    secrets: &BTreeMap<SecretName, Value>,
    options: &PlanOptions,
) -> Result<Planned, EngineError> {
    let prior = Prior { records };
    let plan = notation_planner::plan(&PlanInput {
        deployment: &session.deployment,
        types: session.registry.types(),
        desired,
        prior: &prior,
        observed: &observed,
        secrets,
        options,
    })?;
    Ok(Planned {
        plan,
        prior,
        observed,
        exports: Vec::new(),
    })
}

/// Records with what was observed laid over them: live ones, and those found gone.
pub(crate) fn as_observed(
    session: &Session,
    planned: &Planned,
) -> (BTreeMap<Incarnation, Record>, BTreeMap<Incarnation, Record>) {
    let mut live = BTreeMap::new();
    let mut gone = BTreeMap::new();
    for (incarnation, record) in &planned.prior.records {
        let record = laid_over(session, &planned.observed, record);
        let into = if record.gone { &mut gone } else { &mut live };
        into.insert(incarnation.clone(), record);
    }
    (live, gone)
}

/// A record with what was observed laid over it.
pub(crate) fn laid_over(session: &Session, observed: &Observed, record: &Record) -> Record {
    let found = observed.0.get(&record.incarnation);
    match (found, session.registry.types().get(&record.ty)) {
        (Some(Observation::There { params, outputs }), Some(ty)) => {
            draft::observed(ty, record, params, outputs)
        }
        (Some(Observation::Gone | Observation::Foreign { .. }), _) => Record {
            gone: true,
            ..record.clone()
        },
        (None, _) | (Some(Observation::There { .. }), None) => record.clone(),
    }
}
