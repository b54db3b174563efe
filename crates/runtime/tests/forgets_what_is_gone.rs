//! Data of resources that are gone: found, removed, and nothing else with it.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notation_runtime::{Capability, MigrationFile, QueueSpec, Uid};
use serde_json::{Value, json};
use support::{DRIVER, Host};

const KEYS: [&str; 2] = ["gone", "stays"];

/// Everything of each family, twice: `gone-*` and `stays-*`.
async fn filled() -> Host {
    let mut host = Host::start().await;
    let mut environment = Vec::new();
    for key in KEYS {
        let uid = |family: &str| Uid::from(format!("{key}-{family}"));
        for (name, capability) in [
            (
                "KV",
                Capability::Kv {
                    namespace: uid("kv"),
                },
            ),
            ("OB", Capability::Objects { bucket: uid("ob") }),
            (
                "DB",
                Capability::Sql {
                    database: uid("db"),
                },
            ),
            ("Q", Capability::QueueProducer { queue: uid("q") }),
        ] {
            environment.push((format!("{name}_{key}"), capability));
        }
        let queue = QueueSpec {
            name: key.into(),
            delivery_delay_seconds: 0,
            retention_seconds: 3600,
            consumer: None,
        };
        host.plan.queues.insert(uid("q"), queue);
        let table = MigrationFile {
            path: "1.sql".into(),
            digest: "sha256:0".into(),
            sql: b"CREATE TABLE t (x)".to_vec(),
        };
        host.runtime.migrate(&uid("db"), vec![table]).await.unwrap();
    }
    host.worker("driver", DRIVER).environment = environment.into_iter().collect();
    host.converge().await;
    for key in KEYS {
        write(&host, key).await;
    }
    host
}

async fn write(host: &Host, key: &str) {
    let large = "x".repeat(300_000);
    host.call(&format!("KV_{key}"), "put", json!(["k", "v"]))
        .await;
    host.call(&format!("OB_{key}"), "put", json!(["k", large]))
        .await;
    host.call(&format!("Q_{key}"), "send", json!(["m"])).await;
}

fn uids(names: &[&str]) -> BTreeSet<Uid> {
    names.iter().map(|name| Uid::from(*name)).collect()
}

/// Every file below a directory whose path names `key`.
fn files(directory: &Path, key: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, key));
        } else if path.to_str().unwrap().contains(key) {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_what_is_gone_is_removed_and_nothing_else() {
    let host = filled().await;
    let kept = host.runtime.kept().await.unwrap();
    let all = [
        "gone-kv", "gone-ob", "gone-db", "gone-q", "stays-kv", "stays-ob", "stays-db", "stays-q",
    ];
    assert_eq!(kept, uids(&all));
    let data = host.directory.as_ref().unwrap().path().join("data");
    assert!(files(&data, "gone-").len() > 3);
    let before = files(&data, "stays-");
    for uid in &all[..4] {
        host.runtime.forget(&Uid::from(*uid)).await.unwrap();
        // What is gone already is no problem.
        host.runtime.forget(&Uid::from(*uid)).await.unwrap();
    }
    assert_eq!(host.runtime.kept().await.unwrap(), uids(&all[4..]));
    assert_eq!(files(&data, "gone-"), Vec::<PathBuf>::new());
    assert_eq!(files(&data, "stays-"), before);
    let value = host.call("KV_stays", "get", json!(["k"])).await;
    assert_ne!(value, Value::Null);
    let head = host.call("OB_stays", "head", json!(["k"])).await;
    assert_eq!(head["size"], 300_000);
    host.call("DB_stays", "execute", json!(["INSERT INTO t VALUES (1)"]))
        .await;
    // A process that still drains may write once more: it finds everything empty, and the next
    // look finds it.
    let value = host.call("KV_gone", "get", json!(["k"])).await;
    assert_eq!(value, Value::Null);
    let head = host.call("OB_gone", "head", json!(["k"])).await;
    assert_eq!(head, Value::Null);
    write(&host, "gone").await;
    let kept = host.runtime.kept().await.unwrap();
    assert!(kept.is_superset(&uids(&["gone-kv", "gone-ob", "gone-q"])));
    host.runtime.shutdown().await;
}
