//! What a commit says of an incarnation, and whose turn it is to commit.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use notation_model::{Incarnation, Record, ResourceId};
use tokio::sync::OwnedMutexGuard;

/// What an incarnation is now.
pub(crate) enum Became {
    /// As recorded here.
    Is(Record),
    /// Nothing, and nothing is to be.
    Gone(Incarnation),
    /// Nothing, by somebody else's hand: its record says so.
    Lost(Incarnation),
}

impl Became {
    pub(crate) fn resource(&self) -> &ResourceId {
        match self {
            Became::Is(record) => &record.incarnation.resource,
            Became::Gone(incarnation) | Became::Lost(incarnation) => &incarnation.resource,
        }
    }
}

/// Whose turn it is to commit, per resource.
///
/// A new incarnation calls the one before it superseded in its own commit, so it writes a record
/// that another step may be changing or removing at the same moment. What a commit says is
/// therefore made up from the records only once the commit before it is known.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<ResourceId, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    pub(crate) async fn of(&self, resource: &ResourceId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(resource.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}
