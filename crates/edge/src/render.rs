//! What a resource looks like because of others (host API §8, §19).

use crate::claim::Handler;
use crate::world::{World, target};
use crate::{EdgeKind, LedgerEntry, Missing, Pin, Reason, Resource, Uid};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Longest `hostReason`, in characters.
const HOST_REASON: usize = 256;
/// Longest `message`, in characters (host API §8.5).
const MESSAGE: usize = 4096;

/// The `Ready` condition as the world implies it, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendering {
    /// Why; `Available` is the one that is true.
    pub reason: Reason,
    /// At most 256 characters; present on every false condition.
    pub host_reason: Option<String>,
    /// The sentence in at most 4096 characters, where 256 do not hold it.
    pub message: Option<String>,
}

impl Rendering {
    /// Whether the resource is Ready.
    pub fn is_ready(&self) -> bool {
        self.reason == Reason::Available
    }

    fn not_ready(reason: Reason, sentence: String) -> Rendering {
        let host_reason = cut(&sentence, HOST_REASON);
        let fits = host_reason == sentence;
        Rendering {
            reason,
            host_reason: Some(host_reason),
            message: (!fits).then(|| cut(&sentence, MESSAGE)),
        }
    }
}

/// A text within so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    start + "…"
}

/// The `Ready` condition of a resource in this world: the first row of host API §8.3 that fits.
pub fn render(world: &World, resource: &Resource) -> Rendering {
    let broken = resource
        .pins
        .iter()
        .find_map(|pin| drift(world, resource, pin));
    let own = || match resource.kind() {
        Some(EdgeKind::SQLiteMigrationApplication) => behind(world, resource),
        Some(EdgeKind::ModuleWorker) => unserved(world, resource),
        Some(EdgeKind::WorkerVersion) => unsealed(world, resource),
        _ => None,
    };
    broken.or_else(own).unwrap_or(Rendering {
        reason: Reason::Available,
        host_reason: None,
        message: None,
    })
}

/// Rows 1 and 2: what the name holds is not what is pinned.
fn drift(world: &World, resource: &Resource, pin: &Pin) -> Option<Rendering> {
    let pointer = &pin.pointer;
    let Some(current) = world.at(&target(&resource.key, pin)) else {
        let sentence = format!("relation {pointer} uid {} no longer exists", pin.uid);
        return Some(Rendering::not_ready(Reason::DependencyMissing, sentence));
    };
    if current.uid == pin.uid && current.form_ref == pin.form_ref {
        return None;
    }
    if current.form_ref == pin.form_ref {
        let sentence = format!(
            "relation {pointer} changed incarnation from uid {} (same form) to uid {}",
            pin.uid, current.uid
        );
        return Some(Rendering::not_ready(Reason::ExternalChange, sentence));
    }
    let sentence = |digest: fn(&str) -> String| {
        format!(
            "relation {pointer} changed incarnation from uid {} ({} {}) to uid {} ({} {})",
            pin.uid,
            pin.form_ref.definition_version,
            digest(&pin.form_ref.schema_digest),
            current.uid,
            current.form_ref.definition_version,
            digest(&current.form_ref.schema_digest),
        )
    };
    let full = sentence(str::to_owned);
    let mut rendering = Rendering::not_ready(Reason::ExternalChange, full);
    if rendering.message.is_some() {
        rendering.host_reason = Some(sentence(|digest| digest.chars().take(19).collect()));
    }
    Some(rendering)
}

/// Row 3: the ledger is not exactly the declared list.
fn behind(world: &World, application: &Resource) -> Option<Rendering> {
    let database = application.pin("/database")?;
    let declared = world.declared(application).unwrap_or_default();
    let applied: Vec<&LedgerEntry> = world.ledger(&database.uid).collect();
    let equal = applied.len() == declared.len()
        && applied
            .iter()
            .zip(&declared)
            .all(|(applied, declared)| *applied == declared);
    (!equal).then(|| {
        Rendering::not_ready(
            Reason::Reconciling,
            format!(
                "{} migrations are applied to the database and {} are declared here",
                applied.len(),
                declared.len()
            ),
        )
    })
}

/// Rows 4 and 5: a worker is as ready as its deployment.
fn unserved(world: &World, worker: &Resource) -> Option<Rendering> {
    if world.active_deployment(&worker.uid).is_none() {
        return Some(Rendering::not_ready(
            Reason::Provisioning,
            format!("worker {} has no deployment", worker.key.name),
        ));
    }
    let sentence = match world.why_not_serving(&worker.uid, Handler::Fetch)? {
        Missing::Deployment => format!("the versions deployed for {} are gone", worker.key.name),
        Missing::Handler(version) => format!("{version} is deployed and has no handler fetch"),
    };
    Some(Rendering::not_ready(
        Reason::UnsupportedCapability,
        sentence,
    ))
}

/// Not in the table: a version waits for the values only an operator can give.
fn unsealed(world: &World, version: &Resource) -> Option<Rendering> {
    let worker = version.pin("/worker")?;
    let missing: Vec<&str> = version
        .strings("requiredSensitiveVars")
        .filter(|name| world.missing_sealed(&worker.uid, name))
        .collect();
    (!missing.is_empty()).then(|| {
        Rendering::not_ready(
            Reason::Provisioning,
            format!(
                "worker {} has no value for {}",
                worker.name,
                missing.join(", ")
            ),
        )
    })
}

/// Hostname of an endpoint: a label made of its uid under the host's domain, so that it is
/// constant for the life of the uid and of no other (host API §19).
pub fn endpoint_hostname(world: &World, endpoint: &Uid) -> String {
    let hash = Sha256::digest(endpoint.as_str().as_bytes());
    format!("e{}.{}", hex::encode(&hash[..8]), world.endpoint_domain())
}

/// `status.outputs`: present exactly when the Form declares them.
pub fn outputs(world: &World, resource: &Resource) -> Option<Map<String, Value>> {
    world.form_of(resource)?.output_schema.as_ref()?;
    match resource.kind() {
        Some(EdgeKind::WorkerEndpoint) => {
            let hostname = endpoint_hostname(world, &resource.uid);
            let mut outputs = Map::new();
            outputs.insert("url".to_owned(), format!("https://{hostname}/").into());
            outputs.insert("hostname".to_owned(), hostname.into());
            Some(outputs)
        }
        _ => None,
    }
}
