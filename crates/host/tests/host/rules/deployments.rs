//! Decision 0016 rules 1, 2 and 4.

use super::{Case, turn};
use crate::bench::*;
use crate::operations::accept_delete;
use crate::rules::Turn;

/// Worker `w` with versions `w-v1` (all handlers) and `w-fetch`, not deployed.
async fn undeployed(client: &Client) {
    client.bundled("w").await;
    client.version("w", "w-v1", &ALL).await;
    client.version("w", "w-fetch", &["fetch"]).await;
}

fn weighting(bad: &[(&str, u64)], good: &[(&str, u64)], names: &'static str, turn: Turn) -> Case {
    Case {
        kind: "WorkerDeployment",
        standing: None,
        bad: deployment_spec("w", bad),
        good: deployment_spec("w", good),
        code: "invalid_argument",
        names,
        turn,
    }
}

pub async fn second(client: &Client) -> Vec<Case> {
    client.serving("taken", &["fetch"]).await;
    undeployed(client).await;
    let rival = turn("w-deployment", |client| async move {
        client.deploy("w", "w-v1").await;
    });
    vec![Case {
        bad: deployment_spec("taken", &[("taken-v1", 10_000)]),
        ..weighting(&[], &[("w-v1", 10_000)], "taken-deployment", rival)
    }]
}

pub async fn sum(client: &Client) -> Vec<Case> {
    undeployed(client).await;
    let never = || Turn::Never("the weights are in the document");
    let good = [("w-v1", 5000), ("w-fetch", 5000)];
    vec![
        weighting(
            &[("w-v1", 5000), ("w-fetch", 5001)],
            &good,
            "10001",
            never(),
        ),
        weighting(&[("w-v1", 9999)], &[("w-v1", 10_000)], "9999", never()),
    ]
}

pub async fn foreign(client: &Client) -> Vec<Case> {
    client.serving("other", &["fetch"]).await;
    undeployed(client).await;
    let replaced = turn("w-fetch", |client| async move {
        client.vanish("WorkerVersion", "w-fetch").await;
        client.version("other", "w-fetch", &["fetch"]).await;
    });
    let good = [("w-v1", 5000), ("w-fetch", 5000)];
    let bad = [("w-v1", 5000), ("other-v1", 5000)];
    vec![weighting(&bad, &good, "other-v1", replaced)]
}

pub async fn repeated(client: &Client) -> Vec<Case> {
    undeployed(client).await;
    let never = Turn::Never("two names never become one incarnation");
    let good = [("w-v1", 1000), ("w-fetch", 9000)];
    let bad = [("w-v1", 1000), ("w-v1", 9000)];
    vec![weighting(&bad, &good, "w-v1", never)]
}

pub async fn unready(client: &Client) -> Vec<Case> {
    undeployed(client).await;
    for (kv, version) in [("gone", "drifted"), ("there", "bound")] {
        client.kv(kv).await;
        let spec = kv_spec("w", "w-bundle", kv);
        client.make("WorkerVersion", version, spec).await;
    }
    client.vanish("EdgeKVNamespace", "gone").await;
    let drifts = turn("bound", |client| async move {
        client.vanish("EdgeKVNamespace", "there").await;
    });
    vec![weighting(
        &[("drifted", 10_000)],
        &[("bound", 10_000)],
        "drifted",
        drifts,
    )]
}

pub async fn leaving(client: &Client) -> Vec<Case> {
    undeployed(client).await;
    accept_delete(client, "WorkerVersion", "w-fetch").await;
    let goes = turn("w-v1", |client| async move {
        accept_delete(&client, "WorkerVersion", "w-v1").await;
    });
    vec![weighting(
        &[("w-fetch", 10_000)],
        &[("w-v1", 10_000)],
        "w-fetch",
        goes,
    )]
}

/// Rule 4: the gate of rule 3 in reverse, for every kind of dependent.
pub async fn reverse(client: &Client) -> Vec<Case> {
    undeployed(client).await;
    client.version("w", "w-cron", &["fetch", "scheduled"]).await;
    client.version("w", "w-rest", &["scheduled", "queue"]).await;
    client.queue("q").await;
    client.serving("caller", &["fetch"]).await;
    let standing = deployment_spec("w", &[("w-v1", 10_000)]);
    client.make("WorkerDeployment", "x", standing.clone()).await;
    client
        .make("WorkerCronTrigger", "clock", cron_spec("w", "* * * * *"))
        .await;
    let inbound = service_spec("caller", "caller-bundle", "w");
    client.make("WorkerVersion", "inbound", inbound).await;
    let consumed = turn(
        "QueueConsumer drain needs handler queue",
        |client| async move {
            client
                .make("QueueConsumer", "drain", consumer_spec("w", "q", None))
                .await;
        },
    );
    let case = |bad: &[(&str, u64)], names, turn| Case {
        standing: Some(standing.clone()),
        code: "unsupported_capability",
        ..weighting(bad, &[("w-cron", 10_000)], names, turn)
    };
    let mixed = [("w-v1", 9999), ("w-fetch", 1)];
    vec![
        case(
            &[("w-rest", 10_000)],
            "WorkerVersion inbound needs handler fetch",
            Turn::Never("the case after shows it"),
        ),
        case(
            &mixed,
            "WorkerCronTrigger clock needs handler scheduled",
            consumed,
        ),
    ]
}
