//! `edge.sql@1.0.0`: one SQLite database per `SQLiteDatabase`, serializable through one
//! connection. The statement policy is in `policy.rs`, migrations in `migration.rs`.

use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Statement, TransactionBehavior};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Data;
use super::file::{Database, Family};
use super::operation::{Answer, Call, EncodedBytes, Refusal};
use super::policy::{self, Policy};
use crate::clock;
use crate::plan::Uid;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS _notation_ledger (
        position INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        digest TEXT NOT NULL
    );
";

const MOST_STATEMENT_BYTES: usize = 100_000;
const MOST_PARAMS: usize = 100;
const MOST_STATEMENTS: usize = 100;
const MOST_ROWS: usize = 10_000;
const MOST_COLUMNS: usize = 100;
const MOST_COLUMN_NAME_BYTES: usize = 128;
const MOST_VALUE_BYTES: usize = 1_000_000;
const MOST_ROW_BYTES: usize = 2_000_000;
const MOST_CALL_BYTES: usize = 8_388_608;
/// Numbers a double holds exactly.
const MOST_INTEGER: i64 = 9_007_199_254_740_991;
/// Longest wait for other calls on the same database.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time one call may compute: recursive queries need not end.
const CALL_BUDGET: Duration = Duration::from_secs(10);
/// Longest time one migration file may compute: filling a table or an index takes its time.
const MIGRATION_BUDGET: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
struct StatementInput {
    sql: String,
    #[serde(default)]
    params: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct TransactionInput {
    statements: Vec<StatementInput>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    rows: Vec<Value>,
    rows_written: u64,
}

#[derive(Serialize)]
struct Outputs {
    results: Vec<Output>,
}

/// What becomes of the effects of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Commit,
    RollBack,
}

pub(super) async fn operate(data: &Data, database: &Uid, call: Call) -> Result<Answer, Refusal> {
    let database = data.files.database(Family::Sql, database)?;
    let (statements, ending) = match call.operation.as_str() {
        "execute" => (vec![call.input(SQL_ERROR)?], Ending::Commit),
        "query" => (vec![call.input(SQL_ERROR)?], Ending::RollBack),
        "transaction" => (
            call.input::<TransactionInput>(SQL_ERROR)?.statements,
            Ending::Commit,
        ),
        _ => return Err(call.unknown()),
    };
    let single = call.operation != "transaction";
    run(&database, statements, ending, single).await
}

const SQL_ERROR: &str = "sql_error";

pub(super) fn refused(message: impl Into<String>) -> Refusal {
    Refusal::new(SQL_ERROR, message)
}

async fn run(
    database: &Database,
    statements: Vec<StatementInput>,
    ending: Ending,
    single: bool,
) -> Result<Answer, Refusal> {
    if !(1..=MOST_STATEMENTS).contains(&statements.len()) {
        return Err(refused(format!(
            "a transaction has 1 to {MOST_STATEMENTS} statements"
        )));
    }
    // Sizes and shapes are judged before any SQL runs.
    let prepared = statements
        .into_iter()
        .map(checked)
        .collect::<Result<Vec<_>, _>>()?;
    let busy = || Refusal::new("busy", "other calls on this database take too long");
    let document = database
        .with_patience(PATIENCE, busy, move |connection| {
            within(connection, Policy::Runtime, ending, |connection| {
                let mut budget = MOST_CALL_BYTES;
                let mut results = Vec::with_capacity(prepared.len());
                for (sql, params) in &prepared {
                    let mut output = step(connection, sql, params, &mut budget)?;
                    if ending == Ending::RollBack {
                        output.rows_written = 0;
                    }
                    results.push(output);
                }
                document(results, single)
            })
        })
        .await?;
    Ok(Answer::Document(document))
}

