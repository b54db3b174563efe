//! `edge.objects@1.0.0`: a bucket with strong consistency and streaming bodies.
//!
//! The index of a bucket is a SQLite file; bytes are files of their own, written whole and
//! synced before one index transaction checks the condition and switches the row. Readers
//! therefore see an object before or after a write, never between.

mod bytes;
mod listing;
mod multipart;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::Data;
use super::file::{Database, Family};
use super::operation::{Answer, Call, Refusal};
use super::queue::new_id;
use crate::clock::now_ms;
use crate::plan::Uid;

use bytes::{Piece, Reading, Spooled};

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS object (
        key BLOB PRIMARY KEY NOT NULL,
        id TEXT NOT NULL,
        etag TEXT NOT NULL,
        size INTEGER NOT NULL,
        content_type TEXT,
        uploaded_at_ms INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS piece (
        object TEXT NOT NULL,
        position INTEGER NOT NULL,
        blob TEXT NOT NULL,
        size INTEGER NOT NULL,
        PRIMARY KEY (object, position)
    );
    CREATE TABLE IF NOT EXISTS upload (
        id TEXT PRIMARY KEY NOT NULL,
        key BLOB NOT NULL,
        content_type TEXT
    );
    CREATE TABLE IF NOT EXISTS part (
        upload TEXT NOT NULL,
        number INTEGER NOT NULL,
        blob TEXT NOT NULL,
        etag TEXT NOT NULL,
        size INTEGER NOT NULL,
        PRIMARY KEY (upload, number)
    );
    CREATE TABLE IF NOT EXISTS doomed (blob TEXT PRIMARY KEY NOT NULL, object TEXT NOT NULL);
";

const MOST_KEY_BYTES: usize = 979;
const MOST_PUT_BYTES: u64 = 314_572_800;
const MOST_OBJECT_BYTES: u64 = 5_368_709_120;
const MOST_TYPE_CHARACTERS: usize = 256;

/// What is known about open buckets besides their files.
#[derive(Default)]
pub(crate) struct Buckets {
    open: Mutex<BTreeMap<Uid, Bucket>>,
}

/// An open bucket.
#[derive(Clone)]
pub(super) struct Bucket {
    uid: Uid,
    index: Database,
    directory: PathBuf,
    /// Objects that are being read, by id; their bytes stay until the last reader is gone.
    reading: Arc<Mutex<BTreeMap<String, u32>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetInput {
    key: String,
    range: Option<RangeInput>,
    if_match: Option<String>,
    if_none_match: Option<String>,
}

#[derive(Deserialize)]
struct RangeInput {
    offset: u64,
    length: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PutInput {
    key: String,
    content_type: Option<String>,
    if_match: Option<String>,
    if_none_match: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct KeyInput {
    pub(super) key: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    etag: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    uploaded_at_millis: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Got {
    etag: String,
    size: u64,
    partial: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<ServedRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
struct ServedRange {
    offset: u64,
    length: u64,
}

#[derive(Serialize)]
pub(super) struct Stored {
    pub(super) etag: String,
    pub(super) size: u64,
}

/// A row of the index.
struct Row {
    id: String,
    etag: String,
    size: u64,
    content_type: Option<String>,
    uploaded_at_ms: i64,
}

pub(super) async fn operate(data: &Data, uid: &Uid, call: Call) -> Result<Answer, Refusal> {
    let bucket = data.buckets.open(data, uid).await?;
    match call.operation.as_str() {
        "head" => head(&bucket, call.input(INVALID_KEY)?).await,
        "get" => get(&bucket, call.input(INVALID_KEY)?).await,
        "put" => put(&bucket, call).await,
        "delete" => {
            let key = checked(call.input::<KeyInput>(INVALID_KEY)?.key)?;
            bucket
                .change(move |transaction| remove(transaction, key.as_bytes()))
                .await?;
            Ok(Answer::nothing())
        }
        "list" => listing::list(data, &bucket, call.input("invalid_cursor")?).await,
        "createMultipartUpload" => multipart::create(&bucket, call.input(INVALID_KEY)?).await,
        "uploadPart" => multipart::upload(&bucket, call).await,
        "completeMultipartUpload" => {
            multipart::complete(&bucket, call.input("invalid_part")?).await
        }
        "abortMultipartUpload" => multipart::abort(&bucket, call.input(INVALID_KEY)?).await,
        _ => Err(call.unknown()),
    }
}

const INVALID_KEY: &str = "invalid_key";

fn checked(key: String) -> Result<String, Refusal> {
    match key.len() {
        1..=MOST_KEY_BYTES => Ok(key),
        length => Err(Refusal::new(
            INVALID_KEY,
            format!("a key has 1 to {MOST_KEY_BYTES} bytes, not {length}"),
        )),
    }
}

/// The content type, if it is within its bounds; `code` is the operation's nearest.
fn checked_type(
    content_type: Option<String>,
    code: &'static str,
) -> Result<Option<String>, Refusal> {
    match content_type.as_ref().map(|text| text.chars().count()) {
        None | Some(1..=MOST_TYPE_CHARACTERS) => Ok(content_type),
        Some(_) => Err(Refusal::new(
            code,
            format!("a content type has 1 to {MOST_TYPE_CHARACTERS} characters"),
        )),
    }
}

fn absent() -> Refusal {
    Refusal::new("not_found", "there is no such object")
}

fn failed_condition() -> Refusal {
    Refusal::new(
        "precondition_failed",
        "the object is not as the condition wants it",
    )
}

impl Buckets {
    pub(super) fn forget(&self, uid: &Uid) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(uid);
    }

    async fn open(&self, data: &Data, uid: &Uid) -> Result<Bucket, Refusal> {
        let known = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid)
            .cloned();
        if let Some(bucket) = known {
            return Ok(bucket);
        }
        let index = data.files.database(Family::Objects, uid)?;
        let directory = data.files.bytes_of(Family::Objects, uid);
        let found = Bucket {
            uid: uid.clone(),
            index,
            directory,
            reading: Arc::default(),
        };
        // Two first calls at once: the bucket that is in the map is the one both use.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = open.entry(uid.clone()).or_insert(found).clone();
        drop(open);
        Ok(bucket)
    }
}

impl Bucket {
    /// One change of the index, all or nothing, then the removal of bytes nothing needs.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let bucket = self.clone();
        self.index
            .with(move |connection| {
                let transaction = connection.transaction()?;
                let done = work(&transaction)?;
                transaction.commit()?;
                bucket.collect(connection)?;
                Ok(done)
            })
            .await
    }

    /// Removes the bytes of doomed objects nobody reads. What is left is tried again later.
    fn collect(&self, connection: &Connection) -> Result<(), Refusal> {
        let mut query = connection.prepare_cached("SELECT blob, object FROM doomed")?;
        let doomed: Vec<(String, String)> = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (blob, object) in doomed {
            let read = self
                .reading
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(&object);
            if !read {
                bytes::remove(&self.directory, &blob)?;
                connection.execute("DELETE FROM doomed WHERE blob = ?1", [&blob])?;
            }
        }
        Ok(())
    }
}

fn row(connection: &Connection, key: &[u8]) -> Result<Option<Row>, Refusal> {
    let query = "SELECT id, etag, size, content_type, uploaded_at_ms FROM object WHERE key = ?1";
    let row = connection.query_row(query, [key], |row| {
        Ok(Row {
            id: row.get(0)?,
            etag: row.get(1)?,
            size: row.get::<_, i64>(2)?.unsigned_abs(),
            content_type: row.get(3)?,
            uploaded_at_ms: row.get(4)?,
        })
    });
    Ok(row.optional()?)
}

async fn head(bucket: &Bucket, input: KeyInput) -> Result<Answer, Refusal> {
    let key = checked(input.key)?;
    let row = bucket
        .index
        .with(move |connection| row(connection, key.as_bytes()))
        .await?
        .ok_or_else(absent)?;
    Ok(Answer::document(&Head {
        etag: row.etag,
        size: row.size,
        content_type: row.content_type,
        uploaded_at_millis: row.uploaded_at_ms,
    }))
}

async fn get(bucket: &Bucket, input: GetInput) -> Result<Answer, Refusal> {
    let key = checked(input.key)?;
    let held = bucket.clone();
    let (row, pieces, reading) = bucket
        .index
        .with(move |connection| {
            let row = row(connection, key.as_bytes())?.ok_or_else(absent)?;
            let pieces = pieces(connection, &row.id)?;
            // Marked while the index is held, so that no removal comes between.
            let reading = Reading::begin(&held, &row.id);
            Ok((row, pieces, reading))
        })
        .await?;
    let matches = input.if_match.is_none_or(|etag| etag == row.etag);
    let differs = input
        .if_none_match
        .is_none_or(|etag| etag != row.etag && etag != "*");
    if !matches || !differs {
        return Err(failed_condition());
    }
    let served = match &input.range {
        Some(RangeInput { offset, .. }) if *offset >= row.size => {
            let message = format!("the object has {} bytes", row.size);
            return Err(Refusal::new("range_not_satisfiable", message));
        }
        Some(RangeInput {
            length: Some(0), ..
        }) => {
            return Err(Refusal::new(
                "range_not_satisfiable",
                "a range has at least one byte",
            ));
        }
        Some(RangeInput { offset, length }) => {
            let rest = row.size - offset;
            ServedRange {
                offset: *offset,
                length: length.map_or(rest, |length| length.min(rest)),
            }
        }
        None => ServedRange {
            offset: 0,
            length: row.size,
        },
    };
    let document = Got {
        etag: row.etag,
        size: row.size,
        partial: input.range.is_some(),
        range: input.range.map(|_| served),
        content_type: row.content_type,
    };
    let body = bytes::body(
        &bucket.directory,
        pieces,
        served.offset,
        served.length,
        reading,
    );
    Ok(Answer::bytes(&document, body))
}

fn pieces(connection: &Connection, object: &str) -> Result<Vec<Piece>, Refusal> {
    let mut query = connection
        .prepare_cached("SELECT blob, size FROM piece WHERE object = ?1 ORDER BY position")?;
    let piece = |row: &rusqlite::Row<'_>| {
        Ok(Piece {
            blob: row.get(0)?,
            size: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    };
    Ok(query
        .query_map([object], piece)?
        .collect::<Result<_, _>>()?)
}

async fn put(bucket: &Bucket, mut call: Call) -> Result<Answer, Refusal> {
    let input: PutInput = call.input(INVALID_KEY)?;
    let key = checked(input.key)?;
    let content_type = checked_type(input.content_type, "invalid_body")?;
    if input
        .if_none_match
        .as_deref()
        .is_some_and(|condition| condition != "*")
    {
        return Err(failed_condition());
    }
    let spooled = bytes::spool(bucket, &mut call, MOST_PUT_BYTES).await?;
    let stored = Stored {
        etag: spooled.etag.clone(),
        size: spooled.size,
    };
    let (if_match, only_new) = (input.if_match, input.if_none_match.is_some());
    let spooled = bucket
        .change(move |transaction| {
            let before = row(transaction, key.as_bytes())?;
            let current = before.as_ref().map(|row| row.etag.as_str());
            let refused = if_match.is_some_and(|etag| current != Some(&etag))
                || (only_new && current.is_some());
            if refused {
                return Err(failed_condition());
            }
            spooled.adopt(transaction)?;
            let Spooled { blob, etag, size } = &spooled.parts();
            let pieces = [Piece {
                blob: blob.clone(),
                size: *size,
            }];
            replace(
                transaction,
                key.as_bytes(),
                &pieces,
                etag,
                content_type.as_deref(),
            )?;
            Ok(spooled)
        })
        .await?;
    spooled.keep();
    Ok(Answer::document(&stored))
}

/// Makes `pieces` the object under `key`; what was there before is doomed.
fn replace(
    connection: &Connection,
    key: &[u8],
    pieces: &[Piece],
    etag: &str,
    content_type: Option<&str>,
) -> Result<(), Refusal> {
    remove(connection, key)?;
    let id = new_id();
    let size: u64 = pieces.iter().map(|piece| piece.size).sum();
    connection.execute(
        "INSERT INTO object (key, id, etag, size, content_type, uploaded_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![key, id, etag, size.cast_signed(), content_type, now_ms()],
    )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO piece (object, position, blob, size) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (position, piece) in pieces.iter().enumerate() {
        insert.execute(params![
            id,
            position as i64,
            piece.blob,
            piece.size.cast_signed()
        ])?;
    }
    Ok(())
}

fn remove(connection: &Connection, key: &[u8]) -> Result<(), Refusal> {
    let Some(row) = row(connection, key)? else {
        return Ok(());
    };
    connection.execute(
        "INSERT INTO doomed (blob, object) SELECT blob, object FROM piece WHERE object = ?1",
        [&row.id],
    )?;
    connection.execute("DELETE FROM piece WHERE object = ?1", [&row.id])?;
    connection.execute("DELETE FROM object WHERE key = ?1", [key])?;
    Ok(())
}
