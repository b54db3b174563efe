//! From a host's world to what should run.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

use std::path::Path;
use std::sync::Arc;

use notation_edge::{
    Binding, Catalog, Condition, Entry, FAMILY, Form, FormRef, Generation, Interface, InterfaceRef,
    Key, Manifest, ManifestKind, Pin, Reason, Resource, Revision, SealedReadiness, World,
};
use notation_runtime::{AssetsOrder, Capability, Handler, NotFound, Secret, Uid, derive};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A resource whose uid is its name; `pins` are (concrete path, relation, kind, target uid).
fn resource(kind: &str, name: &str, spec: Value, pins: &[(&str, &str, &str, &str)]) -> Resource {
    let form_ref = |kind: &str| FormRef {
        api_version: FAMILY.into(),
        kind: kind.into(),
        definition_version: "1.0.0".into(),
        schema_digest: "sha256:0".into(),
    };
    let pin = |(pointer, relation, kind, uid): &(&str, &str, &str, &str)| Pin {
        pointer: (*pointer).into(),
        relation: (*relation).into(),
        api_version: FAMILY.into(),
        kind: (*kind).into(),
        name: (*uid).into(),
        uid: notation_edge::Uid::new(*uid),
        form_ref: form_ref(kind),
        binding: None,
    };
    Resource {
        uid: notation_edge::Uid::new(name),
        key: Key::new("space", FAMILY, kind, name),
        form_ref: form_ref(kind),
        generation: Generation::FIRST,
        revision: Revision::FIRST,
        spec: Arc::new(spec),
        spec_digest: "sha256:0".into(),
        pins: pins.iter().map(pin).collect(),
        native_id: None,
        touches: 0,
        made: 0,
        condition: Condition {
            reason: Reason::Available,
            host_reason: None,
            message: None,
            since: "2026-01-01T00:00:00Z".into(),
        },
    }
}

/// The contract documents of the repository.
fn catalog() -> Catalog {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/contracts");
    let definitions = |folder: &str| {
        let folders = std::fs::read_dir(root.join(folder)).unwrap();
        let paths = folders.map(|entry| entry.unwrap().path().join("definition.json"));
        paths
            .filter(|path| path.is_file())
            .map(|path| {
                let mut definition: Value =
                    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
                let canonical = serde_json_canonicalizer::to_vec(&definition).unwrap();
                let digest = format!("sha256:{}", hex::encode(Sha256::digest(canonical)));
                let bare = definition.clone();
                definition["schemaDigest"] = json!(digest);
                (bare, definition, digest)
            })
            .collect::<Vec<_>>()
    };
    let forms = definitions("forms/candidates/edge/v1beta1");
    let interfaces = definitions("interfaces/candidates/v1alpha1");
    let bindings = definitions("bindings/candidates/v1alpha1");
    let form = |(bare, _, digest): &(Value, Value, String)| Form::read(bare, digest, None).unwrap();
    let interface = |(bare, with, _): &(Value, Value, String)| Interface {
        interface_ref: InterfaceRef::read(with).unwrap(),
        definition: bare.clone(),
    };
    let binding = |(bare, _, digest): &(Value, Value, String)| Binding::read(bare, digest).unwrap();
    let catalog = Catalog::new(
        forms.iter().map(form).collect(),
        interfaces.iter().map(interface).collect(),
        bindings.iter().map(binding).collect(),
    );
    catalog.unwrap()
}

