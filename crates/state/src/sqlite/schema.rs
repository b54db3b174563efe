//! The file's tables, its format number, and how an older format is read and brought forward.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::rows::Rows;
use crate::StoreError;

/// Marks the file as ours (`PRAGMA application_id`): "NTTN".
const APPLICATION_ID: i32 = 0x4E54_544E;

/// The newest format this version writes (`PRAGMA user_version`).
pub(super) const FORMAT: u32 = 2;

/// What all deployments share; [`Rows::make`] adds the tables of each.
const TABLES: &str = "
CREATE TABLE store (salt BLOB NOT NULL);
CREATE TABLE deployment (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    fence INTEGER NOT NULL,
    hold TEXT,
    expires_ms INTEGER NOT NULL,
    open_from INTEGER NOT NULL,
    last_run_ms INTEGER,
    exports TEXT
);
CREATE TABLE secret (
    deployment INTEGER NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (deployment, name)
) WITHOUT ROWID;
";

/// One step forward: from the format before it.
pub(super) struct Migration {
    /// The format it starts from.
    pub from: u32,
    /// What changes.
    pub change: fn(&Connection) -> rusqlite::Result<()>,
    /// Shows a file of the format it starts from as the next one, without writing to it.
    pub show: fn(&Connection) -> rusqlite::Result<()>,
}

/// Every step from the first format to [`FORMAT`]. The first format has no predecessor.
pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    from: 1,
    change: give_each_its_tables,
    show: show_each_its_tables,
}];

/// Format 1 kept the rows of all deployments in one pair of tables.
fn give_each_its_tables(connection: &Connection) -> rusqlite::Result<()> {
    for row in deployments(connection)? {
        Rows(row).make(connection)?;
        connection.execute_batch(&format!(
            "INSERT INTO record_{row} SELECT id, resource, generation, body
                 FROM record WHERE deployment = {row} ORDER BY id;
             INSERT INTO journal_{row} SELECT seq, body
                 FROM journal WHERE deployment = {row} ORDER BY seq;"
        ))?;
    }
    connection.execute_batch("DROP TABLE record; DROP TABLE journal;")
}

fn show_each_its_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "temp_store", "memory")?;
    for row in deployments(connection)? {
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW record_{row} AS SELECT id, resource, generation, body
                 FROM main.record WHERE deployment = {row};
             CREATE TEMP VIEW journal_{row} AS SELECT seq, body
                 FROM main.journal WHERE deployment = {row};"
        ))?;
    }
    Ok(())
}

fn deployments(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare("SELECT id FROM deployment ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing in it yet.
    Blank,
    /// Our tables in this format.
    Ours(u32),
}

/// Looks at the file without changing it.
///
/// Errors: [`StoreError::Corrupt`] for somebody else's database, [`StoreError::Newer`].
pub(super) fn look(connection: &Connection, path: &Path, newest: u32) -> Result<Kind, StoreError> {
    let read = |error: rusqlite::Error| super::failure::cannot_read(path, &error);
    // One moment: another process may be making the tables right now.
    let connection = connection.unchecked_transaction().map_err(read)?;
    let format: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(read)?;
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(read)?;
    if application == APPLICATION_ID {
        return if format > newest {
            Err(StoreError::Newer {
                place: path.to_owned(),
                found: format,
                known: newest,
            })
        } else {
            Ok(Kind::Ours(format))
        };
    }
    let tables: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(read)?;
    if tables == 0 {
        Ok(Kind::Blank)
    } else {
        Err(StoreError::Corrupt {
            place: path.to_owned(),
            why: "it is a database of something else".into(),
        })
    }
}

/// Makes the tables, in one transaction with the format number.
pub(super) fn make(connection: &mut Connection, salt: &[u8]) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let tables: u32 =
        transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    // Another process may have made them meanwhile.
    if tables == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.execute("INSERT INTO store (salt) VALUES (?1)", [salt])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}

/// Lets this connection, and no other, read an older format as if it were the newest. Writes
/// nothing to the file.
pub(super) fn show_as_newest(
    connection: &Connection,
    from: u32,
    steps: &[Migration],
) -> rusqlite::Result<()> {
    let mut older = steps.iter().filter(|step| step.from >= from);
    older.try_for_each(|step| (step.show)(connection))
}

