//! Decision 0016: one active deployment, integrity, gates in both directions.

use crate::bench::*;
use serde_json::json;

const ALL: [&str; 3] = ["fetch", "scheduled", "queue"];

fn service(worker: &str, bundle: &str, target: &str) -> serde_json::Value {
    with(
        version_spec(worker, bundle, &["fetch"]),
        "serviceBindings",
        json!([{"name": "PEER", "resource": to("ModuleWorker", target)}]),
    )
}

async fn second_version(client: &Client, handlers: &[&str]) {
    client
        .create(
            "WorkerVersion",
            "w-v2",
            version_spec("w", "w-bundle", handlers),
        )
        .await
        .created();
}

#[tokio::test]
async fn attachment_requires_active_deployment() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let worker = client.worker("lonely").await;
    assert_eq!(ready(&worker).1, "Provisioning");
    assert!(ready(&worker).2.contains("lonely"));
    client.queue("q").await;
    for (kind, spec, handler) in [
        (
            "WorkerCustomDomain",
            domain_spec("lonely", "a.example.com"),
            "fetch",
        ),
        ("WorkerEndpoint", endpoint_spec("lonely"), "fetch"),
        (
            "WorkerCronTrigger",
            cron_spec("lonely", "* * * * *"),
            "scheduled",
        ),
        ("QueueConsumer", consumer_spec("lonely", "q", None), "queue"),
    ] {
        let refusal = client
            .create(kind, "x", spec)
            .await
            .refused("unsupported_capability");
        assert!(
            refusal.message.contains(handler) && refusal.message.contains("lonely"),
            "{}",
            refusal.message
        );
        client.absent(kind, "x").await;
    }
    client.serving("w", &["fetch"]).await;
    client
        .create("WorkerVersion", "x", service("w", "w-bundle", "lonely"))
        .await
        .refused("unsupported_capability");
    client
        .create("WorkerVersion", "x", service("w", "w-bundle", "w"))
        .await
        .created();
}

#[tokio::test]
async fn deployment_weight_sum_enforced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("w-bundle", ALL_HANDLERS).await;
    client
        .create("WorkerVersion", "w-v1", version_spec("w", "w-bundle", &ALL))
        .await
        .created();
    second_version(&client, &ALL).await;
    for versions in [&[("w-v1", 9999)][..], &[("w-v1", 5000), ("w-v2", 5001)]] {
        client
            .create("WorkerDeployment", "d", deployment_spec("w", versions))
            .await
            .refused("invalid_argument");
    }
    client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("w-v1", 10_000)]),
        )
        .await
        .created();
    assert_eq!(
        ready(&client.read("ModuleWorker", "w").await.updated()),
        ("True", "Available", "")
    );
}

#[tokio::test]
async fn deployment_version_ownership() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("other", &["fetch"]).await;
    client.worker("w").await;
    let refusal = client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("other-v1", 10_000)]),
        )
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("other-v1"));
    client.absent("WorkerDeployment", "d").await;
}

#[tokio::test]
async fn deployment_single_active_per_worker() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    second_version(&client, &["fetch"]).await;
    let spec = deployment_spec("w", &[("w-v1", 1000), ("w-v2", 9000)]);
    let refusal = client
        .create("WorkerDeployment", "second", spec.clone())
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("w-deployment"));
    client
        .update("WorkerDeployment", "w-deployment", spec.clone())
        .await
        .updated();
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
    client
        .create("WorkerDeployment", "second", spec)
        .await
        .created();
}

#[tokio::test]
async fn deployment_version_duplicate_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("w-bundle", FETCH_ONLY).await;
    client
        .create(
            "WorkerVersion",
            "w-v1",
            version_spec("w", "w-bundle", &["fetch"]),
        )
        .await
        .created();
    client
        .create(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("w-v1", 1000), ("w-v1", 9000)]),
        )
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn handler_gated_attachments() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("w-bundle", ALL_HANDLERS).await;
    client
        .create(
            "WorkerVersion",
            "w-v1",
            version_spec("w", "w-bundle", &["fetch"]),
        )
        .await
        .created();
    second_version(&client, &ALL).await;
    client.deploy("w", "w-v1").await;
    client.queue("q").await;
    client
        .create("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await
        .created();
    let cron = cron_spec("w", "0 * * * *");
    let consumer = consumer_spec("w", "q", None);
    let refusal = client
        .create("WorkerCronTrigger", "t", cron.clone())
        .await
        .refused("unsupported_capability");
    assert!(refusal.message.contains("scheduled") && refusal.message.contains("w-v1"));
    client
        .create("QueueConsumer", "c", consumer.clone())
        .await
        .refused("unsupported_capability");
    client
        .update(
            "WorkerDeployment",
            "w-deployment",
            deployment_spec("w", &[("w-v2", 10_000)]),
        )
        .await
        .updated();
    client
        .create("WorkerCronTrigger", "t", cron)
        .await
        .created();
    client
        .create("QueueConsumer", "c", consumer)
        .await
        .created();
}

