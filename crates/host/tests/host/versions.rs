//! The runtime contract and worker versions.

use crate::bench::*;

/// The profile of an interface is that of the installed contract.
async fn advertised(bench: &Bench, name: &str) {
    let profile = bench
        .t1()
        .get(&format!("{API}/support/interfaces/{name}/1.0.0"))
        .await
        .is(200)
        .json();
    let catalog = &bench.host.contracts().catalog;
    let installed = catalog.interface(name, "1.0.0").unwrap();
    let shown = &profile["interfaceRef"];
    assert_eq!(
        shown["schemaDigest"],
        *installed.interface_ref.schema_digest
    );
    assert_eq!(shown["name"], name);
}

#[tokio::test]
async fn module_worker_runtime_contract_advertised() {
    let bench = Bench::start().await;
    let client = bench.t1();
    advertised(&bench, "worker.runtime").await;
    let form = client
        .get(&format!("{API}/support/forms/{EDGE}/ModuleWorker/0.1.0"))
        .await
        .is(200)
        .json();
    assert!(!form["operations"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn undeclared_runtime_handler_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", ALL_HANDLERS).await;
    let document = client.document(
        "WorkerVersion",
        "v",
        version_spec("w", "b", &["fetch", "alarm"]),
    );
    client.invalid(&document).await;
    client
        .create(
            "WorkerVersion",
            "v",
            version_spec("w", "b", &["fetch", "scheduled", "queue"]),
        )
        .await
        .created();
}

#[tokio::test]
async fn declared_handler_not_exported_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let both = version_spec("w", "b", &["fetch", "scheduled"]);
    let refusal = client
        .create("WorkerVersion", "v", both.clone())
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("scheduled"));
    client
        .import_new(&client.document("WorkerVersion", "v", both.clone()), "n")
        .await
        .refused("invalid_argument");
    client.absent("WorkerVersion", "v").await;
    client
        .create("WorkerVersion", "v", version_spec("w", "b", &["fetch"]))
        .await
        .created();
    // What cannot be told is accepted.
    client
        .bundle("opaque", "const it = { fetch() {} }; export default it;")
        .await;
    client
        .create(
            "WorkerVersion",
            "v2",
            with(both, "bundle", to("WorkerBundle", "opaque")),
        )
        .await
        .created();
}

#[tokio::test]
async fn edge_interface_contracts_advertised() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for name in [
        "edge.kv",
        "edge.objects",
        "edge.queue",
        "edge.sql",
        "worker.service",
    ] {
        advertised(&bench, name).await;
    }
    client
        .get(&format!("{API}/support/interfaces/edge.kv/9.9.9"))
        .await
        .refused("resource_not_found");
}
