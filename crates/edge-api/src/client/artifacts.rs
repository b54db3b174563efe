//! Artifacts: start an upload, send the missing blobs, commit.

use super::{Call, Client, ClientError, component};
use crate::{API_ROOT, CommittedManifest, IDEMPOTENCY_KEY, Manifest, StartedUpload};
use bytes::Bytes;
use reqwest::{Method, StatusCode};

impl Client {
    /// Starts an upload; the answer names the blobs the tenant does not hold.
    pub async fn start_upload(
        &self,
        manifest: &Manifest,
        idempotency_key: &str,
    ) -> Result<StartedUpload, ClientError> {
        let call = Call::new(Method::POST, format!("{API_ROOT}/artifacts/uploads"))
            .header(IDEMPOTENCY_KEY, idempotency_key)
            .json(&serde_json::json!({ "manifest": manifest }));
        self.ask(call).await?.document()
    }

    /// Sends the bytes of one blob; repeating it is harmless.
    pub async fn upload_blob(
        &self,
        upload_id: &str,
        digest: &str,
        bytes: Bytes,
    ) -> Result<(), ClientError> {
        let target = format!(
            "{API_ROOT}/artifacts/uploads/{}/blobs/{digest}",
            component(upload_id)
        );
        self.ask(Call::new(Method::PUT, target).raw(bytes)).await?;
        Ok(())
    }

    /// Commits an upload; the answer is the manifest's digest.
    pub async fn commit_upload(
        &self,
        upload_id: &str,
        idempotency_key: &str,
    ) -> Result<String, ClientError> {
        let target = format!(
            "{API_ROOT}/artifacts/uploads/{}/commit",
            component(upload_id)
        );
        let call = Call::new(Method::POST, target).header(IDEMPOTENCY_KEY, idempotency_key);
        let committed: CommittedManifest = self.ask(call).await?.document()?;
        Ok(committed.manifest_digest)
    }

    /// Ends an upload without committing it.
    pub async fn abandon_upload(
        &self,
        upload_id: &str,
        idempotency_key: &str,
    ) -> Result<(), ClientError> {
        let target = format!("{API_ROOT}/artifacts/uploads/{}", component(upload_id));
        let call = Call::new(Method::DELETE, target).header(IDEMPOTENCY_KEY, idempotency_key);
        self.ask(call).await?;
        Ok(())
    }

    /// A committed manifest. Errors: `artifact_missing`.
    pub async fn manifest(&self, digest: &str) -> Result<Manifest, ClientError> {
        self.ask(Call::get(format!("{API_ROOT}/artifacts/{digest}")))
            .await?
            .document()
    }

    /// Whether the tenant holds a blob.
    pub async fn holds_blob(&self, digest: &str) -> Result<bool, ClientError> {
        let call = Call::new(Method::HEAD, format!("{API_ROOT}/artifacts/blobs/{digest}"));
        match self.ask(call).await {
            Ok(_) => Ok(true),
            // HEAD has no body, so its refusal carries no envelope.
            Err(ClientError::Protocol(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uploads whatever of the manifest's blobs is missing and commits it. `blob` gives the bytes
    /// of a digest that the manifest names. The keys are derived from the manifest, so that a
    /// repetition replays.
    pub async fn upload(
        &self,
        manifest: &Manifest,
        idempotency_key: &str,
        mut blob: impl FnMut(&str) -> Option<Bytes>,
    ) -> Result<String, ClientError> {
        let started = self.start_upload(manifest, idempotency_key).await?;
        for digest in &started.missing_blobs {
            let bytes = blob(digest)
                .ok_or_else(|| ClientError::Protocol(format!("no bytes for blob {digest}")))?;
            self.upload_blob(&started.upload_id, digest, bytes).await?;
        }
        let key = format!("{idempotency_key}-commit-{}", started.upload_id);
        let digest = self.commit_upload(&started.upload_id, &key).await?;
        if digest == manifest.digest() {
            Ok(digest)
        } else {
            Err(ClientError::Protocol(format!(
                "status {}: the committed manifest has another digest",
                StatusCode::OK
            )))
        }
    }
}