fn world() -> World {
    let catalog = Arc::new(catalog());
    let mut world = World::empty(catalog, "endpoints.test", SealedReadiness::Required);
    let entry = |path: &str, media_type: &str| Entry {
        path: path.into(),
        media_type: media_type.into(),
        size: 3,
        digest: format!("sha256:{path}"),
    };
    let manifest = |kind, main_module: Option<&str>, entries| Manifest {
        kind,
        main_module: main_module.map(str::to_owned),
        entries,
    };
    let code = vec![
        entry("index.js", "application/javascript+module"),
        entry("a.txt", "text/plain"),
    ];
    world.hold(
        "sha256:code",
        Arc::new(manifest(ManifestKind::WorkerBundle, Some("index.js"), code)),
    );
    let files = vec![entry("index.html", "text/html")];
    world.hold(
        "sha256:files",
        Arc::new(manifest(ManifestKind::StaticAssetBundle, None, files)),
    );
    for made in [
        resource("ModuleWorker", "api", json!({}), &[]),
        resource("ModuleWorker", "idle", json!({}), &[]),
        resource(
            "WorkerBundle",
            "bundle",
            json!({ "manifestDigest": "sha256:code" }),
            &[],
        ),
        resource(
            "StaticAssetBundle",
            "site",
            json!({ "manifestDigest": "sha256:files" }),
            &[],
        ),
        resource(
            "AtLeastOnceQueue",
            "jobs",
            json!({ "deliveryDelaySeconds": 5, "messageRetentionSeconds": 60 }),
            &[],
        ),
        resource(
            "WorkerVersion",
            "v1",
            json!({
                "handlers": ["fetch", "queue"], "vars": { "LEVEL": { "deep": [1] } }, "requiredSensitiveVars": ["TOKEN"],
                "serviceBindings": [{ "name": "PEER" }], "kvBindings": [{ "name": "KV" }], "bucketBindings": [{ "name": "B" }],
                "sqliteBindings": [{ "name": "DB" }], "queueProducerBindings": [{ "name": "Q" }],
                "assets": { "runWorkerFirst": true, "notFoundHandling": "single_page_application" },
            }),
            &[
                ("/worker", "/worker", "ModuleWorker", "api"),
                ("/bundle", "/bundle", "WorkerBundle", "bundle"),
                (
                    "/assets/bundle",
                    "/assets/bundle",
                    "StaticAssetBundle",
                    "site",
                ),
                (
                    "/serviceBindings/0/resource",
                    "/serviceBindings/*/resource",
                    "ModuleWorker",
                    "idle",
                ),
                (
                    "/kvBindings/0/resource",
                    "/kvBindings/*/resource",
                    "EdgeKVNamespace",
                    "kv",
                ),
                (
                    "/bucketBindings/0/resource",
                    "/bucketBindings/*/resource",
                    "ObjectBucket",
                    "bucket",
                ),
                (
                    "/sqliteBindings/0/resource",
                    "/sqliteBindings/*/resource",
                    "SQLiteDatabase",
                    "db",
                ),
                (
                    "/queueProducerBindings/0/resource",
                    "/queueProducerBindings/*/resource",
                    "AtLeastOnceQueue",
                    "jobs",
                ),
            ],
        ),
        resource(
            "WorkerVersion",
            "unused",
            json!({ "handlers": ["fetch"] }),
            &[
                ("/worker", "/worker", "ModuleWorker", "api"),
                ("/bundle", "/bundle", "WorkerBundle", "bundle"),
            ],
        ),
        resource(
            "WorkerDeployment",
            "deployment",
            json!({ "versions": [{ "weight": 10_000 }] }),
            &[
                ("/worker", "/worker", "ModuleWorker", "api"),
                (
                    "/versions/0/workerVersion",
                    "/versions/*/workerVersion",
                    "WorkerVersion",
                    "v1",
                ),
            ],
        ),
        resource(
            "WorkerEndpoint",
            "endpoint",
            json!({}),
            &[("/worker", "/worker", "ModuleWorker", "api")],
        ),
        resource(
            "WorkerCustomDomain",
            "domain",
            json!({ "hostname": "app.example.com" }),
            &[("/worker", "/worker", "ModuleWorker", "api")],
        ),
        resource(
            "WorkerCronTrigger",
            "cron",
            json!({ "cron": "*/5 * * * *" }),
            &[("/worker", "/worker", "ModuleWorker", "api")],
        ),
        resource(
            "QueueConsumer",
            "consumer",
            json!({ "maxBatchSize": 10, "maxBatchTimeoutSeconds": 1, "maxRetries": 2, "retryDelaySeconds": 3, "maxConcurrency": 4 }),
            &[
                ("/worker", "/worker", "ModuleWorker", "api"),
                ("/queue", "/queue", "AtLeastOnceQueue", "jobs"),
            ],
        ),
    ] {
        world.restore(made);
    }
    world
}

