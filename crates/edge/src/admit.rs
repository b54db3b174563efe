//! Admission: the one place where a wanted change becomes an accepted one (architecture §4).

use crate::breach::Doing;
use crate::change::{Change, Delete, Fence, Observe, Origin, Put, Removal, Review, Seal, Touch};
use crate::claim::{Claim, claims_of};
use crate::resolve::resolve;
use crate::rule::{environment_clash, judge, weight_sum};
use crate::settle::{self, conditioned, settle};
use crate::world::{LedgerEntry, World};
use crate::{
    Breach, Condition, EdgeKind, Form, FormRef, Generation, Key, Reason, Refusal, Resource,
    Revision, Role, Uid, Why, render,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An accepted change. Only [`admit`] makes one, and a store writes nothing else.
#[derive(Debug, Clone)]
pub struct Admitted {
    after: World,
    effect: Effect,
    upserts: Vec<Arc<Resource>>,
    ledger: Option<(Uid, Vec<LedgerEntry>)>,
}

/// What an accepted change did to its subject.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A new incarnation.
    Created(Arc<Resource>),
    /// The current incarnation, changed or not.
    Kept(Arc<Resource>),
    /// The incarnation is gone.
    Removed(Arc<Resource>),
    /// No resource was the subject: a sealed value was set or removed.
    Sealed(Seal),
}

impl Admitted {
    /// The world afterwards.
    pub fn after(&self) -> &World {
        &self.after
    }

    /// What happened to the subject.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Every resource whose stored form changed, the subject included.
    pub fn upserts(&self) -> &[Arc<Resource>] {
        &self.upserts
    }

    /// Migrations that must be executed on a database and then recorded.
    pub fn ledger(&self) -> Option<(&Uid, &[LedgerEntry])> {
        self.ledger
            .as_ref()
            .map(|(uid, entries)| (uid, entries.as_slice()))
    }

    /// Whether what the runtime serves can differ: anything of the worker aggregate moved.
    pub fn touches_runtime(&self) -> bool {
        let subject = match &self.effect {
            Effect::Sealed(_) => return true,
            Effect::Created(resource) | Effect::Removed(resource) => resource,
            Effect::Kept(resource) => {
                if self.upserts.is_empty() {
                    return false;
                }
                resource
            }
        };
        match subject.kind() {
            Some(
                EdgeKind::WorkerVersion
                | EdgeKind::WorkerDeployment
                | EdgeKind::WorkerCustomDomain
                | EdgeKind::WorkerEndpoint
                | EdgeKind::WorkerCronTrigger
                | EdgeKind::QueueConsumer
                | EdgeKind::AtLeastOnceQueue,
            ) => true,
            Some(
                EdgeKind::ModuleWorker
                | EdgeKind::WorkerBundle
                | EdgeKind::StaticAssetBundle
                | EdgeKind::EdgeKVNamespace
                | EdgeKind::ObjectBucket
                | EdgeKind::SQLiteDatabase
                | EdgeKind::SQLiteMigrationSet
                | EdgeKind::SQLiteMigrationApplication,
            )
            | None => false,
        }
    }
}

/// Judges `change` against `world` as it would be afterwards.
///
/// `now` is RFC 3339 in UTC and becomes the time of conditions that change. Errors: the refusal;
/// nothing happened. Source: host API §11.1, §13, §17-§22.
pub fn admit(world: &World, change: &Change, now: &str) -> Result<Admitted, Refusal> {
    match change {
        Change::Put(put) => admit_put(world, put, now),
        Change::Delete(delete) => admit_delete(world, delete, now),
        Change::Observe(observe) => admit_observe(world, observe),
        Change::Seal(seal) => Ok(admit_seal(world, seal, now)),
    }
}

