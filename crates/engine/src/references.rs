//! Which recorded objects an object names: the edges of what was not made by a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use notation_model::{
    Desired, Incarnation, Record, RecordedEdge, Role, Standing, TypeSet, Value, Via,
};

/// Order that the program alone knows: `dependOn` of what is recorded already.
pub(crate) fn ordered(
    wanted: &Desired,
    records: &BTreeMap<Incarnation, Record>,
) -> Vec<RecordedEdge> {
    let targets = wanted.depend_on.iter().filter_map(|depend| {
        records.values().find(|record| {
            record.incarnation.resource == depend.target && record.standing == Standing::Current
        })
    });
    let edges = targets.map(|record| RecordedEdge {
        to: record.incarnation.clone(),
        via: Via::DependOn,
        holds: false,
    });
    edges.collect()
}

/// Gives the records in `new`, of objects that were found, the edges that their objects have, and
/// every other record those to them. Returns the others that turn out to name one. The program
/// would tell what an object shall refer to, not what it does.
pub(crate) fn link(
    types: &TypeSet,
    records: &mut BTreeMap<Incarnation, Record>,
    new: &BTreeSet<Incarnation>,
) -> BTreeSet<Incarnation> {
    let live = || records.values().filter(|record| !record.gone);
    let mut called: HashMap<&str, Vec<&Incarnation>> = HashMap::new();
    for record in live() {
        for name in names(types, record) {
            called.entry(name).or_default().push(&record.incarnation);
        }
    }
    let mut found: Vec<(Incarnation, Vec<RecordedEdge>)> = Vec::new();
    for record in live() {
        let is_new = new.contains(&record.incarnation);
        let mut edges = named(types, record, &called);
        edges.extend(under_former_ids(records, new, record));
        edges.retain(|edge| (is_new || new.contains(&edge.to)) && !record.edges.contains(edge));
        if !edges.is_empty() {
            found.push((record.incarnation.clone(), edges));
        }
    }
    let misled: Vec<Incarnation> = live()
        .filter(|record| record.can_be_bare && !new.contains(&record.incarnation))
        .filter(|record| names_another(types, records, new, record))
        .map(|record| record.incarnation.clone())
        .collect();
    let mut others = BTreeSet::new();
    for (incarnation, edges) in found {
        if let Some(record) = records.get_mut(&incarnation) {
            record.edges.extend(edges);
            others.insert(incarnation);
        }
    }
    for incarnation in misled {
        if let Some(record) = records.get_mut(&incarnation) {
            record.can_be_bare = false;
            others.insert(incarnation);
        }
    }
    others.retain(|other| !new.contains(other));
    for other in &others {
        if let Some(record) = records.get_mut(other) {
            record.version += 1;
        }
    }
    others
}

/// What a record refers to by an id that something new had before: also what it may refer to, being
/// in doubt.
fn under_former_ids(
    records: &BTreeMap<Incarnation, Record>,
    new: &BTreeSet<Incarnation>,
    holder: &Record,
) -> Vec<RecordedEdge> {
    let mut edges = Vec::new();
    let dangling = |edge: &&RecordedEdge| !records.contains_key(&edge.to);
    for edge in holder.edges.iter().filter(dangling) {
        let had_it = |to: &&Incarnation| {
            let record = records.get(*to);
            record.is_some_and(|record| record.former.contains(&edge.to.resource))
        };
        edges.extend(new.iter().filter(had_it).map(|to| RecordedEdge {
            to: to.clone(),
            ..edge.clone()
        }));
    }
    edges
}

/// Whether a field that holds names, in the recorded config, another object than the one that its
/// resource has by now. Nobody looks whether that one is still there, so it is not gone back to.
fn names_another(
    types: &TypeSet,
    records: &BTreeMap<Incarnation, Record>,
    new: &BTreeSet<Incarnation>,
    holder: &Record,
) -> bool {
    holder.edges.iter().any(|edge| {
        let (Via::Config(place), true) = (&edge.via, edge.holds) else {
            return false;
        };
        let of_resource = |incarnation: &&Incarnation| incarnation.resource == edge.to.resource;
        let meant = match records.contains_key(&edge.to) {
            true => new.get(&edge.to),
            false => new.iter().find(of_resource),
        };
        let Some(meant) = meant.and_then(|meant| records.get(meant)) else {
            return false;
        };
        let field = place.split(['.', '[']).next().unwrap_or(place);
        let mut texts = Vec::new();
        if let Some(value) = holder.config.get(field) {
            put_texts(value, &mut texts);
        }
        let names = names(types, meant);
        !texts.iter().any(|text| names.contains(text))
    })
}

/// What stays the same of an object: its key, its stable outputs.
fn names<'r>(types: &TypeSet, record: &'r Record) -> BTreeSet<&'r str> {
    let fields = types.get(&record.ty).into_iter().flat_map(|ty| &ty.fields);
    let stable = fields
        .filter(|(_, field)| field.stable && field.role == Role::Computed)
        .filter_map(|(name, _)| record.outputs.get(name)?.as_text());
    let names = stable.chain([record.key.as_str()]);
    names.filter(|name| !name.is_empty()).collect()
}

/// Edges by which the object of `holder` keeps others, or would when it is reverted: fields that
/// hold or were contributed, and have a name of theirs in them.
fn named(
    types: &TypeSet,
    holder: &Record,
    called: &HashMap<&str, Vec<&Incarnation>>,
) -> Vec<RecordedEdge> {
    let Some(ty) = types.get(&holder.ty) else {
        return Vec::new();
    };
    let mut edges: Vec<RecordedEdge> = Vec::new();
    let there = holder.applied.iter().filter_map(|(name, value)| {
        let contributed = holder.config.get(name) != Some(value);
        contributed.then(|| (name, value, Via::Contribution(name.clone())))
    });
    // What is never reverted refers to what is there alone.
    let fallen_back_to = holder.config.iter().filter_map(|(name, value)| {
        let holds = ty
            .fields
            .get(name.as_str())
            .is_some_and(|field| field.holds);
        let counts = holder.can_be_bare || holder.applied.get(name) == Some(value);
        (holds && counts).then(|| (name, value, Via::Config(name.clone())))
    });
    for (name, value, via) in there.chain(fallen_back_to) {
        if ty.fields.get(name.as_str()).is_none_or(|field| field.key) {
            continue;
        }
        let mut texts = Vec::new();
        put_texts(value, &mut texts);
        let targets = texts.iter().filter_map(|text| called.get(text)).flatten();
        for target in targets {
            let edge = RecordedEdge {
                to: (*target).clone(),
                via: via.clone(),
                holds: true,
            };
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    }
    edges
}

/// Every text in a value.
fn put_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Text(text) => texts.push(text.as_str()),
        Value::List(items) => items.iter().for_each(|item| put_texts(item, texts)),
        Value::Map(members) => members.values().for_each(|member| put_texts(member, texts)),
        Value::Secret(secret) => put_texts(secret.reveal(), texts),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Asset(_)
        | Value::Unknown(_) => {}
    }
}