#[test]
fn a_world_becomes_workers_versions_routes_and_events() {
    let world = world();
    let sealed = |worker: &notation_edge::Uid, name: &str| {
        (worker.as_str() == "api" && name == "TOKEN").then(|| Secret::new("hush-hush"))
    };
    let plan = derive([&world], &sealed);
    assert_eq!(plan.workers["api"].weights, [(Uid::from("v1"), 10_000)]);
    assert_eq!(plan.workers["idle"].weights, []);
    assert_eq!(
        plan.versions.keys().map(Uid::as_str).collect::<Vec<_>>(),
        ["v1"],
        "only what takes traffic"
    );
    let version = &plan.versions["v1"];
    assert_eq!(version.main_module, "index.js");
    let modules: Vec<_> = version
        .modules
        .iter()
        .map(|module| (module.name.as_str(), module.digest.as_str()))
        .collect();
    assert_eq!(
        modules,
        [("index.js", "sha256:index.js"), ("a.txt", "sha256:a.txt")]
    );
    assert_eq!(version.handlers, [Handler::Fetch, Handler::Queue].into());
    let environment = [
        (
            "B",
            Capability::Objects {
                bucket: "bucket".into(),
            },
        ),
        (
            "DB",
            Capability::Sql {
                database: "db".into(),
            },
        ),
        (
            "KV",
            Capability::Kv {
                namespace: "kv".into(),
            },
        ),
        ("LEVEL", Capability::Var(json!({ "deep": [1] }))),
        (
            "PEER",
            Capability::Service {
                worker: "idle".into(),
            },
        ),
        (
            "Q",
            Capability::QueueProducer {
                queue: "jobs".into(),
            },
        ),
        ("TOKEN", Capability::Secret(Secret::new("hush-hush"))),
    ];
    let environment = environment.map(|(name, capability)| (name.to_owned(), capability));
    assert_eq!(version.environment, environment.into());
    let assets = version.assets.as_ref().unwrap();
    assert_eq!(
        (assets.order, assets.not_found),
        (AssetsOrder::WorkerFirst, NotFound::SinglePageApplication)
    );
    assert_eq!(assets.files["index.html"].media_type, "text/html");
    let generated = plan
        .endpoints
        .keys()
        .find(|hostname| hostname.ends_with(".endpoints.test"))
        .unwrap();
    assert_eq!(
        (plan.endpoints.len(), &plan.endpoints[generated]),
        (2, &plan.endpoints["app.example.com"])
    );
    assert_eq!(plan.crons["cron"].expression, "*/5 * * * *");
    let queue = &plan.queues["jobs"];
    assert_eq!(
        (
            queue.name.as_str(),
            queue.delivery_delay_seconds,
            queue.retention_seconds
        ),
        ("jobs", 5, 60)
    );
    let consumer = queue.consumer.as_ref().unwrap();
    assert_eq!(
        (consumer.worker.as_str(), consumer.max_concurrency),
        ("api", 4)
    );
    assert!(
        !format!("{plan:?}").contains("hush"),
        "secrets do not print"
    );
}

#[test]
fn a_version_without_one_of_its_values_is_named_and_not_described() {
    let world = world();
    let plan = derive([&world], &|_: &notation_edge::Uid, _: &str| None);
    assert!(plan.versions.is_empty());
    assert_eq!(plan.missing_values["v1"], ["TOKEN".to_owned()].into());
}

#[test]
fn the_older_claim_keeps_a_name_that_two_tenants_hold() {
    let holding = |worker: &str, made: u64| {
        let mut world = world();
        let target = [("/worker", "/worker", "ModuleWorker", worker)];
        let hostname = json!({ "hostname": "both.example" });
        world.restore(Resource {
            made,
            ..resource("WorkerCustomDomain", "both", hostname, &target)
        });
        world
    };
    let routed = |worlds: [&World; 2]| {
        let plan = derive(worlds, &|_: &notation_edge::Uid, _: &str| None);
        plan.endpoints["both.example"].to_string()
    };
    let (older, younger) = (holding("api", 7), holding("idle", 8));
    assert_eq!(routed([&older, &younger]), "api");
    assert_eq!(routed([&younger, &older]), "api", "whatever their names");
}

#[test]
fn no_domain_takes_an_endpoint_nor_the_domain_of_endpoints() {
    let (older, mut younger) = (world(), world());
    let endpoint = derive([&older], &|_: &notation_edge::Uid, _: &str| None);
    let hostname = endpoint
        .endpoints
        .keys()
        .find(|name| name.ends_with(".endpoints.test"))
        .unwrap();
    let taken = [
        ("other", "app.example.com"),
        ("thief", hostname.as_str()),
        ("all", "endpoints.test"),
    ];
    for (name, hostname) in taken {
        let target = [("/worker", "/worker", "ModuleWorker", "idle")];
        younger.restore(resource(
            "WorkerCustomDomain",
            name,
            json!({ "hostname": hostname }),
            &target,
        ));
    }
    let alone = derive([&younger], &|_: &notation_edge::Uid, _: &str| None);
    assert_ne!(
        alone.endpoints.get(hostname).map(|worker| worker.as_str()),
        Some("idle"),
        "also when the endpoint is gone"
    );
    assert!(!alone.endpoints.contains_key("endpoints.test"));
    let plan = derive([&older, &younger], &|_: &notation_edge::Uid, _: &str| None);
    assert!(
        plan.endpoints
            .values()
            .all(|worker| worker.as_str() == "api"),
        "{:?}",
        plan.endpoints
    );
}
