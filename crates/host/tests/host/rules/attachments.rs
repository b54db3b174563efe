//! Decision 0016 rule 3, and what attachments claim for themselves.

use super::{Case, Turn, turn};
use crate::bench::*;
use serde_json::Value;

fn claiming(kind: &'static str, bad: Value, good: Value, names: &'static str, turn: Turn) -> Case {
    Case {
        kind,
        standing: None,
        bad,
        good,
        code: "invalid_argument",
        names,
        turn,
    }
}

/// Rule 3, for all four kinds of attachment: without a deployment, with one that lacks the
/// handler, and with a deployment that goes while the attachment is under way.
pub async fn served(client: &Client) -> Vec<Case> {
    client.worker("idle").await;
    client.bundled("bare").await;
    client.version("bare", "bare-v1", &["scheduled"]).await;
    client.deploy("bare", "bare-v1").await;
    for worker in ["w0", "w1", "w2", "w3", "w4", "w5"] {
        client.serving(worker, &ALL).await;
    }
    client.queue("q").await;
    let consumer = |worker: &str| consumer_spec(worker, "q", None);
    let domain = |worker: &str| domain_spec(worker, "a.example.com");
    let cron = |worker: &str| cron_spec(worker, "* * * * *");
    let goes = |deployment: &'static str| {
        turn(
            "no deployment of it takes traffic",
            move |client| async move {
                client.remove("WorkerDeployment", deployment).await;
            },
        )
    };
    let case = |kind, bad, good, names, turn| Case {
        code: "unsupported_capability",
        ..claiming(kind, bad, good, names, turn)
    };
    vec![
        case(
            "WorkerCustomDomain",
            domain("idle"),
            domain("w0"),
            "handler fetch of ModuleWorker idle",
            goes("w0-deployment"),
        ),
        case(
            "WorkerEndpoint",
            endpoint_spec("idle"),
            endpoint_spec("w1"),
            "handler fetch of ModuleWorker idle",
            goes("w1-deployment"),
        ),
        case(
            "WorkerCronTrigger",
            cron("idle"),
            cron("w2"),
            "handler scheduled of ModuleWorker idle",
            goes("w2-deployment"),
        ),
        case(
            "QueueConsumer",
            consumer("idle"),
            consumer("w3"),
            "handler queue of ModuleWorker idle",
            goes("w3-deployment"),
        ),
        case(
            "WorkerCustomDomain",
            domain("bare"),
            domain("w4"),
            "WorkerVersion bare-v1 does not have it",
            goes("w4-deployment"),
        ),
        case(
            "QueueConsumer",
            consumer("bare"),
            consumer("w5"),
            "WorkerVersion bare-v1 does not have it",
            goes("w5-deployment"),
        ),
    ]
}

pub async fn hostname(client: &Client) -> Vec<Case> {
    client.serving("w", &["fetch"]).await;
    let taken = domain_spec("w", "a.example.com");
    client.make("WorkerCustomDomain", "holder", taken).await;
    let rival = turn("WorkerCustomDomain rival", |client| async move {
        let taken = domain_spec("w", "b.example.com");
        client.make("WorkerCustomDomain", "rival", taken).await;
    });
    let bad = domain_spec("w", "A.example.com.");
    let good = domain_spec("w", "b.example.com");
    vec![claiming(
        "WorkerCustomDomain",
        bad,
        good,
        "WorkerCustomDomain holder",
        rival,
    )]
}

pub async fn consumer(client: &Client) -> Vec<Case> {
    client.serving("w", &ALL).await;
    for queue in ["a", "b"] {
        client.queue(queue).await;
    }
    let taken = consumer_spec("w", "a", None);
    client.make("QueueConsumer", "holder", taken.clone()).await;
    let rival = turn("QueueConsumer rival", |client| async move {
        let taken = consumer_spec("w", "b", None);
        client.make("QueueConsumer", "rival", taken).await;
    });
    let good = consumer_spec("w", "b", None);
    vec![claiming(
        "QueueConsumer",
        taken,
        good,
        "QueueConsumer holder",
        rival,
    )]
}

pub async fn dead_letters(client: &Client) -> Vec<Case> {
    client.serving("w", &ALL).await;
    for queue in ["a", "b", "c", "d"] {
        client.queue(queue).await;
    }
    for (name, queue, dead) in [("ca", "a", "b"), ("cb", "b", "c")] {
        let spec = consumer_spec("w", queue, Some(dead));
        client.make("QueueConsumer", name, spec).await;
    }
    let closes = turn("AtLeastOnceQueue d", |client| async move {
        let spec = consumer_spec("w", "d", Some("a"));
        client.make("QueueConsumer", "cd", spec).await;
    });
    let to = |dead| consumer_spec("w", "c", Some(dead));
    let never = Turn::Never("the case after shows it");
    vec![
        claiming(
            "QueueConsumer",
            to("c"),
            to("d"),
            "AtLeastOnceQueue c",
            never,
        ),
        claiming(
            "QueueConsumer",
            to("a"),
            to("d"),
            "AtLeastOnceQueue a",
            closes,
        ),
    ]
}

pub async fn endpoint(client: &Client) -> Vec<Case> {
    client.serving("w", &["fetch"]).await;
    client.serving("other", &["fetch"]).await;
    client
        .make("WorkerEndpoint", "holder", endpoint_spec("w"))
        .await;
    let rival = turn("WorkerEndpoint rival", |client| async move {
        client
            .make("WorkerEndpoint", "rival", endpoint_spec("other"))
            .await;
    });
    let (bad, good) = (endpoint_spec("w"), endpoint_spec("other"));
    vec![claiming(
        "WorkerEndpoint",
        bad,
        good,
        "WorkerEndpoint holder",
        rival,
    )]
}
