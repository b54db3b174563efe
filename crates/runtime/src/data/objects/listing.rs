//! Listing a bucket: keys in byte order, rolled up at a delimiter.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::super::Data;
use super::super::operation::{Answer, Refusal};
use super::Bucket;

const MOST_LISTED: usize = 1000;
const MOST_DELIMITER_CHARACTERS: usize = 16;

#[derive(Deserialize)]
pub(super) struct ListInput {
    prefix: Option<String>,
    delimiter: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    key: String,
    etag: String,
    size: u64,
    uploaded_at_millis: i64,
}

#[derive(Serialize)]
struct Page {
    objects: Vec<Listed>,
    truncated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prefixes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

pub(super) async fn list(
    data: &Data,
    bucket: &Bucket,
    input: ListInput,
) -> Result<Answer, Refusal> {
    let invalid = |what: &str| Refusal::new("invalid_cursor", what.to_owned());
    let limit = input.limit.unwrap_or(MOST_LISTED);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(invalid("a page has 1 to 1000 entries"));
    }
    let prefix = input.prefix.unwrap_or_default();
    let length = input
        .delimiter
        .as_ref()
        .map_or(1, |delimiter| delimiter.chars().count());
    if !(1..=MOST_DELIMITER_CHARACTERS).contains(&length) {
        return Err(invalid("a delimiter has 1 to 16 characters"));
    }
    let delimiter = input.delimiter.unwrap_or_default();
    let scope = ["objects", bucket.uid.as_str(), &prefix, &delimiter];
    let after = match input.cursor {
        Some(cursor) => {
            let opened = data.cursors.open_sealed(&scope, &cursor);
            opened.ok_or_else(|| invalid("this cursor was not issued for this list"))?
        }
        None => Vec::new(),
    };
    let walk = Walk {
        prefix: prefix.clone(),
        delimiter: delimiter.clone(),
        limit,
    };
    let (mut page, after) = bucket
        .index
        .with(move |connection| walk.page(connection, after))
        .await?;
    page.cursor = page.truncated.then(|| data.cursors.seal(&scope, &after));
    Ok(Answer::document(&page))
}

struct Walk {
    prefix: String,
    delimiter: String,
    limit: usize,
}

impl Walk {
    /// One page of what comes after `after`, and where the next one begins.
    fn page(
        &self,
        connection: &Connection,
        mut after: Vec<u8>,
    ) -> Result<(Page, Vec<u8>), Refusal> {
        let high = [self.prefix.as_bytes(), &[0xff]].concat();
        let mut query = connection.prepare_cached(
            "SELECT key, etag, size, uploaded_at_ms FROM object
             WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key",
        )?;
        let mut page = Page {
            objects: Vec::new(),
            truncated: false,
            prefixes: Vec::new(),
            cursor: None,
        };
        // Each round reads until a key is rolled up, then goes on behind all keys like it.
        'rounds: loop {
            let mut rows = query.query(params![self.prefix.as_bytes(), high, after])?;
            while let Some(row) = rows.next()? {
                if page.objects.len() + page.prefixes.len() == self.limit {
                    page.truncated = true;
                    break 'rounds;
                }
                let key = String::from_utf8_lossy(&row.get::<_, Vec<u8>>(0)?).into_owned();
                if let Some(rolled) = self.rolled_up(&key) {
                    after = [rolled.as_bytes(), &[0xff]].concat();
                    page.prefixes.push(rolled);
                    continue 'rounds;
                }
                after = key.clone().into_bytes();
                page.objects.push(Listed {
                    key,
                    etag: row.get(1)?,
                    size: row.get::<_, i64>(2)?.unsigned_abs(),
                    uploaded_at_millis: row.get(3)?,
                });
            }
            break;
        }
        Ok((page, after))
    }

    /// The common prefix a key is shown as, when its rest holds the delimiter.
    fn rolled_up(&self, key: &str) -> Option<String> {
        if self.delimiter.is_empty() {
            return None;
        }
        let at = key[self.prefix.len()..].find(&self.delimiter)?;
        Some(key[..self.prefix.len() + at + self.delimiter.len()].to_owned())
    }
}
