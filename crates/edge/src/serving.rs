//! What the runtime needs to know about a world: versions, weights, attachments.

use crate::render::endpoint_hostname;
use crate::world::World;
use crate::{Cron, EdgeKind, Resource, Uid};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A share of a worker's traffic in 1/10 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BasisPoints(pub u16);

/// One `WorkerVersion` with its relations resolved to incarnations.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: String,
    /// The worker it belongs to.
    pub worker: Uid,
    /// Handlers it declares.
    pub handlers: Vec<String>,
    /// Manifest of its bundle; [`World::manifest`] has it.
    pub manifest_digest: String,
    /// Plain environment values.
    pub vars: Map<String, Value>,
    /// Names of the sealed values it needs.
    pub sensitive: Vec<String>,
    /// Binding name to worker.
    pub services: BTreeMap<String, Uid>,
    /// Binding name to KV namespace.
    pub kv: BTreeMap<String, Uid>,
    /// Binding name to bucket.
    pub buckets: BTreeMap<String, Uid>,
    /// Binding name to database.
    pub databases: BTreeMap<String, Uid>,
    /// Binding name to queue.
    pub queues: BTreeMap<String, Uid>,
    /// Static assets.
    pub assets: Option<Assets>,
}

/// Static assets of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assets {
    /// Manifest of the files.
    pub manifest_digest: String,
    /// Whether `fetch` runs before the lookup.
    pub run_worker_first: bool,
    /// Whether a miss serves `index.html`.
    pub single_page: bool,
}

/// One address that reaches a worker: an endpoint or a custom domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Identity of the attachment.
    pub uid: Uid,
    /// Host name, canonical.
    pub hostname: String,
    /// The worker.
    pub worker: Uid,
    /// When it was made, as a place in the order of makings.
    pub made: u64,
}

/// One schedule of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Identity of the attachment.
    pub uid: Uid,
    /// The worker.
    pub worker: Uid,
    /// As written.
    pub expression: String,
    /// As parsed.
    pub cron: Cron,
}

/// One queue with its consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Identity of the attachment.
    pub uid: Uid,
    /// The worker.
    pub worker: Uid,
    /// The queue.
    pub queue: Uid,
    /// Where exhausted messages go.
    pub dead_letters: Option<Uid>,
    /// Most messages in a batch.
    pub max_batch_size: u64,
    /// Longest wait to fill a batch, in seconds.
    pub max_batch_timeout_seconds: u64,
    /// Most batches at once.
    pub max_concurrency: u64,
    /// Redeliveries after the first delivery.
    pub max_retries: u64,
    /// Wait before a redelivery, in seconds.
    pub retry_delay_seconds: u64,
}

impl World {
    /// Every `ModuleWorker`, by uid.
    pub fn workers(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.of_kind(EdgeKind::ModuleWorker)
    }

