//! The bytes of objects: files with random names, written once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::super::operation::{Call, Refusal};
use super::super::queue::new_id;
use super::Bucket;
use crate::body::OutBody;

const READ_BYTES: u64 = 64 << 10;

/// A run of bytes of an object: one whole file.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) blob: String,
    pub(super) size: u64,
}

/// What arrived, synced to disk and not yet part of anything. Removed unless it is kept.
///
/// Its file is doomed from before it exists until an index row adopts it, so that a crash
/// at any moment leaves nothing behind for good; while this lives, it counts as being read.
pub(super) struct Spool {
    pub(super) etag: String,
    pub(super) size: u64,
    blob: String,
    path: Option<PathBuf>,
    _reading: Reading,
}

/// The parts of a [`Spool`] an index row needs.
pub(super) struct Spooled {
    pub(super) blob: String,
    pub(super) etag: String,
    pub(super) size: u64,
}

impl Spool {
    pub(super) fn parts(&self) -> Spooled {
        Spooled {
            blob: self.blob.clone(),
            etag: self.etag.clone(),
            size: self.size,
        }
    }

    /// Takes the file out of the doomed, in the transaction that refers to it.
    pub(super) fn adopt(&self, connection: &Connection) -> Result<(), Refusal> {
        connection.execute("DELETE FROM doomed WHERE blob = ?1", [&self.blob])?;
        Ok(())
    }

    /// The index refers to it now.
    pub(super) fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes the operation's bytes to a new file, hashing on the way.
///
/// Errors: `invalid_body` when the transfer broke off, `value_too_large` past `limit`; in
/// each case nothing is left.
pub(super) async fn spool(bucket: &Bucket, call: &mut Call, limit: u64) -> Result<Spool, Refusal> {
    let invalid = |what: String| Refusal::new("invalid_body", what);
    let mut incoming = call
        .bytes
        .take()
        .ok_or_else(|| invalid("the operation carries no bytes".into()))?;
    let blob = new_id();
    let reading = Reading::begin(bucket, &blob);
    let doomed = blob.clone();
    let doom = move |connection: &mut Connection| {
        let insert = "INSERT INTO doomed (blob, object) VALUES (?1, ?1)";
        Ok(connection.execute(insert, [doomed])?)
    };
    bucket.index.with(doom).await?;
    let directory = &bucket.directory;
    tokio::fs::create_dir_all(directory).await?;
    let path = directory.join(&blob);
    let mut file = File::create_new(&path).await?;
    let mut spool = Spool {
        etag: String::new(),
        size: 0,
        blob,
        path: Some(path),
        _reading: reading,
    };
    let mut hash = Sha256::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| invalid(format!("the body broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            spool.size += data.len() as u64;
            if spool.size > limit {
                return Err(Refusal::new(
                    "value_too_large",
                    format!("at most {limit} bytes can be stored at once"),
                ));
            }
            hash.update(&data);
            file.write_all(&data).await?;
        }
    }
    file.flush().await?;
    file.sync_all().await?;
    File::open(directory).await?.sync_all().await?;
    spool.etag = hex::encode(hash.finalize());
    Ok(spool)
}

/// Removes a file; one that is gone already is fine.
pub(super) fn remove(directory: &Path, blob: &str) -> io::Result<()> {
    match std::fs::remove_file(directory.join(blob)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps the bytes of an object while it is read.
pub(super) struct Reading {
    bucket: Bucket,
    object: String,
}

impl Reading {
    pub(super) fn begin(bucket: &Bucket, object: &str) -> Reading {
        let mut reading = bucket
            .reading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *reading.entry(object.to_owned()).or_insert(0) += 1;
        Reading {
            bucket: bucket.clone(),
            object: object.to_owned(),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut reading = self
            .bucket
            .reading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = reading.get_mut(&self.object) {
            *count -= 1;
            if *count == 0 {
                reading.remove(&self.object);
            }
        }
    }
}

struct Cursor {
    directory: PathBuf,
    pieces: std::vec::IntoIter<Piece>,
    /// Bytes to skip before the next one that is wanted.
    skip: u64,
    /// Bytes still wanted.
    rest: u64,
    file: Option<(File, u64)>,
    _reading: Reading,
}

/// `length` bytes from `offset` of the pieces, read as they are asked for.
pub(super) fn body(
    directory: &Path,
    pieces: Vec<Piece>,
    offset: u64,
    length: u64,
    reading: Reading,
) -> OutBody {
    let cursor = Cursor {
        directory: directory.to_owned(),
        pieces: pieces.into_iter(),
        skip: offset,
        rest: length,
        file: None,
        _reading: reading,
    };
    let frames = stream::try_unfold(cursor, async |mut cursor: Cursor| {
        let chunk = cursor.next().await?;
        Ok::<_, io::Error>(chunk.map(|chunk| (Frame::data(chunk), cursor)))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Cursor {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while self.rest > 0 {
            let Some((file, left)) = &mut self.file else {
                self.file = Some(self.open().await?);
                continue;
            };
            if *left == 0 {
                self.file = None;
                continue;
            }
            let mut chunk =
                vec![0; usize::try_from((*left).min(self.rest).min(READ_BYTES)).unwrap_or(0)];
            file.read_exact(&mut chunk).await?;
            *left -= chunk.len() as u64;
            self.rest -= chunk.len() as u64;
            return Ok(Some(chunk.into()));
        }
        Ok(None)
    }

    /// The next file that has wanted bytes, at the first of them.
    async fn open(&mut self) -> io::Result<(File, u64)> {
        loop {
            let piece = self.pieces.next().ok_or(io::ErrorKind::UnexpectedEof)?;
            if self.skip >= piece.size {
                self.skip -= piece.size;
                continue;
            }
            let mut file = File::open(self.directory.join(&piece.blob)).await?;
            file.seek(io::SeekFrom::Start(self.skip)).await?;
            let left = piece.size - self.skip;
            self.skip = 0;
            return Ok((file, left));
        }
    }
}
