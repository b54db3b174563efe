//! The one road of every mutation: replay, decide under the tenant's lock, store everything in one
//! transaction, answer when it is durable and serves.

use crate::data_plane::{Ahead, BundleSource};
use crate::error::ApiError;
use crate::host::Host;
use crate::plane::{Plane, State, Step, replayable};
use crate::reply::Reply;
use crate::snapshot::TenantSnapshot;
use crate::store::{Replay, ReplayKey, Write};
use notation_edge::{Admitted, EdgeKind, Effect, Exports, LedgerEntry, ManifestKind, Uid};
use notation_edge_api::ErrorCode;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the turn to have a bundle checked; what was not checked is asked again.
const TURN: Duration = Duration::from_secs(15);

impl Host {
    /// Learns which handlers a bundle exports, unless that is known already. What could not be
    /// told is asked again: the data plane may have been busy.
    ///
    /// Errors: `backend_unavailable` when the tenant has too much to check already.
    pub(crate) async fn inspect(
        &self,
        plane: &Plane,
        manifest_digest: &str,
    ) -> Result<(), ApiError> {
        let world = plane.world();
        match world.exports(manifest_digest) {
            Some(Exports::Known(_) | Exports::Broken(_)) => return Ok(()),
            Some(Exports::Unknown) | None => {}
        }
        let Some(manifest) = world.manifest(manifest_digest).cloned() else {
            return Ok(());
        };
        if manifest.kind != ManifestKind::WorkerBundle {
            return Ok(());
        }
        let bundle = BundleSource {
            manifest_digest: manifest_digest.to_owned(),
            manifest,
            artifacts: self.inner.artifacts.clone(),
        };
        let turn = tokio::time::timeout(TURN, plane.inspections.acquire());
        let Ok(Ok(_turn)) = turn.await else {
            return Err(ApiError::new(
                ErrorCode::BackendUnavailable,
                "other bundles of this tenant are being checked and take long; try again",
            ));
        };
        let exports = self.inner.data_plane.inspect(&bundle).await;
        let mut state = plane.state.lock().await;
        state.world.learn(manifest_digest, exports);
        plane.publish(&state);
        Ok(())
    }

    /// Runs one mutation: replays a recorded answer, or decides under the tenant's lock, stores
    /// everything in one transaction, and answers when it is durable and serves.
    ///
    /// Migrations may take long, and so may the start of a version; both run without that lock, and
    /// the change is decided again in the world as it is then. `decide` changes the state only when
    /// it admits nothing.
    pub(crate) async fn mutate(
        &self,
        plane: &Arc<Plane>,
        record: Option<(ReplayKey, [u8; 32])>,
        mut decide: impl FnMut(&mut State) -> Result<Step, ApiError>,
    ) -> Result<Reply, ApiError> {
        let mut turn = None;
        // Until what was started has been taken over.
        let mut ahead = None;
        let (mut state, step) = loop {
            let mut state = plane.state.lock().await;
            if let Some((key, fingerprint)) = &record
                && let Some(reply) = self.replayed(plane, &state, key, fingerprint)?
            {
                drop(state);
                // The original may have been decided a moment ago and not be durable yet.
                self.inner
                    .store
                    .submit(plane.epoch, Vec::new())
                    .durable()
                    .await?;
                return Ok(reply);
            }
            let step = decide(&mut state)?;
            let Some(admitted) = &step.admitted else {
                break (state, step);
            };
            if let Some((database, entries)) = admitted.ledger() {
                drop(state);
                match turn {
                    // Whoever had the turn before may have run the same.
                    None => turn = Some(plane.migrations.lock().await),
                    Some(_) => self.migrate(plane, database, entries).await?,
                }
            } else if ahead.is_none() && deploys(admitted) {
                let next = TenantSnapshot {
                    world: admitted.after().clone(),
                    sealed: state.sealed.clone(),
                };
                drop(state);
                ahead = Some(self.start_ahead(&next).await?);
            } else {
                break (state, step);
            }
        };
        let mut writes = step.writes;
        let mut runtime = false;
        if let Some(admitted) = &step.admitted {
            runtime = admitted.touches_runtime();
            writes.extend(rows(&plane.tenant, admitted));
            take_over(&mut state, admitted);
        }
        if let Some(ended) = step.ended {
            writes.push(Write::Operation(plane.tenant.clone(), ended.clone()));
            state.operations.insert(ended.id.clone(), ended);
        }
        let mut settled = None;
        if let Some((key, fingerprint)) = record {
            let replay = Replay {
                fingerprint,
                status: step.reply.status,
                etag: step.reply.etag.clone(),
                body: step.reply.body.clone(),
                bound: step.bound,
            };
            plane.submitted(key.clone(), replay.clone());
            writes.push(Write::Replay(key.clone(), replay.clone(), self.now()));
            settled = Some((key, replay));
        }
        plane.publish(&state);
        let pending = self.inner.store.submit(plane.epoch, writes);
        drop(state);
        pending.durable().await?;
        if let Some((key, replay)) = settled {
            plane.settled(&key, &replay);
        }
        if step.admitted.is_some() {
            let announced = self.announce(plane);
            if runtime {
                self.converge_to(announced).await;
            }
        }
        Ok(step.reply)
    }

