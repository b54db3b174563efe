//! Claims: what must hold because of one resource (decision 0016, host API §17-§22).

use crate::world::World;
use crate::{EdgeKind, Key, Resource, Uid};
use std::fmt;

/// Something that must hold of one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// The manifest it names is held and of the right kind.
    Artifact(Uid),
    /// Its single-page mode has an `index.html`.
    Assets(Uid),
    /// The database's history is a beginning of its list.
    History(Uid),
    /// It is the one deployment of its worker.
    SoleDeployment(Uid),
    /// Its weighted versions are the worker's own, distinct and usable.
    Integrity(Uid),
    /// What it relies on is served.
    Served(Dependent),
    /// No other custom domain of the tenant has its hostname.
    Hostname(Uid),
    /// It is the one consumer of its queue.
    SoleConsumer(Uid),
    /// Dead letters of its queue come to rest.
    DeadLetters(Uid),
    /// It is the one endpoint of its worker.
    SoleEndpoint(Uid),
    /// Its main module exports the handlers it declares.
    Exported(Uid),
    /// Its weights sum to the whole.
    Weights(Uid),
    /// Its environment names are distinct.
    Environment(Uid),
    /// Nobody is pinned to this incarnation.
    Unheld(Uid),
}

/// A handler of the runtime contract that something relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handler {
    /// Answers requests.
    Fetch,
    /// Runs on a schedule.
    Scheduled,
    /// Takes messages.
    Queue,
}

impl Handler {
    /// The handler's name in the runtime contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Handler::Fetch => "fetch",
            Handler::Scheduled => "scheduled",
            Handler::Queue => "queue",
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One reliance on what a worker's active deployment serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependent {
    /// Who relies.
    pub source: Key,
    /// Identity of the worker.
    pub worker_uid: Uid,
    /// Address of the worker.
    pub worker: Key,
    /// On which handler.
    pub handler: Handler,
}

/// Everything that must hold because of one resource, in the order refusals are reported.
pub fn claims_of(world: &World, uid: &Uid) -> Vec<Claim> {
    let Some(resource) = world.get(uid) else {
        return Vec::new();
    };
    let Some(kind) = resource.kind() else {
        return Vec::new();
    };
    let uid = || uid.clone();
    match kind {
        EdgeKind::WorkerBundle | EdgeKind::StaticAssetBundle | EdgeKind::SQLiteMigrationSet => {
            vec![Claim::Artifact(uid())]
        }
        EdgeKind::WorkerVersion => {
            let mut claims = vec![Claim::Environment(uid()), Claim::Assets(uid())];
            claims.extend(reliances(resource).into_iter().map(Claim::Served));
            claims.push(Claim::Exported(uid()));
            claims
        }
        EdgeKind::WorkerDeployment => {
            let mut claims = vec![
                Claim::Weights(uid()),
                Claim::SoleDeployment(uid()),
                Claim::Integrity(uid()),
            ];
            if let Some(worker) = resource.pin("/worker") {
                claims.extend(world.dependents(&worker.uid).into_iter().map(Claim::Served));
            }
            claims
        }
        EdgeKind::WorkerCustomDomain => served(resource, vec![Claim::Hostname(uid())]),
        EdgeKind::WorkerEndpoint => served(resource, vec![Claim::SoleEndpoint(uid())]),
        EdgeKind::WorkerCronTrigger => served(resource, Vec::new()),
        EdgeKind::QueueConsumer => served(
            resource,
            vec![Claim::SoleConsumer(uid()), Claim::DeadLetters(uid())],
        ),
        EdgeKind::SQLiteMigrationApplication => vec![Claim::History(uid())],
        EdgeKind::ModuleWorker
        | EdgeKind::EdgeKVNamespace
        | EdgeKind::ObjectBucket
        | EdgeKind::SQLiteDatabase
        | EdgeKind::AtLeastOnceQueue => Vec::new(),
    }
}

fn served(resource: &Resource, rest: Vec<Claim>) -> Vec<Claim> {
    reliances(resource)
        .into_iter()
        .map(Claim::Served)
        .chain(rest)
        .collect()
}

/// What a resource relies on (decision 0016 rules 3 and 5).
pub(crate) fn reliances(resource: &Resource) -> Vec<Dependent> {
    let on = |relation: &str, handler: Handler| -> Vec<Dependent> {
        resource
            .pins_of(relation)
            .map(|pin| Dependent {
                source: resource.key.clone(),
                worker_uid: pin.uid.clone(),
                worker: crate::world::target(&resource.key, pin),
                handler,
            })
            .collect()
    };
    match resource.kind() {
        Some(EdgeKind::WorkerCustomDomain | EdgeKind::WorkerEndpoint) => {
            on("/worker", Handler::Fetch)
        }
        Some(EdgeKind::WorkerCronTrigger) => on("/worker", Handler::Scheduled),
        Some(EdgeKind::QueueConsumer) => on("/worker", Handler::Queue),
        Some(EdgeKind::WorkerVersion) => on("/serviceBindings/*/resource", Handler::Fetch),
        _ => Vec::new(),
    }
}