#[tokio::test]
async fn deployment_change_preserves_dependents() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.serving("caller", &["fetch"]).await;
    client.queue("q").await;
    client
        .create(
            "WorkerVersion",
            "no-scheduled",
            version_spec("w", "w-bundle", &["fetch", "queue"]),
        )
        .await
        .created();
    client
        .create(
            "WorkerVersion",
            "no-fetch",
            version_spec("w", "w-bundle", &["scheduled", "queue"]),
        )
        .await
        .created();
    client
        .create("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await
        .created();
    client
        .create("WorkerCronTrigger", "t", cron_spec("w", "0 * * * *"))
        .await
        .created();
    client
        .create("QueueConsumer", "c", consumer_spec("w", "q", None))
        .await
        .created();
    client
        .create(
            "WorkerVersion",
            "binding",
            service("caller", "caller-bundle", "w"),
        )
        .await
        .created();
    let before = client
        .read("WorkerDeployment", "w-deployment")
        .await
        .updated();
    for (version, dependent) in [
        ("no-scheduled", "WorkerCronTrigger t"),
        ("no-fetch", "WorkerCustomDomain d"),
    ] {
        let refusal = client
            .update(
                "WorkerDeployment",
                "w-deployment",
                deployment_spec("w", &[(version, 10_000)]),
            )
            .await
            .refused("unsupported_capability");
        assert!(
            refusal.message.contains(dependent) && refusal.message.contains(version),
            "{}",
            refusal.message
        );
    }
    assert_eq!(
        client
            .read("WorkerDeployment", "w-deployment")
            .await
            .updated(),
        before
    );
    for (kind, name) in [
        ("WorkerCustomDomain", "d"),
        ("WorkerCronTrigger", "t"),
        ("QueueConsumer", "c"),
    ] {
        client.delete(kind, name).await.is(204);
    }
    let fetchless = deployment_spec("w", &[("no-fetch", 10_000)]);
    client
        .update("WorkerDeployment", "w-deployment", fetchless.clone())
        .await
        .refused("unsupported_capability");
    client.delete("WorkerVersion", "binding").await.is(204);
    client
        .update("WorkerDeployment", "w-deployment", fetchless)
        .await
        .updated();
    let worker = client.read("ModuleWorker", "w").await.updated();
    assert_eq!(
        (ready(&worker).0, ready(&worker).1),
        ("False", "UnsupportedCapability")
    );
}

#[tokio::test]
async fn deployment_delete_blocked_by_dependent() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.queue("q").await;
    for (kind, spec) in [
        ("WorkerCustomDomain", domain_spec("w", "a.example.com")),
        ("WorkerEndpoint", endpoint_spec("w")),
        ("WorkerCronTrigger", cron_spec("w", "0 * * * *")),
        ("QueueConsumer", consumer_spec("w", "q", None)),
    ] {
        client.create(kind, "x", spec).await.created();
        let refusal = client
            .delete("WorkerDeployment", "w-deployment")
            .await
            .refused("dependency_in_use");
        assert!(
            refusal.message.contains(&format!("{kind} x")),
            "{}",
            refusal.message
        );
        client
            .read("WorkerDeployment", "w-deployment")
            .await
            .updated();
        client.delete(kind, "x").await.is(204);
    }
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
}

#[tokio::test]
async fn deployment_delete_blocked_by_inbound_binding() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client.serving("caller", &["fetch"]).await;
    client
        .create(
            "WorkerVersion",
            "binding",
            service("caller", "caller-bundle", "w"),
        )
        .await
        .created();
    let refusal = client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .refused("dependency_in_use");
    assert!(refusal.message.contains("WorkerVersion binding"));
    client.delete("WorkerVersion", "binding").await.is(204);
    client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .is(204);
}

/// Two workers that call each other cannot be built in one go, and the order of taking them apart
/// can be read from the refusals alone.
#[tokio::test]
async fn refusals_tell_the_order_of_taking_a_pair_apart() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("a").await;
    client.bundle("a-bundle", FETCH_ONLY).await;
    client
        .create(
            "WorkerVersion",
            "a-bare",
            version_spec("a", "a-bundle", &["fetch"]),
        )
        .await
        .created();
    client.deploy("a", "a-bare").await;
    client.worker("b").await;
    client.bundle("b-bundle", FETCH_ONLY).await;
    client
        .create("WorkerVersion", "b-v1", service("b", "b-bundle", "a"))
        .await
        .created();
    client.deploy("b", "b-v1").await;
    client
        .create("WorkerVersion", "a-v1", service("a", "a-bundle", "b"))
        .await
        .created();
    client
        .update(
            "WorkerDeployment",
            "a-deployment",
            deployment_spec("a", &[("a-v1", 10_000)]),
        )
        .await
        .updated();
    client
        .create("WorkerEndpoint", "e", endpoint_spec("a"))
        .await
        .created();

    // Start anywhere; whenever a refusal names somebody, try that one first. A pair of versions
    // that hold each other's workers is opened by going back to the bare version.
    let mut stack = vec![("ModuleWorker".to_owned(), "a".to_owned())];
    let mut steps = 0;
    let mut reverted = false;
    while let Some((kind, name)) = stack.last().cloned() {
        steps += 1;
        assert!(steps < 60, "no end in {stack:?}");
        let answer = client.read(&kind, &name).await;
        if answer.status == 404 {
            stack.pop();
            continue;
        }
        let answer = client.delete(&kind, &name).await;
        if answer.status == 204 {
            stack.pop();
            continue;
        }
        let message = answer.refused("dependency_in_use").message;
        let named = message.split([';', ',']).find_map(|part| {
            let mut words = part
                .split_whitespace()
                .skip_while(|word| !word.starts_with(|c: char| c.is_uppercase()));
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
        let next = named.unwrap_or_else(|| panic!("{message}"));
        if stack.contains(&next) && !reverted {
            reverted = true;
            client
                .update(
                    "WorkerDeployment",
                    "a-deployment",
                    deployment_spec("a", &[("a-bare", 10_000)]),
                )
                .await
                .updated();
            client.delete("WorkerVersion", "a-v1").await.is(204);
            continue;
        }
        stack.push(next);
    }
    client.delete("ModuleWorker", "b").await.is(204);
}
