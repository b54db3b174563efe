//! Objects of ours that no record knows (`engine.md` §8, *Ownership*): the state was lost, or is
//! older than what was deployed since.
//!
//! A create that runs into one tells of it. Then whatever else may be unrecorded is looked for,
//! all of it is recorded in one commit, and the run plans once more from there.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::{StreamExt as _, stream::FuturesOrdered};
use notation_model::{
    Desired, DesiredGraph, Expr, Incarnation, Look, Owner, Record, ResourceId, ResourceType,
    SecretName, Standing, TypeName, Value,
};
use notation_planner::StepKey;
use notation_provider::{Found, LookFor, OpError};
use notation_state::Change;

use crate::{
    EngineError, EngineEvent, ObserveFailure, TakenUp, draft,
    given::{give_placeholder, known},
    line::Line,
    look::{Looker, owns},
    recover::not_recorded,
    references::{link, ordered},
    world::changes_for,
};

/// How many generations are looked for of a resource that has no record. A name tells its
/// generation, not how many there were.
const GENERATIONS: u32 = 16;

/// An object that a create ran into.
#[derive(Debug)]
pub(crate) struct Met {
    /// Whose step.
    pub key: StepKey,
    /// What was to be made.
    pub incarnation: Incarnation,
    /// What is there.
    pub found: Box<Found>,
    /// When its step was given out, in milliseconds since 1970.
    pub started_ms: u64,
}

/// A look for the objects of one resource.
pub(crate) struct Search<'a> {
    pub looker: &'a Looker<'a>,
    pub ty: &'a ResourceType,
    pub desired: &'a Desired,
    /// Whether a record has this key.
    pub is_recorded: &'a (dyn Fn(&str) -> bool + Sync),
}

/// A found object and the generation that its tags, or else its name, tell.
type OfGeneration = (u32, Found);

