//! What attachments claim: hostnames, queues, dead letters, schedules.

use crate::bench::*;
use crate::operations::{accept_create, finish};
use serde_json::json;

#[tokio::test]
async fn cron_grammar_enforced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    for bad in ["0 24 * * *", "5-1 * * * *", "*/0 * * * *", "0 0 32 * *"] {
        let document = client.document("WorkerCronTrigger", "t", cron_spec("w", bad));
        client.invalid(&document).await;
        client
            .import_new(&document, "n")
            .await
            .refused("invalid_argument");
    }
    for (name, good) in [("t1", "*/5 * * * *"), ("t2", "0 * * * *")] {
        let document = client.document("WorkerCronTrigger", name, cron_spec("w", good));
        assert_eq!(
            client.validate(&document).await.is(200).json()["valid"],
            true
        );
        assert_eq!(
            client.create_document(&document).await.created().spec["cron"],
            good
        );
    }
}

#[tokio::test]
async fn queue_single_consumer_enforced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.queue("q").await;
    let spec = consumer_spec("w", "q", None);
    client.make("QueueConsumer", "c1", spec.clone()).await;
    let refusal = client
        .create("QueueConsumer", "c2", spec.clone())
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("c1"));
    client
        .import_new(&client.document("QueueConsumer", "c2", spec.clone()), "n")
        .await
        .refused("invalid_argument");
    client
        .delete("AtLeastOnceQueue", "q")
        .await
        .refused("dependency_in_use");
    client.remove("QueueConsumer", "c1").await;
    client.make("QueueConsumer", "c2", spec).await;
    client.remove("QueueConsumer", "c2").await;
    client.remove("AtLeastOnceQueue", "q").await;
}

#[tokio::test]
async fn custom_domain_hostname_canonicalized() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let document = client.document(
        "WorkerCustomDomain",
        "d",
        domain_spec("w", "Claim.Portable-Conformance.INVALID."),
    );
    let prepared = client.prepare(&document, None).await.is(200).json();
    let canonical = domain_spec("w", "claim.portable-conformance.invalid");
    assert_eq!(prepared["resource"]["spec"], canonical);
    assert_eq!(
        prepared["review"]["specDigest"],
        notation_edge_api::digest(&canonical)
    );
    assert_eq!(
        client.create_document(&document).await.created().spec,
        canonical
    );
    assert_eq!(
        client.read("WorkerCustomDomain", "d").await.updated().spec,
        canonical
    );
    // A second dot would be a second spelling of the same name.
    let dots = client.document(
        "WorkerCustomDomain",
        "dots",
        domain_spec("w", "claim.portable-conformance.invalid.."),
    );
    client
        .prepare(&dots, None)
        .await
        .refused("invalid_argument");
    let again = client
        .update(
            "WorkerCustomDomain",
            "d",
            domain_spec("w", "CLAIM.portable-conformance.invalid"),
        )
        .await
        .updated();
    assert_eq!(
        (
            again.metadata.generation.as_str(),
            again.metadata.revision.as_str()
        ),
        ("1", "1")
    );
}

#[tokio::test]
async fn custom_domain_hostname_claim_unique() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let other = client.in_space(OTHER_SPACE);
    client.serving("w", &["fetch"]).await;
    other.serving("w", &["fetch"]).await;
    client
        .make(
            "WorkerCustomDomain",
            "holder",
            domain_spec("w", "a.example.com"),
        )
        .await;
    for (who, hostname) in [
        (&client, "a.example.com"),
        (&client, "A.Example.com."),
        (&other, "a.example.com"),
    ] {
        let refusal = who
            .create("WorkerCustomDomain", "rival", domain_spec("w", hostname))
            .await
            .refused("invalid_argument");
        assert!(refusal.message.contains("holder"));
    }
    client.remove("WorkerCustomDomain", "holder").await;
    other
        .make(
            "WorkerCustomDomain",
            "taker",
            domain_spec("w", "a.example.com"),
        )
        .await;
    client
        .create(
            "WorkerCustomDomain",
            "rival",
            domain_spec("w", "a.example.com"),
        )
        .await
        .refused("invalid_argument");
    other.remove("WorkerCustomDomain", "taker").await;
    client
        .make(
            "WorkerCustomDomain",
            "rival",
            domain_spec("w", "a.example.com"),
        )
        .await;
}

