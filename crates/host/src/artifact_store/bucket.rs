//! Artifacts in a bucket.

use super::{ArtifactStore, Incoming, hex_of};
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart};
use std::io;
use std::sync::Arc;

/// What is smaller goes in one request; also the size of each part of what is larger.
const PART_BYTES: usize = 8 << 20;

/// Parts that may be on their way at once.
const PARTS: usize = 4;

/// Objects named by their digest below a prefix. An object is there whole or not at all, and
/// durable once the bucket said so.
#[derive(Debug, Clone)]
pub struct Bucket {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
}

/// Why a URL names no usable bucket.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// Not a URL of a bucket.
    #[error("{url:?} is no s3://BUCKET/PREFIX")]
    Url {
        /// What was given.
        url: String,
    },
    /// The settings for it do not work.
    #[error("the bucket {url} cannot be used")]
    Settings {
        /// What was given.
        url: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

impl Bucket {
    /// A prefix of anything that keeps objects.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Bucket {
        Bucket {
            objects,
            prefix: Path::from(prefix),
        }
    }

    /// A prefix of a bucket by `s3://BUCKET/PREFIX`; credentials, region and endpoint come from
    /// the usual `AWS_*` variables. Errors: `BucketError`.
    pub fn at(url: &str) -> Result<Bucket, BucketError> {
        let wrong = || BucketError::Url {
            url: url.to_owned(),
        };
        let parsed: url::Url = url.parse().map_err(|_| wrong())?;
        if parsed.scheme() != "s3" || parsed.host_str().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let objects = AmazonS3Builder::from_env()
            .with_url(url)
            .build()
            .map_err(|source| BucketError::Settings {
                url: url.to_owned(),
                source,
            })?;
        Ok(Bucket::new(Arc::new(objects), parsed.path()))
    }

    fn path(&self, digest: &str) -> io::Result<Path> {
        let hex = hex_of(digest)?;
        Ok(self.prefix.clone().join("sha256").join(hex))
    }
}

fn failed(error: object_store::Error) -> io::Error {
    match error {
        object_store::Error::NotFound { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        other => io::Error::other(other),
    }
}

#[async_trait]
impl ArtifactStore for Bucket {
    async fn receive(&self, digest: &str) -> io::Result<Box<dyn Incoming>> {
        Ok(Box::new(Arriving {
            objects: self.objects.clone(),
            path: self.path(digest)?,
            start: Vec::new(),
            parts: None,
        }))
    }

    async fn read(&self, digest: &str) -> io::Result<Bytes> {
        let found = self.objects.get(&self.path(digest)?).await;
        found.map_err(failed)?.bytes().await.map_err(failed)
    }

    async fn remove(&self, digest: &str) -> io::Result<()> {
        match self.objects.delete(&self.path(digest)?).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            other => other.map_err(failed),
        }
    }

    async fn list(&self) -> io::Result<Vec<String>> {
        let folder = self.prefix.clone().join("sha256");
        self.objects
            .list(Some(&folder))
            .map_ok(|object| format!("sha256:{}", object.location.filename().unwrap_or_default()))
            .try_collect()
            .await
            .map_err(failed)
    }
}

struct Arriving {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    /// The bytes so far, until there are so many that they go in parts.
    start: Vec<u8>,
    parts: Option<WriteMultipart>,
}

#[async_trait]
impl Incoming for Arriving {
    async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        if let Some(parts) = &mut self.parts {
            parts.wait_for_capacity(PARTS).await.map_err(failed)?;
            parts.put(bytes);
            return Ok(());
        }
        self.start.extend_from_slice(&bytes);
        if self.start.len() > PART_BYTES {
            let upload = self.objects.put_multipart(&self.path).await;
            let mut parts =
                WriteMultipart::new_with_chunk_size(upload.map_err(failed)?, PART_BYTES);
            parts.put(std::mem::take(&mut self.start).into());
            self.parts = Some(parts);
        }
        Ok(())
    }

    async fn keep(self: Box<Self>) -> io::Result<()> {
        let kept = match self.parts {
            Some(parts) => parts.finish().await,
            None => {
                let payload = PutPayload::from(self.start);
                self.objects.put(&self.path, payload).await
            }
        };
        kept.map(drop).map_err(failed)
    }

    async fn discard(self: Box<Self>) {
        if let Some(parts) = self.parts
            && let Err(error) = parts.abort().await
        {
            // The bucket's own rule for unfinished uploads takes them away.
            tracing::warn!(%error, "parts of an upload stay in the bucket");
        }
    }
}
