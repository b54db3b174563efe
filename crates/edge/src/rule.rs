//! The rules: what is untrue in this world about this claim? (decision 0016, host API §17-§22)

use crate::claim::{Claim, Dependent, Handler, claims_of, reliances};
use crate::world::World;
use crate::{
    Breach, EdgeKind, Exports, Form, Key, LedgerEntry, Manifest, ManifestKind, Missing, Resource,
    Uid, render,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is untrue in `world` about `claim`; empty when it holds or no longer applies.
pub fn judge(world: &World, claim: &Claim) -> Vec<Breach> {
    let subject = |uid: &Uid| world.get(uid).cloned();
    match claim {
        Claim::Served(dependent) => world.unserved(dependent).into_iter().collect(),
        Claim::Unheld(uid) => unheld(world, uid),
        Claim::Artifact(uid) => of(subject(uid), |it| artifact(world, it)),
        Claim::Assets(uid) => of(subject(uid), |it| assets(world, it)),
        Claim::History(uid) => of(subject(uid), |it| history(world, it)),
        Claim::SoleDeployment(uid) => of(subject(uid), |it| sole_deployment(world, it)),
        Claim::Integrity(uid) => of(subject(uid), |it| integrity(world, it)),
        Claim::Hostname(uid) => of(subject(uid), |it| hostname(world, it)),
        Claim::SoleConsumer(uid) => of(subject(uid), |it| sole_consumer(world, it)),
        Claim::DeadLetters(uid) => of(subject(uid), |it| dead_letters(world, it)),
        Claim::SoleEndpoint(uid) => of(subject(uid), |it| sole_endpoint(world, it)),
        Claim::Exported(uid) => of(subject(uid), |it| exported(world, it)),
        Claim::Weights(uid) => of(subject(uid), |it| {
            weight_sum(&it.spec).into_iter().collect()
        }),
        Claim::Environment(uid) => of(subject(uid), |it| {
            let form = world.form_of(it);
            form.and_then(|form| environment_clash(form, &it.spec))
                .into_iter()
                .collect()
        }),
    }
}

fn of(subject: Option<Arc<Resource>>, rule: impl FnOnce(&Resource) -> Vec<Breach>) -> Vec<Breach> {
    subject.map(|resource| rule(&resource)).unwrap_or_default()
}

impl World {
    /// The active deployment of a worker incarnation.
    pub fn active_deployment(&self, worker: &Uid) -> Option<&Arc<Resource>> {
        self.holding(worker, EdgeKind::WorkerDeployment, "/worker")
            .next()
    }

    /// Versions that a deployment weights and that still exist, in pointer order.
    pub fn weighted<'a>(
        &'a self,
        deployment: &'a Resource,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        deployment
            .pins_of("/versions/*/workerVersion")
            .filter_map(|pin| self.get(&pin.uid))
    }

    /// Everything that relies on what a worker serves: attachments and inbound service bindings.
    pub fn dependents(&self, worker: &Uid) -> Vec<Dependent> {
        let mut found: Vec<Dependent> = self
            .holders(worker)
            .flat_map(|holder| reliances(holder))
            .filter(|dependent| &dependent.worker_uid == worker)
            .collect();
        found.sort_by(|a, b| (&a.source, a.handler).cmp(&(&b.source, b.handler)));
        found.dedup();
        found
    }

    /// Decision 0016 rules 3, 4, 5 and 8, asked once: can every version that takes traffic answer?
    pub(crate) fn unserved(&self, dependent: &Dependent) -> Option<Breach> {
        let missing = self.why_not_serving(&dependent.worker_uid, dependent.handler)?;
        Some(Breach::Unserved {
            dependent: dependent.clone(),
            missing,
        })
    }

    /// Why a worker does not serve a handler; `None` when it does.
    pub fn why_not_serving(&self, worker: &Uid, handler: Handler) -> Option<Missing> {
        let Some(deployment) = self.active_deployment(worker) else {
            return Some(Missing::Deployment);
        };
        let mut versions = self.weighted(deployment).peekable();
        if versions.peek().is_none() {
            return Some(Missing::Deployment);
        }
        versions
            .find(|version| {
                !version
                    .strings("handlers")
                    .any(|name| name == handler.as_str())
            })
            .map(|version| Missing::Handler(version.key.clone()))
    }

    /// Every breach of every claim in this world; empty in a world that only grew by admission.
    /// History is left out: an overtaken application is no breach but not Ready.
    pub fn breaches(&self) -> Vec<Breach> {
        self.resources()
            .flat_map(|resource| claims_of(self, &resource.uid))
            .filter(|claim| !matches!(claim, Claim::History(_)))
            .flat_map(|claim| judge(self, &claim))
            .collect()
    }
}

