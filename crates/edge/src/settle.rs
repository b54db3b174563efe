//! Settling: whoever looks different because of a change moves, and nobody else (host API §8.6).

use crate::world::World;
use crate::{Condition, EdgeKind, Rendering, Resource, Uid, render};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whose rendering can differ because `resource` came, changed or went. The cost depends on its
/// neighbours only.
pub(crate) fn affected(world: &World, resource: Option<&Resource>) -> BTreeSet<Uid> {
    let Some(resource) = resource else {
        return BTreeSet::new();
    };
    let mut found: BTreeSet<Uid> = world.watchers(&resource.key).cloned().collect();
    let pinned = |of: &Resource, relation: &str| of.pin(relation).map(|pin| pin.uid.clone());
    match resource.kind() {
        Some(EdgeKind::WorkerDeployment) => found.extend(pinned(resource, "/worker")),
        Some(EdgeKind::WorkerVersion) => {
            for holder in world.holders(&resource.uid) {
                if holder.kind() == Some(EdgeKind::WorkerDeployment) {
                    found.extend(pinned(holder, "/worker"));
                }
            }
        }
        Some(EdgeKind::SQLiteMigrationApplication) => {
            if let Some(database) = pinned(resource, "/database") {
                found.extend(world.holders(&database).map(|holder| holder.uid.clone()));
            }
        }
        _ => {}
    }
    found
}

/// Renders again and moves the revision of whoever looks different (host API §8.6).
pub(crate) fn settle(after: &mut World, affected: BTreeSet<Uid>, now: &str) -> Vec<Arc<Resource>> {
    let mut moved = Vec::new();
    for uid in affected {
        let Some(resource) = after.get(&uid).cloned() else {
            continue;
        };
        let condition = conditioned(&render(after, &resource), Some(&resource.condition), now);
        if condition != resource.condition {
            let resource = Arc::new(Resource {
                condition,
                revision: resource.revision.next(),
                ..Resource::clone(&resource)
            });
            after.insert(resource.clone());
            moved.push(resource);
        }
    }
    moved
}

/// The condition of a rendering; its time moves with its reason only.
pub(crate) fn conditioned(
    rendering: &Rendering,
    before: Option<&Condition>,
    now: &str,
) -> Condition {
    let since = match before {
        Some(before) if before.reason == rendering.reason => before.since.clone(),
        Some(_) | None => now.into(),
    };
    Condition {
        reason: rendering.reason,
        host_reason: rendering.host_reason.as_deref().map(Arc::from),
        message: rendering.message.as_deref().map(Arc::from),
        since,
    }
}
