//! One tenant's plane: its state behind one lock, and what readers see.

use crate::error::ApiError;
use crate::reply::Reply;
use crate::snapshot::{SecretBytes, TenantSnapshot};
use crate::store::{Bound, Epoch, OperationRow, Replay, ReplayKey, UploadRow, Write};
use imbl::OrdMap;
use notation_edge::{Admitted, Uid, World};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Everything of one tenant that mutations read and change as one step.
pub struct State {
    /// Resources.
    pub world: World,
    /// Sealed values in the clear.
    pub sealed: OrdMap<(Uid, Arc<str>), SecretBytes>,
    /// Held blobs with their sizes.
    pub blobs: BTreeMap<String, u64>,
    /// Documents of held manifests, canonical.
    pub manifests: BTreeMap<String, Vec<u8>>,
    /// Upload sessions.
    pub uploads: BTreeMap<String, UploadRow>,
    /// Operations.
    pub operations: BTreeMap<String, OperationRow>,
}

/// What a mutation decided while it held the state.
pub struct Step {
    /// An accepted change of the world.
    pub admitted: Option<Admitted>,
    /// Further rows that belong to it.
    pub writes: Vec<Write>,
    /// The answer, also the recorded one.
    pub reply: Reply,
    /// What the recorded answer claims to be alive.
    pub bound: Bound,
    /// The operation that ends with it.
    pub ended: Option<OperationRow>,
}

/// One tenant.
pub struct Plane {
    /// Name of the tenant.
    pub tenant: Arc<str>,
    /// The reading of the store that its state follows from.
    pub epoch: Epoch,
    /// The state; whoever holds it decides alone.
    pub state: tokio::sync::Mutex<State>,
    /// Bundles of this tenant that are checked at a time, so that its endless ones leave room for
    /// those of others.
    pub inspections: tokio::sync::Semaphore,
    /// The turn to migrate databases, which is held for as long as files run.
    pub migrations: tokio::sync::Mutex<()>,
    published: RwLock<TenantSnapshot>,
    /// Records that are submitted and perhaps not yet readable in the store.
    inflight: Mutex<BTreeMap<ReplayKey, Replay>>,
}

impl Plane {
    /// A plane in a given state.
    pub fn new(tenant: Arc<str>, epoch: Epoch, state: State) -> Plane {
        let published = TenantSnapshot {
            world: state.world.clone(),
            sealed: state.sealed.clone(),
        };
        Plane {
            tenant,
            epoch,
            state: tokio::sync::Mutex::new(state),
            inspections: tokio::sync::Semaphore::new(2),
            migrations: tokio::sync::Mutex::default(),
            published: RwLock::new(published),
            inflight: Mutex::default(),
        }
    }

    /// The world as of the last decided mutation.
    pub fn world(&self) -> World {
        self.snapshot().world
    }

    /// World and sealed values as of the last decided mutation.
    pub fn snapshot(&self) -> TenantSnapshot {
        self.published
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Makes a state visible to readers.
    pub fn publish(&self, state: &State) {
        let next = TenantSnapshot {
            world: state.world.clone(),
            sealed: state.sealed.clone(),
        };
        *self
            .published
            .write()
            .unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// A record that may not be readable in the store yet.
    pub fn inflight(&self, key: &ReplayKey) -> Option<Replay> {
        self.inflight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Remembers a record until it is durable.
    pub fn submitted(&self, key: ReplayKey, replay: Replay) {
        self.inflight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, replay);
    }

    /// The record is readable in the store now, unless a later one took its place.
    pub fn settled(&self, key: &ReplayKey, replay: &Replay) {
        let mut inflight = self.inflight.lock().unwrap_or_else(PoisonError::into_inner);
        if inflight.get(key) == Some(replay) {
            inflight.remove(key);
        }
    }
}

/// Every plane, of one reading of the store.
#[derive(Default)]
pub struct Planes {
    /// That reading.
    pub epoch: Epoch,
    /// Planes by tenant.
    pub by_tenant: BTreeMap<Arc<str>, Arc<Plane>>,
}

/// What is left of a recorded answer (host API §14.2, §14.3).
pub fn replayable(
    state: &State,
    replay: &Replay,
    fingerprint: &[u8; 32],
) -> Result<Option<Reply>, ApiError> {
    let alive = match &replay.bound {
        Bound::Nothing => true,
        Bound::Uid(uid) => state.world.get(uid).is_some(),
        // A failed operation reports nothing alive and must not answer for ever: the client's
        // create key is a function of the request.
        Bound::Operation(id) => state.operations.get(id).is_some_and(|operation| {
            !operation.failed
                && operation
                    .result_uid
                    .as_ref()
                    .is_none_or(|uid| state.world.get(uid).is_some())
        }),
    };
    if !alive {
        return Ok(None);
    }
    if replay.fingerprint != *fingerprint {
        return Err(ApiError::invalid(
            "the Idempotency-Key was used for another request",
        ));
    }
    Ok(Some(Reply {
        status: replay.status,
        etag: replay.etag.clone(),
        retry_after: None,
        body: replay.body.clone(),
    }))
}
