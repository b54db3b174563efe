//! `edge.kv@1.0.0`: byte values under string keys.
//!
//! The contract promises eventual consistency. This host happens to be immediate and
//! promises no more than the contract.

use std::collections::BTreeMap;

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::Data;
use super::file::{Database, Family};
use super::operation::{Answer, Call, Refusal};
use crate::body;
use crate::clock::now_ms;
use crate::plan::Uid;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS entry (
        key BLOB PRIMARY KEY NOT NULL,
        value BLOB NOT NULL,
        metadata TEXT,
        expires_at_ms INTEGER
    );
    CREATE INDEX IF NOT EXISTS entry_expiry ON entry (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
";

const MOST_KEY_BYTES: usize = 467;
const MOST_VALUE_BYTES: usize = 26_214_400;
const MOST_METADATA_BYTES: usize = 1024;
const MOST_METADATA_ENTRIES: usize = 64;
const MOST_METADATA_NAME: usize = 256;
const MOST_METADATA_VALUE: usize = 8192;
const TTL_SECONDS: std::ops::RangeInclusive<u64> = 60..=315_360_000;
const MOST_LISTED: u64 = 1000;

#[derive(Deserialize)]
struct KeyInput {
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PutInput {
    key: String,
    metadata: Option<serde_json::Value>,
    expiration_ttl_seconds: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct ListInput {
    prefix: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

#[derive(Serialize)]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    keys: Vec<Listed>,
    list_complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

pub(super) async fn operate(data: &Data, namespace: &Uid, call: Call) -> Result<Answer, Refusal> {
    let database = data.files.database(Family::Kv, namespace)?;
    match call.operation.as_str() {
        "get" => {
            let (value, _) = read(&database, call.input("invalid_key")?).await?;
            Ok(Answer::bytes(
                &Metadata { metadata: None },
                body::whole(value),
            ))
        }
        "getWithMetadata" => {
            let (value, metadata) = read(&database, call.input("invalid_key")?).await?;
            Ok(Answer::bytes(&Metadata { metadata }, body::whole(value)))
        }
        "put" => put(&database, call).await,
        "delete" => {
            let key = checked(call.input::<KeyInput>("invalid_key")?.key)?;
            database
                .with(move |file| {
                    Ok(file.execute("DELETE FROM entry WHERE key = ?1", [key.as_bytes()])?)
                })
                .await?;
            Ok(Answer::nothing())
        }
        "list" => list(data, namespace, &database, call.input("invalid_cursor")?).await,
        _ => Err(call.unknown()),
    }
}

fn checked(key: String) -> Result<String, Refusal> {
    match key.len() {
        1..=MOST_KEY_BYTES => Ok(key),
        length => Err(Refusal::new(
            "invalid_key",
            format!("a key has 1 to {MOST_KEY_BYTES} bytes, not {length}"),
        )),
    }
}

type Entry = (Bytes, Option<BTreeMap<String, String>>);

async fn read(database: &Database, input: KeyInput) -> Result<Entry, Refusal> {
    let key = checked(input.key)?;
    let found = database
        .with(move |file| {
            let query = "SELECT value, metadata FROM entry
                WHERE key = ?1 AND (expires_at_ms IS NULL OR expires_at_ms > ?2)";
            let row = |row: &rusqlite::Row<'_>| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Option<String>>(1)?))
            };
            Ok(file
                .query_row(query, params![key.as_bytes(), now_ms()], row)
                .optional()?)
        })
        .await?;
    let (value, metadata) =
        found.ok_or_else(|| Refusal::new("not_found", "there is no such key"))?;
    let metadata = metadata
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(Refusal::unavailable)?;
    Ok((value.into(), metadata))
}

async fn put(database: &Database, mut call: Call) -> Result<Answer, Refusal> {
    let input: PutInput = call.input("invalid_key")?;
    let key = checked(input.key)?;
    let metadata = input.metadata.map(metadata_text).transpose()?.flatten();
    let ttl = input.expiration_ttl_seconds.map(ttl_seconds).transpose()?;
    let value = call.whole(MOST_VALUE_BYTES).await?;
    let value = value.ok_or_else(|| {
        Refusal::new(
            "value_too_large",
            format!("a value has at most {MOST_VALUE_BYTES} bytes"),
        )
    })?;
    database
        .with(move |file| {
            let now = now_ms();
            let expires_at = ttl.map(|seconds| now + seconds.cast_signed() * 1000);
            let transaction = file.transaction()?;
            transaction.execute("DELETE FROM entry WHERE expires_at_ms <= ?1", [now])?;
            transaction.execute(
                "INSERT OR REPLACE INTO entry (key, value, metadata, expires_at_ms) VALUES (?1, ?2, ?3, ?4)",
                params![key.as_bytes(), &value[..], metadata, expires_at],
            )?;
            Ok(transaction.commit()?)
        })
        .await?;
    Ok(Answer::nothing())
}

/// Metadata as stored; none when it has no entry. Its size is that of its RFC 8785 JSON, which for a map of strings is
/// what a sorted map prints.
fn metadata_text(value: serde_json::Value) -> Result<Option<String>, Refusal> {
    let too_large = |what: String| Refusal::new("metadata_too_large", what);
    let map: BTreeMap<String, String> = serde_json::from_value(value)
        .map_err(|_| Refusal::new("invalid_value", "metadata is a map of strings"))?;
    let long = |(name, value): (&String, &String)| {
        name.chars().count() > MOST_METADATA_NAME || value.chars().count() > MOST_METADATA_VALUE
    };
    if map.len() > MOST_METADATA_ENTRIES || map.iter().any(long) {
        return Err(too_large(
            "metadata has too many or too long entries".into(),
        ));
    }
    let text = serde_json::to_string(&map).map_err(Refusal::unavailable)?;
    match text.len() {
        length if length > MOST_METADATA_BYTES => Err(too_large(format!(
            "metadata has at most {MOST_METADATA_BYTES} bytes as JSON, not {length}"
        ))),
        _ => Ok((!map.is_empty()).then_some(text)),
    }
}

fn ttl_seconds(value: serde_json::Value) -> Result<u64, Refusal> {
    value
        .as_u64()
        .filter(|seconds| TTL_SECONDS.contains(seconds))
        .ok_or_else(|| {
            Refusal::new(
                "invalid_value",
                "expirationTtlSeconds is a whole number from 60 to 315360000",
            )
        })
}

async fn list(
    data: &Data,
    namespace: &Uid,
    database: &Database,
    input: ListInput,
) -> Result<Answer, Refusal> {
    let prefix = input.prefix.unwrap_or_default();
    let invalid = |what: &str| Refusal::new("invalid_cursor", what.to_owned());
    let limit = input.limit.unwrap_or(MOST_LISTED);
    if !(1..=MOST_LISTED).contains(&limit) || prefix.len() > MOST_KEY_BYTES {
        return Err(invalid(
            "a page has 1 to 1000 keys, and a prefix is no longer than a key",
        ));
    }
    let scope = ["kv", namespace.as_str(), &prefix];
    let after = match input.cursor {
        Some(cursor) => data
            .cursors
            .open_sealed(&scope, &cursor)
            .ok_or_else(|| invalid("this cursor was not issued for this list"))?,
        None => Vec::new(),
    };
    let (low, high) = (
        prefix.clone().into_bytes(),
        [prefix.as_bytes(), &[0xff]].concat(),
    );
    let mut names = database
        .with(move |file| {
            let mut query = file.prepare_cached(
                "SELECT key FROM entry WHERE key >= ?1 AND key < ?2 AND key > ?3
                 AND (expires_at_ms IS NULL OR expires_at_ms > ?4) ORDER BY key LIMIT ?5",
            )?;
            let rows = query.query_map(
                params![low, high, after, now_ms(), (limit + 1).cast_signed()],
                |row| row.get(0),
            )?;
            Ok(rows.collect::<Result<Vec<Vec<u8>>, _>>()?)
        })
        .await?;
    let more = names.len() as u64 > limit;
    names.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let cursor = names
        .last()
        .filter(|_| more)
        .map(|last| data.cursors.seal(&scope, last));
    let listed = |name: Vec<u8>| Listed {
        name: String::from_utf8_lossy(&name).into_owned(),
    };
    Ok(Answer::document(&Page {
        keys: names.into_iter().map(listed).collect(),
        list_complete: !more,
        cursor,
    }))
}