/// Rule 2, the part that needs no other resource: the weights of a spec sum to 10 000.
pub fn weight_sum(spec: &Value) -> Option<Breach> {
    let versions = spec.get("versions").and_then(Value::as_array)?;
    let sum = versions
        .iter()
        .filter_map(|entry| entry.get("weight").and_then(Value::as_u64))
        .fold(0u64, u64::saturating_add);
    (sum != 10_000).then_some(Breach::WeightSum(sum))
}

/// Rule 7: `vars`, `requiredSensitiveVars` and all binding lists share one namespace.
pub fn environment_clash(form: &Form, spec: &Value) -> Option<Breach> {
    let vars = spec
        .get("vars")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let sensitive = spec
        .get("requiredSensitiveVars")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let bindings = form
        .binding_lists
        .iter()
        .flat_map(|list| {
            spec.get(list)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        })
        .filter_map(|entry| entry.get("name"));
    let names = vars
        .map(|(name, _)| name.as_str())
        .chain(sensitive.chain(bindings).filter_map(Value::as_str));
    let mut seen = BTreeSet::new();
    names
        .into_iter()
        .find(|name| !seen.insert(*name))
        .map(|name| Breach::NameClash(name.to_owned()))
}

fn unheld(world: &World, uid: &Uid) -> Vec<Breach> {
    let mut holders: Vec<Key> = world
        .holders(uid)
        .filter(|holder| &holder.uid != uid)
        .map(|holder| holder.key.clone())
        .collect();
    holders.sort();
    if holders.is_empty() {
        Vec::new()
    } else {
        vec![Breach::Held(holders)]
    }
}

/// The manifest kind that a bundle kind needs (host API §21.7).
fn needed(kind: EdgeKind) -> Option<ManifestKind> {
    match kind {
        EdgeKind::WorkerBundle => Some(ManifestKind::WorkerBundle),
        EdgeKind::StaticAssetBundle => Some(ManifestKind::StaticAssetBundle),
        EdgeKind::SQLiteMigrationSet => Some(ManifestKind::MigrationBundle),
        _ => None,
    }
}

fn artifact(world: &World, resource: &Resource) -> Vec<Breach> {
    let Some(needed) = resource.kind().and_then(needed) else {
        return Vec::new();
    };
    match world.manifest_of(resource) {
        None => vec![Breach::ManifestMissing],
        Some(found) if found.kind != needed => {
            vec![Breach::ManifestKind {
                needed: needed.as_str(),
                found: found.kind.as_str(),
            }]
        }
        Some(_) => Vec::new(),
    }
}

impl World {
    /// The held manifest that a bundle or migration set names.
    pub(crate) fn manifest_of(&self, resource: &Resource) -> Option<&Arc<Manifest>> {
        self.manifest(resource.text("manifestDigest")?)
    }

    /// The ledger entries that a migration application declares, in order.
    pub(crate) fn declared(&self, application: &Resource) -> Option<Vec<LedgerEntry>> {
        let set = self.get(&application.pin("/migrationSet")?.uid)?;
        let manifest = self.manifest_of(set)?;
        Some(
            manifest
                .entries
                .iter()
                .map(|entry| LedgerEntry {
                    path: entry.path.as_str().into(),
                    digest: entry.digest.as_str().into(),
                })
                .collect(),
        )
    }
}

fn assets(world: &World, version: &Resource) -> Vec<Breach> {
    let Some(assets) = version.spec.get("assets") else {
        return Vec::new();
    };
    let Some(bundle) = version
        .pin("/assets/bundle")
        .and_then(|pin| world.get(&pin.uid))
    else {
        return Vec::new();
    };
    match world.manifest_of(bundle) {
        None => vec![Breach::ManifestMissing],
        Some(found) if found.kind != ManifestKind::StaticAssetBundle => {
            vec![Breach::ManifestKind {
                needed: ManifestKind::StaticAssetBundle.as_str(),
                found: found.kind.as_str(),
            }]
        }
        Some(manifest) => {
            let single_page = assets.get("notFoundHandling").and_then(Value::as_str)
                == Some("single_page_application");
            if single_page && manifest.entry("index.html").is_none() {
                vec![Breach::NoIndexHtml]
            } else {
                Vec::new()
            }
        }
    }
}

fn history(world: &World, application: &Resource) -> Vec<Breach> {
    let Some(database) = application.pin("/database") else {
        return Vec::new();
    };
    let Some(declared) = world.declared(application) else {
        return vec![Breach::ManifestMissing];
    };
    let applied: Vec<&LedgerEntry> = world.ledger(&database.uid).collect();
    let prefix = applied.len() <= declared.len()
        && applied
            .iter()
            .zip(&declared)
            .all(|(applied, declared)| *applied == declared);
    if prefix {
        Vec::new()
    } else {
        vec![Breach::HistoryChanged]
    }
}

