//! From the worlds of all tenants to what should run. Pure.

use std::collections::{BTreeMap, BTreeSet};

use notation_edge::{Endpoint, Manifest, World};

use crate::plan::{
    AssetFile, AssetsOrder, AssetsSpec, Capability, ConsumerSpec, CronSpec, Handler, ModuleSource,
    NotFound, QueueSpec, Secret, Uid, VersionSpec, WorkerPlan, WorkerSpec,
};

/// Operator-supplied sensitive values, by worker and name.
pub trait SealedValues {
    /// The value, when the operator has set one.
    fn value(&self, worker: &notation_edge::Uid, name: &str) -> Option<Secret>;
}

impl<F: Fn(&notation_edge::Uid, &str) -> Option<Secret>> SealedValues for F {
    fn value(&self, worker: &notation_edge::Uid, name: &str) -> Option<Secret> {
        self(worker, name)
    }
}

/// Everything that should serve in these worlds, one per tenant.
///
/// Only versions with weight are described. A version with a missing sensitive value is not:
/// it must not run with an undefined property, and `missing_values` says what it lacks. Of
/// several claims to one host name the oldest wins, and generated names come before owned
/// ones, so that no custom domain takes another worker's endpoint; under the domain of the
/// generated ones there are no others, also when an endpoint is gone.
pub fn derive<'a>(
    worlds: impl IntoIterator<Item = &'a World> + Clone,
    sealed: &dyn SealedValues,
) -> WorkerPlan {
    let mut plan = WorkerPlan::default();
    for world in worlds.clone() {
        for endpoint in world.endpoints() {
            plan.endpoints
                .entry(endpoint.hostname)
                .or_insert_with(|| uid(&endpoint.worker));
        }
    }
    let mut own: Vec<Endpoint> = worlds.clone().into_iter().flat_map(own_names).collect();
    // One made by an earlier version of the host has no age and is older than all that have.
    own.sort_by_key(|domain| domain.made);
    for domain in own {
        plan.endpoints
            .entry(domain.hostname)
            .or_insert_with(|| uid(&domain.worker));
    }
    for world in worlds {
        workers(world, sealed, &mut plan);
        queues(world, &mut plan);
        for trigger in world.triggers() {
            let cron = CronSpec {
                worker: uid(&trigger.worker),
                expression: trigger.expression,
            };
            plan.crons.insert(uid(&trigger.uid), cron);
        }
    }
    plan
}