/// The output document, refused when its canonical form is too long.
fn document(mut results: Vec<Output>, single: bool) -> Result<Vec<u8>, Refusal> {
    let document = match (single, results.pop()) {
        (true, Some(output)) => serde_json_canonicalizer::to_vec(&output),
        (_, last) => {
            results.extend(last);
            serde_json_canonicalizer::to_vec(&Outputs { results })
        }
    };
    let document = document.map_err(Refusal::unavailable)?;
    match document.len() {
        length if length > MOST_CALL_BYTES => Err(refused("the result of the call is too large")),
        _ => Ok(document),
    }
}

/// Runs `work` in a transaction of its own under `policy`. Whatever fails leaves nothing.
fn within<T>(
    connection: &mut Connection,
    policy: Policy,
    ending: Ending,
    work: impl FnOnce(&Connection) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(told)?;
    let started = clock::now();
    let budget = match policy {
        Policy::Runtime => CALL_BUDGET,
        Policy::Migration => MIGRATION_BUDGET,
    };
    transaction.progress_handler(4096, Some(move || started.elapsed() > budget))?;
    policy::apply(&transaction, policy)?;
    let done = work(&transaction);
    // The policy denies transaction control, the host's own included.
    policy::lift(&transaction)?;
    transaction.progress_handler(0, None::<fn() -> bool>)?;
    match (&done, ending) {
        (Ok(_), Ending::Commit) => transaction.commit().map_err(told)?,
        // A conflict clause or a trigger may have rolled back already.
        (Err(_), _) if transaction.is_autocommit() => {}
        (Ok(_), Ending::RollBack) | (Err(_), _) => transaction.rollback()?,
    }
    done
}

/// Runs statements of a migration file in one transaction that also writes the ledger.
pub(super) fn migrate_file(
    connection: &mut Connection,
    sql: &str,
    record: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
) -> Result<(), Refusal> {
    within(
        connection,
        Policy::Migration,
        Ending::Commit,
        |connection| {
            connection.execute_batch(whole(sql)?).map_err(told)?;
            policy::lift(connection)?;
            record(connection)?;
            Ok(())
        },
    )
}

fn checked(input: StatementInput) -> Result<(String, Vec<rusqlite::types::Value>), Refusal> {
    if input.sql.len() > MOST_STATEMENT_BYTES {
        return Err(refused(format!(
            "a statement has at most {MOST_STATEMENT_BYTES} bytes"
        )));
    }
    policy::single(&input.sql).map_err(refused)?;
    let params = input.params.unwrap_or_default();
    if params.len() > MOST_PARAMS {
        return Err(refused(format!(
            "a statement has at most {MOST_PARAMS} parameters"
        )));
    }
    let params = params.into_iter().map(bound).collect::<Result<_, _>>()?;
    Ok((input.sql, params))
}

/// A parameter as SQLite gets it: integral numbers as INTEGER, others as REAL.
fn bound(value: Value) -> Result<rusqlite::types::Value, Refusal> {
    use rusqlite::types::Value as Sql;
    match value {
        Value::Null => Ok(Sql::Null),
        Value::Number(number) => {
            let number = number
                .as_f64()
                .filter(|number| number.abs() <= MOST_INTEGER as f64)
                .ok_or_else(range)?;
            Ok(if number.fract() == 0.0 {
                Sql::Integer(number as i64)
            } else {
                Sql::Real(number)
            })
        }
        Value::String(text) if text.len() <= MOST_VALUE_BYTES => Ok(Sql::Text(text)),
        Value::Object(_) => {
            let encoded: EncodedBytes = serde_json::from_value(value)
                .map_err(|_| refused("an object that is not encoded bytes is no SQL value"))?;
            let bytes = encoded
                .decode()
                .ok_or_else(|| refused("encoded bytes are not canonical base64"))?;
            match bytes.len() {
                ..=MOST_VALUE_BYTES => Ok(Sql::Blob(bytes)),
                _ => Err(too_large()),
            }
        }
        Value::String(_) => Err(too_large()),
        Value::Bool(_) | Value::Array(_) => Err(refused("booleans and lists are no SQL values")),
    }
}

fn range() -> Refusal {
    Refusal::new(
        "numeric_out_of_range",
        "a number is outside the range of exact doubles",
    )
}

