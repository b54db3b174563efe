//! Random documents of every kind, from a few names, so that they meet each other.

use crate::bench::*;
use notation_edge::EdgeKind;
use serde_json::{Value, json};

/// Digests of the manifests that random bundles and migration sets name.
#[derive(Debug, Clone)]
pub struct Digests {
    /// A module that exports every handler, and one that exports `fetch` only.
    pub modules: [String; 2],
    /// Migration lists: one file, the same and another one, that other one alone.
    pub migrations: [String; 3],
}

/// One throw.
#[derive(Debug, Clone, Copy)]
pub struct Dice(pub [u8; 8]);

impl Dice {
    /// One of several, by one of the dice.
    pub fn pick<'a>(self, at: usize, from: &[&'a str]) -> &'a str {
        from[usize::from(self.0[at]) % from.len()]
    }
}

const WORKERS: [&str; 3] = ["w0", "w1", "w2"];
const BUNDLES: [&str; 2] = ["b0", "b1"];
const VERSIONS: [&str; 5] = ["v0", "v1", "v2", "v3", "v4"];
const QUEUES: [&str; 3] = ["q0", "q1", "q2"];
const SETS: [&str; 3] = ["s0", "s1", "s2"];

/// What random domains claim.
pub const HOSTNAMES: [&str; 2] = ["a.example.com", "b.example.com"];

/// What random documents find in a space, so that they are not all refused for a missing target
/// and meet dependents: two workers that serve, one calling the other, with everything attached.
pub fn standing(digests: &Digests, hostname: &str) -> Vec<(EdgeKind, &'static str, Value)> {
    let bundle = |at: usize| json!({"manifestDigest": digests.modules[at]});
    let set = |at: usize| json!({"manifestDigest": digests.migrations[at]});
    let version = |worker, handlers: &[&str]| version_spec(worker, "b0", handlers);
    vec![
        (EdgeKind::ModuleWorker, "w0", json!({})),
        (EdgeKind::ModuleWorker, "w1", json!({})),
        (EdgeKind::WorkerBundle, "b0", bundle(0)),
        (EdgeKind::WorkerBundle, "b1", bundle(1)),
        (EdgeKind::EdgeKVNamespace, "kv", json!({})),
        (EdgeKind::AtLeastOnceQueue, "q0", queue_spec(60)),
        (EdgeKind::AtLeastOnceQueue, "q1", queue_spec(60)),
        (EdgeKind::SQLiteDatabase, "db", json!({})),
        (EdgeKind::SQLiteMigrationSet, "s0", set(0)),
        (EdgeKind::SQLiteMigrationSet, "s1", set(1)),
        (EdgeKind::WorkerVersion, "v0", version("w0", &ALL)),
        (EdgeKind::WorkerVersion, "v1", version("w0", &["fetch"])),
        (
            EdgeKind::WorkerDeployment,
            "d0",
            deployment_spec("w0", &[("v0", 10_000)]),
        ),
        (
            EdgeKind::WorkerVersion,
            "v2",
            service_spec("w1", "b1", "w0"),
        ),
        (
            EdgeKind::WorkerDeployment,
            "d1",
            deployment_spec("w1", &[("v2", 10_000)]),
        ),
        (
            EdgeKind::WorkerCustomDomain,
            "h0",
            domain_spec("w0", hostname),
        ),
        (EdgeKind::WorkerEndpoint, "e0", endpoint_spec("w0")),
        (
            EdgeKind::WorkerCronTrigger,
            "t0",
            cron_spec("w0", "0 * * * *"),
        ),
        (
            EdgeKind::QueueConsumer,
            "c0",
            consumer_spec("w0", "q0", Some("q1")),
        ),
    ]
}

/// A random document.
pub fn wanted(dice: Dice, digests: &Digests) -> (EdgeKind, &'static str, Value) {
    let worker = dice.pick(2, &WORKERS);
    match dice.0[0] % 24 {
        0 | 1 => (EdgeKind::ModuleWorker, worker, json!({})),
        2 => {
            let digest = &digests.modules[usize::from(dice.0[3]) % 2];
            (
                EdgeKind::WorkerBundle,
                dice.pick(4, &BUNDLES),
                json!({"manifestDigest": digest}),
            )
        }
        3 => (EdgeKind::EdgeKVNamespace, "kv", json!({})),
        4 => (
            EdgeKind::AtLeastOnceQueue,
            dice.pick(3, &QUEUES),
            json!({"messageRetentionSeconds": 60 + u32::from(dice.0[4] % 2)}),
        ),
        5 => (EdgeKind::SQLiteDatabase, "db", json!({})),
        6 => {
            let at = usize::from(dice.0[3]) % 3;
            (
                EdgeKind::SQLiteMigrationSet,
                SETS[at],
                json!({"manifestDigest": digests.migrations[at]}),
            )
        }
        7 => {
            let spec = json!({"database": to("SQLiteDatabase", "db"), "migrationSet": to("SQLiteMigrationSet", dice.pick(3, &SETS))});
            (
                EdgeKind::SQLiteMigrationApplication,
                dice.pick(4, &["m0", "m1"]),
                spec,
            )
        }
        8..=12 => {
            let handlers: &[&str] = match dice.0[3] % 3 {
                0 => &["fetch"],
                1 => &["fetch", "scheduled", "queue"],
                _ => &["scheduled", "queue"],
            };
            let mut spec = version_spec(worker, dice.pick(4, &BUNDLES), handlers);
            if dice.0[5].is_multiple_of(3) {
                spec = with(
                    spec,
                    "serviceBindings",
                    json!([{"name": "PEER", "resource": to("ModuleWorker", dice.pick(6, &WORKERS))}]),
                );
            }
            if dice.0[5] % 4 == 1 {
                spec = with(
                    spec,
                    "kvBindings",
                    json!([{"name": "KV", "resource": to("EdgeKVNamespace", "kv")}]),
                );
            }
            if dice.0[5] % 5 == 2 {
                spec = with(spec, "requiredSensitiveVars", json!(["KEY"]));
            }
            (EdgeKind::WorkerVersion, dice.pick(7, &VERSIONS), spec)
        }
        13..=17 => {
            let (first, second) = (dice.pick(3, &VERSIONS), dice.pick(4, &VERSIONS));
            let spec = match dice.0[5] % 4 {
                0 => deployment_spec(worker, &[(first, 1000), (second, 9000)]),
                1 => deployment_spec(worker, &[(first, 9999)]),
                _ => deployment_spec(worker, &[(first, 10_000)]),
            };
            (
                EdgeKind::WorkerDeployment,
                dice.pick(6, &["d0", "d1", "d2"]),
                spec,
            )
        }
        18 => (
            EdgeKind::WorkerCustomDomain,
            dice.pick(3, &["h0", "h1"]),
            domain_spec(worker, dice.pick(4, &HOSTNAMES)),
        ),
        19 => (
            EdgeKind::WorkerEndpoint,
            dice.pick(3, &["e0", "e1"]),
            endpoint_spec(worker),
        ),
        20 => (
            EdgeKind::WorkerCronTrigger,
            "t0",
            cron_spec(worker, dice.pick(3, &["0 * * * *", "5 * * * *"])),
        ),
        _ => {
            let dead = (dice.0[5].is_multiple_of(2)).then(|| dice.pick(4, &QUEUES));
            (
                EdgeKind::QueueConsumer,
                dice.pick(6, &["c0", "c1", "c2"]),
                consumer_spec(worker, dice.pick(3, &QUEUES), dead),
            )
        }
    }
}
