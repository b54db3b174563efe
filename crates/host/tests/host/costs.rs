//! What an admission costs depends on its neighbours and not on everything else that is stored.
//! Costs are counted, not timed: allocations of the decision, rows of the answer.

use crate::bench::*;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use notation_edge::{
    Change, Delete, EdgeKind, FAMILY, Key, Removal, SealedReadiness, World, admit,
};
use notation_host::{Contracts, Grant, Host, NoDataPlane, Scope};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: &str = "2026-01-01T00:00:00Z";

struct Judge {
    contracts: Contracts,
    minted: usize,
}

impl Judge {
    fn put(&mut self, world: &World, kind: EdgeKind, name: &str, spec: Value) -> Change {
        self.minted += 1;
        let wanted = (kind, name, spec);
        Change::Put(put(&self.contracts, world, "one", wanted, self.minted))
    }

    fn grown(&mut self, world: &World, kind: EdgeKind, name: &str, spec: Value) -> World {
        let change = self.put(world, kind, name, spec);
        admit(world, &change, NOW).unwrap().after().clone()
    }
}

/// A serving worker with everything attached; names begin with `name`.
fn aggregate(judge: &mut Judge, mut world: World, name: &str) -> World {
    let of = |part: &str| format!("{name}-{part}");
    let version = version_spec(&of("w"), &of("b"), &ALL);
    let hostname = format!("{name}.example.com");
    for (kind, part, spec) in [
        (EdgeKind::ModuleWorker, "w", json!({})),
        (EdgeKind::AtLeastOnceQueue, "q", queue_spec(600)),
        (
            EdgeKind::WorkerBundle,
            "b",
            json!({"manifestDigest": digest()}),
        ),
        (EdgeKind::WorkerVersion, "v1", version.clone()),
        (EdgeKind::WorkerVersion, "v2", version),
        (
            EdgeKind::WorkerDeployment,
            "d",
            deployment_spec(&of("w"), &[(&of("v1"), 10_000)]),
        ),
        (
            EdgeKind::WorkerCustomDomain,
            "h",
            domain_spec(&of("w"), &hostname),
        ),
        (EdgeKind::WorkerEndpoint, "e", endpoint_spec(&of("w"))),
        (
            EdgeKind::QueueConsumer,
            "c",
            consumer_spec(&of("w"), &of("q"), None),
        ),
    ] {
        world = judge.grown(&world, kind, &of(part), spec);
    }
    world
}

fn digest() -> String {
    format!("sha256:{}", "a".repeat(64))
}

/// Allocations of each kind of change of one aggregate.
fn allocations(judge: &mut Judge, world: &World) -> Vec<(&'static str, u64)> {
    let hostname = |name: &str| domain_spec("a-w", name);
    let weights = deployment_spec("a-w", &[("a-v1", 5000), ("a-v2", 5000)]);
    let removed = world
        .at(&Key::new("one", FAMILY, "WorkerCustomDomain", "a-h"))
        .unwrap();
    let delete = Change::Delete(Delete {
        key: removed.key.clone(),
        form_ref: removed.form_ref.clone(),
        generation: "1".to_owned(),
        if_match: None,
        accepted: None,
        removal: Removal::Asked,
    });
    let changes = [
        (
            "create",
            judge.put(world, EdgeKind::EdgeKVNamespace, "fresh", json!({})),
        ),
        (
            "update",
            judge.put(world, EdgeKind::AtLeastOnceQueue, "a-q", queue_spec(700)),
        ),
        (
            "deploy",
            judge.put(world, EdgeKind::WorkerDeployment, "a-d", weights),
        ),
        (
            "attach",
            judge.put(
                world,
                EdgeKind::WorkerCustomDomain,
                "a-h2",
                hostname("fresh.example.com"),
            ),
        ),
        (
            "refuse",
            judge.put(
                world,
                EdgeKind::WorkerCustomDomain,
                "a-h3",
                hostname("a.example.com"),
            ),
        ),
        ("delete", delete),
    ];
    changes
        .into_iter()
        .map(|(name, change)| {
            let counted = allocation_counter::measure(|| {
                assert_eq!(admit(world, &change, NOW).is_err(), name == "refuse");
            });
            (name, counted.count_total)
        })
        .collect()
}

#[test]
fn a_decision_costs_the_same_beside_thousands_of_others() {
    let contracts = Contracts::load(None, None).unwrap();
    let mut world = World::empty(
        contracts.catalog.clone(),
        "endpoints.localhost",
        SealedReadiness::Ignored,
    );
    world.hold(
        &digest(),
        Arc::new(notation_edge::Manifest {
            kind: notation_edge::ManifestKind::WorkerBundle,
            main_module: None,
            entries: Vec::new(),
        }),
    );
    let mut judge = Judge {
        contracts,
        minted: 0,
    };
    let small = aggregate(&mut judge, world, "a");
    let alone = allocations(&mut judge, &small);
    let mut large = small;
    for number in 0..1000 {
        large = aggregate(&mut judge, large, &format!("x{number}"));
    }
    assert!(large.len() > 9000);
    let among = allocations(&mut judge, &large);
    for ((name, alone), (_, among)) in alone.into_iter().zip(among) {
        eprintln!(
            "{name}: {alone} allocations alone, {among} among {}",
            large.len()
        );
        // The persistent maps are a little deeper, nothing else.
        assert!(
            among <= alone + 150,
            "{name}: {alone} alone, {among} among {}",
            large.len()
        );
    }
}

