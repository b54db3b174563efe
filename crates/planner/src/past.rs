//! What was: records as they stand after looking, under the ids of today (`engine.md` §8).

use std::{
    collections::BTreeMap,
    ops::{Deref, Range},
};

use indexmap::IndexMap;
use notation_model::{
    DesiredGraph, Incarnation, Record, ResourceId, ResourceType, Standing, Value,
};

use crate::{Change, Observation, PlanInput, decide::same_field, params::hide_found};

/// One recorded incarnation.
pub(crate) struct Past<'a> {
    /// Under the id of today.
    pub incarnation: Incarnation,
    /// As recorded.
    pub original: &'a Record,
    /// With what was found, renamed where a resource was.
    pub record: Now<'a>,
    /// It was found gone; as the record says.
    gone: bool,
    /// `None` when the type is not registered.
    pub ty: Option<&'a ResourceType>,
    /// Parameters that somebody else changed at the provider.
    pub drift: Vec<Change>,
    /// Whom the object that stands under its key belongs to, when that is somebody else.
    pub foreign: Option<&'a str>,
}

/// A record as it stands: mostly as recorded, so that a plan holds no second state.
pub(crate) enum Now<'a> {
    AsRecorded(&'a Record),
    Otherwise(Box<Record>),
}

impl Deref for Now<'_> {
    type Target = Record;
    fn deref(&self) -> &Record {
        match self {
            Now::AsRecorded(record) => record,
            Now::Otherwise(record) => record,
        }
    }
}

impl Now<'_> {
    fn to_mut(&mut self) -> &mut Record {
        if let Now::AsRecorded(record) = self {
            *self = Now::Otherwise(Box::new(record.clone()));
        }
        match self {
            Now::Otherwise(record) => record,
            Now::AsRecorded(_) => unreachable!("made another one just now"),
        }
    }
}

impl Past<'_> {
    /// The record, when it says something else than what is recorded.
    pub fn restated(&self) -> Option<&Record> {
        match &self.record {
            Now::AsRecorded(_) => None,
            Now::Otherwise(record) => (**record != *self.original).then_some(record),
        }
    }

    pub fn gone(&self) -> bool {
        self.gone
    }
}

/// All records, sorted by incarnation.
pub(crate) struct History<'a> {
    pub past: Vec<Past<'a>>,
    /// Old names of renamed records.
    pub renamed: Vec<Incarnation>,
    desired: &'a DesiredGraph,
    /// The records of each declared resource, by its place. There are thousands, each of them
    /// somewhere else.
    of_declared: Vec<Range<usize>>,
    /// Those of the others.
    of_others: IndexMap<ResourceId, Range<usize>>,
}

impl<'a> History<'a> {
    /// Records of one resource, oldest generation first.
    pub fn of(&self, resource: &ResourceId) -> Range<usize> {
        match self.desired.resources.get_index_of(resource) {
            Some(declared) => self.of_declared(declared),
            None => self.of_others.get(resource).cloned().unwrap_or_default(),
        }
    }

    /// The same of a declared one, by its place.
    pub fn of_declared(&self, declared: usize) -> Range<usize> {
        self.of_declared[declared].clone()
    }

    /// The incarnation that references mean.
    pub fn current(&self, resource: &ResourceId) -> Option<usize> {
        self.of(resource)
            .rev()
            .find(|index| self.past[*index].record.standing == Standing::Current)
    }

    pub fn find(&self, incarnation: &Incarnation) -> Option<usize> {
        self.of(&incarnation.resource)
            .find(|index| self.past[*index].incarnation.generation == incarnation.generation)
    }

    /// What a recorded edge means now: the incarnation it was made to, or the current one of
    /// that resource when that is not recorded any more (`engine.md` §1).
    pub fn meant(&self, to: &Incarnation) -> Option<usize> {
        self.find(to).or_else(|| self.current(&to.resource))
    }

    /// Goes on with another record than the one that was read.
    pub fn restate(&mut self, index: usize, record: Record) {
        self.past[index].gone = record.gone;
        self.past[index].record = Now::Otherwise(Box::new(record));
    }
}

/// Reads prior state and observations.
pub(crate) fn history<'a>(input: &PlanInput<'a>) -> History<'a> {
    let renames = renames(input.desired, input);
    let mut past = Vec::with_capacity(input.prior.records.len());
    let mut renamed = Vec::new();
    for (incarnation, record) in &input.prior.records {
        let today = renames
            .get(&incarnation.resource)
            .map(|resource| Incarnation {
                resource: (*resource).clone(),
                generation: incarnation.generation,
            });
        if today.is_some() {
            renamed.push(incarnation.clone());
        }
        let found = input.observed.0.get(incarnation);
        let ty = input.types.get(&record.ty);
        let (mut record_now, drift) = look(record, ty, found);
        rename(&mut record_now, today.as_ref(), &renames);
        past.push(Past {
            incarnation: today.unwrap_or_else(|| incarnation.clone()),
            original: record,
            gone: record_now.gone,
            record: record_now,
            ty,
            drift,
            foreign: match found {
                Some(Observation::Foreign { owner }) => Some(owner.as_str()),
                Some(Observation::Gone | Observation::There { .. }) | None => None,
            },
        });
    }
    if !renames.is_empty() {
        past.sort_by(|one, other| one.incarnation.cmp(&other.incarnation));
    }
    let mut of_declared = vec![0..0; input.desired.resources.len()];
    let others = past.len().saturating_sub(of_declared.len());
    let mut of_others = IndexMap::with_capacity(others);
    let mut start = 0;
    for records in
        past.chunk_by(|one, other| one.incarnation.resource == other.incarnation.resource)
    {
        let resource = &records[0].incarnation.resource;
        let range = start..start + records.len();
        start = range.end;
        match input.desired.resources.get_index_of(resource) {
            Some(declared) => of_declared[declared] = range,
            None => drop(of_others.insert(resource.clone(), range)),
        }
    }
    History {
        past,
        renamed,
        desired: input.desired,
        of_declared,
        of_others,
    }
}

