//! Where artifact bytes lie: addressed by their digest, stored once for all tenants. Who holds
//! them is the store's business.

mod bucket;
mod folder;

pub use bucket::{Bucket, BucketError};
pub use folder::Folder;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::io;

/// A place for artifact bytes. Implementers owe the host:
///
/// - bytes become visible under their digest whole or not at all, and are durable when
///   [`Incoming::keep`] returns;
/// - keeping what is there already leaves it readable all the while;
/// - removing what is not there is no error; a text that is no digest names nothing;
/// - `list` names what was kept before it was called and not removed since; what comes or goes
///   meanwhile may be in it or not.
#[async_trait]
pub trait ArtifactStore: std::fmt::Debug + Send + Sync {
    /// Begins to receive the bytes of `digest`. Whoever keeps them checked that they have it.
    async fn receive(&self, digest: &str) -> io::Result<Box<dyn Incoming>>;

    /// The bytes. Errors: `NotFound`.
    async fn read(&self, digest: &str) -> io::Result<Bytes>;

    /// Removes bytes that nobody holds any more.
    async fn remove(&self, digest: &str) -> io::Result<()>;

    /// Digests of everything that is here.
    async fn list(&self) -> io::Result<Vec<String>>;
}

/// Bytes on their way in; nobody sees them before they are kept.
#[async_trait]
pub trait Incoming: Send {
    /// Takes the next bytes.
    async fn push(&mut self, bytes: Bytes) -> io::Result<()>;

    /// Makes the bytes durable and visible.
    async fn keep(self: Box<Self>) -> io::Result<()>;

    /// Forgets them.
    async fn discard(self: Box<Self>);
}

/// The hexadecimal part of a digest. Errors: `NotFound` for a text that is no digest.
fn hex_of(digest: &str) -> io::Result<&str> {
    digest
        .strip_prefix("sha256:")
        .filter(|_| notation_edge::is_digest(digest))
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// What a stream of bytes turned out to be.
#[derive(Default)]
pub struct Measure {
    hash: Sha256,
    size: u64,
}

impl Measure {
    /// Counts the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Digest of the bytes so far.
    pub fn digest(&self) -> String {
        format!("sha256:{}", hex::encode(self.hash.clone().finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn digest(bytes: &[u8]) -> String {
        let mut measure = Measure::default();
        measure.take(bytes);
        measure.digest()
    }

    async fn keep(store: &dyn ArtifactStore, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        let mut incoming = store.receive(&digest).await.unwrap();
        for part in bytes.chunks(3 << 20) {
            incoming.push(Bytes::copy_from_slice(part)).await.unwrap();
        }
        incoming.keep().await.unwrap();
        digest
    }

    async fn missing(store: &dyn ArtifactStore, digest: &str) {
        let error = store.read(digest).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{digest}");
    }

    /// What every store keeps.
    async fn contract(store: Arc<dyn ArtifactStore>) {
        let store = &*store;
        assert!(store.list().await.unwrap().is_empty());
        let large: Vec<u8> = (0..9u32 << 20).map(|at| (at % 251) as u8).collect();
        let mut kept = Vec::new();
        for bytes in [&b""[..], b"one", b"two", &large] {
            let digest = keep(store, bytes).await;
            assert_eq!(store.read(&digest).await.unwrap(), bytes);
            kept.push(digest);
        }
        kept.sort();
        let listed = || async {
            let mut listed = store.list().await.unwrap();
            listed.sort();
            listed
        };
        assert_eq!(listed().await, kept);

        // Nothing is seen of bytes that are on their way, nor of those that were given up.
        let other = digest(b"other");
        let mut incoming = store.receive(&other).await.unwrap();
        incoming.push(Bytes::from_static(b"other")).await.unwrap();
        missing(store, &other).await;
        assert_eq!(listed().await, kept);
        incoming.discard().await;
        missing(store, &other).await;
        let mut incoming = store.receive(&other).await.unwrap();
        incoming.push(Bytes::from_static(b"ot")).await.unwrap();
        drop(incoming);
        missing(store, &other).await;

        // Once more changes nothing; removed is removed, also twice.
        assert_eq!(keep(store, b"one").await, digest(b"one"));
        assert_eq!(listed().await, kept);
        for _ in 0..2 {
            store.remove(&digest(b"one")).await.unwrap();
            missing(store, &digest(b"one")).await;
        }
        assert_eq!(listed().await.len(), kept.len() - 1);
        keep(store, b"one").await;
        assert_eq!(listed().await, kept);

        for name in ["", "one", "sha256:..", "sha256:../../etc/passwd"] {
            missing(store, name).await;
            assert!(store.receive(name).await.is_err(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_folder_keeps_the_contract_and_survives_its_process() {
        let temp = tempfile::tempdir().unwrap();
        let open = || Folder::open(temp.path().join("blobs")).unwrap();
        contract(Arc::new(open())).await;
        assert_eq!(open().read(&digest(b"two")).await.unwrap(), &b"two"[..]);
        std::fs::write(temp.path().join("blobs/incoming/left"), b"half").unwrap();
        drop(open());
        let left = std::fs::read_dir(temp.path().join("blobs/incoming")).unwrap();
        assert_eq!(left.count(), 0);
    }

    /// In memory, or the empty bucket that the environment names (`cargo xtask bucket`).
    #[tokio::test]
    async fn a_bucket_keeps_the_contract() {
        let bucket = match std::env::var("NOTATION_TEST_BUCKET") {
            Ok(url) => Bucket::at(&url).unwrap(),
            Err(_) => Bucket::new(Arc::new(object_store::memory::InMemory::new()), ""),
        };
        contract(Arc::new(bucket)).await;
    }

    #[tokio::test]
    async fn a_bucket_leaves_alone_what_is_outside_its_prefix() {
        let objects = Arc::new(object_store::memory::InMemory::new());
        let one = Bucket::new(objects.clone(), "one");
        contract(Arc::new(Bucket::new(objects.clone(), "two/deep"))).await;
        contract(Arc::new(one)).await;
    }
}
