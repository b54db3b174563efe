//! What the host has of one worker.

use std::collections::BTreeSet;

use notation_edge_api::Resource;
use serde_json::Value as Json;

use crate::{
    claim::Claim,
    parts::{Kind, Slot},
};

/// Everything whose name follows from the worker's.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    pub claim: Option<(Part, Claim)>,
    pub worker: Option<Part>,
    pub deployment: Option<Part>,
    pub endpoint: Option<Part>,
    pub a: InSlot,
    pub b: InSlot,
    /// Secret values were handed over during this call.
    pub sealed: bool,
    /// Names whose values were taken away during this call.
    pub unsealed: BTreeSet<String>,
}

/// One host resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub uid: String,
    pub generation: String,
    pub spec: Json,
    /// A relation of it leads to something that is gone or was made anew.
    pub broken: bool,
    /// Of the worker: some WorkerDeployment gives it traffic, whatever its name (host API §8.3).
    pub deployed: bool,
    pub outputs: Option<serde_json::Map<String, Json>>,
}

/// What lies in one slot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InSlot {
    pub version: Option<Part>,
    pub bundle: Option<Part>,
}

impl Part {
    pub fn of(resource: &Resource) -> Part {
        let broken = |condition: &notation_edge_api::Condition| {
            condition.condition_type == "Ready"
                && condition.status == "False"
                && matches!(
                    condition.reason.as_str(),
                    "ExternalChange" | "DependencyMissing"
                )
        };
        let deployed = |condition: &notation_edge_api::Condition| {
            condition.condition_type == "Ready" && condition.reason != "Provisioning"
        };
        Part {
            uid: resource.metadata.uid.clone(),
            generation: resource.metadata.generation.clone(),
            spec: resource.spec.clone(),
            broken: resource.status.conditions.iter().any(broken),
            deployed: resource.status.conditions.iter().any(deployed),
            outputs: resource.status.outputs.clone(),
        }
    }

    /// The manifest a bundle names.
    pub fn manifest_digest(&self) -> &str {
        self.spec["manifestDigest"].as_str().unwrap_or_default()
    }

    /// Names of the secrets a version needs.
    pub fn secret_names(&self) -> BTreeSet<String> {
        let names = self.spec["requiredSensitiveVars"].as_array();
        names
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect()
    }

    /// Whether every member of `wanted` is there as it is; the host may have added others.
    pub fn has(&self, wanted: &Json) -> bool {
        let digest = notation_edge_api::digest::<Json>;
        wanted
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, value)| {
                self.spec
                    .get(name)
                    .is_some_and(|found| digest(found) == digest(value))
            })
    }
}

impl Seen {
    pub fn slot(&self, slot: Slot) -> &InSlot {
        match slot {
            Slot::A => &self.a,
            Slot::B => &self.b,
        }
    }

    pub fn slot_mut(&mut self, slot: Slot) -> &mut InSlot {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    /// Where a part is kept; the claim has a place of its own.
    pub fn place(&mut self, kind: Kind, slot: Option<Slot>) -> &mut Option<Part> {
        match (kind, slot) {
            (Kind::Worker, _) => &mut self.worker,
            (Kind::Deployment, _) => &mut self.deployment,
            (Kind::Endpoint, _) => &mut self.endpoint,
            (Kind::Version, slot) => &mut self.slot_mut(slot.unwrap_or(Slot::A)).version,
            (Kind::Bundle, slot) => &mut self.slot_mut(slot.unwrap_or(Slot::A)).bundle,
        }
    }

    /// Nothing at all is there.
    pub fn is_empty(&self) -> bool {
        self.claim.is_none() && !self.is_begun()
    }

    /// Something beside the claim is there.
    pub fn is_begun(&self) -> bool {
        let in_slots = Slot::BOTH.iter().any(|slot| {
            let slot = self.slot(*slot);
            slot.version.is_some() || slot.bundle.is_some()
        });
        in_slots || self.worker.is_some() || self.deployment.is_some() || self.endpoint.is_some()
    }

    /// The worker has a WorkerDeployment under a name of somebody else's choice; there can be
    /// only one (decision 0016 rule 1).
    pub fn is_deployed_by_others(&self) -> bool {
        self.deployment.is_none() && self.worker.as_ref().is_some_and(|worker| worker.deployed)
    }

    /// Names of the versions that take traffic.
    pub fn weighted(&self) -> Vec<&str> {
        let versions = self
            .deployment
            .as_ref()
            .and_then(|part| part.spec["versions"].as_array());
        versions
            .into_iter()
            .flatten()
            .filter_map(|entry| entry["workerVersion"]["name"].as_str())
            .collect()
    }

    /// Whether a slot's version takes traffic.
    pub fn serves(&self, script: &str, slot: Slot) -> bool {
        self.weighted().contains(&slot.name(script).as_str())
    }
}
