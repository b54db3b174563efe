//! The border to whatever executes workers.

use crate::artifact_store::ArtifactStore;
use crate::literal::exports_of;
use crate::snapshot::{Snapshot, TenantSnapshot};
use async_trait::async_trait;
use bytes::Bytes;
use notation_edge::{Exports, LedgerEntry, Manifest, Uid};
use std::sync::Arc;

/// One worker bundle whose bytes the host holds.
#[derive(Debug, Clone)]
pub struct BundleSource {
    /// Digest of the manifest.
    pub manifest_digest: String,
    /// The manifest: main module, modules with media types and blob digests.
    pub manifest: Arc<Manifest>,
    pub(crate) artifacts: Arc<dyn ArtifactStore>,
}

impl BundleSource {
    /// The bytes of one module by name. Errors: `NotFound` when the bundle has no such module.
    pub async fn module(&self, name: &str) -> std::io::Result<Bytes> {
        let entry = self
            .manifest
            .entry(name)
            .ok_or(std::io::ErrorKind::NotFound)?;
        self.artifacts.read(&entry.digest).await
    }

    /// The bytes of the main module.
    pub async fn main_module(&self) -> std::io::Result<Bytes> {
        self.module(self.manifest.main_module.as_deref().unwrap_or_default())
            .await
    }
}

/// What was started ahead of a change. Dropped, it ends, except for what `converge` took over.
pub type Ahead = Box<dyn std::any::Any + Send + Sync>;

/// Executes workers. Implementers owe the host:
///
/// - `inspect` never runs tenant code with any capability and answers the same for the same
///   bytes; what it cannot tell is `Unknown`, never a guess.
/// - `start_ahead` starts every version that takes traffic in a tenant as it would be, and returns
///   once they serve; nothing is routed to them. The host stores a deployment only then.
/// - `converge` may be called with any newer snapshot at any time, is idempotent, and returns
///   once every version that takes traffic in the snapshot serves. The host calls it one at a
///   time, gives up waiting after its configured time, and answers the client all the same.
/// - `migrate` executes files in order, each in one transaction, and says how many were done.
/// - `kept` names every resource that it keeps data of, and `forget` removes the data of one. The
///   host asks first and looks then which of them exist, so nothing that is made meanwhile goes.
#[async_trait]
pub trait DataPlane: Send + Sync {
    /// Which handlers the main module of a bundle exports (host API §20.2).
    async fn inspect(&self, bundle: &BundleSource) -> Exports;

    /// Starts what `next` gives traffic. Errors: what does not come up.
    async fn start_ahead(&self, _next: &TenantSnapshot) -> Result<Ahead, ConvergeError> {
        Ok(Box::new(()))
    }

    /// Makes what runs equal to the snapshot.
    async fn converge(&self, snapshot: &Snapshot) -> Result<(), ConvergeError>;

    /// Executes migrations of a database. `Err` carries how many files were done before the
    /// failing one and why that one failed.
    async fn migrate(
        &self,
        database: &Uid,
        files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)>;

    /// Every resource that data is kept of, also of those that are gone.
    async fn kept(&self) -> std::io::Result<Vec<Uid>> {
        Ok(Vec::new())
    }

    /// Removes the data of a resource that is gone.
    async fn forget(&self, _uid: &Uid) -> std::io::Result<()> {
        Ok(())
    }

    /// Where a host name can be opened in a browser of this machine, if anywhere.
    fn address(&self, _hostname: &str) -> Option<String> {
        None
    }
}

/// Why what runs is not what the snapshot says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConvergeError(pub String);

/// A control plane without anything behind it: reads literal modules, runs nothing, and keeps the
/// migration ledger without executing it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDataPlane;

#[async_trait]
impl DataPlane for NoDataPlane {
    async fn inspect(&self, bundle: &BundleSource) -> Exports {
        match bundle.main_module().await {
            Ok(bytes) => std::str::from_utf8(&bytes).map_or(Exports::Unknown, exports_of),
            Err(_) => Exports::Unknown,
        }
    }

    async fn converge(&self, _snapshot: &Snapshot) -> Result<(), ConvergeError> {
        Ok(())
    }

    async fn migrate(
        &self,
        _database: &Uid,
        _files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)> {
        Ok(())
    }
}
