//! Housekeeping while the host serves: what is too old, and bytes that nobody holds.

use crate::failure::HostError;
use crate::host::Host;
use crate::plane::{Plane, State};
use crate::store::Write;
use notation_edge::Manifest;
use notation_edge_api::parse;
use std::collections::BTreeSet;
use std::time::Duration;

/// Digests judged under one lock; uploads wait no longer than for these.
const BATCH: usize = 256;

/// What a collection took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Upload sessions that nobody finished in time.
    pub uploads: usize,
    /// Operations that ended long ago.
    pub operations: usize,
    /// Holds on blobs that no manifest and no upload session of the tenant names.
    pub holds: usize,
    /// Artifacts that no tenant held, removed.
    pub artifacts: usize,
    /// Resources that are gone, whose data was removed.
    pub data: usize,
}

impl Host {
    /// Forgets what is older than the host keeps, removes artifact bytes that no tenant holds,
    /// and the data of resources that are gone. Safe at any time: bytes that are coming in, and those that were just committed,
    /// stay.
    pub async fn collect_garbage(&self) -> Result<Collected, HostError> {
        let mut collected = Collected::default();
        let oldest = self
            .inner
            .config
            .clock
            .before(self.inner.config.keep_records);
        self.reread().await?;
        let store = &self.inner.store;
        let epoch = store.epoch();
        store
            .submit(epoch, vec![Write::Forget(oldest.clone())])
            .durable()
            .await?;
        for plane in self.planes() {
            let pending = {
                let mut state = plane.state.lock().await;
                let writes = forget(&plane, &mut state, &oldest, &mut collected);
                store.submit(plane.epoch, writes)
            };
            pending.durable().await?;
        }
        let artifacts = &self.inner.artifacts;
        let here = artifacts.list().await?;
        for batch in here.chunks(BATCH) {
            // Nothing is between its bytes and its hold while this is held.
            let _arrivals = self.inner.arrivals.write().await;
            let mut loose: BTreeSet<&str> = batch.iter().map(String::as_str).collect();
            for plane in self.planes() {
                let state = plane.state.lock().await;
                loose.retain(|digest| !state.blobs.contains_key(*digest));
            }
            // A hold that was let go must be gone on disk before its bytes are.
            store.submit(epoch, Vec::new()).durable().await?;
            for digest in loose {
                artifacts.remove(digest).await?;
                collected.artifacts += 1;
            }
        }
        let mut departed = self.inner.data_plane.kept().await?;
        for plane in self.planes() {
            let world = plane.world();
            departed.retain(|uid| world.get(uid).is_none());
        }
        // A resource that was deleted must be gone on disk before its data is.
        store.submit(epoch, Vec::new()).durable().await?;
        for uid in departed {
            self.inner.data_plane.forget(&uid).await?;
            collected.data += 1;
        }
        self.inner.metrics.collected(collected.artifacts);
        Ok(collected)
    }

    /// Collects now and after every further `pause`, until it is dropped.
    pub async fn keep_house(&self, pause: Duration) {
        loop {
            match self.collect_garbage().await {
                Ok(collected) if collected == Collected::default() => {}
                Ok(collected) => tracing::info!(?collected, "what nobody holds is gone"),
                Err(error) => tracing::warn!(%error, "garbage could not be collected"),
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// Takes sessions and ended operations from before `oldest` out of a tenant's state, and the
/// holds that nothing asks for any more. The rows that go with them.
fn forget(plane: &Plane, state: &mut State, oldest: &str, collected: &mut Collected) -> Vec<Write> {
    let mut writes = Vec::new();
    state.uploads.retain(|id, upload| {
        let stays = upload.created.as_str() >= oldest;
        if !stays {
            collected.uploads += 1;
            writes.push(Write::RemoveUpload(id.clone()));
        }
        stays
    });
    state.operations.retain(|id, operation| {
        let stays = operation.terminal.is_none() || operation.created.as_str() >= oldest;
        if !stays {
            collected.operations += 1;
            writes.push(Write::RemoveOperation(id.clone()));
        }
        stays
    });
    let Some(named) = named(state) else {
        return writes;
    };
    state.blobs.retain(|digest, _| {
        let stays = named.contains(digest);
        if !stays {
            collected.holds += 1;
            writes.push(Write::RemoveBlob(plane.tenant.clone(), digest.clone()));
        }
        stays
    });
    writes
}

/// Blobs that a committed manifest or an upload session names; `None` when one of them cannot be
/// read, so that nothing may be let go.
fn named(state: &State) -> Option<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for digest in state.manifests.keys() {
        let manifest = state.world.manifest(digest)?;
        named.extend(manifest.blobs().into_iter().map(str::to_owned));
    }
    for upload in state.uploads.values() {
        let document = parse(&upload.manifest).ok()?;
        let manifest = Manifest::read(&document).ok()?;
        named.extend(manifest.blobs().into_iter().map(str::to_owned));
    }
    Some(named)
}
