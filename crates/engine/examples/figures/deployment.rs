//! Sessions over a free provider, and states to plan against.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use notation_engine::{DriftCheck, RunOptions, RunStatus, Session, deploy};
use notation_model::{DeploymentId, DesiredGraph, Incarnation, Record};
use notation_provider::{Provider, Registry};
use notation_state::{
    Acquired, Batch, Change, Claim, KeySource, Machine, MemoryStore, RunId, SqliteStore, StateStore,
};

use crate::{Failure, free::Free};

/// Records written in one commit when a state is filled.
const FILL: usize = 1000;

/// The deployment of all figures.
pub fn deployment() -> Result<DeploymentId, Failure> {
    Ok("shop:dev:main".parse()?)
}

/// As `--no-refresh`: a free provider knows nothing.
pub fn options() -> RunOptions {
    RunOptions {
        drift: DriftCheck::Skip,
        ..RunOptions::default()
    }
}

/// The store in a folder, opened anew.
pub fn store(folder: &Path) -> Arc<SqliteStore> {
    let key = KeySource::File(folder.join("key"));
    Arc::new(SqliteStore::open(folder.join("state.db"), key))
}

/// A session over a store and a provider.
pub fn session(
    store: Arc<dyn StateStore>,
    provider: Arc<dyn Provider>,
) -> Result<Session, Failure> {
    let registry = Registry::new(vec![provider])?;
    Ok(Session::new(deployment()?, store, registry))
}

/// What is recorded once a program was deployed.
pub async fn recorded(graph: DesiredGraph) -> Result<BTreeMap<Incarnation, Record>, Failure> {
    let store = Arc::new(MemoryStore::new());
    let session = session(store.clone(), Arc::new(Free::default()))?;
    let report = deploy(&session, Arc::new(graph), &options()).await?;
    if report.status != RunStatus::Done {
        return Err("a deploy to a free provider failed".into());
    }
    Ok(store.load(&session.deployment).await?.records)
}

/// Puts records into the store of a folder.
pub async fn fill(folder: &Path, records: &BTreeMap<Incarnation, Record>) -> Result<(), Failure> {
    let (store, deployment) = (store(folder), deployment()?);
    let claim = Claim {
        run: RunId("fill".to_owned()),
        machine: Machine::here("localhost"),
        now_ms: 1,
        over: None,
    };
    let Acquired::Free(hold) = store.acquire(&deployment, &claim).await? else {
        return Err("a new state is held by somebody".into());
    };
    let records: Vec<&Record> = records.values().collect();
    for some in records.chunks(FILL) {
        let changes = some.iter().map(|record| Change::put((*record).clone()));
        let batch = Batch {
            entries: Vec::new(),
            changes: changes.collect(),
        };
        store.append(&deployment, &hold, batch).await?;
    }
    Ok(store.release(&deployment, &hold).await?)
}
