//! Uploads, blobs and manifests, each answered from what the caller's tenant holds
//! (host API §21).

use crate::artifact_store::{Incoming, Measure};
use crate::document::bytes;
use crate::error::ApiError;
use crate::head::Head;
use crate::host::Host;
use crate::inflow::Inflow;
use crate::mutation::record;
use crate::plane::{State, Step};
use crate::reply::Reply;
use crate::secret::random_text;
use crate::store::{Bound, UploadRow, Write};
use crate::token::Caller;
use notation_edge::{MAX_ENTRY_BYTES, Manifest};
use notation_edge_api::{
    CommittedManifest, ErrorCode, StartedUpload, blob_digest, canonical_bytes, parse,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

fn invalid(message: impl std::fmt::Display) -> ApiError {
    ApiError::new(ErrorCode::ArtifactInvalid, message.to_string())
}

fn owned<'a>(state: &'a State, caller: &Caller, id: &str) -> Result<&'a UploadRow, ApiError> {
    state
        .uploads
        .get(id)
        .filter(|upload| upload.principal == caller.principal)
        .ok_or_else(ApiError::no_artifact)
}

fn manifest_of(upload: &UploadRow) -> Result<Manifest, ApiError> {
    let document = parse(&upload.manifest).map_err(invalid)?;
    Manifest::read(&document).map_err(invalid)
}

fn done(reply: Reply, writes: Vec<Write>) -> Step {
    Step {
        admitted: None,
        writes,
        reply,
        bound: Bound::Nothing,
        ended: None,
    }
}

impl Host {
    /// Starts an upload session.
    pub(crate) async fn start_upload(
        &self,
        caller: &Caller,
        head: &Head,
        body: &[u8],
    ) -> Result<Reply, ApiError> {
        let document = parse(body).map_err(|error| ApiError::invalid(format!("body: {error}")))?;
        let object = document
            .as_object()
            .ok_or_else(|| ApiError::invalid("body: no object"))?;
        if let Some(name) = object.keys().find(|name| *name != "manifest") {
            return Err(ApiError::invalid(format!("body: unknown member {name:?}")));
        }
        let written: &Value = object
            .get("manifest")
            .ok_or_else(|| ApiError::invalid("body: manifest is missing"))?;
        let record = record(caller, head, String::new(), body)?;
        let plane = self.plane(caller);
        self.mutate(&plane, Some(record), |state| {
            let manifest = Manifest::read(written).map_err(invalid)?;
            let missing_blobs = manifest
                .blobs()
                .into_iter()
                .filter(|digest| !state.blobs.contains_key(*digest))
                .map(str::to_owned)
                .collect();
            let upload = UploadRow {
                id: format!("up_{}", random_text(16)),
                principal: caller.principal.clone(),
                manifest: canonical_bytes(written),
                created: self.now(),
            };
            let started = StartedUpload {
                upload_id: upload.id.clone(),
                missing_blobs,
            };
            let write = Write::Upload(plane.tenant.clone(), upload.clone());
            state.uploads.insert(upload.id.clone(), upload);
            Ok(done(Reply::json(201, bytes(&started)), vec![write]))
        })
        .await
    }