impl Search<'_> {
    /// What the create of a generation would not run into: an object whose key the server made, or
    /// one that was made when the resource had another id.
    pub(crate) async fn beside_create(
        &self,
        generation: u32,
    ) -> Result<Option<OfGeneration>, OpError> {
        let own = match self.ty.look {
            Look::Owner => self.object(&self.desired.id, generation).await?,
            Look::Key | Look::IdempotentCreate | Look::Never => None,
        };
        if own.is_some() || self.written_key().is_some() {
            return Ok(own);
        }
        for former in &self.desired.formerly {
            let found = self.object(former, 0).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Every object of the resource from a generation on, until so many were missing in a row.
    async fn from(&self, first: u32, missing: u32) -> Result<Vec<OfGeneration>, OpError> {
        if let Some(written) = self.written_key() {
            let Some(key) = written else {
                return Ok(Vec::new());
            };
            let owner = self.owner(&self.desired.id, first);
            let found = self.ours(&owner, LookFor::Key(&key)).await?;
            return Ok(found.into_iter().collect());
        }
        let formerly = self.desired.formerly.iter().filter(|_| first == 0);
        for id in std::iter::once(&self.desired.id).chain(formerly) {
            let mut all = Vec::new();
            let (mut generation, mut left) = (first, missing);
            while left > 0 {
                match self.object(id, generation).await? {
                    // A replacement may have been cut off: then there is the next one as well.
                    Some(found) => {
                        all.push(found);
                        left = 1;
                    }
                    None => left -= 1,
                }
                generation += 1;
            }
            if !all.is_empty() {
                return Ok(all);
            }
        }
        Ok(Vec::new())
    }

    /// The key that the program writes: `Some(None)` when only running could tell it.
    fn written_key(&self) -> Option<Option<String>> {
        let (field, _) = self.ty.key_field()?;
        match self.desired.config.get(field)? {
            Expr::Name => None,
            Expr::Known(Value::Text(key)) => Some(Some(key.to_string())),
            _ => Some(None),
        }
    }

    /// The object that one generation of an id would have.
    async fn object(
        &self,
        id: &ResourceId,
        generation: u32,
    ) -> Result<Option<OfGeneration>, OpError> {
        let owner = self.owner(id, generation);
        match (self.ty.look, &self.ty.naming) {
            (Look::Owner, _) => self.ours(&owner, LookFor::Mine(&owner)).await,
            (Look::Key, Some(naming)) => {
                let name = naming.generate(&owner).name;
                self.ours(&owner, LookFor::Key(&name)).await
            }
            (Look::Key, None) | (Look::IdempotentCreate | Look::Never, _) => Ok(None),
        }
    }

    /// Without tags nothing says that it is ours.
    async fn ours(
        &self,
        looked_for: &Owner,
        look: LookFor<'_>,
    ) -> Result<Option<OfGeneration>, OpError> {
        if !self.ty.tags {
            return Ok(None);
        }
        let found = self.looker.read(self.ty, looked_for, look).await?;
        let owner = self.owner(&self.desired.id, looked_for.generation);
        let found = found.filter(|found| {
            owns(&owner, &found.tags, &self.desired.formerly)
                && !(self.is_recorded)(&found.object.key)
        });
        Ok(found.map(|found| (generation_of(&found).unwrap_or(owner.generation), found)))
    }

    fn owner(&self, id: &ResourceId, generation: u32) -> Owner {
        Owner {
            deployment: self.looker.session.deployment.clone(),
            resource: id.clone(),
            generation,
        }
    }
}

fn generation_of(found: &Found) -> Option<u32> {
    found.tags.get("notation:generation")?.parse().ok()
}

/// Looks for everything that the program wants and no record knows, and records it. `before` are
/// the resources that had records when the run began.
///
/// Returns what was taken up. Errors: a read that failed, state that cannot be written.
pub(crate) async fn take_up(
    line: &Line,
    desired: &DesiredGraph,
    secrets: &BTreeMap<SecretName, Value>,
    before: &BTreeSet<ResourceId>,
    met: &[Met],
) -> Result<BTreeSet<Incarnation>, EngineError> {
    let session = &line.session;
    let records = session.store.load(&session.deployment).await?.records;
    let mut found = search_all(line, desired, &records, before).await?;
    for met in met {
        let resource = &met.incarnation.resource;
        if !found.iter().any(|(id, _)| id == resource) {
            let generation = generation_of(&met.found).unwrap_or(met.incarnation.generation);
            found.push((resource.clone(), vec![(generation, (*met.found).clone())]));
        }
    }
    let taken = put_records(line, desired, secrets, records, found);
    if taken.new.is_empty() {
        return Ok(taken.new);
    }
    let appended = line.append(Vec::new(), taken.changes).await;
    appended.map_err(|error| not_recorded(&error))?;
    session.sink.event(&EngineEvent::TakenUp(taken.told));
    Ok(taken.new)
}

type OfResource = (ResourceId, Vec<OfGeneration>);

async fn search_all(
    line: &Line,
    desired: &DesiredGraph,
    records: &BTreeMap<Incarnation, Record>,
    before: &BTreeSet<ResourceId>,
) -> Result<Vec<OfResource>, EngineError> {
    let looker = line.looker();
    let types = line.session.registry.types();
    let live = records.values().filter(|record| !record.gone);
    let keys: HashSet<(&TypeName, &str)> = live
        .map(|record| (&record.ty, record.key.as_str()))
        .collect();
    let next: BTreeMap<&ResourceId, u32> = records
        .keys()
        .map(|incarnation| (&incarnation.resource, incarnation.generation + 1))
        .collect();
    let mut found = Vec::new();
    let mut running = FuturesOrdered::new();
    for desired in desired.resources.values() {
        let Some(ty) = types.get(&desired.ty) else {
            continue;
        };
        if running.len() >= line.options.parallelism.max(1) {
            found.extend(running.next().await);
        }
        running.push_back(search_one(Wanted {
            looker: &looker,
            ty,
            desired,
            keys: &keys,
            first: next.get(&desired.id).copied().unwrap_or(0),
            missing: match before.contains(&desired.id) {
                true => 1,
                false => GENERATIONS,
            },
        }));
    }
    while let Some(one) = running.next().await {
        found.push(one);
    }
    let mut all = Vec::new();
    let mut unread = Vec::new();
    for one in found {
        match one {
            Ok((_, found)) if found.is_empty() => {}
            Ok(found) => all.push(found),
            Err(failure) => unread.push(failure),
        }
    }
    if unread.is_empty() {
        Ok(all)
    } else {
        Err(EngineError::Observe(unread))
    }
}

/// One resource that is looked for.
struct Wanted<'a> {
    looker: &'a Looker<'a>,
    ty: &'a ResourceType,
    desired: &'a Desired,
    /// Keys that are recorded.
    keys: &'a HashSet<(&'a TypeName, &'a str)>,
    /// The generation to begin with.
    first: u32,
    /// How many may be missing in a row.
    missing: u32,
}

