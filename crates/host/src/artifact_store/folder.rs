//! Artifacts in a folder of this machine.

use super::{ArtifactStore, Incoming, hex_of};
use async_trait::async_trait;
use bytes::Bytes;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files named by their digest. Every kept file and its folders are synced.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Arc<Path>,
}

impl Folder {
    /// Opens or creates the folder.
    pub fn open(root: PathBuf) -> io::Result<Folder> {
        std::fs::create_dir_all(root.join("incoming"))?;
        // Whatever an interrupted upload left behind has no address and no reader.
        for entry in std::fs::read_dir(root.join("incoming"))? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Folder { root: root.into() })
    }

    fn path(&self, digest: &str) -> io::Result<PathBuf> {
        let hex = hex_of(digest)?;
        Ok(self.root.join(&hex[..2]).join(hex))
    }
}

#[async_trait]
impl ArtifactStore for Folder {
    async fn receive(&self, digest: &str) -> io::Result<Box<dyn Incoming>> {
        Ok(Box::new(Arriving {
            root: self.root.clone(),
            path: self.path(digest)?,
            file: tempfile::NamedTempFile::new_in(self.root.join("incoming"))?,
        }))
    }

    async fn read(&self, digest: &str) -> io::Result<Bytes> {
        tokio::fs::read(self.path(digest)?).await.map(Bytes::from)
    }

    async fn remove(&self, digest: &str) -> io::Result<()> {
        match tokio::fs::remove_file(self.path(digest)?).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    async fn list(&self) -> io::Result<Vec<String>> {
        let root = self.root.clone();
        in_a_thread(move || {
            let mut digests = Vec::new();
            for folder in std::fs::read_dir(&*root)? {
                let folder = folder?;
                if folder.file_name() == "incoming" || !folder.file_type()?.is_dir() {
                    continue;
                }
                for file in std::fs::read_dir(folder.path())? {
                    digests.push(format!("sha256:{}", file?.file_name().to_string_lossy()));
                }
            }
            Ok(digests)
        })
        .await
    }
}

struct Arriving {
    root: Arc<Path>,
    path: PathBuf,
    file: tempfile::NamedTempFile,
}

#[async_trait]
impl Incoming for Arriving {
    async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        self.file.write_all(&bytes)
    }

    async fn keep(self: Box<Self>) -> io::Result<()> {
        in_a_thread(move || {
            let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
            std::fs::create_dir_all(&folder)?;
            self.file.as_file().sync_all()?;
            self.file.persist(&self.path).map_err(|error| error.error)?;
            std::fs::File::open(&folder)?.sync_all()?;
            std::fs::File::open(&*self.root)?.sync_all()
        })
        .await
    }

    async fn discard(self: Box<Self>) {}
}

/// Work that waits for the disk.
async fn in_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
