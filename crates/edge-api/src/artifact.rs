//! Artifact manifests and uploads (host API §21).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `apiVersion` of artifact manifests.
pub const ARTIFACTS_API_VERSION: &str = "artifacts.takoform.com/v1alpha1";

/// What a manifest describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManifestKind {
    /// Modules of one worker build.
    WorkerBundle,
    /// Files served as they are.
    StaticAssetBundle,
    /// SQL files in migration order.
    MigrationBundle,
}

/// An artifact manifest: a list of blobs by digest. A `WorkerBundle` has `mainModule` and
/// `modules`, the other kinds have `files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Manifest {
    /// [`ARTIFACTS_API_VERSION`].
    pub api_version: String,
    /// What it describes.
    pub kind: ManifestKind,
    /// Entry module of a worker bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_module: Option<String>,
    /// Modules of a worker bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<Vec<ManifestModule>>,
    /// Files of the other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<ManifestFile>>,
}

/// One module of a worker bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestModule {
    /// Name that imports use.
    pub name: String,
    /// One of the closed module media types.
    pub media_type: String,
    /// Bytes.
    pub size: u64,
    /// Blob digest.
    pub digest: String,
}

/// One file of an asset or migration bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestFile {
    /// Path inside the bundle.
    pub path: String,
    /// Media type.
    pub media_type: String,
    /// Bytes.
    pub size: u64,
    /// Blob digest.
    pub digest: String,
}

impl Manifest {
    /// A worker bundle of the given modules.
    pub fn worker_bundle(main_module: impl Into<String>, modules: Vec<ManifestModule>) -> Manifest {
        Manifest {
            api_version: ARTIFACTS_API_VERSION.to_owned(),
            kind: ManifestKind::WorkerBundle,
            main_module: Some(main_module.into()),
            modules: Some(modules),
            files: None,
        }
    }

    /// A bundle of files: static assets or migrations.
    pub fn files(kind: ManifestKind, files: Vec<ManifestFile>) -> Manifest {
        Manifest {
            api_version: ARTIFACTS_API_VERSION.to_owned(),
            kind,
            main_module: None,
            modules: None,
            files: Some(files),
        }
    }

    /// The address of the manifest: its canonical digest.
    pub fn digest(&self) -> String {
        crate::digest(self)
    }
}

impl ManifestModule {
    /// The entry of `bytes` under `name`.
    pub fn of(name: impl Into<String>, media_type: impl Into<String>, bytes: &[u8]) -> Self {
        ManifestModule {
            name: name.into(),
            media_type: media_type.into(),
            size: bytes.len() as u64,
            digest: crate::blob_digest(bytes),
        }
    }
}

impl ManifestFile {
    /// The entry of `bytes` at `path`.
    pub fn of(path: impl Into<String>, media_type: impl Into<String>, bytes: &[u8]) -> Self {
        ManifestFile {
            path: path.into(),
            media_type: media_type.into(),
            size: bytes.len() as u64,
            digest: crate::blob_digest(bytes),
        }
    }
}

/// Body of `POST /artifacts/uploads`. The manifest is judged apart from the body, because its
/// violations have a code of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartUpload {
    /// The manifest as written.
    pub manifest: Value,
}

/// Answer of an upload start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StartedUpload {
    /// `up_...`.
    pub upload_id: String,
    /// Digests the tenant does not hold yet, ascending.
    pub missing_blobs: Vec<String>,
}

/// Answer of an upload commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CommittedManifest {
    /// Canonical digest of the manifest.
    pub manifest_digest: String,
}
