//! Multipart uploads: parts are stored as they come and become one object by reference.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::operation::{Answer, Call, Refusal};
use super::super::queue::new_id;
use super::bytes::{Piece, Spooled, spool};
use super::{Bucket, INVALID_KEY, MOST_OBJECT_BYTES, Stored, checked, checked_type, replace};

const PART_NUMBERS: std::ops::RangeInclusive<i64> = 1..=10_000;
const LEAST_PART_BYTES: u64 = 5_242_880;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateInput {
    key: String,
    content_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UploadInput {
    key: String,
    upload_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartInput {
    key: String,
    upload_id: String,
    part_number: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompleteInput {
    key: String,
    upload_id: String,
    parts: Vec<PartClaim>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartClaim {
    part_number: i64,
    etag: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartStored {
    etag: String,
    part_number: i64,
}

fn invalid_part(what: impl Into<String>) -> Refusal {
    Refusal::new("invalid_part", what)
}

pub(super) async fn create(bucket: &Bucket, input: CreateInput) -> Result<Answer, Refusal> {
    let key = checked(input.key)?;
    let content_type = checked_type(input.content_type, INVALID_KEY)?;
    let id = new_id();
    let made = id.clone();
    bucket
        .change(move |transaction| {
            let insert = "INSERT INTO upload (id, key, content_type) VALUES (?1, ?2, ?3)";
            Ok(transaction.execute(insert, params![made, key.as_bytes(), content_type])?)
        })
        .await?;
    Ok(Answer::document(&serde_json::json!({ "uploadId": id })))
}

/// Content type of an open upload of this key.
fn open(connection: &Connection, upload: &str, key: &str) -> Result<Option<String>, Refusal> {
    let query = "SELECT content_type FROM upload WHERE id = ?1 AND key = ?2";
    let found = connection
        .query_row(query, params![upload, key.as_bytes()], |row| row.get(0))
        .optional()?;
    found.ok_or_else(|| Refusal::new("upload_not_found", "there is no such upload of this key"))
}

pub(super) async fn upload(bucket: &Bucket, mut call: Call) -> Result<Answer, Refusal> {
    let input: PartInput = call.input(INVALID_KEY)?;
    let key = checked(input.key)?;
    let number = input
        .part_number
        .as_i64()
        .filter(|number| PART_NUMBERS.contains(number));
    let number = number.ok_or_else(|| invalid_part("part numbers are 1 to 10000"))?;
    let upload = input.upload_id;
    let (asked, asked_key) = (upload.clone(), key.clone());
    bucket
        .index
        .with(move |connection| open(connection, &asked, &asked_key))
        .await?;
    let spooled = spool(bucket, &mut call, MOST_OBJECT_BYTES).await?;
    let spooled = bucket
        .change(move |transaction| {
            open(transaction, &upload, &key)?; // it may have ended meanwhile
            spooled.adopt(transaction)?;
            let Spooled { blob, etag, size } = spooled.parts();
            doom(transaction, &upload, Some(number))?;
            transaction.execute(
                "INSERT OR REPLACE INTO part (upload, number, blob, etag, size) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![upload, number, blob, etag, size.cast_signed()],
            )?;
            Ok(spooled)
        })
        .await?;
    let stored = PartStored {
        etag: spooled.etag.clone(),
        part_number: number,
    };
    spooled.keep();
    Ok(Answer::document(&stored))
}

/// The bytes of one part, or of all parts, of an upload are not needed any more.
fn doom(connection: &Connection, upload: &str, number: Option<i64>) -> Result<(), Refusal> {
    connection.execute(
        "INSERT INTO doomed (blob, object) SELECT blob, upload FROM part
         WHERE upload = ?1 AND (?2 IS NULL OR number = ?2)",
        params![upload, number],
    )?;
    connection.execute(
        "DELETE FROM part WHERE upload = ?1 AND (?2 IS NULL OR number = ?2)",
        params![upload, number],
    )?;
    Ok(())
}

pub(super) async fn complete(bucket: &Bucket, input: CompleteInput) -> Result<Answer, Refusal> {
    let key = checked(input.key)?;
    let (upload, claims) = (input.upload_id, input.parts);
    let stored = bucket
        .change(move |transaction| {
            let content_type = open(transaction, &upload, &key)?;
            let pieces = claimed(transaction, &upload, &claims)?;
            let size: u64 = pieces.iter().map(|piece| piece.size).sum();
            if size > MOST_OBJECT_BYTES {
                return Err(Refusal::new(
                    "value_too_large",
                    format!("an object has at most {MOST_OBJECT_BYTES} bytes"),
                ));
            }
            // The parts that became pieces stay, every other part goes.
            let mut taken =
                transaction.prepare_cached("DELETE FROM part WHERE upload = ?1 AND number = ?2")?;
            for claim in &claims {
                taken.execute(params![upload, claim.part_number])?;
            }
            doom(transaction, &upload, None)?;
            transaction.execute("DELETE FROM upload WHERE id = ?1", [&upload])?;
            let etag = assembled(&claims);
            replace(
                transaction,
                key.as_bytes(),
                &pieces,
                &etag,
                content_type.as_deref(),
            )?;
            Ok(Stored { etag, size })
        })
        .await?;
    Ok(Answer::document(&stored))
}

/// The pieces the claims name, in order; each must exist, carry its etag, and be long enough
/// unless it is the last.
fn claimed(
    connection: &Connection,
    upload: &str,
    claims: &[PartClaim],
) -> Result<Vec<Piece>, Refusal> {
    if claims.is_empty() || !claims.is_sorted_by(|a, b| a.part_number < b.part_number) {
        return Err(invalid_part(
            "parts are listed in ascending order, at least one",
        ));
    }
    let mut query = connection
        .prepare_cached("SELECT blob, etag, size FROM part WHERE upload = ?1 AND number = ?2")?;
    let mut pieces = Vec::with_capacity(claims.len());
    for (index, PartClaim { part_number, etag }) in claims.iter().enumerate() {
        let found = query.query_row(params![upload, part_number], |row| {
            let piece = Piece {
                blob: row.get(0)?,
                size: row.get::<_, i64>(2)?.unsigned_abs(),
            };
            Ok((piece, row.get::<_, String>(1)?))
        });
        let (piece, stored) = found
            .optional()?
            .ok_or_else(|| invalid_part(format!("part {part_number} was not uploaded")))?;
        if stored != *etag {
            return Err(invalid_part(format!("part {part_number} has another etag")));
        }
        if index + 1 < claims.len() && piece.size < LEAST_PART_BYTES {
            return Err(invalid_part(format!(
                "part {part_number} is shorter than {LEAST_PART_BYTES} bytes"
            )));
        }
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Etag of an assembled object: decided by the bytes of its parts and by nothing else.
fn assembled(claims: &[PartClaim]) -> String {
    let mut hash = Sha256::new();
    claims.iter().for_each(|claim| hash.update(&claim.etag));
    format!("{}-{}", hex::encode(hash.finalize()), claims.len())
}

pub(super) async fn abort(bucket: &Bucket, input: UploadInput) -> Result<Answer, Refusal> {
    let key = checked(input.key)?;
    let upload = input.upload_id;
    bucket
        .change(move |transaction| {
            open(transaction, &upload, &key)?;
            doom(transaction, &upload, None)?;
            Ok(transaction.execute("DELETE FROM upload WHERE id = ?1", [&upload])?)
        })
        .await?;
    Ok(Answer::nothing())
}
