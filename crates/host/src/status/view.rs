//! What the status page shows, as data. Sealed values and specs are not in it.

use crate::host::Host;
use crate::operations;
use crate::plane::State;
use notation_edge::{Condition, EdgeKind, Resource, Uid, World, endpoint_hostname};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One tenant.
pub struct Tenant {
    /// Name.
    pub name: Arc<str>,
    /// Workers by space and name.
    pub workers: Vec<Worker>,
    /// Whatever belongs to no worker, by space, kind and name.
    pub others: Vec<Part>,
    /// Operations, the newest first.
    pub operations: Vec<Operation>,
}

/// One ModuleWorker and what is attached to it.
pub struct Worker {
    /// Name.
    pub name: Arc<str>,
    /// Space.
    pub space: Arc<str>,
    /// Its condition.
    pub condition: Condition,
    /// Versions: those that take traffic first, heaviest first, with their share.
    pub versions: Vec<(Option<u16>, Part)>,
    /// Deployment and attachments.
    pub parts: Vec<Part>,
}

/// One resource in a line.
pub struct Part {
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Space.
    pub space: Arc<str>,
    /// What people know it by: a host name, a schedule.
    pub label: Option<String>,
    /// Where it can be opened.
    pub link: Option<String>,
    /// Its condition.
    pub condition: Condition,
}

/// How an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not decided.
    Pending,
    /// Committed.
    Done,
    /// Ended with an error.
    Failed,
}

/// One accepted operation.
pub struct Operation {
    /// `op_...`.
    pub id: String,
    /// What it does: verb, kind and name.
    pub what: String,
    /// Whose.
    pub principal: Arc<str>,
    /// When it was accepted.
    pub created: String,
    /// How it stands.
    pub standing: Standing,
    /// Why it failed.
    pub error: Option<String>,
}

impl Tenant {
    /// Resources that are not Ready.
    pub fn not_ready(&self) -> usize {
        let workers = self.workers.iter().map(Worker::not_ready).sum::<usize>();
        let others = self.others.iter();
        workers + others.filter(|it| !it.condition.is_ready()).count()
    }

    /// Resources in all.
    pub fn count(&self) -> usize {
        let parts = |it: &Worker| 1 + it.versions.len() + it.parts.len();
        self.workers.iter().map(parts).sum::<usize>() + self.others.len()
    }
}

impl Worker {
    fn not_ready(&self) -> usize {
        let versions = self.versions.iter().map(|(_, version)| &version.condition);
        let parts = self.parts.iter().map(|part| &part.condition);
        let all = std::iter::once(&self.condition)
            .chain(versions)
            .chain(parts);
        all.filter(|it| !it.is_ready()).count()
    }
}

/// Every tenant that has something, by name.
pub async fn tenants(host: &Host) -> Vec<Tenant> {
    let mut tenants = Vec::new();
    for plane in host.planes() {
        let state = plane.state.lock().await;
        if state.world.is_empty() && state.operations.is_empty() {
            continue;
        }
        tenants.push(tenant(host, plane.tenant.clone(), &state));
    }
    tenants
}

fn tenant(host: &Host, name: Arc<str>, state: &State) -> Tenant {
    let world = &state.world;
    let mut of_worker: BTreeMap<&Uid, Vec<&Arc<Resource>>> = BTreeMap::new();
    let mut others = Vec::new();
    for resource in world.resources() {
        let owner = resource
            .pin("/worker")
            .and_then(|pin| world.get(&pin.uid))
            .filter(|owner| owner.kind() == Some(EdgeKind::ModuleWorker));
        match owner {
            Some(owner) => of_worker.entry(&owner.uid).or_default().push(resource),
            None if resource.kind() == Some(EdgeKind::ModuleWorker) => {}
            None => others.push(part(host, world, resource)),
        }
    }
    let order = |it: &Part| (it.space.clone(), it.kind.clone(), it.name.clone());
    others.sort_by_key(order);
    let mut workers: Vec<Worker> = world
        .workers()
        .map(|worker| {
            let weights: BTreeMap<Uid, u16> = world
                .weights(&worker.uid)
                .into_iter()
                .map(|(version, weight)| (version, weight.0))
                .collect();
            let mut versions = Vec::new();
            let mut parts = Vec::new();
            for resource in of_worker.remove(&worker.uid).unwrap_or_default() {
                let part = part(host, world, resource);
                if resource.kind() == Some(EdgeKind::WorkerVersion) {
                    versions.push((weights.get(&resource.uid).copied(), part));
                } else {
                    parts.push(part);
                }
            }
            versions.sort_by_key(|(weight, it)| (std::cmp::Reverse(*weight), it.name.clone()));
            parts.sort_by_key(order);
            Worker {
                name: worker.key.name.clone(),
                space: worker.key.space.clone(),
                condition: worker.condition.clone(),
                versions,
                parts,
            }
        })
        .collect();
    workers.sort_by_key(|it| (it.space.clone(), it.name.clone()));
    let mut operations: Vec<Operation> = state.operations.values().map(operation).collect();
    operations.sort_by(|a, b| (&b.created, &b.id).cmp(&(&a.created, &a.id)));
    Tenant {
        name,
        workers,
        others,
        operations,
    }
}

fn part(host: &Host, world: &World, resource: &Resource) -> Part {
    let text = |member: &str| resource.spec.get(member)?.as_str().map(str::to_owned);
    let label = match resource.kind() {
        Some(EdgeKind::WorkerEndpoint) => Some(endpoint_hostname(world, &resource.uid)),
        Some(EdgeKind::WorkerCustomDomain) => text("hostname"),
        Some(EdgeKind::WorkerCronTrigger) => text("cron"),
        _ => None,
    };
    let link = match resource.kind() {
        Some(EdgeKind::WorkerEndpoint | EdgeKind::WorkerCustomDomain) => label
            .as_deref()
            .and_then(|hostname| host.inner.data_plane.address(hostname)),
        _ => None,
    };
    Part {
        kind: resource.key.kind.clone(),
        name: resource.key.name.clone(),
        space: resource.key.space.clone(),
        label,
        link,
        condition: resource.condition.clone(),
    }
}

fn operation(row: &crate::store::OperationRow) -> Operation {
    let error = operations::error_of(row);
    Operation {
        id: row.id.clone(),
        what: operations::what(row),
        principal: row.principal.clone(),
        created: row.created.clone(),
        standing: match (&row.terminal, row.failed) {
            (None, _) => Standing::Pending,
            (Some(_), false) => Standing::Done,
            (Some(_), true) => Standing::Failed,
        },
        error,
    }
}