fn too_large() -> Refusal {
    refused(format!("a value has at most {MOST_VALUE_BYTES} bytes"))
}

/// A text that is read to its end: SQLite takes U+0000 for the end of a statement.
fn whole(sql: &str) -> Result<&str, Refusal> {
    if sql.contains('\0') {
        return Err(refused("the text has U+0000 in it"));
    }
    Ok(sql)
}

fn step(
    connection: &Connection,
    sql: &str,
    params: &[rusqlite::types::Value],
    budget: &mut usize,
) -> Result<Output, Refusal> {
    let mut statement = connection.prepare(whole(sql)?).map_err(told)?;
    if statement.parameter_count() != params.len() {
        let (wanted, given) = (statement.parameter_count(), params.len());
        return Err(refused(format!(
            "the statement has {wanted} parameters, {given} were given"
        )));
    }
    let columns = columns(&statement)?;
    let writes = !statement.readonly();
    let mut rows = statement
        .query(rusqlite::params_from_iter(params))
        .map_err(told)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(told)? {
        if found.len() == MOST_ROWS {
            return Err(refused(format!(
                "a statement gives at most {MOST_ROWS} rows"
            )));
        }
        let mut object = Map::with_capacity(columns.len());
        for (index, name) in columns.iter().enumerate() {
            object.insert(name.clone(), shown(row.get_ref(index).map_err(told)?)?);
        }
        let object = Value::Object(object);
        let length = serde_json_canonicalizer::to_vec(&object)
            .map_err(Refusal::unavailable)?
            .len();
        if length > MOST_ROW_BYTES {
            return Err(refused(format!("a row has at most {MOST_ROW_BYTES} bytes")));
        }
        *budget = budget
            .checked_sub(length)
            .ok_or_else(|| refused("the result of the call is too large"))?;
        found.push(object);
    }
    drop(rows);
    let rows_written = if writes { connection.changes() } else { 0 };
    Ok(Output {
        rows: found,
        rows_written,
    })
}

fn columns(statement: &Statement<'_>) -> Result<Vec<String>, Refusal> {
    let names: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    if names.len() > MOST_COLUMNS {
        return Err(refused(format!("a row has at most {MOST_COLUMNS} columns")));
    }
    if names.iter().any(|name| name.len() > MOST_COLUMN_NAME_BYTES) {
        return Err(refused(format!(
            "a column name has at most {MOST_COLUMN_NAME_BYTES} bytes"
        )));
    }
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    match distinct.len() == names.len() {
        true => Ok(names),
        false => Err(refused("two columns of the result have the same name")),
    }
}

fn shown(value: ValueRef<'_>) -> Result<Value, Refusal> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) if (-MOST_INTEGER..=MOST_INTEGER).contains(&number) => {
            Ok(number.into())
        }
        ValueRef::Real(number) if number.abs() <= MOST_INTEGER as f64 => {
            serde_json::Number::from_f64(number)
                .map(Value::Number)
                .ok_or_else(range)
        }
        ValueRef::Integer(_) | ValueRef::Real(_) => Err(range()),
        ValueRef::Text(bytes) if bytes.len() <= MOST_VALUE_BYTES => std::str::from_utf8(bytes)
            .map(Value::from)
            .map_err(|_| refused("a text of the result is not UTF-8")),
        ValueRef::Blob(bytes) if bytes.len() <= MOST_VALUE_BYTES => {
            serde_json::to_value(EncodedBytes::of(bytes)).map_err(Refusal::unavailable)
        }
        ValueRef::Text(_) | ValueRef::Blob(_) => Err(too_large()),
    }
}

/// A failure of SQLite as a code: its own trouble is the host's, the rest is the statement's.
pub(super) fn told(error: rusqlite::Error) -> Refusal {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Refusal::new("busy", "the database is in use")
        }
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::NotADatabase
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::OutOfMemory,
        ) => Refusal::unavailable(error),
        Some(ErrorCode::OperationInterrupted) => {
            refused("the statement took longer than it may, and was stopped")
        }
        Some(_) | None => refused(error.to_string()),
    }
}