fn sole_deployment(world: &World, deployment: &Resource) -> Vec<Breach> {
    let Some(worker) = deployment.pin("/worker") else {
        return Vec::new();
    };
    world
        .holding(&worker.uid, EdgeKind::WorkerDeployment, "/worker")
        .filter(|other| other.uid != deployment.uid)
        .map(|other| Breach::SecondDeployment {
            worker: crate::world::target(&deployment.key, worker),
            other: other.key.clone(),
        })
        .collect()
}

fn integrity(world: &World, deployment: &Resource) -> Vec<Breach> {
    let Some(worker) = deployment.pin("/worker") else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let mut breaches = Vec::new();
    for pin in deployment.pins_of("/versions/*/workerVersion") {
        let Some(version) = world.get(&pin.uid) else {
            continue;
        };
        let key = || version.key.clone();
        if version
            .pin("/worker")
            .is_none_or(|own| own.uid != worker.uid)
        {
            breaches.push(Breach::ForeignVersion {
                pointer: pin.pointer.to_string(),
                version: key(),
            });
        } else if !seen.insert(&pin.uid) {
            breaches.push(Breach::RepeatedVersion(key()));
        } else if world.is_leaving(&pin.uid) {
            breaches.push(Breach::LeavingVersion(key()));
        } else {
            let rendering = render(world, version);
            if !rendering.is_ready() {
                let reason = rendering.host_reason.unwrap_or_default();
                breaches.push(Breach::UnreadyVersion {
                    version: key(),
                    reason,
                });
            }
        }
    }
    breaches
}

fn hostname(world: &World, domain: &Resource) -> Vec<Breach> {
    let Some(hostname) = domain.text("hostname") else {
        return Vec::new();
    };
    world
        .with_hostname(hostname)
        .filter(|other| other.uid != domain.uid)
        .map(|other| Breach::HostnameTaken {
            hostname: hostname.to_owned(),
            holder: other.key.clone(),
        })
        .collect()
}

fn sole_consumer(world: &World, consumer: &Resource) -> Vec<Breach> {
    let Some(queue) = consumer.pin("/queue") else {
        return Vec::new();
    };
    world
        .holding(&queue.uid, EdgeKind::QueueConsumer, "/queue")
        .filter(|other| other.uid != consumer.uid)
        .map(|other| Breach::SecondConsumer(other.key.clone()))
        .collect()
}

fn sole_endpoint(world: &World, endpoint: &Resource) -> Vec<Breach> {
    let Some(worker) = endpoint.pin("/worker") else {
        return Vec::new();
    };
    world
        .holding(&worker.uid, EdgeKind::WorkerEndpoint, "/worker")
        .filter(|other| other.uid != endpoint.uid)
        .map(|other| Breach::SecondEndpoint(other.key.clone()))
        .collect()
}

/// Follows dead letters from the consumer's destination; each queue is visited once, so a loop
/// elsewhere cannot hold the walk (host API §18.3).
fn dead_letters(world: &World, consumer: &Resource) -> Vec<Breach> {
    let (Some(queue), Some(destination)) =
        (consumer.pin("/queue"), consumer.pin("/deadLetterQueue"))
    else {
        return Vec::new();
    };
    let mut path = vec![crate::world::target(&consumer.key, queue)];
    let mut seen = BTreeSet::new();
    let mut next = Some((
        destination.uid.clone(),
        crate::world::target(&consumer.key, destination),
    ));
    while let Some((uid, key)) = next {
        path.push(key);
        if uid == queue.uid {
            return vec![Breach::DeadLetterLoop(path)];
        }
        if !seen.insert(uid.clone()) {
            return Vec::new();
        }
        next = world
            .holding(&uid, EdgeKind::QueueConsumer, "/queue")
            .next()
            .and_then(|drain| {
                let pin = drain.pin("/deadLetterQueue")?;
                Some((pin.uid.clone(), crate::world::target(&drain.key, pin)))
            });
    }
    Vec::new()
}

/// Three-valued: only what is known to be missing refuses (host API §20.2).
fn exported(world: &World, version: &Resource) -> Vec<Breach> {
    let exports = version
        .pin("/bundle")
        .and_then(|pin| world.get(&pin.uid))
        .and_then(|bundle| world.exports(bundle.text("manifestDigest")?));
    match exports {
        None | Some(Exports::Unknown) => Vec::new(),
        Some(Exports::Broken(reason)) => vec![Breach::BrokenModule(reason.clone())],
        Some(Exports::Known(exported)) => version
            .strings("handlers")
            .filter(|handler| !exported.contains(*handler))
            .map(|handler| Breach::NotExported(handler.to_owned()))
            .collect(),
    }
}