/// Earlier id -> id of today, for records that go on under another id. No id is claimed twice:
/// the program was judged.
fn renames<'a>(
    desired: &'a DesiredGraph,
    input: &PlanInput<'_>,
) -> BTreeMap<&'a ResourceId, &'a ResourceId> {
    let recorded = |id: &ResourceId| {
        let first = Incarnation {
            resource: id.clone(),
            generation: 0,
        };
        input
            .prior
            .records
            .range(first..)
            .next()
            .is_some_and(|(incarnation, _)| incarnation.resource == *id)
    };
    desired
        .resources
        .values()
        .filter(|resource| !resource.formerly.is_empty() && !recorded(&resource.id))
        .filter_map(|resource| {
            let former = resource.formerly.iter().find(|former| recorded(former))?;
            Some((former, &resource.id))
        })
        .collect()
}

fn rename(
    record: &mut Now<'_>,
    today: Option<&Incarnation>,
    renames: &BTreeMap<&ResourceId, &ResourceId>,
) {
    if renames.is_empty() {
        return;
    }
    if let Some(today) = today {
        let record = record.to_mut();
        let before = std::mem::replace(&mut record.incarnation, today.clone());
        if !record.former.contains(&before.resource) {
            record.former.push(before.resource);
        }
    }
    let refers = record
        .edges
        .iter()
        .any(|edge| renames.contains_key(&edge.to.resource));
    if refers {
        for edge in &mut record.to_mut().edges {
            if let Some(resource) = renames.get(&edge.to.resource) {
                edge.to.resource = (*resource).clone();
            }
        }
    }
}

/// The record with what the provider says laid over it. Compared are the parameters last set;
/// a sensitive one that is not answered cannot be compared. Source: `engine.md` §8.
fn look<'a>(
    record: &'a Record,
    ty: Option<&ResourceType>,
    found: Option<&Observation>,
) -> (Now<'a>, Vec<Change>) {
    let (params, outputs) = match (found, ty) {
        (None, _) | (Some(Observation::There { .. }), None) => {
            return (Now::AsRecorded(record), Vec::new());
        }
        (Some(Observation::Gone | Observation::Foreign { .. }), _) => {
            let mut now = Now::AsRecorded(record);
            if !record.gone {
                now.to_mut().gone = true;
            }
            return (now, Vec::new());
        }
        (Some(Observation::There { params, outputs }), Some(_)) => (params, outputs),
    };
    let Some(ty) = ty else {
        return (Now::AsRecorded(record), Vec::new());
    };
    let mut now = Now::AsRecorded(record);
    if record.gone {
        now.to_mut().gone = false;
    }
    let mut drift = Vec::new();
    for (field, before) in &record.applied {
        let found = params.get(field);
        let sensitive = ty
            .fields
            .get(field.as_str())
            .is_some_and(|field| field.sensitive);
        let unanswered = found.is_none() && (sensitive || *before == Value::Null);
        if unanswered || same_field(ty, field, Some(before), found) {
            continue;
        }
        let after = found.map(|found| hide_found(ty, field, Some(before), found.clone()));
        let now = now.to_mut();
        match &after {
            Some(value) => {
                now.applied.insert(field.clone(), value.clone());
                now.outputs.insert(field.clone(), value.clone());
            }
            None => {
                now.applied.remove(field);
                now.outputs.remove(field);
            }
        }
        // What differs from a record in doubt may be its own last write.
        if !record.in_doubt {
            drift.push(Change {
                path: field.to_string(),
                before: Some(before.clone()),
                after,
            });
        }
    }
    for (field, value) in outputs {
        let set = record.applied.contains_key(field);
        let known = record.outputs.get(field);
        if !set && !same_field(ty, field, known, Some(value)) {
            let value = hide_found(ty, field, known, value.clone());
            now.to_mut().outputs.insert(field.clone(), value);
        }
    }
    (now, drift)
}

/// Records of types that are not registered; they are left in place.
pub(crate) fn unregistered<'h>(history: &'h History<'_>) -> impl Iterator<Item = &'h Past<'h>> {
    history.past.iter().filter(|past| past.ty.is_none())
}
