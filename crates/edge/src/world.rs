//! Everything one tenant has, as one immutable value that is cheap to clone.

use crate::{Catalog, EdgeKind, Form, Key, Manifest, Pin, Resource, Uid};
use imbl::{OrdMap, OrdSet, Vector};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One executed migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Path of the file.
    pub path: Arc<str>,
    /// Blob digest of the file.
    pub digest: Arc<str>,
}

/// What is known about the handlers a main module exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exports {
    /// Exactly these.
    Known(BTreeSet<String>),
    /// It cannot be told.
    Unknown,
    /// The module does not even load.
    Broken(String),
}

/// Whether a version waits for its sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedReadiness {
    /// A version without one of its values is not Ready.
    Required,
    /// Values are somebody else's business; the conformance run knows no way to set them.
    Ignored,
}

/// All resources of one tenant, in all its spaces, with what the rules need to know about them.
#[derive(Debug, Clone)]
pub struct World {
    catalog: Arc<Catalog>,
    endpoint_domain: Arc<str>,
    sealed_readiness: SealedReadiness,
    resources: OrdMap<Uid, Arc<Resource>>,
    by_key: OrdMap<Key, Uid>,
    /// Target uid to the resources pinned to it.
    holders: OrdMap<Uid, OrdSet<Uid>>,
    /// Target address to the resources that name it.
    watchers: OrdMap<Key, OrdSet<Uid>>,
    hostnames: OrdMap<Arc<str>, OrdSet<Uid>>,
    natives: OrdMap<Arc<str>, Uid>,
    ledgers: OrdMap<Uid, Vector<LedgerEntry>>,
    sealed: OrdMap<Uid, OrdSet<Arc<str>>>,
    leaving: OrdSet<Uid>,
    manifests: OrdMap<Arc<str>, Arc<Manifest>>,
    exports: OrdMap<Arc<str>, Exports>,
}

impl World {
    /// A world without resources. `endpoint_domain` is the suffix of endpoint hostnames, e.g.
    /// `endpoints.localhost`.
    pub fn empty(
        catalog: Arc<Catalog>,
        endpoint_domain: &str,
        sealed_readiness: SealedReadiness,
    ) -> World {
        World {
            catalog,
            endpoint_domain: endpoint_domain.into(),
            sealed_readiness,
            resources: OrdMap::new(),
            by_key: OrdMap::new(),
            holders: OrdMap::new(),
            watchers: OrdMap::new(),
            hostnames: OrdMap::new(),
            natives: OrdMap::new(),
            ledgers: OrdMap::new(),
            sealed: OrdMap::new(),
            leaving: OrdSet::new(),
            manifests: OrdMap::new(),
            exports: OrdMap::new(),
        }
    }

    /// The installed contract set.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Suffix of endpoint hostnames.
    pub fn endpoint_domain(&self) -> &str {
        &self.endpoint_domain
    }

    /// The resource with this identity.
    pub fn get(&self, uid: &Uid) -> Option<&Arc<Resource>> {
        self.resources.get(uid)
    }

    /// The resource that holds an address, whatever definition version it was created under.
    pub fn at(&self, key: &Key) -> Option<&Arc<Resource>> {
        self.by_key.get(key).and_then(|uid| self.resources.get(uid))
    }

    /// Every resource, by uid.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether there is no resource.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// The Form a resource was recorded under, when it is installed.
    pub fn form_of(&self, resource: &Resource) -> Option<&Arc<Form>> {
        self.catalog.form(&resource.form_ref)
    }