/// A host with as many tenants, each with resources of its own.
async fn peopled(dir: &std::path::Path, tenants: usize) -> Host {
    let host = Host::open(config(dir), Arc::new(NoDataPlane))
        .await
        .unwrap();
    let one = async |number: usize| {
        let grant = Grant {
            tenant: format!("t{number}"),
            principal: "p".to_owned(),
            scopes: [Scope::Api].into(),
            label: String::new(),
        };
        host.install_token(&format!("token{number}"), grant)
            .await
            .unwrap();
        for name in ["one", "two"] {
            mutate(&host, number, name).await;
        }
    };
    // Many at a time share what waits for the disk.
    let numbers: Vec<usize> = (0..tenants).collect();
    for some in numbers.chunks(100) {
        futures::future::join_all(some.iter().map(|number| one(*number))).await;
    }
    host
}

/// Creates a namespace as one tenant, with prepare and apply.
async fn mutate(host: &Host, tenant: usize, name: &str) {
    let form = host.contracts().catalog.family(EdgeKind::EdgeKVNamespace);
    let id = &form.unwrap().form_ref;
    let mut document = json!({
        "apiVersion": &*id.api_version, "kind": &*id.kind,
        "form": {"formRef": {
            "apiVersion": &*id.api_version, "kind": &*id.kind,
            "definitionVersion": &*id.definition_version, "schemaDigest": &*id.schema_digest,
        }},
        "metadata": {"name": name, "space": SPACE}, "spec": {},
    });
    let send = async |method: &str, target: String, document: &Value| {
        let request = axum::http::Request::builder()
            .method(method)
            .uri(target)
            .header("authorization", format!("Bearer token{tenant}"))
            .header("idempotency-key", name)
            .header("if-none-match", "*")
            .body(axum::body::Body::from(document.to_string()))
            .unwrap();
        let service = TowerToHyperService::new(host.router());
        let response = service.call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        (status, body.unwrap())
    };
    let (status, body) = send("POST", format!("{API}/resources/prepare"), &document).await;
    assert_eq!(status, 200, "{body:?}");
    let prepared: Value = serde_json::from_slice(&body).unwrap();
    document["review"] = json!({"prepareDigest": prepared["review"]["prepareDigest"]});
    let target = format!("{API}/resources/{EDGE}/EdgeKVNamespace/{name}");
    let (status, body) = send("PUT", target, &document).await;
    assert_eq!(status, 201, "{body:?}");
}

#[test]
fn a_mutation_costs_the_same_beside_a_thousand_tenants() {
    // All of a request runs on this one thread, but for writing to the disk.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let counted = |tenants: usize| {
        let temp = tempfile::tempdir().unwrap();
        let host = runtime.block_on(peopled(&temp.path().join("data"), tenants));
        // The first one after a pause also frees what waited.
        runtime.block_on(mutate(&host, 0, "before"));
        let counted = allocation_counter::measure(|| {
            runtime.block_on(mutate(&host, 0, "counted"));
        });
        counted.count_total
    };
    let (few, many) = (counted(2), counted(1_000));
    eprintln!("one mutation: {few} allocations beside 2 tenants, {many} beside 1000");
    // The map of tenants is a little deeper, nothing else.
    assert!(
        many <= few + 200,
        "{few} beside 2 tenants, {many} beside 1000"
    );
}

/// Rows that each kind of mutation writes.
async fn rows(bench: &Bench) -> Vec<(&'static str, usize)> {
    let client = bench.t1();
    let mut counts = Vec::new();
    let mut before = bench.rows();
    let mut count = |name| {
        let after = bench.rows();
        counts.push((name, before.written(&after).values().sum()));
        before = after;
    };
    client.kv("fresh").await;
    count("create");
    client
        .update("AtLeastOnceQueue", "q", queue_spec(700))
        .await
        .updated();
    count("update");
    client
        .update("AtLeastOnceQueue", "q", queue_spec(700))
        .await
        .updated();
    count("update with the same");
    let rival = deployment_spec("w", &[("w-v1", 10_000)]);
    let refused = client.create("WorkerDeployment", "rival", rival).await;
    refused.refused("invalid_argument");
    count("refuse");
    client
        .weigh("w", &[("w-v1", 5000), ("w-v2", 5000)])
        .await
        .updated();
    count("deploy");
    client.remove("EdgeKVNamespace", "fresh").await;
    count("delete");
    client.remove("WorkerDeployment", "w-deployment").await;
    count("delete a deployment");
    counts
}

#[tokio::test]
async fn a_mutation_writes_what_it_changes_and_its_record() {
    let mut counts = Vec::new();
    for others in [0, 200] {
        let bench = Bench::start().await;
        let client = bench.t1();
        client.serving("w", &["fetch"]).await;
        client.version("w", "w-v2", &["fetch"]).await;
        client.queue("q").await;
        for number in 0..others {
            client.kv(&format!("other-{number}")).await;
        }
        counts.push(rows(&bench).await);
    }
    // The worker's rendering moves when its deployment goes; every acceptance has its record.
    let wanted = [
        ("create", 2),
        ("update", 2),
        ("update with the same", 1),
        ("refuse", 0),
        ("deploy", 2),
        ("delete", 1),
        ("delete a deployment", 2),
    ];
    assert_eq!(counts[0], wanted);
    assert_eq!(counts[1], wanted);
}
