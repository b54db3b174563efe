//! Decision 0016: one active deployment, integrity, gates in both directions.

use crate::bench::*;

async fn second_version(client: &Client, handlers: &[&str]) {
    client.version("w", "w-v2", handlers).await;
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
        .create(
            "WorkerVersion",
            "x",
            service_spec("w", "w-bundle", "lonely"),
        )
        .await
        .refused("unsupported_capability");
    client
        .make("WorkerVersion", "x", service_spec("w", "w-bundle", "w"))
        .await;
}

#[tokio::test]
async fn deployment_weight_sum_enforced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.bundled("w").await;
    client.version("w", "w-v1", &ALL).await;
    second_version(&client, &ALL).await;
    for versions in [&[("w-v1", 9999)][..], &[("w-v1", 5000), ("w-v2", 5001)]] {
        client
            .create("WorkerDeployment", "d", deployment_spec("w", versions))
            .await
            .refused("invalid_argument");
        client.absent("WorkerDeployment", "d").await;
    }
    client
        .make(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("w-v1", 10_000)]),
        )
        .await;
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
    client.remove("WorkerDeployment", "w-deployment").await;
    client.make("WorkerDeployment", "second", spec).await;
}

#[tokio::test]
async fn deployment_version_duplicate_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("w-bundle", FETCH_ONLY).await;
    client.version("w", "w-v1", &["fetch"]).await;
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
    client.bundled("w").await;
    client.version("w", "w-v1", &["fetch"]).await;
    second_version(&client, &ALL).await;
    client.deploy("w", "w-v1").await;
    client.queue("q").await;
    client
        .make("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await;
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
    client.weigh("w", &[("w-v2", 10_000)]).await.updated();
    client.make("WorkerCronTrigger", "t", cron).await;
    client.make("QueueConsumer", "c", consumer).await;
}

#[tokio::test]
async fn deployment_change_preserves_dependents() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.serving("caller", &["fetch"]).await;
    client.queue("q").await;
    client
        .version("w", "no-scheduled", &["fetch", "queue"])
        .await;
    client
        .version("w", "no-fetch", &["scheduled", "queue"])
        .await;
    client
        .make("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await;
    client
        .make("WorkerCronTrigger", "t", cron_spec("w", "0 * * * *"))
        .await;
    client
        .make("QueueConsumer", "c", consumer_spec("w", "q", None))
        .await;
    client
        .make(
            "WorkerVersion",
            "binding",
            service_spec("caller", "caller-bundle", "w"),
        )
        .await;
    let before = client
        .read("WorkerDeployment", "w-deployment")
        .await
        .updated();
    for (version, dependent) in [
        ("no-scheduled", "WorkerCronTrigger t"),
        ("no-fetch", "WorkerCustomDomain d"),
    ] {
        let refusal = client
            .weigh("w", &[(version, 10_000)])
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
        client.remove(kind, name).await;
    }
    let fetchless = deployment_spec("w", &[("no-fetch", 10_000)]);
    client
        .update("WorkerDeployment", "w-deployment", fetchless.clone())
        .await
        .refused("unsupported_capability");
    client.remove("WorkerVersion", "binding").await;
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
        client.make(kind, "x", spec).await;
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
        client.remove(kind, "x").await;
    }
    client.remove("WorkerDeployment", "w-deployment").await;
}

#[tokio::test]
async fn deployment_delete_blocked_by_inbound_binding() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    client.serving("caller", &["fetch"]).await;
    client
        .make(
            "WorkerVersion",
            "binding",
            service_spec("caller", "caller-bundle", "w"),
        )
        .await;
    let refusal = client
        .delete("WorkerDeployment", "w-deployment")
        .await
        .refused("dependency_in_use");
    assert!(refusal.message.contains("WorkerVersion binding"));
    client.remove("WorkerVersion", "binding").await;
    client.remove("WorkerDeployment", "w-deployment").await;
}