async fn search_one(wanted: Wanted<'_>) -> Result<OfResource, ObserveFailure> {
    let Wanted { ty, desired, .. } = wanted;
    let search = Search {
        looker: wanted.looker,
        ty,
        desired,
        is_recorded: &|key| wanted.keys.contains(&(&ty.name, key)),
    };
    match search.from(wanted.first, wanted.missing).await {
        Ok(found) => Ok((desired.id.clone(), found)),
        Err(error) => Err(ObserveFailure {
            resource: desired.id.clone(),
            key: ty.name.to_string(),
            reason: error.to_string(),
        }),
    }
}

/// What taking up comes to.
struct Taken {
    new: BTreeSet<Incarnation>,
    changes: Vec<Change>,
    told: Vec<TakenUp>,
}

fn put_records(
    line: &Line,
    desired: &DesiredGraph,
    secrets: &BTreeMap<SecretName, Value>,
    mut records: BTreeMap<Incarnation, Record>,
    found: Vec<OfResource>,
) -> Taken {
    let types = line.session.registry.types();
    let mut changed = BTreeSet::new();
    let mut new = BTreeSet::new();
    let mut told = Vec::new();
    for (id, found) in found {
        let Some(wanted) = desired.resources.get(&id) else {
            continue;
        };
        let Some(ty) = types.get(&wanted.ty) else {
            continue;
        };
        for (generation, found) in found {
            let incarnation = free(&records, &id, generation);
            let mut record = draft::taken_up(ty, wanted, incarnation.clone(), found);
            let later = records.values().any(|other| {
                other.incarnation.resource == id
                    && other.incarnation.generation > incarnation.generation
                    && other.standing == Standing::Current
                    && !other.gone
            });
            if later {
                record.standing = Standing::Superseded;
            }
            told.push(TakenUp {
                incarnation: incarnation.clone(),
                key: record.key.to_string(),
            });
            for record in changes_for(&records, None, record) {
                changed.insert(record.incarnation.clone());
                records.insert(record.incarnation.clone(), record);
            }
            new.insert(incarnation);
        }
    }
    let known = known(&records);
    for incarnation in &new {
        let Some(wanted) = desired.resources.get(&incarnation.resource) else {
            continue;
        };
        let edges = ordered(wanted, &records);
        if let Some(record) = records.get_mut(incarnation)
            && let Some(ty) = types.get(&record.ty)
        {
            record.edges = edges;
            give_placeholder(ty, wanted, &known, secrets, record);
        }
    }
    changed.extend(link(types, &mut records, &new));
    let changes = changed.iter().filter_map(|changed| records.get(changed));
    Taken {
        changes: changes.cloned().map(Change::put).collect(),
        new,
        told,
    }
}

/// The incarnation of this generation, or of the next one that has no live record.
fn free(records: &BTreeMap<Incarnation, Record>, id: &ResourceId, generation: u32) -> Incarnation {
    let of = |generation| Incarnation {
        resource: id.clone(),
        generation,
    };
    let taken = |generation: &u32| {
        let record = records.get(&of(*generation));
        record.is_some_and(|record| !record.gone)
    };
    let next = (generation..).find(|generation| !taken(generation));
    of(next.unwrap_or(generation))
}