/// Custom domains of one tenant, without the domain that host names are generated under.
fn own_names(world: &World) -> Vec<Endpoint> {
    let domain = world.endpoint_domain();
    let is_generated = |name: &str| {
        let rest = name.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let mut own = world.custom_domains();
    own.retain(|it| !is_generated(&it.hostname));
    own
}

fn workers(world: &World, sealed: &dyn SealedValues, plan: &mut WorkerPlan) {
    for worker in world.workers() {
        let weights = world.weights(&worker.uid);
        for (version, _) in &weights {
            if let Some(found) = world.version(version) {
                match version_spec(world, &found, sealed) {
                    Ok(Some(spec)) => drop(plan.versions.insert(uid(version), spec)),
                    Ok(None) => {} // a manifest that is not held: reported as not described
                    Err(missing) => drop(plan.missing_values.insert(uid(version), missing)),
                }
            }
        }
        let weights = weights
            .iter()
            .map(|(version, weight)| (uid(version), weight.0))
            .collect();
        let name = worker.key.name.to_string();
        plan.workers
            .insert(uid(&worker.uid), WorkerSpec { name, weights });
    }
}

/// The version, none when its manifest is not held, or the sensitive values it lacks.
fn version_spec(
    world: &World,
    version: &notation_edge::Version,
    sealed: &dyn SealedValues,
) -> Result<Option<VersionSpec>, BTreeSet<String>> {
    let mut environment = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for (name, value) in &version.vars {
        environment.insert(name.clone(), Capability::Var(value.clone()));
    }
    for name in &version.sensitive {
        match sealed.value(&version.worker, name) {
            Some(value) => drop(environment.insert(name.clone(), Capability::Secret(value))),
            None => drop(missing.insert(name.clone())),
        }
    }
    type Made = fn(Uid) -> Capability;
    let lists: [(_, Made); 5] = [
        (&version.services, |worker| Capability::Service { worker }),
        (&version.kv, |namespace| Capability::Kv { namespace }),
        (&version.buckets, |bucket| Capability::Objects { bucket }),
        (&version.databases, |database| Capability::Sql { database }),
        (&version.queues, |queue| Capability::QueueProducer { queue }),
    ];
    for (bindings, made) in lists {
        for (name, target) in bindings {
            environment.insert(name.clone(), made(uid(target)));
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    let Some(manifest) = world.manifest(&version.manifest_digest) else {
        return Ok(None);
    };
    let Some(main_module) = manifest.main_module.clone() else {
        return Ok(None);
    };
    let assets = match &version.assets {
        None => None,
        Some(assets) => match world.manifest(&assets.manifest_digest) {
            Some(manifest) => Some(assets_spec(assets, manifest)),
            None => return Ok(None),
        },
    };
    Ok(Some(VersionSpec {
        worker: uid(&version.worker),
        main_module,
        modules: modules(manifest),
        handlers: version
            .handlers
            .iter()
            .filter_map(|name| Handler::parse(name))
            .collect(),
        environment,
        assets,
    }))
}

fn modules(manifest: &Manifest) -> Vec<ModuleSource> {
    let module = |entry: &notation_edge::Entry| ModuleSource {
        name: entry.path.clone(),
        media_type: entry.media_type.clone(),
        digest: entry.digest.clone(),
    };
    manifest.entries.iter().map(module).collect()
}

fn assets_spec(assets: &notation_edge::Assets, manifest: &Manifest) -> AssetsSpec {
    let file = |entry: &notation_edge::Entry| {
        let file = AssetFile {
            digest: entry.digest.clone(),
            media_type: entry.media_type.clone(),
            size_bytes: entry.size,
        };
        (entry.path.clone(), file)
    };
    AssetsSpec {
        files: manifest.entries.iter().map(file).collect(),
        order: match assets.run_worker_first {
            true => AssetsOrder::WorkerFirst,
            false => AssetsOrder::AssetsFirst,
        },
        not_found: match assets.single_page {
            true => NotFound::SinglePageApplication,
            false => NotFound::None,
        },
    }
}

fn queues(world: &World, plan: &mut WorkerPlan) {
    for queue in world.of_kind(notation_edge::EdgeKind::AtLeastOnceQueue) {
        let seconds = |member: &str| queue.spec.get(member).and_then(serde_json::Value::as_u64);
        let spec = QueueSpec {
            name: queue.key.name.to_string(),
            delivery_delay_seconds: small(seconds("deliveryDelaySeconds").unwrap_or(0)),
            retention_seconds: small(seconds("messageRetentionSeconds").unwrap_or(1_209_600)),
            consumer: None,
        };
        plan.queues.insert(uid(&queue.uid), spec);
    }
    for consumer in world.consumers() {
        if let Some(queue) = plan.queues.get_mut(consumer.queue.as_str()) {
            queue.consumer = Some(ConsumerSpec {
                worker: uid(&consumer.worker),
                max_batch_size: small(consumer.max_batch_size),
                max_batch_timeout_seconds: small(consumer.max_batch_timeout_seconds),
                max_retries: small(consumer.max_retries),
                retry_delay_seconds: small(consumer.retry_delay_seconds),
                max_concurrency: small(consumer.max_concurrency),
                dead_letter_queue: consumer.dead_letters.as_ref().map(uid),
            });
        }
    }
}

/// The schemas bound every number far below this.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn uid(uid: &notation_edge::Uid) -> Uid {
    Uid::from(uid.as_str())
}
