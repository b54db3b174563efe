//! What memory holds of the store: every tenant's plane, read at start and again whenever a commit
//! failed, since memory is then ahead of what is on disk.

use crate::error::ApiError;
use crate::host::Host;
use crate::plane::{Plane, Planes, State};
use crate::secret::place;
use crate::store::{Epoch, LoadedTenant, StoreError};
use crate::token::Caller;
use imbl::OrdMap;
use notation_edge::{Manifest, SealedReadiness, World};
use notation_edge_api::{ErrorCode, parse};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Host {
    /// Puts what was read in the place of every plane and tells everybody who watches.
    pub(crate) fn take_up(&self, epoch: Epoch, tenants: BTreeMap<Arc<str>, LoadedTenant>) {
        let resources = || tenants.values().flat_map(|rows| &rows.resources);
        let newest = resources().map(|it| it.made).max().unwrap_or(0);
        self.inner.made.fetch_max(newest, Ordering::SeqCst);
        let restored = tenants.into_iter().map(|(tenant, rows)| {
            let state = self.restored(&tenant, rows);
            let plane = Plane::new(tenant.clone(), epoch, state);
            (tenant, Arc::new(plane))
        });
        let planes = Planes {
            epoch,
            by_tenant: restored.collect(),
        };
        *self
            .inner
            .planes
            .write()
            .unwrap_or_else(PoisonError::into_inner) = planes;
        for plane in self.planes() {
            self.announce(&plane);
        }
    }

    fn is_ahead(&self) -> bool {
        let planes = self
            .inner
            .planes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        planes.epoch != self.inner.store.epoch()
    }

    /// Reads the store again where memory is ahead of it. What was decided on the planes from
    /// before is refused by the store. Errors: the store cannot be read.
    pub(crate) async fn reread(&self) -> Result<(), StoreError> {
        if !self.is_ahead() {
            return Ok(());
        }
        let _one = self.inner.rereading.lock().await;
        if !self.is_ahead() {
            return Ok(());
        }
        let host = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let epoch = host.inner.store.epoch();
            let loaded = host.inner.store.load()?;
            host.take_up(epoch, loaded.tenants);
            Ok(())
        });
        match read.await {
            Ok(read) => read?,
            Err(error) => return Err(StoreError::Failed(error.to_string().into())),
        }
        tracing::warn!("a commit failed; the store was read again and the host goes on");
        self.converge().await;
        Ok(())
    }

    /// Whether the store takes writes. Finds out by a commit when the last one failed.
    pub(crate) async fn is_writable(&self) -> bool {
        let store = &self.inner.store;
        !store.is_doubtful() || store.try_commit().await.is_ok()
    }

    /// Makes ready for a request: memory is what the store has, and a request that changes
    /// something finds a store that takes writes. Errors: `backend_unavailable`.
    pub(crate) async fn ready_for(&self, method: &str) -> Result<(), ApiError> {
        self.reread().await?;
        let looks = matches!(method, "GET" | "HEAD" | "OPTIONS");
        if looks || self.is_writable().await {
            return Ok(());
        }
        Err(ApiError::new(
            ErrorCode::BackendUnavailable,
            "the host's store cannot be written at the moment; nothing was changed",
        ))
    }

    fn empty_world(&self) -> World {
        let readiness = match self.inner.config.conformance {
            Some(_) => SealedReadiness::Ignored,
            None => SealedReadiness::Required,
        };
        let catalog = self.inner.contracts.catalog.clone();
        World::empty(catalog, &self.inner.config.endpoint_domain, readiness)
    }

    fn empty_state(&self) -> State {
        State {
            world: self.empty_world(),
            sealed: OrdMap::new(),
            blobs: BTreeMap::new(),
            manifests: BTreeMap::new(),
            uploads: BTreeMap::new(),
            operations: BTreeMap::new(),
        }
    }

    fn restored(&self, tenant: &str, rows: LoadedTenant) -> State {
        let mut state = self.empty_state();
        for (digest, document) in rows.manifests {
            let manifest = parse(&document)
                .ok()
                .and_then(|value| Manifest::read(&value).ok());
            match manifest {
                Some(manifest) => state.world.hold(&digest, Arc::new(manifest)),
                None => tracing::warn!(tenant, digest, "a stored manifest breaks today's rules"),
            }
            state.manifests.insert(digest, document);
        }
        for resource in rows.resources {
            state.world.restore(resource);
        }
        for (database, entry) in rows.ledger {
            state.world.extend_ledger(&database, [entry]);
        }
        for (worker, name, value) in rows.sealed {
            match self
                .inner
                .keys
                .unseal(&place(tenant, &worker, &name), &value)
            {
                Some(value) => {
                    state.world.set_sealed(&worker, &name, true);
                    state
                        .sealed
                        .insert((worker, name), crate::SecretBytes::new(value));
                }
                None => {
                    tracing::error!(tenant, %worker, name = &*name, "a sealed value does not open")
                }
            }
        }
        for operation in rows.operations {
            if operation.terminal.is_none()
                && crate::operations::is_delete(&operation)
                && let Some(uid) = &operation.bound_uid
            {
                state.world.mark_leaving(uid.clone());
            }
            state.operations.insert(operation.id.clone(), operation);
        }
        state.uploads = rows
            .uploads
            .into_iter()
            .map(|upload| (upload.id.clone(), upload))
            .collect();
        state.blobs = rows.blobs.into_iter().collect();
        state
    }

    pub(crate) fn planes(&self) -> Vec<Arc<Plane>> {
        let planes = self
            .inner
            .planes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        planes.by_tenant.values().cloned().collect()
    }

    /// The caller's plane; made when the tenant does something for the first time.
    pub(crate) fn plane(&self, caller: &Caller) -> Arc<Plane> {
        if let Some(plane) = self
            .inner
            .planes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_tenant
            .get(&caller.tenant)
        {
            return plane.clone();
        }
        let mut planes = self
            .inner
            .planes
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let epoch = planes.epoch;
        let empty = || Plane::new(caller.tenant.clone(), epoch, self.empty_state());
        planes
            .by_tenant
            .entry(caller.tenant.clone())
            .or_insert_with(|| Arc::new(empty()))
            .clone()
    }
}