fn admit_put(world: &World, put: &Put, now: &str) -> Result<Admitted, Refusal> {
    let form = world
        .catalog()
        .form(&put.form_ref)
        .ok_or_else(|| Refusal::new(Why::FormUnknown, "the form is not installed"))?
        .clone();
    let occupant = world.at(&put.key).cloned();
    bound(occupant.as_deref(), put.accepted.as_ref())?;
    refuse(Doing::Putting, spec_breaches(&form, &put.spec))?;
    let pins = resolve(world, &form, &put.key, &put.spec)?;

    let mut resource = Resource {
        uid: occupant
            .as_ref()
            .map_or_else(|| put.fresh.clone(), |it| it.uid.clone()),
        key: put.key.clone(),
        form_ref: put.form_ref.clone(),
        generation: Generation::FIRST,
        revision: Revision::FIRST,
        spec: put.spec.clone(),
        spec_digest: put.spec_digest.clone(),
        pins: pins.into(),
        native_id: None,
        touches: 0,
        made: put.made,
        condition: Condition {
            reason: Reason::Available,
            host_reason: None,
            message: None,
            since: now.into(),
        },
    };
    let mut after = world.clone();
    after.insert(Arc::new(resource.clone()));
    let mut claims = claims_of(&after, &resource.uid);
    claims.extend(left_behind(world, occupant.as_deref(), &resource));
    refuse(
        Doing::Putting,
        claims
            .iter()
            .flat_map(|claim| judge(&after, claim))
            .collect(),
    )?;

    let current = occupant.as_ref().filter(|it| it.form_ref == put.form_ref);
    precondition(&put.fence, occupant.as_deref(), current.map(|it| &**it))?;
    if let Some(current) = current {
        changeable(&form, current, put)?;
        resource.generation = current.generation;
        resource.revision = current.revision;
        resource.native_id = current.native_id.clone();
        resource.touches = current.touches;
        resource.made = current.made;
        resource.condition = current.condition.clone();
    }
    match &put.origin {
        Origin::Apply(Review::Fits) => {}
        Origin::Apply(Review::Stale) => {
            return Err(Refusal::new(
                Why::InvalidArgument,
                "the review does not bind this document, address and generation; prepare again",
            ));
        }
        Origin::Import { native_id } => {
            claim_native(world, current.map(|it| &**it), native_id)?;
            resource.native_id = Some(native_id.clone());
        }
    }

    let ledger = suffix(&after, &resource);
    if let Some((database, entries)) = &ledger {
        after.extend_ledger(database, entries.iter().cloned());
    }
    let mut affected = settle::affected(world, occupant.as_deref());
    affected.extend(settle::affected(&after, Some(&resource)));
    affected.remove(&resource.uid);

    let rendering = render(&after, &resource);
    match current {
        None => resource.condition = conditioned(&rendering, None, now),
        Some(current) => {
            let condition = conditioned(&rendering, Some(&current.condition), now);
            let spec_moved = current.spec_digest != resource.spec_digest;
            let other_moved = current.pins != resource.pins || current.condition != condition;
            resource.condition = condition;
            if spec_moved {
                resource.generation = resource.generation.next();
            }
            if spec_moved || other_moved {
                resource.revision = resource.revision.next();
            }
        }
    }
    let resource = Arc::new(resource);
    let changed = current.is_none_or(|current| **current != *resource);
    after.insert(resource.clone());
    let mut upserts: Vec<Arc<Resource>> = changed.then(|| resource.clone()).into_iter().collect();
    upserts.extend(settle(&mut after, affected, now));
    let effect = if current.is_none() {
        Effect::Created(resource)
    } else {
        Effect::Kept(resource)
    };
    Ok(Admitted {
        after,
        effect,
        upserts,
        ledger,
    })
}

