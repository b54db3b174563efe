//! Artifact bytes on disk, addressed by their digest and stored once for all tenants.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The blob directory. Cheap to clone. Who holds a blob is the store's business.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: Arc<Path>,
}

impl Blobs {
    /// Opens or creates the directory.
    pub fn open(root: PathBuf) -> io::Result<Blobs> {
        std::fs::create_dir_all(root.join("incoming"))?;
        // Whatever an interrupted upload left behind has no address and no reader.
        for entry in std::fs::read_dir(root.join("incoming"))? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Blobs { root: root.into() })
    }

    fn path(&self, digest: &str) -> io::Result<PathBuf> {
        if !notation_edge::is_digest(digest) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let hex = &digest["sha256:".len()..];
        Ok(self.root.join(&hex[..2]).join(hex))
    }

    /// The bytes of a blob. Errors: `NotFound`.
    pub async fn read(&self, digest: &str) -> io::Result<Bytes> {
        let path = self.path(digest)?;
        tokio::fs::read(path).await.map(Bytes::from)
    }

    /// Whether the bytes are here, and their length.
    pub fn size(&self, digest: &str) -> Option<u64> {
        std::fs::metadata(self.path(digest).ok()?)
            .ok()
            .map(|meta| meta.len())
    }

    /// Removes bytes that nobody holds any more.
    pub fn remove(&self, digest: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path(digest)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Digests of everything that is here.
    pub fn list(&self) -> io::Result<Vec<String>> {
        let mut digests = Vec::new();
        for folder in std::fs::read_dir(&*self.root)? {
            let folder = folder?;
            if folder.file_name() == "incoming" || !folder.file_type()?.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(folder.path())? {
                digests.push(format!("sha256:{}", file?.file_name().to_string_lossy()));
            }
        }
        Ok(digests)
    }

    /// Begins to receive bytes.
    pub fn receive(&self) -> io::Result<Incoming> {
        let file = tempfile::NamedTempFile::new_in(self.root.join("incoming"))?;
        Ok(Incoming {
            blobs: self.clone(),
            file,
            hash: Sha256::new(),
            size: 0,
        })
    }
}

/// Bytes on their way in; dropped without a trace unless kept.
pub struct Incoming {
    blobs: Blobs,
    file: tempfile::NamedTempFile,
    hash: Sha256,
    size: u64,
}

impl Incoming {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Bytes taken so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Digest of what was taken.
    pub fn digest(&self) -> String {
        format!("sha256:{}", hex::encode(self.hash.clone().finalize()))
    }

    /// Makes the bytes durable under their digest.
    pub fn keep(self) -> io::Result<()> {
        let path = self.blobs.path(&self.digest())?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        std::fs::create_dir_all(&folder)?;
        self.file.as_file().sync_all()?;
        self.file.persist(&path).map_err(|error| error.error)?;
        std::fs::File::open(&folder)?.sync_all()?;
        std::fs::File::open(&*self.blobs.root)?.sync_all()
    }
}