    /// Resources with a relation pinned to this incarnation, by uid.
    pub fn holders<'a>(
        &'a self,
        target: &Uid,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + use<'a> {
        self.holders
            .get(target)
            .into_iter()
            .flatten()
            .filter_map(|uid| self.resources.get(uid))
    }

    /// Resources of one kind that pin this incarnation at a relation.
    pub(crate) fn holding<'a>(
        &'a self,
        target: &Uid,
        kind: EdgeKind,
        relation: &'static str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + use<'a> {
        let target = target.clone();
        self.holders(&target).filter(move |holder| {
            holder.kind() == Some(kind) && holder.pins_of(relation).any(|pin| pin.uid == target)
        })
    }

    /// Resources that name this address, pinned to whatever incarnation.
    pub(crate) fn watchers(&self, key: &Key) -> impl Iterator<Item = &Uid> {
        self.watchers.get(key).into_iter().flatten()
    }

    /// Custom domains with this hostname.
    pub(crate) fn with_hostname(&self, hostname: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.hostnames
            .get(hostname)
            .into_iter()
            .flatten()
            .filter_map(|uid| self.resources.get(uid))
    }

    /// Who claims a native identity.
    pub(crate) fn native(&self, id: &str) -> Option<&Uid> {
        self.natives.get(id)
    }

    /// Migrations executed on a database incarnation, in order.
    pub fn ledger(&self, database: &Uid) -> impl Iterator<Item = &LedgerEntry> {
        self.ledgers.get(database).into_iter().flatten()
    }

    /// Names of the sealed values that are set for a worker incarnation.
    pub fn sealed_names(&self, worker: &Uid) -> impl Iterator<Item = &Arc<str>> {
        self.sealed.get(worker).into_iter().flatten()
    }

    pub(crate) fn missing_sealed(&self, worker: &Uid, wanted: &str) -> bool {
        self.sealed_readiness == SealedReadiness::Required
            && !self
                .sealed
                .get(worker)
                .is_some_and(|names| names.contains(wanted))
    }

    pub(crate) fn is_leaving(&self, uid: &Uid) -> bool {
        self.leaving.contains(uid)
    }

    /// A manifest that the tenant holds.
    pub fn manifest(&self, digest: &str) -> Option<&Arc<Manifest>> {
        self.manifests.get(digest)
    }

    /// What is known about the exports of a held bundle's main module.
    pub fn exports(&self, manifest_digest: &str) -> Option<&Exports> {
        self.exports.get(manifest_digest)
    }

    /// The tenant holds a manifest from now on.
    pub fn hold(&mut self, digest: &str, manifest: Arc<Manifest>) {
        self.manifests.insert(digest.into(), manifest);
    }

    /// Remembers what inspecting a bundle showed.
    pub fn learn(&mut self, manifest_digest: &str, exports: Exports) {
        self.exports.insert(manifest_digest.into(), exports);
    }

    /// An accepted delete of this incarnation is under way.
    pub fn mark_leaving(&mut self, uid: Uid) {
        self.leaving.insert(uid);
    }

    /// The accepted delete of this incarnation ended.
    pub fn unmark_leaving(&mut self, uid: &Uid) {
        self.leaving.remove(uid);
    }

    /// Puts a stored resource back, at start-up; nothing is judged.
    pub fn restore(&mut self, resource: Resource) {
        self.insert(Arc::new(resource));
    }

    /// Puts a stored ledger back, at start-up, or records what a migration executed.
    pub fn extend_ledger(
        &mut self,
        database: &Uid,
        entries: impl IntoIterator<Item = LedgerEntry>,
    ) {
        let mut ledger = self.ledgers.get(database).cloned().unwrap_or_default();
        ledger.extend(entries);
        self.ledgers.insert(database.clone(), ledger);
    }

    /// Puts the name of a stored sealed value back, or sets and removes one.
    pub fn set_sealed(&mut self, worker: &Uid, name: &Arc<str>, present: bool) {
        let mut names = self.sealed.get(worker).cloned().unwrap_or_default();
        if present {
            names.insert(name.clone());
        } else {
            names.remove(name);
        }
        if names.is_empty() {
            self.sealed.remove(worker);
        } else {
            self.sealed.insert(worker.clone(), names);
        }
    }

    /// Inserts or replaces a resource and keeps every index.
    pub(crate) fn insert(&mut self, resource: Arc<Resource>) {
        self.take(&resource.uid);
        let uid = &resource.uid;
        for pin in resource.pins.iter() {
            add(&mut self.holders, pin.uid.clone(), uid);
            add(&mut self.watchers, target(&resource.key, pin), uid);
        }
        if let Some(hostname) = hostname(&resource) {
            add(&mut self.hostnames, hostname.into(), uid);
        }
        if let Some(native) = &resource.native_id {
            self.natives.insert(native.clone(), uid.clone());
        }
        self.by_key.insert(resource.key.clone(), uid.clone());
        self.resources.insert(uid.clone(), resource);
    }

    /// Removes a resource and its sealed values; ledgers stay, they belong to the incarnation.
    pub(crate) fn remove(&mut self, uid: &Uid) {
        self.take(uid);
        self.sealed.remove(uid);
        self.leaving.remove(uid);
    }

    fn take(&mut self, uid: &Uid) {
        let Some(resource) = self.resources.remove(uid) else {
            return;
        };
        for pin in resource.pins.iter() {
            drop_from(&mut self.holders, &pin.uid, uid);
            drop_from(&mut self.watchers, &target(&resource.key, pin), uid);
        }
        if let Some(hostname) = hostname(&resource) {
            drop_from(&mut self.hostnames, &Arc::from(hostname), uid);
        }
        if let Some(native) = &resource.native_id
            && self.natives.get(native) == Some(uid)
        {
            self.natives.remove(native);
        }
        if self.by_key.get(&resource.key) == Some(uid) {
            self.by_key.remove(&resource.key);
        }
    }
}

/// Address of a pin's target: always the space of its source.
pub(crate) fn target(source: &Key, pin: &Pin) -> Key {
    Key {
        space: source.space.clone(),
        api_version: pin.api_version.clone(),
        kind: pin.kind.clone(),
        name: pin.name.clone(),
    }
}

fn hostname(resource: &Resource) -> Option<&str> {
    match resource.kind() {
        Some(EdgeKind::WorkerCustomDomain) => resource.text("hostname"),
        _ => None,
    }
}

fn add<K: Ord + Clone>(index: &mut OrdMap<K, OrdSet<Uid>>, key: K, uid: &Uid) {
    index.entry(key).or_default().insert(uid.clone());
}

fn drop_from<K: Ord + Clone>(index: &mut OrdMap<K, OrdSet<Uid>>, key: &K, uid: &Uid) {
    if let Some(set) = index.get_mut(key) {
        set.remove(uid);
        if set.is_empty() {
            index.remove(key);
        }
    }
}