    /// Takes the bytes of one blob. The body is read to its end before anything is refused.
    pub(crate) async fn put_blob(
        &self,
        caller: &Caller,
        upload: &str,
        digest: &str,
        body: &mut Inflow,
    ) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let wanted = {
            let state = plane.state.lock().await;
            wanted_size(&state, caller, upload, digest)
        };
        let size = match wanted {
            Ok(size) => size,
            Err(error) => {
                body.drain().await;
                return Err(error);
            }
        };
        let io = |error: std::io::Error| {
            tracing::error!(%error, "a blob cannot be stored");
            ApiError::new(ErrorCode::BackendUnavailable, "the blob cannot be stored")
        };
        let mut incoming = self.inner.artifacts.receive(digest).await.map_err(io)?;
        match take(body, &mut *incoming, size).await {
            Ok(taken) if taken.size() == size && taken.digest() == digest => {}
            Ok(_) => {
                incoming.discard().await;
                return Err(invalid(
                    "the bytes do not have this digest and the declared size",
                ));
            }
            Err(error) => {
                incoming.discard().await;
                return Err(error);
            }
        }
        // Between these two the bytes are there and nobody holds them.
        let arriving = self.inner.arrivals.read().await;
        incoming.keep().await.map_err(io)?;
        let held = self
            .mutate(&plane, None, |state| {
                // The session may have been abandoned while the bytes came in.
                owned(state, caller, upload)?;
                state.blobs.insert(digest.to_owned(), size);
                let write = Write::Blob(plane.tenant.clone(), digest.to_owned(), size);
                Ok(done(Reply::empty(204), vec![write]))
            })
            .await;
        drop(arriving);
        held
    }

    /// Commits a session; the session stays usable.
    pub(crate) async fn commit_upload(
        &self,
        caller: &Caller,
        head: &Head,
        upload: &str,
        body: &[u8],
    ) -> Result<Reply, ApiError> {
        if !body.is_empty() {
            return Err(ApiError::invalid("the body must be empty"));
        }
        let record = record(caller, head, String::new(), body)?;
        let plane = self.plane(caller);
        self.mutate(&plane, Some(record), |state| {
            let session = owned(state, caller, upload)?.clone();
            let manifest = manifest_of(&session)?;
            for entry in &manifest.entries {
                match state.blobs.get(&entry.digest) {
                    None => {
                        let text = format!("blob {} was not uploaded", entry.digest);
                        return Err(ApiError::new(ErrorCode::ArtifactMissing, text));
                    }
                    Some(size) if *size != entry.size => {
                        return Err(invalid(format!(
                            "{} does not have the declared size",
                            entry.path
                        )));
                    }
                    Some(_) => {}
                }
            }
            let manifest_digest = blob_digest(&session.manifest);
            let committed = CommittedManifest {
                manifest_digest: manifest_digest.clone(),
            };
            let new = !state.manifests.contains_key(&manifest_digest);
            let mut writes = Vec::new();
            if new {
                state
                    .manifests
                    .insert(manifest_digest.clone(), session.manifest.clone());
                state.world.hold(&manifest_digest, Arc::new(manifest));
                writes.push(Write::Manifest(
                    plane.tenant.clone(),
                    manifest_digest,
                    session.manifest,
                ));
            }
            Ok(done(
                Reply::json(if new { 201 } else { 200 }, bytes(&committed)),
                writes,
            ))
        })
        .await
    }

    /// Ends a session and drops the tenant's hold on blobs that no committed manifest of the
    /// tenant names.
    pub(crate) async fn abandon_upload(
        &self,
        caller: &Caller,
        upload: &str,
    ) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        self.mutate(&plane, None, |state| {
            let session = owned(state, caller, upload)?.clone();
            let manifest = manifest_of(&session)?;
            let mut loose: BTreeSet<&str> = manifest.blobs();
            for digest in state.manifests.keys() {
                if let Some(committed) = state.world.manifest(digest) {
                    for blob in committed.blobs() {
                        loose.remove(blob);
                    }
                }
            }
            let mut writes = vec![Write::RemoveUpload(upload.to_owned())];
            for digest in loose {
                if state.blobs.remove(digest).is_some() {
                    writes.push(Write::RemoveBlob(plane.tenant.clone(), digest.to_owned()));
                }
            }
            state.uploads.remove(upload);
            Ok(done(Reply::empty(204), writes))
        })
        .await
    }

    /// A manifest the tenant committed.
    pub(crate) async fn read_manifest(
        &self,
        caller: &Caller,
        digest: &str,
    ) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let state = plane.state.lock().await;
        let document = state
            .manifests
            .get(digest)
            .ok_or_else(ApiError::no_artifact)?;
        Ok(Reply::json(200, document.clone()))
    }

    /// Whether the tenant holds a blob.
    pub(crate) async fn holds_blob(&self, caller: &Caller, digest: &str) -> bool {
        self.plane(caller)
            .state
            .lock()
            .await
            .blobs
            .contains_key(digest)
    }
}

/// Passes a body on as it comes in; of more than `size` bytes the rest is only counted.
async fn take(
    body: &mut Inflow,
    incoming: &mut dyn Incoming,
    size: u64,
) -> Result<Measure, ApiError> {
    let mut taken = Measure::default();
    while let Some(bytes) = body.next().await? {
        taken.take(&bytes);
        if taken.size() <= size {
            incoming.push(bytes).await.map_err(|error| {
                tracing::error!(%error, "a blob cannot be stored");
                ApiError::new(ErrorCode::BackendUnavailable, "the blob cannot be stored")
            })?;
        } else if taken.size() > MAX_ENTRY_BYTES {
            break;
        }
    }
    Ok(taken)
}

/// Declared size of a blob; the last entry counts when several name the digest.
fn wanted_size(
    state: &State,
    caller: &Caller,
    upload: &str,
    digest: &str,
) -> Result<u64, ApiError> {
    let manifest = manifest_of(owned(state, caller, upload)?)?;
    manifest
        .entries
        .iter()
        .rev()
        .find(|entry| entry.digest == digest)
        .map(|entry| entry.size)
        .ok_or_else(|| invalid("the manifest does not name this digest"))
}