fn admit_delete(world: &World, delete: &Delete, now: &str) -> Result<Admitted, Refusal> {
    let occupant = world.at(&delete.key);
    bound(occupant.map(|it| &**it), delete.accepted.as_ref())?;
    let current = current(world, &delete.key, &delete.form_ref)?.clone();
    if delete.generation != current.generation.to_string() {
        return Err(stale_generation());
    }
    let etag = format!("\"{}\"", current.revision);
    if delete
        .if_match
        .as_ref()
        .is_some_and(|wanted| *wanted != etag)
    {
        return Err(Refusal::new(
            Why::RevisionConflict,
            "If-Match does not name the current revision",
        ));
    }
    let mut after = world.clone();
    after.remove(&current.uid);
    if delete.removal == Removal::Asked {
        let mut claims = left_behind(world, Some(&current), &current);
        claims.push(Claim::Unheld(current.uid.clone()));
        refuse(
            Doing::Deleting,
            claims
                .iter()
                .flat_map(|claim| judge(&after, claim))
                .collect(),
        )?;
    }
    let mut affected = settle::affected(world, Some(&current));
    affected.remove(&current.uid);
    let upserts = settle(&mut after, affected, now);
    Ok(Admitted {
        after,
        effect: Effect::Removed(current),
        upserts,
        ledger: None,
    })
}

fn admit_observe(world: &World, observe: &Observe) -> Result<Admitted, Refusal> {
    let current = current(world, &observe.key, &observe.form_ref)?;
    if observe.generation != current.generation.to_string() {
        return Err(stale_generation());
    }
    let mut after = world.clone();
    let mut resource = Resource::clone(current);
    let mut upserts = Vec::new();
    if observe.touch == Touch::Count {
        resource.touches += 1;
        resource.revision = resource.revision.next();
        let touched = Arc::new(resource.clone());
        after.insert(touched.clone());
        upserts.push(touched);
    }
    Ok(Admitted {
        after,
        effect: Effect::Kept(Arc::new(resource)),
        upserts,
        ledger: None,
    })
}

fn admit_seal(world: &World, seal: &Seal, now: &str) -> Admitted {
    let mut after = world.clone();
    after.set_sealed(&seal.worker, &seal.name, seal.present);
    let versions: BTreeSet<Uid> = world
        .holding(&seal.worker, EdgeKind::WorkerVersion, "/worker")
        .map(|version| version.uid.clone())
        .collect();
    let upserts = settle(&mut after, versions, now);
    Admitted {
        after,
        effect: Effect::Sealed(seal.clone()),
        upserts,
        ledger: None,
    }
}

/// Identity binding of an accepted operation (host API §23.4).
fn bound(occupant: Option<&Resource>, accepted: Option<&Uid>) -> Result<(), Refusal> {
    match (occupant, accepted) {
        (_, None) => Ok(()),
        (None, Some(_)) => Err(not_found()),
        (Some(occupant), Some(accepted)) if occupant.uid == *accepted => Ok(()),
        (Some(_), Some(_)) => Err(Refusal::new(
            Why::UidMismatch,
            "the resource was replaced after the operation was accepted",
        )),
    }
}