    /// Every resource of one kind, by uid.
    pub fn of_kind(&self, kind: EdgeKind) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources()
            .filter(move |resource| resource.kind() == Some(kind))
    }

    /// How a worker's traffic is split: live versions of its active deployment, in pointer order.
    /// Empty when it serves nothing.
    pub fn weights(&self, worker: &Uid) -> Vec<(Uid, BasisPoints)> {
        let Some(deployment) = self.active_deployment(worker) else {
            return Vec::new();
        };
        let entries = deployment.spec.get("versions").and_then(Value::as_array);
        let weight = |index: usize| {
            let weight = entries?.get(index)?.get("weight")?.as_u64()?;
            u16::try_from(weight).ok()
        };
        deployment
            .pins_of("/versions/*/workerVersion")
            .filter(|pin| self.get(&pin.uid).is_some())
            .filter_map(|pin| {
                let index = pin.pointer.split('/').nth(2)?.parse().ok()?;
                Some((pin.uid.clone(), BasisPoints(weight(index)?)))
            })
            .collect()
    }

    /// A version with its relations resolved; `None` when its bundle is gone.
    pub fn version(&self, uid: &Uid) -> Option<Version> {
        let version = self
            .get(uid)
            .filter(|it| it.kind() == Some(EdgeKind::WorkerVersion))?;
        let manifest = |relation: &str| {
            let bundle = self.get(&version.pin(relation)?.uid)?;
            bundle.text("manifestDigest").map(str::to_owned)
        };
        let bindings = |list: &str| -> BTreeMap<String, Uid> {
            let entries = version.spec.get(list).and_then(Value::as_array);
            let relation = format!("/{list}/*/resource");
            version
                .pins_of(&relation)
                .filter_map(|pin| {
                    let index: usize = pin.pointer.split('/').nth(2)?.parse().ok()?;
                    let name = entries?.get(index)?.get("name")?.as_str()?;
                    Some((name.to_owned(), pin.uid.clone()))
                })
                .collect()
        };
        let assets = version.spec.get("assets").and_then(|assets| {
            Some(Assets {
                manifest_digest: manifest("/assets/bundle")?,
                run_worker_first: assets.get("runWorkerFirst")?.as_bool()?,
                single_page: assets.get("notFoundHandling")?.as_str()? == "single_page_application",
            })
        });
        Some(Version {
            uid: uid.clone(),
            name: version.key.name.to_string(),
            worker: version.pin("/worker")?.uid.clone(),
            handlers: version.strings("handlers").map(str::to_owned).collect(),
            manifest_digest: manifest("/bundle")?,
            vars: version
                .spec
                .get("vars")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            sensitive: version
                .strings("requiredSensitiveVars")
                .map(str::to_owned)
                .collect(),
            services: bindings("serviceBindings"),
            kv: bindings("kvBindings"),
            buckets: bindings("bucketBindings"),
            databases: bindings("sqliteBindings"),
            queues: bindings("queueProducerBindings"),
            assets,
        })
    }

    /// Every `WorkerEndpoint` with the hostname the host gave it.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.of_kind(EdgeKind::WorkerEndpoint)
            .filter_map(|it| {
                Some(Endpoint {
                    uid: it.uid.clone(),
                    hostname: endpoint_hostname(self, &it.uid),
                    worker: it.pin("/worker")?.uid.clone(),
                    made: it.made,
                })
            })
            .collect()
    }

    /// Every `WorkerCustomDomain`.
    pub fn custom_domains(&self) -> Vec<Endpoint> {
        self.of_kind(EdgeKind::WorkerCustomDomain)
            .filter_map(|it| {
                Some(Endpoint {
                    uid: it.uid.clone(),
                    hostname: it.text("hostname")?.to_owned(),
                    worker: it.pin("/worker")?.uid.clone(),
                    made: it.made,
                })
            })
            .collect()
    }

    /// Every `WorkerCronTrigger`.
    pub fn triggers(&self) -> Vec<Trigger> {
        self.of_kind(EdgeKind::WorkerCronTrigger)
            .filter_map(|it| {
                let expression = it.text("cron")?.to_owned();
                Some(Trigger {
                    uid: it.uid.clone(),
                    worker: it.pin("/worker")?.uid.clone(),
                    cron: Cron::parse(&expression).ok()?,
                    expression,
                })
            })
            .collect()
    }

    /// Every `QueueConsumer`.
    pub fn consumers(&self) -> Vec<Consumer> {
        self.of_kind(EdgeKind::QueueConsumer)
            .filter_map(|it| {
                let number = |member: &str| it.spec.get(member)?.as_u64();
                Some(Consumer {
                    uid: it.uid.clone(),
                    worker: it.pin("/worker")?.uid.clone(),
                    queue: it.pin("/queue")?.uid.clone(),
                    dead_letters: it.pin("/deadLetterQueue").map(|pin| pin.uid.clone()),
                    max_batch_size: number("maxBatchSize")?,
                    max_batch_timeout_seconds: number("maxBatchTimeoutSeconds")?,
                    max_concurrency: number("maxConcurrency")?,
                    max_retries: number("maxRetries")?,
                    retry_delay_seconds: number("retryDelaySeconds")?,
                })
            })
            .collect()
    }
}
