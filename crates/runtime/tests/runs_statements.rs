//! `edge.sql` through a worker's binding, and migrations.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use notation_runtime::{Capability, MigrationError, MigrationFile};
use serde_json::json;
use support::{DRIVER, Host};

fn file(path: &str, sql: &str) -> MigrationFile {
    MigrationFile {
        path: path.into(),
        digest: format!("sha256:{sql}"),
        sql: sql.into(),
    }
}

async fn host() -> Host {
    let mut host = Host::start().await;
    host.worker("driver", DRIVER).environment = [(
        "DB".into(),
        Capability::Sql {
            database: "db".into(),
        },
    )]
    .into();
    host.converge().await;
    let files = vec![file(
        "1.sql",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE); CREATE INDEX i ON t (v);",
    )];
    host.runtime.migrate(&"db".into(), files).await.unwrap();
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn values_round_trip_and_numbers_that_do_not_fit_are_refused() {
    let host = host().await;
    let bytes = json!({ "encoding": "base64", "data": "AAECg/8=" });
    let row = host
        .call(
            "DB",
            "execute",
            json!([
                "SELECT ?1 AS n, ?2 AS t, ?3 AS b, ?4 AS z",
                [1.5, "text", bytes, null]
            ]),
        )
        .await;
    assert_eq!(
        row,
        json!({ "rows": [{ "n": 1.5, "t": "text", "b": bytes, "z": null }], "rowsWritten": 0 })
    );
    let most = 9_007_199_254_740_991_i64;
    let row = host
        .call(
            "DB",
            "query",
            json!(["SELECT ?1 AS n, typeof(?1) AS t, -1e0 AS r", [most]]),
        )
        .await;
    assert_eq!(
        row,
        json!({ "rows": [{ "n": most, "t": "integer", "r": -1 }], "rowsWritten": 0 })
    );
    for (code, sql, params) in [
        ("numeric_out_of_range", "SELECT ?1 AS n", json!([most + 1])),
        (
            "numeric_out_of_range",
            "SELECT ?1 AS n",
            json!([{ "$nan": 1 }]),
        ),
        (
            "numeric_out_of_range",
            "SELECT 9007199254740992 AS n",
            json!([]),
        ),
        ("numeric_out_of_range", "SELECT 1e999 AS n", json!([])),
        ("sql_error", "SELECT ?1 AS n", json!([true])),
        ("sql_error", "SELECT 1 AS a\0 and more", json!([])),
        ("sql_error", "SELECT ?1 AS n", json!([{ "$big": 1 }])),
        (
            "sql_error",
            "SELECT ?1 AS n",
            json!([{ "encoding": "base64", "data": "AB==" }]),
        ),
        ("sql_error", "SELECT ?1 AS n", json!([{ "$date": 0 }])),
        ("sql_error", "SELECT ?1 AS n", json!("x")),
        ("sql_error", "SELECT ?1 AS n", json!([])),
        ("sql_error", "SELECT 1 AS a, 2 AS a", json!([])),
        ("sql_error", "SELECT zeroblob(1000001) AS b", json!([])),
        (
            "sql_error",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10001) SELECT i FROM n",
            json!([]),
        ),
    ] {
        assert_eq!(
            host.refusal("DB", "query", json!([sql, params])).await,
            code,
            "{sql} {params}"
        );
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn execute_commits_query_rolls_back_and_a_transaction_is_all_or_nothing() {
    let host = host().await;
    let insert = "INSERT INTO t (v) VALUES (?1) RETURNING id";
    let written = host.call("DB", "execute", json!([insert, ["one"]])).await;
    assert_eq!(written, json!({ "rows": [{ "id": 1 }], "rowsWritten": 1 }));
    let tried = host.call("DB", "query", json!([insert, ["two"]])).await;
    assert_eq!(tried, json!({ "rows": [{ "id": 2 }], "rowsWritten": 0 }));
    let two = |last: &str| {
        json!([[{ "sql": insert, "params": ["two"] }, { "sql": insert, "params": [last] },
        { "sql": "SELECT count(*) AS n FROM t" }]])
    };
    assert_eq!(
        host.refusal("DB", "transaction", two("one")).await,
        "sql_error"
    );
    let count = json!(["SELECT count(*) AS n FROM t"]);
    assert_eq!(
        host.call("DB", "query", count.clone()).await["rows"][0]["n"],
        1
    );
    let done = host.call("DB", "transaction", two("three")).await;
    assert_eq!(
        done["results"][2],
        json!({ "rows": [{ "n": 3 }], "rowsWritten": 0 })
    );
    let updated = host
        .call("DB", "execute", json!(["UPDATE t SET v = v || '!'"]))
        .await;
    assert_eq!(updated["rowsWritten"], 3);
    for shape in [json!([[]]), json!(["x"]), json!([[null]]), json!([[{}]])] {
        assert_eq!(host.refusal("DB", "transaction", shape).await, "sql_error");
    }
    // A statement that ends the transaction by itself leaves the database usable.
    let rolls_back = json!(["INSERT OR ROLLBACK INTO t (v) VALUES ('one!')"]);
    assert_eq!(host.refusal("DB", "execute", rolls_back).await, "sql_error");
    let rolls_back = json!([[{ "sql": insert, "params": ["lost"] },
        { "sql": "INSERT OR ROLLBACK INTO t (v) VALUES ('one!')" }]]);
    assert_eq!(
        host.refusal("DB", "transaction", rolls_back).await,
        "sql_error"
    );
    assert_eq!(
        host.call("DB", "query", count.clone()).await["rows"][0]["n"],
        3
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_text_index_of_a_migration_is_searched() {
    let host = host().await;
    let sql = "CREATE VIRTUAL TABLE page USING fts5(body)";
    let migrated = host
        .runtime
        .migrate(&"db".into(), vec![file("9.sql", sql)])
        .await;
    migrated.unwrap();
    for body in ["a cycle of two", "a chain"] {
        let insert = json!(["INSERT INTO page (body) VALUES (?1)", [body]]);
        host.call("DB", "execute", insert).await;
    }
    let found = json!(["SELECT body FROM page WHERE page MATCH 'cycle'"]);
    assert_eq!(
        host.call("DB", "query", found).await["rows"],
        json!([{ "body": "a cycle of two" }])
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_outside_the_policy_are_refused_and_change_nothing() {
    let host = host().await;
    for sql in [
        "SELECT 1; SELECT 2",
        "SELECT 1;;",
        "",
        "-- nothing",
        "BEGIN",
        "COMMIT",
        "END",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        "CREATE TABLE x (id INTEGER)",
        "CREATE TEMP TABLE x (id INTEGER)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN w",
        "CREATE INDEX j ON t (v)",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO '/tmp/x'",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
        "ATTACH '/tmp/x' AS x",
        "DETACH main",
        "PRAGMA user_version",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_table_info('t')",
        "UPDATE sqlite_schema SET sql = ''",
        "DELETE FROM _notation_ledger",
        "INSERT INTO _NOTATION_LEDGER VALUES (9, 'x', 'y')",
        "SELECT load_extension('x')",
        "syntax error",
    ] {
        for method in ["query", "execute"] {
            assert_eq!(
                host.refusal("DB", method, json!([sql])).await,
                "sql_error",
                "{method} {sql}"
            );
        }
    }
    let tables = host
        .call(
            "DB",
            "query",
            json!(["SELECT name FROM sqlite_schema ORDER BY name"]),
        )
        .await;
    let names: Vec<_> = tables["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["_notation_ledger", "i", "sqlite_autoindex_t_1", "t"]
    );
    let ledger = host
        .call("DB", "query", json!(["SELECT path FROM _notation_ledger"]))
        .await;
    assert_eq!(ledger["rows"], json!([{ "path": "1.sql" }]));
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_extend_the_ledger_and_a_failing_file_leaves_the_earlier_ones() {
    let host = host().await;
    let first = file(
        "1.sql",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE); CREATE INDEX i ON t (v);",
    );
    let second = file(
        "2.sql",
        "ALTER TABLE t ADD COLUMN w DEFAULT 7; INSERT INTO t (v) VALUES ('a;b');",
    );
    let broken = file(
        "3.sql",
        "INSERT INTO t (v) VALUES ('lost'); CREATE TABLE t (id);",
    );
    let migrate = async |files: &[&MigrationFile]| {
        host.runtime
            .migrate(
                &"db".into(),
                files.iter().map(|file| (*file).clone()).collect(),
            )
            .await
    };
    // `1.sql` is applied; the control plane had not heard of it.
    let error = migrate(&[&first, &second, &broken]).await.unwrap_err();
    assert!(
        matches!(&error, MigrationError::File { done: 2, path, .. } if path == "3.sql"),
        "{error}"
    );
    migrate(&[&second]).await.unwrap();
    let rows = host
        .call("DB", "query", json!(["SELECT v, w FROM t"]))
        .await;
    assert_eq!(rows["rows"], json!([{ "v": "a;b", "w": 7 }]));
    let ledger = json!(["SELECT position, path FROM _notation_ledger ORDER BY position"]);
    let ledger = host.call("DB", "query", ledger).await;
    let expected = json!([{ "position": 0, "path": "1.sql" }, { "position": 1, "path": "2.sql" }]);
    assert_eq!(ledger["rows"], expected);
    for forbidden in [
        "COMMIT;",
        "ATTACH 'x' AS x;",
        "DELETE FROM _notation_ledger;",
        "DROP TABLE _notation_ledger;",
        "PRAGMA writable_schema = 1;",
    ] {
        let file = file("3.sql", forbidden);
        assert!(
            matches!(migrate(&[&file]).await, Err(MigrationError::File { .. })),
            "{forbidden}"
        );
    }
    host.runtime.shutdown().await;
}
