//! What is read: everything at start-up, replay records one by one.

use super::row::{Bound, OperationRow, Replay, ReplayKey, UploadRow, resource};
use super::{Store, StoreError};
use crate::token::{Grant, Scope, TokenHash, TokenRecord};
use notation_edge::{LedgerEntry, Resource, Uid};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything in the store except replay records.
#[derive(Default)]
pub struct Loaded {
    /// Tenants by name.
    pub tenants: BTreeMap<Arc<str>, LoadedTenant>,
    /// Tokens with their hashes.
    pub tokens: Vec<(TokenHash, TokenRecord)>,
}

/// One tenant's rows.
#[derive(Default)]
pub struct LoadedTenant {
    /// Resources.
    pub resources: Vec<Resource>,
    /// Ledgers by database incarnation, in order.
    pub ledger: Vec<(Uid, LedgerEntry)>,
    /// Sealed values, encrypted.
    pub sealed: Vec<(Uid, Arc<str>, Vec<u8>)>,
    /// Operations.
    pub operations: Vec<OperationRow>,
    /// Upload sessions.
    pub uploads: Vec<UploadRow>,
    /// Held blobs with their sizes.
    pub blobs: Vec<(String, u64)>,
    /// Held manifests with their documents.
    pub manifests: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// Reads everything. Errors: the first damaged row by its table and key.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let mut damaged = None;
        let loaded = self.with_reader(|connection| {
            let mut loaded = Loaded::default();
            load_resources(connection, &mut loaded, &mut damaged)?;
            load_rest(connection, &mut loaded)?;
            load_tokens(connection, &mut loaded)?;
            Ok(loaded)
        })?;
        match damaged {
            None => Ok(loaded),
            Some(uid) => Err(StoreError::Database {
                path: self.path.clone(),
                reason: format!("the row of resource {uid} is damaged"),
            }),
        }
    }

    /// The recorded answer of a key, if any.
    pub fn replay(&self, key: &ReplayKey) -> Result<Option<Replay>, StoreError> {
        self.with_reader(|connection| {
            let sql = "SELECT * FROM replay WHERE tenant = ?1 AND principal = ?2 AND space = ?3 \
                       AND key = ?4";
            connection
                .prepare_cached(sql)?
                .query_row(
                    [&*key.tenant, &*key.principal, &key.space, &key.key],
                    |row| {
                        let kind: String = row.get("bound_kind")?;
                        Ok(Replay {
                            fingerprint: row.get("fingerprint")?,
                            status: row.get("status")?,
                            etag: row.get("etag")?,
                            body: row.get("body")?,
                            bound: Bound::read(&kind, row.get("bound_id")?),
                        })
                    },
                )
                .optional()
        })
    }
}

fn each(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(Arc<str>, &Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let tenant: String = row.get("tenant")?;
        take(tenant.into(), row)?;
    }
    Ok(())
}

fn uid(row: &Row<'_>, column: &str) -> rusqlite::Result<Uid> {
    row.get::<_, String>(column).map(Uid::new)
}

fn load_resources(
    connection: &Connection,
    loaded: &mut Loaded,
    damaged: &mut Option<String>,
) -> rusqlite::Result<()> {
    each(connection, "SELECT * FROM resource", |tenant, row| {
        match resource(row)? {
            Some(resource) => loaded
                .tenants
                .entry(tenant)
                .or_default()
                .resources
                .push(resource),
            None => *damaged = Some(row.get("uid")?),
        }
        Ok(())
    })
}

fn load_rest(connection: &Connection, loaded: &mut Loaded) -> rusqlite::Result<()> {
    let tenants = &mut loaded.tenants;
    each(
        connection,
        "SELECT * FROM ledger ORDER BY database_uid, position",
        |tenant, row| {
            let entry = LedgerEntry {
                path: row.get::<_, String>("path")?.into(),
                digest: row.get::<_, String>("digest")?.into(),
            };
            tenants
                .entry(tenant)
                .or_default()
                .ledger
                .push((uid(row, "database_uid")?, entry));
            Ok(())
        },
    )?;
    each(connection, "SELECT * FROM sealed", |tenant, row| {
        let name: Arc<str> = row.get::<_, String>("name")?.into();
        let sealed = (uid(row, "worker_uid")?, name, row.get("value")?);
        tenants.entry(tenant).or_default().sealed.push(sealed);
        Ok(())
    })?;
    each(connection, "SELECT * FROM operation", |tenant, row| {
        tenants
            .entry(tenant)
            .or_default()
            .operations
            .push(OperationRow {
                id: row.get("id")?,
                principal: row.get::<_, String>("principal")?.into(),
                request: row.get("request")?,
                bound_uid: row.get::<_, Option<String>>("bound_uid")?.map(Uid::new),
                polls: row.get("polls")?,
                terminal: row.get("terminal")?,
                result_uid: row.get::<_, Option<String>>("result_uid")?.map(Uid::new),
                failed: row.get("failed")?,
                created: row.get("created")?,
            });
        Ok(())
    })?;
    each(connection, "SELECT * FROM upload", |tenant, row| {
        tenants.entry(tenant).or_default().uploads.push(UploadRow {
            id: row.get("id")?,
            principal: row.get::<_, String>("principal")?.into(),
            manifest: row.get("manifest")?,
            created: row.get("created")?,
        });
        Ok(())
    })?;
    each(connection, "SELECT * FROM blob", |tenant, row| {
        let size = u64::try_from(row.get::<_, i64>("size")?).unwrap_or_default();
        tenants
            .entry(tenant)
            .or_default()
            .blobs
            .push((row.get("digest")?, size));
        Ok(())
    })?;
    each(connection, "SELECT * FROM manifest", |tenant, row| {
        let manifest = (row.get("digest")?, row.get("document")?);
        tenants.entry(tenant).or_default().manifests.push(manifest);
        Ok(())
    })
}

fn load_tokens(connection: &Connection, loaded: &mut Loaded) -> rusqlite::Result<()> {
    let tokens = &mut loaded.tokens;
    each(connection, "SELECT * FROM token", |tenant, row| {
        let scopes: String = row.get("scopes")?;
        let record = TokenRecord {
            id: row.get("id")?,
            grant: Grant {
                tenant: tenant.to_string(),
                principal: row.get("principal")?,
                scopes: scopes.split(' ').filter_map(Scope::read).collect(),
                label: row.get("label")?,
            },
            created: row.get("created")?,
        };
        tokens.push((row.get("hash")?, record));
        Ok(())
    })
}
