//! What can be written, each as one statement.

use super::row::{Bound, ConditionRow, OperationRow, PinRow, Replay, ReplayKey, UploadRow};
use crate::token::{TokenHash, TokenRecord};
use notation_edge::{LedgerEntry, Resource, Uid};
use rusqlite::{Connection, params};
use std::sync::Arc;

/// One row change.
#[derive(Debug)]
pub enum Write {
    /// Inserts or replaces a resource.
    Resource(Arc<str>, Arc<Resource>),
    /// Removes a resource and the sealed values of a worker.
    RemoveResource(Uid),
    /// Appends to a database's ledger at a position.
    Ledger {
        /// Tenant.
        tenant: Arc<str>,
        /// Database incarnation.
        database: Uid,
        /// Position in the ledger, from 0.
        position: usize,
        /// What was executed.
        entry: LedgerEntry,
    },
    /// Records an answer.
    Replay(ReplayKey, Replay, String),
    /// Inserts or replaces an operation.
    Operation(Arc<str>, OperationRow),
    /// Inserts an upload session.
    Upload(Arc<str>, UploadRow),
    /// Ends an upload session.
    RemoveUpload(String),
    /// The tenant holds a blob.
    Blob(Arc<str>, String, u64),
    /// The tenant no longer holds a blob.
    RemoveBlob(Arc<str>, String),
    /// The tenant holds a manifest.
    Manifest(Arc<str>, String, Vec<u8>),
    /// Sets a sealed value, encrypted.
    Seal {
        /// Tenant.
        tenant: Arc<str>,
        /// Worker incarnation.
        worker: Uid,
        /// Name.
        name: Arc<str>,
        /// Nonce and ciphertext.
        value: Vec<u8>,
    },
    /// Removes a sealed value.
    Unseal(Uid, Arc<str>),
    /// Adds a token.
    Token(TokenHash, TokenRecord),
    /// Revokes a token.
    RemoveToken(String),
    /// Forgets an operation that ended.
    RemoveOperation(String),
    /// Forgets recorded answers that are older than this.
    Forget(String),
}

impl Write {
    pub(super) fn run(&self, connection: &Connection) -> rusqlite::Result<()> {
        let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
            connection.prepare_cached(sql)?.execute(params).map(drop)
        };
        match self {
            Write::Resource(tenant, resource) => put_resource(connection, tenant, resource),
            Write::RemoveResource(uid) => {
                run(
                    "DELETE FROM sealed WHERE worker_uid = ?1",
                    params![uid.as_str()],
                )?;
                run("DELETE FROM resource WHERE uid = ?1", params![uid.as_str()])
            }
            Write::Ledger {
                tenant,
                database,
                position,
                entry,
            } => run(
                "INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    &**tenant,
                    database.as_str(),
                    integer(*position as u64),
                    &*entry.path,
                    &*entry.digest
                ],
            ),
            Write::Replay(key, replay, now) => put_replay(connection, key, replay, now),
            Write::Operation(tenant, operation) => run(
                "INSERT OR REPLACE INTO operation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    operation.id,
                    &**tenant,
                    &*operation.principal,
                    operation.request,
                    operation.bound_uid.as_ref().map(Uid::as_str),
                    operation.polls,
                    operation.terminal,
                    operation.result_uid.as_ref().map(Uid::as_str),
                    operation.failed,
                    operation.created
                ],
            ),
            Write::Upload(tenant, upload) => run(
                "INSERT INTO upload VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    upload.id,
                    &**tenant,
                    &*upload.principal,
                    upload.manifest,
                    upload.created
                ],
            ),
            Write::RemoveUpload(id) => run("DELETE FROM upload WHERE id = ?1", params![id]),
            Write::Blob(tenant, digest, size) => run(
                "INSERT OR REPLACE INTO blob VALUES (?1, ?2, ?3)",
                params![&**tenant, digest, integer(*size)],
            ),
            Write::RemoveBlob(tenant, digest) => run(
                "DELETE FROM blob WHERE tenant = ?1 AND digest = ?2",
                params![&**tenant, digest],
            ),
            Write::Manifest(tenant, digest, document) => run(
                "INSERT OR REPLACE INTO manifest VALUES (?1, ?2, ?3)",
                params![&**tenant, digest, document],
            ),
            Write::Seal {
                tenant,
                worker,
                name,
                value,
            } => run(
                "INSERT OR REPLACE INTO sealed VALUES (?1, ?2, ?3, ?4)",
                params![&**tenant, worker.as_str(), &**name, value],
            ),
            Write::Unseal(worker, name) => run(
                "DELETE FROM sealed WHERE worker_uid = ?1 AND name = ?2",
                params![worker.as_str(), &**name],
            ),
            Write::Token(hash, record) => {
                let scopes: Vec<&str> = record
                    .grant
                    .scopes
                    .iter()
                    .map(|scope| scope.as_str())
                    .collect();
                run(
                    "INSERT OR REPLACE INTO token VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![
                        record.id,
                        &hash[..],
                        record.grant.tenant,
                        record.grant.principal,
                        scopes.join(" "),
                        record.grant.label,
                        record.created
                    ],
                )
            }
            Write::RemoveOperation(id) => run("DELETE FROM operation WHERE id = ?1", params![id]),
            Write::Forget(before) => run("DELETE FROM replay WHERE created < ?1", params![before]),
            Write::RemoveToken(id) => run("DELETE FROM token WHERE id = ?1", params![id]),
        }
    }
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("rows serialise to JSON")
}

fn put_resource(connection: &Connection, tenant: &str, it: &Resource) -> rusqlite::Result<()> {
    let pins: Vec<PinRow> = it.pins.iter().map(PinRow::of).collect();
    // Not `INSERT OR REPLACE`: that would silently drop another resource with the same address.
    connection
        .prepare_cached("DELETE FROM resource WHERE uid = ?1")?
        .execute([it.uid.as_str()])?;
    let sql = "INSERT INTO resource VALUES \
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    connection.prepare_cached(sql)?.execute(params![
        it.uid.as_str(),
        tenant,
        &*it.key.space,
        &*it.key.api_version,
        &*it.key.kind,
        &*it.key.name,
        &*it.form_ref.definition_version,
        &*it.form_ref.schema_digest,
        integer(it.generation.get()),
        integer(it.revision.get()),
        json(&*it.spec),
        &*it.spec_digest,
        json(&pins),
        it.native_id.as_deref(),
        integer(it.touches),
        json(&ConditionRow::of(&it.condition)),
        integer(it.made),
    ])?;
    Ok(())
}

fn put_replay(
    connection: &Connection,
    key: &ReplayKey,
    replay: &Replay,
    now: &str,
) -> rusqlite::Result<()> {
    let (bound_kind, bound_id) = Bound::columns(&replay.bound);
    let sql = "INSERT OR REPLACE INTO replay VALUES \
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    connection.prepare_cached(sql)?.execute(params![
        &*key.tenant,
        &*key.principal,
        key.space,
        key.key,
        &replay.fingerprint[..],
        replay.status,
        replay.etag,
        replay.body,
        bound_kind,
        bound_id,
        now,
    ])?;
    Ok(())
}