#[tokio::test]
async fn custom_domain_hostname_claim_stops_at_the_tenant() {
    let bench = Bench::start().await;
    let (client, other) = (bench.t1(), bench.t2());
    client.serving("w", &["fetch"]).await;
    other.serving("w", &["fetch"]).await;
    let first = client
        .make(
            "WorkerCustomDomain",
            "t1-holder",
            domain_spec("w", "a.example.com"),
        )
        .await;
    let second = other
        .make(
            "WorkerCustomDomain",
            "t2-holder",
            domain_spec("w", "a.example.com"),
        )
        .await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    let text = other
        .create(
            "WorkerCustomDomain",
            "rival",
            domain_spec("w", "a.example.com"),
        )
        .await;
    text.refused("invalid_argument");
    assert!(text.text().contains("t2-holder") && !text.text().contains("t1-holder"));
    client
        .create(
            "WorkerCustomDomain",
            "rival",
            domain_spec("w", "a.example.com"),
        )
        .await
        .refused("invalid_argument");
    client.remove("WorkerCustomDomain", "t1-holder").await;
    assert_eq!(
        other
            .read("WorkerCustomDomain", "t2-holder")
            .await
            .updated(),
        second
    );
}

#[tokio::test]
async fn custom_domain_u_label_refused() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &["fetch"]).await;
    let document = client.document(
        "WorkerCustomDomain",
        "d",
        domain_spec("w", "café.example.com"),
    );
    client.invalid(&document).await;
    let created = client
        .make(
            "WorkerCustomDomain",
            "d",
            domain_spec("w", "xn--caf-dma.example.com"),
        )
        .await;
    assert_eq!(created.spec["hostname"], "xn--caf-dma.example.com");
}

#[tokio::test]
async fn dead_letter_cycle_rejected() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    for queue in ["a", "b", "c", "d", "e"] {
        client.queue(queue).await;
    }
    client
        .create("QueueConsumer", "ca", consumer_spec("w", "a", Some("a")))
        .await
        .refused("invalid_argument");
    client
        .make("QueueConsumer", "ca", consumer_spec("w", "a", Some("b")))
        .await;
    client
        .create("QueueConsumer", "cb", consumer_spec("w", "b", Some("a")))
        .await
        .refused("invalid_argument");
    client
        .make("QueueConsumer", "cb", consumer_spec("w", "b", Some("c")))
        .await;
    client
        .create("QueueConsumer", "cc", consumer_spec("w", "c", Some("a")))
        .await
        .refused("invalid_argument");
    client
        .make("QueueConsumer", "cc", consumer_spec("w", "c", Some("d")))
        .await;
    client
        .make("QueueConsumer", "ce", consumer_spec("w", "e", Some("c")))
        .await;
}

#[tokio::test]
async fn attachment_claim_decided_on_import() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.queue("a").await;
    client.queue("b").await;
    client
        .make("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
        .await;
    client
        .make("QueueConsumer", "ca", consumer_spec("w", "a", Some("b")))
        .await;
    let taken = client.document(
        "WorkerCustomDomain",
        "d2",
        domain_spec("w", "A.example.com"),
    );
    client
        .import_new(&taken, "n1")
        .await
        .refused("invalid_argument");
    let cycle = client.document("QueueConsumer", "cb", consumer_spec("w", "b", Some("a")));
    client
        .import_new(&cycle, "n2")
        .await
        .refused("invalid_argument");
    client.remove("WorkerCustomDomain", "d").await;
    client.remove("QueueConsumer", "ca").await;
    assert_eq!(
        client.import_new(&taken, "n1").await.created().spec["hostname"],
        "a.example.com"
    );
    client.import_new(&cycle, "n2").await.created();
}

#[tokio::test]
async fn attachment_claim_revalidated_at_commit() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.serving("w", &ALL).await;
    client.queue("a").await;
    client.queue("b").await;
    let id = accept_create(
        &client,
        "WorkerCustomDomain",
        "late",
        domain_spec("w", "a.example.com"),
    )
    .await;
    let taker = client
        .make(
            "WorkerCustomDomain",
            "taker",
            domain_spec("w", "a.example.com"),
        )
        .await;
    assert_eq!(
        finish(&client, &id).await["error"]["code"],
        "invalid_argument"
    );
    client.absent("WorkerCustomDomain", "late").await;
    assert_eq!(
        client.read("WorkerCustomDomain", "taker").await.updated(),
        taker
    );

    let id = accept_create(
        &client,
        "QueueConsumer",
        "ca",
        consumer_spec("w", "a", Some("b")),
    )
    .await;
    client
        .make("QueueConsumer", "cb", consumer_spec("w", "b", Some("a")))
        .await;
    assert_eq!(
        finish(&client, &id).await["error"]["code"],
        "invalid_argument"
    );
    client.absent("QueueConsumer", "ca").await;
    assert_eq!(
        client.read("QueueConsumer", "cb").await.updated().spec["deadLetterQueue"],
        json!({"apiVersion": EDGE, "kind": "AtLeastOnceQueue", "name": "a"})
    );
}
