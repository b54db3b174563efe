//! Endpoints and outputs.

use crate::bench::*;
use serde_json::Value;

fn address(resource: &notation_edge_api::Resource) -> (String, String) {
    let outputs = resource.status.outputs.as_ref().expect("outputs");
    assert_eq!(outputs.len(), 2);
    let text = |member: &str| outputs[member].as_str().unwrap().to_owned();
    (text("hostname"), text("url"))
}

#[tokio::test]
async fn worker_endpoint_address_is_host_assigned() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let created = client
        .create("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .created();
    assert_eq!(created.spec, endpoint_spec("w"));
    let (hostname, url) = address(&created);
    assert!(hostname.ends_with(".endpoints.localhost") && hostname == hostname.to_lowercase());
    assert_eq!(url, format!("https://{hostname}/"));
    assert_eq!(client.read("WorkerEndpoint", "e").await.updated(), created);
    let extra = with(endpoint_spec("w"), "hostname", "a.example.com".into());
    assert_eq!(
        client
            .validate(&client.document("WorkerEndpoint", "x", extra))
            .await
            .json()["valid"],
        false
    );
}

#[tokio::test]
async fn worker_endpoint_single_per_worker() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client
        .create("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .created();
    let refusal = client
        .create("WorkerEndpoint", "e2", endpoint_spec("w"))
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("WorkerEndpoint e"));
    client.delete("WorkerEndpoint", "e").await.is(204);
    client
        .create("WorkerEndpoint", "e2", endpoint_spec("w"))
        .await
        .created();
}

#[tokio::test]
async fn worker_endpoint_follows_the_active_deployment() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("a", &["fetch"]).await;
    client.serving("b", &["fetch"]).await;
    let first = client
        .create("WorkerEndpoint", "ea", endpoint_spec("a"))
        .await
        .created();
    let second = client
        .create("WorkerEndpoint", "eb", endpoint_spec("b"))
        .await
        .created();
    assert_ne!(address(&first), address(&second));
    client
        .delete("WorkerDeployment", "a-deployment")
        .await
        .refused("dependency_in_use");
    client
        .create(
            "WorkerVersion",
            "a-v2",
            version_spec("a", "a-bundle", &["fetch"]),
        )
        .await
        .created();
    client
        .update(
            "WorkerDeployment",
            "a-deployment",
            deployment_spec("a", &[("a-v2", 10_000)]),
        )
        .await
        .updated();
    let after = client.read("WorkerEndpoint", "ea").await.updated();
    assert_eq!(
        (address(&after), ready(&after).0),
        (address(&first), "True")
    );
}

#[tokio::test]
async fn worker_endpoint_address_is_stable_for_its_uid() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let first = client
        .create("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .created();
    let touch = [
        ("Idempotency-Key", "t"),
        ("Takoform-Expected-Generation", "1"),
        ("Takoform-Conformance-Probe", "touch-status"),
    ];
    client.observe("WorkerEndpoint", "e", &touch).await.is(200);
    let touched = client.read("WorkerEndpoint", "e").await.updated();
    assert_ne!(touched.metadata.revision, first.metadata.revision);
    assert_eq!(
        (address(&touched), &touched.metadata.uid),
        (address(&first), &first.metadata.uid)
    );
    client
        .create(
            "WorkerVersion",
            "w-v2",
            version_spec("w", "w-bundle", &["fetch"]),
        )
        .await
        .created();
    for version in ["w-v2", "w-v1"] {
        client
            .update(
                "WorkerDeployment",
                "w-deployment",
                deployment_spec("w", &[(version, 10_000)]),
            )
            .await
            .updated();
        assert_eq!(
            address(&client.read("WorkerEndpoint", "e").await.updated()),
            address(&first)
        );
    }
}

#[tokio::test]
async fn form_declared_outputs_are_exact() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client.kv("kv").await;
    client.queue("q").await;
    for (kind, name) in [
        ("ModuleWorker", "w"),
        ("EdgeKVNamespace", "kv"),
        ("AtLeastOnceQueue", "q"),
        ("WorkerBundle", "w-bundle"),
        ("WorkerDeployment", "w-deployment"),
    ] {
        let read = client.read(kind, name).await.json();
        assert_eq!(read["status"].get("outputs"), None::<&Value>, "{kind}");
    }
    let endpoint = client
        .create("WorkerEndpoint", "e", endpoint_spec("w"))
        .await
        .created();
    let form = bench
        .host
        .contracts()
        .catalog
        .family(notation_edge::EdgeKind::WorkerEndpoint)
        .unwrap()
        .clone();
    let schema = form.output_schema.as_ref().unwrap();
    let outputs = serde_json::to_value(&endpoint.status.outputs).unwrap();
    let validator = jsonschema::validator_for(schema).unwrap();
    assert!(validator.is_valid(&outputs), "{outputs}");
    let read = client.read("WorkerEndpoint", "e").await.updated();
    assert_eq!(read.status.outputs, endpoint.status.outputs);
    let labels: Vec<String> = address(&endpoint).0.split('.').map(str::to_owned).collect();
    assert!(
        labels.len() >= 2
            && labels.iter().all(|label| (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-'))
    );
}