/// What a spec breaks by itself; judged before relations are looked at.
fn spec_breaches(form: &Form, spec: &Value) -> Vec<Breach> {
    let kind = EdgeKind::of_parts(&form.form_ref.api_version, &form.form_ref.kind);
    match kind {
        Some(EdgeKind::WorkerDeployment) => weight_sum(spec).into_iter().collect(),
        Some(EdgeKind::WorkerVersion) => environment_clash(form, spec).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn refuse(doing: Doing, breaches: Vec<Breach>) -> Result<(), Refusal> {
    match Refusal::of(doing, &breaches) {
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

/// A deployment that leaves a worker leaves its dependents (rules 4 and 8).
fn left_behind(world: &World, before: Option<&Resource>, now: &Resource) -> Vec<Claim> {
    if now.kind() != Some(EdgeKind::WorkerDeployment) {
        return Vec::new();
    }
    let old = before.and_then(|before| before.pin("/worker"));
    // Nobody is left unserved by a worker that is gone itself.
    let living = old.filter(|pin| world.get(&pin.uid).is_some());
    living
        .map(|pin| world.dependents(&pin.uid))
        .into_iter()
        .flatten()
        .map(Claim::Served)
        .collect()
}

/// The table of host API §11.2 below its syntactic rows.
fn precondition(
    fence: &Fence,
    occupant: Option<&Resource>,
    current: Option<&Resource>,
) -> Result<(), Refusal> {
    match (fence, occupant, current) {
        (Fence::Free, None, _) => Ok(()),
        (Fence::Free, Some(_), _) => Err(Refusal::new(
            Why::GenerationConflict,
            "the name is taken already",
        )),
        (Fence::Current { .. }, _, None) => Err(not_found()),
        (Fence::Current { generation, uid }, _, Some(current)) => {
            if uid
                .as_ref()
                .is_some_and(|wanted| wanted != current.uid.as_str())
            {
                return Err(Refusal::new(
                    Why::UidMismatch,
                    "expectedUid does not name the current incarnation",
                ));
            }
            if *generation != current.generation {
                Err(stale_generation())
            } else {
                Ok(())
            }
        }
    }
}

/// Rows 17 and 18 of host API §11.1, and members that never change.
fn changeable(form: &Form, current: &Resource, put: &Put) -> Result<(), Refusal> {
    let invalid = |text: String| Err(Refusal::new(Why::InvalidArgument, text));
    let moved = current.spec_digest != put.spec_digest;
    if moved && !form.can_update() {
        return invalid(format!("a {} cannot be changed", form.form_ref.kind));
    }
    // Also on import: it must not do what an update may not.
    if form.role == Role::Revision {
        return invalid(format!(
            "a {} is immutable; create another one",
            form.form_ref.kind
        ));
    }
    for pointer in &form.immutable {
        if current.spec.pointer(pointer) != put.spec.pointer(pointer) {
            return invalid(format!(
                "{pointer} of a {} cannot be changed",
                form.form_ref.kind
            ));
        }
    }
    Ok(())
}

/// Native identities are held per tenant, over all kinds and spaces (host API §13.2).
fn claim_native(world: &World, current: Option<&Resource>, id: &str) -> Result<(), Refusal> {
    let holder = world.native(id);
    let own = current.and_then(|current| current.native_id.as_deref());
    let elsewhere =
        holder.is_some_and(|holder| current.is_none_or(|current| current.uid != *holder));
    if elsewhere {
        return Err(Refusal::new(
            Why::ImportConflict,
            "the native identity is held already",
        ));
    }
    if own.is_some_and(|own| own != id) {
        return Err(Refusal::new(
            Why::ImportConflict,
            "the resource holds another native identity",
        ));
    }
    Ok(())
}

/// Migrations that a put application has to execute.
fn suffix(after: &World, resource: &Resource) -> Option<(Uid, Vec<LedgerEntry>)> {
    if resource.kind() != Some(EdgeKind::SQLiteMigrationApplication) {
        return None;
    }
    let database = resource.pin("/database")?.uid.clone();
    let applied = after.ledger(&database).count();
    let entries: Vec<LedgerEntry> = after
        .declared(resource)?
        .into_iter()
        .skip(applied)
        .collect();
    (!entries.is_empty()).then_some((database, entries))
}

impl World {
    /// The resource at an address, if it was recorded under exactly this Form.
    pub fn current(&self, key: &Key, form_ref: &FormRef) -> Option<&Arc<Resource>> {
        self.at(key)
            .filter(|resource| resource.form_ref == *form_ref)
    }
}

fn current<'a>(
    world: &'a World,
    key: &Key,
    form_ref: &FormRef,
) -> Result<&'a Arc<Resource>, Refusal> {
    world.current(key, form_ref).ok_or_else(not_found)
}

/// The same for what never was and for what belongs to somebody else (host API §5.4).
fn not_found() -> Refusal {
    Refusal::new(Why::NotFound, "resource does not exist")
}

fn stale_generation() -> Refusal {
    Refusal::new(
        Why::GenerationConflict,
        "the generation fence does not name the current generation",
    )
}
