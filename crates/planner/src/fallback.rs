//! What an object that leaves falls back to where its own config keeps everybody from letting go
//! (ADR 0018).

use std::collections::BTreeSet;

use notation_model::{Presence, Record, RecordedEdge, ResourceType, Via};

use crate::{decide::reverted, params::hide, past::History};

/// The record with a placeholder that refers to nobody who could stand in the way: without the
/// fields of its config that hold others, or that name what is gone. What was in them counts as
/// contributed. `None` when its type or a mark forbids that, or when it has no such field.
///
/// The object is about to be deleted, so nothing is served by what is left out.
pub(crate) fn without_references(history: &History<'_>, index: usize) -> Option<Record> {
    let past = &history.past[index];
    let ty = past.ty?;
    if ty.never_bare || past.record.marks.never_bare || !ty.updates {
        return None;
    }
    let is_gone = |edge: &RecordedEdge| {
        let meant = history.meant(&edge.to);
        meant.is_none_or(|meant| history.past[meant].gone())
    };
    let in_the_way = past.record.edges.iter().filter_map(|edge| match &edge.via {
        Via::Config(place) if edge.holds || is_gone(edge) => Some(field_of(place)),
        Via::Config(_) | Via::Contribution(_) | Via::DependOn => None,
    });
    let left_out: BTreeSet<&str> = in_the_way
        .filter(|name| can_be_left_out(ty, name))
        .collect();
    let mut now = past.record.clone();
    for name in &left_out {
        match ty.fields.get(*name).map(|field| &field.presence) {
            Some(Presence::Default(value)) => {
                let value = hide(ty, name, value.clone());
                now.config.insert((*name).to_owned(), value);
            }
            Some(Presence::Optional | Presence::Required) | None => {
                now.config.remove(name);
            }
        }
    }
    let stays = |name: &str| ty.fields.get(name).is_some_and(|field| field.immutable);
    let mut edges: Vec<RecordedEdge> = Vec::new();
    for edge in &past.record.edges {
        let via = match &edge.via {
            Via::Config(place) if left_out.contains(field_of(place)) => {
                Via::Contribution(field_of(place).into())
            }
            Via::Contribution(field) if stays(field) => Via::Config(field.clone()),
            via => via.clone(),
        };
        if matches!(via, Via::Config(_)) && is_gone(edge) {
            return None;
        }
        let edge = RecordedEdge {
            via,
            ..edge.clone()
        };
        if !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    now.edges = edges;
    now.can_be_bare = true;
    let written = reverted(ty, &now);
    let whole = ty
        .params()
        .all(|(name, field)| field.presence != Presence::Required || written.contains_key(name));
    (whole && now != *past.record).then_some(now)
}

fn can_be_left_out(ty: &ResourceType, name: &str) -> bool {
    ty.fields
        .get(name)
        .is_some_and(|field| field.presence != Presence::Required && !field.immutable && !field.key)
}

/// The field at the start of a place such as `bindings[0].service`.
fn field_of(place: &str) -> &str {
    place.split(['.', '[']).next().unwrap_or(place)
}
