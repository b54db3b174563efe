//! What a step did, made durable and known.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use notation_model::{Incarnation, Record, ResourceId};
use notation_state::{Change, Entry};
use tokio::sync::OwnedMutexGuard;

use crate::{StepError, run::Run, world::puts};

/// What an incarnation is now.
pub(crate) enum Became {
    /// As recorded here.
    Is(Record),
    /// Nothing.
    Gone(Incarnation),
}

impl Became {
    fn resource(&self) -> &ResourceId {
        match self {
            Became::Is(record) => &record.incarnation.resource,
            Became::Gone(incarnation) => &incarnation.resource,
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
    async fn of(&self, resource: &ResourceId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(resource.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}

impl Run {
    /// Makes journal lines and what became of an incarnation durable in one commit, then known to
    /// the other steps.
    ///
    /// Errors: `Store` when it could not be written; nothing is known then.
    pub(crate) async fn commit(
        &self,
        entries: Vec<Entry>,
        became: Became,
    ) -> Result<(), StepError> {
        let _turn = self.turns.of(became.resource()).await;
        match became {
            Became::Is(record) => {
                let records = self.world().changes_for(record);
                self.line.append(entries, puts(&records)).await?;
                self.world().recorded(records);
            }
            Became::Gone(incarnation) => {
                let change = Change::Remove(incarnation.clone());
                self.line.append(entries, vec![change]).await?;
                self.world().live.remove(&incarnation);
            }
        }
        Ok(())
    }
}