    /// Has everything started that takes traffic in the tenant as it would be.
    ///
    /// Errors: `backend_unavailable` when it does not come up within the configured time.
    async fn start_ahead(&self, next: &TenantSnapshot) -> Result<Ahead, ApiError> {
        let started = self.inner.data_plane.start_ahead(next);
        let reason = match tokio::time::timeout(self.inner.config.converge_timeout, started).await {
            Ok(Ok(ahead)) => return Ok(ahead),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it takes too long".to_owned(),
        };
        tracing::warn!(
            reason,
            "a deployment is refused: what it deploys does not run"
        );
        Err(ApiError::new(
            ErrorCode::BackendUnavailable,
            "a version that would take traffic does not start at the moment; nothing was changed",
        ))
    }

    fn replayed(
        &self,
        plane: &Plane,
        state: &State,
        key: &ReplayKey,
        fingerprint: &[u8; 32],
    ) -> Result<Option<Reply>, ApiError> {
        let found = match plane.inflight(key) {
            Some(replay) => Some(replay),
            None => self.inner.store.replay(key)?,
        };
        match found {
            Some(replay) => replayable(state, &replay, fingerprint),
            None => Ok(None),
        }
    }

    /// Executes migrations and records what was done, also before a file that fails.
    async fn migrate(
        &self,
        plane: &Plane,
        database: &Uid,
        entries: &[LedgerEntry],
    ) -> Result<(), ApiError> {
        let mut files = Vec::new();
        for entry in entries {
            let bytes = self
                .inner
                .artifacts
                .read(&entry.digest)
                .await
                .map_err(|error| {
                    tracing::error!(%error, digest = &*entry.digest, "a held blob cannot be read");
                    ApiError::new(
                        ErrorCode::BackendUnavailable,
                        "a migration file cannot be read",
                    )
                })?;
            files.push((entry.clone(), bytes));
        }
        let outcome = self.inner.data_plane.migrate(database, &files).await;
        let done = match &outcome {
            Ok(()) => entries.len(),
            Err((done, _)) => (*done).min(entries.len()),
        };
        let mut state = plane.state.lock().await;
        // A database that was deleted meanwhile took its ledger with it.
        if state.world.get(database).is_some() {
            let applied = &entries[..done];
            let writes = ledger_rows(&plane.tenant, &state, database, applied);
            state.world.extend_ledger(database, applied.iter().cloned());
            plane.publish(&state);
            let pending = self.inner.store.submit(plane.epoch, writes);
            drop(state);
            pending.durable().await?;
        }
        let Err((_, reason)) = outcome else {
            return Ok(());
        };
        let failing = entries.get(done).map_or("a file", |entry| &entry.path);
        Err(ApiError::invalid(format!(
            "migration {failing} failed: {reason}"
        )))
    }
}

/// Whether a change gives traffic to versions.
fn deploys(admitted: &Admitted) -> bool {
    match admitted.effect() {
        Effect::Created(resource) => resource.kind() == Some(EdgeKind::WorkerDeployment),
        Effect::Kept(resource) => {
            resource.kind() == Some(EdgeKind::WorkerDeployment) && !admitted.upserts().is_empty()
        }
        Effect::Removed(_) | Effect::Sealed(_) => false,
    }
}

/// Every row that an accepted change writes.
fn rows(tenant: &Arc<str>, admitted: &Admitted) -> Vec<Write> {
    let mut writes = Vec::new();
    for resource in admitted.upserts() {
        writes.push(Write::Resource(tenant.clone(), resource.clone()));
    }
    if let Effect::Removed(resource) = admitted.effect() {
        writes.push(Write::RemoveResource(resource.uid.clone()));
    }
    writes
}

/// Rows of migrations that follow what the database's ledger in `state` has.
fn ledger_rows(
    tenant: &Arc<str>,
    state: &State,
    database: &Uid,
    entries: &[LedgerEntry],
) -> Vec<Write> {
    let applied = state.world.ledger(database).count();
    (applied..)
        .zip(entries)
        .map(|(position, entry)| Write::Ledger {
            tenant: tenant.clone(),
            database: database.clone(),
            position,
            entry: entry.clone(),
        })
        .collect()
}

/// Makes the accepted world the current one. A worker takes its sealed values with it.
fn take_over(state: &mut State, admitted: &Admitted) {
    if let Effect::Removed(resource) = admitted.effect()
        && resource.kind() == Some(EdgeKind::ModuleWorker)
    {
        for name in state.world.sealed_names(&resource.uid) {
            state.sealed.remove(&(resource.uid.clone(), name.clone()));
        }
    }
    state.world = admitted.after().clone();
}