/// Brings an older format forward, after a copy beside the file (`state.db.format-1`).
/// Returns where the copy is.
pub(super) fn bring_forward(
    connection: &mut Connection,
    path: &Path,
    from: u32,
    steps: &[Migration],
) -> rusqlite::Result<PathBuf> {
    let copy = PathBuf::from(format!("{}.format-{from}", path.display()));
    if !copy.exists() {
        let target = copy.to_string_lossy().into_owned();
        connection.execute("VACUUM INTO ?1", [target])?;
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in steps.iter().filter(|step| step.from >= found) {
        (step.change)(&transaction)?;
        transaction.pragma_update(None, "user_version", step.from + 1)?;
    }
    transaction.commit()?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Acquired, Batch, Change, Claim, Hold, KeySource, Machine, RunId, SqliteStore, StateStore,
        contract,
    };

    /// Turns a file of the newest format into one of the first.
    fn as_format_1(path: &Path) {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE record (id INTEGER PRIMARY KEY, deployment INTEGER NOT NULL,
                     resource TEXT NOT NULL, generation INTEGER NOT NULL, body TEXT NOT NULL);
                 CREATE TABLE journal (seq INTEGER PRIMARY KEY, deployment INTEGER NOT NULL,
                     body TEXT NOT NULL);
                 PRAGMA user_version = 1;",
            )
            .unwrap();
        for row in deployments(&connection).unwrap() {
            connection
                .execute_batch(&format!(
                    "INSERT INTO record (deployment, resource, generation, body)
                         SELECT {row}, resource, generation, body FROM record_{row};
                     INSERT INTO journal (deployment, body) SELECT {row}, body FROM journal_{row};
                     UPDATE deployment SET open_from = 0;
                     DROP TABLE record_{row}; DROP TABLE journal_{row};"
                ))
                .unwrap();
        }
    }

    async fn hold(store: &SqliteStore, deployment: &str) -> Hold {
        let claim = Claim {
            run: RunId::random(),
            machine: Machine::here("m"),
            now_ms: 1,
            over: None,
        };
        let deployment = deployment.parse().unwrap();
        match store.acquire(&deployment, &claim).await.unwrap() {
            Acquired::Free(hold) | Acquired::TakenOver { hold, .. } => hold,
            Acquired::Taken(hold) => panic!("held: {hold:?}"),
        }
    }

    async fn put(store: &SqliteStore, deployment: &str, ids: &[&str]) {
        let hold = hold(store, deployment).await;
        let deployment = deployment.parse().unwrap();
        for id in ids {
            let batch = Batch {
                entries: Vec::new(),
                changes: vec![Change::put(contract::sample(id, 0))],
            };
            store.append(&deployment, &hold, batch).await.unwrap();
        }
        store.release(&deployment, &hold).await.unwrap();
    }

    async fn ids(store: &SqliteStore, deployment: &str) -> Vec<String> {
        let state = store.load(&deployment.parse().unwrap()).await.unwrap();
        let ids = state.records.keys().map(ToString::to_string);
        ids.collect()
    }

    #[tokio::test]
    async fn a_file_of_the_first_format_is_read_as_it_is_and_brought_forward_when_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let open = || SqliteStore::open(&path, KeySource::File(dir.path().join("key")));
        let store = open();
        put(&store, "shop:dev:main", &["a", "b"]).await;
        put(&store, "shop:prod:main", &["c"]).await;
        drop(store);
        as_format_1(&path);

        let before = std::fs::read(&path).unwrap();
        let store = open();
        assert_eq!(ids(&store, "shop:dev:main").await, ["a", "b"]);
        assert_eq!(ids(&store, "shop:prod:main").await, ["c"]);
        let deployments = store.deployments().await.unwrap();
        let counts: Vec<u64> = deployments.iter().map(|one| one.records).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(std::fs::read(&path).unwrap(), before);

        // The same store writes, and what it read through is out of its way.
        put(&store, "shop:dev:main", &["d"]).await;
        put(&store, "shop:test:main", &["e"]).await;
        drop(store);
        let store = open();
        assert_eq!(ids(&store, "shop:dev:main").await, ["a", "b", "d"]);
        assert_eq!(ids(&store, "shop:prod:main").await, ["c"]);
        assert_eq!(ids(&store, "shop:test:main").await, ["e"]);
        drop(store);
        let connection = Connection::open(&path).unwrap();
        let kind = look(&connection, &path, FORMAT).unwrap();
        assert_eq!(kind, Kind::Ours(FORMAT));
        assert!(dir.path().join("state.db.format-1").exists());
    }

    #[test]
    fn an_older_format_is_brought_forward_after_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        make(&mut connection, &[1; 16]).unwrap();
        let step = Migration {
            from: FORMAT,
            change: |connection| connection.execute_batch("ALTER TABLE store ADD COLUMN x TEXT"),
            show: |_| Ok(()),
        };
        let copy = bring_forward(&mut connection, &path, FORMAT, &[step]).unwrap();
        let next = FORMAT + 1;
        assert_eq!(look(&connection, &path, next).unwrap(), Kind::Ours(next));
        let old = Connection::open(copy).unwrap();
        assert_eq!(look(&old, &path, next).unwrap(), Kind::Ours(FORMAT));
    }

    #[test]
    fn a_newer_format_and_a_foreign_database_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let mut connection = Connection::open(&path).unwrap();
        assert_eq!(look(&connection, &path, 1).unwrap(), Kind::Blank);
        make(&mut connection, &[1; 16]).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        let error = look(&connection, &path, FORMAT).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 7, .. }));

        let other = Connection::open_in_memory().unwrap();
        other.execute_batch("CREATE TABLE songs (x)").unwrap();
        let error = look(&other, &path, FORMAT).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }));
    }
}
