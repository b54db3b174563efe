//! Queues and cron through real workers.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use std::time::Duration;

use notation_runtime::{Capability, ConsumerSpec, CronSpec, Handler, QueueSpec};
use serde_json::{Value, json};
use support::{DRIVER, Host, b64, until};

/// Notes every delivery in KV, then does what the message says.
const CONSUMER: &str = "export default { async queue(batch, env, ctx) {
  if (arguments.length !== 3) throw new Error('arguments');
  for (const m of batch.messages) {
    const text = new TextDecoder().decode(m.body);
    const same = m.body.encoding === 'base64' && atob(m.body.data) === text;
    await env.SEEN.put(text + '/' + m.attempts, JSON.stringify({ id: m.id, queue: batch.queue, same,
      at: m.timestampMillis, size: batch.messages.length, batch: batch.batchId }));
    if (text.startsWith('ack')) await batch.acknowledge(m.id);
    if (text.startsWith('retry') && m.attempts < 3) await batch.retry(m.id, { delaySeconds: 0 });
    if (text.startsWith('twice')) { await batch.acknowledge(m.id);
      try { await batch.retry(m.id) } catch (e) { await env.SEEN.put('twice error', e.name) }
      try { await batch.acknowledge('none') } catch (e) { await env.SEEN.put('unknown error', e.name) } }
  }
  if (batch.messages.some((m) => new TextDecoder().decode(m.body).includes('throw'))) throw new Error('as told');
} }";

fn queue(name: &str, consumer: Option<ConsumerSpec>) -> QueueSpec {
    QueueSpec {
        name: name.into(),
        delivery_delay_seconds: 0,
        retention_seconds: 3600,
        consumer,
    }
}

fn consumer(worker: &str) -> ConsumerSpec {
    ConsumerSpec {
        worker: worker.into(),
        max_batch_size: 10,
        max_batch_timeout_seconds: 0,
        max_retries: 2,
        retry_delay_seconds: 0,
        max_concurrency: 1,
        dead_letter_queue: None,
    }
}

fn seen() -> (String, Capability) {
    (
        "SEEN".into(),
        Capability::Kv {
            namespace: "seen".into(),
        },
    )
}

fn host_with_queues(host: &mut Host) {
    host.worker("driver", DRIVER).environment = [
        seen(),
        (
            "MAIN".into(),
            Capability::QueueProducer {
                queue: "main".into(),
            },
        ),
        (
            "LETTERS".into(),
            Capability::QueueProducer {
                queue: "letters".into(),
            },
        ),
    ]
    .into();
    let spec = host.worker("consumer", CONSUMER);
    spec.handlers = [Handler::Queue].into();
    spec.environment = [seen()].into();
    host.plan.queues.insert(
        "main".into(),
        queue("main-queue", Some(consumer("consumer"))),
    );
    host.plan
        .queues
        .insert("letters".into(), queue("letters-queue", None));
}

fn main_consumer(host: &mut Host) -> &mut ConsumerSpec {
    let main = host.plan.queues.get_mut("main").unwrap();
    main.consumer.as_mut().unwrap()
}

async fn note(host: &Host, key: &str) -> Option<Value> {
    use base64::Engine;
    let value = host.call("SEEN", "get", json!([key])).await;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(value["$b64"].as_str()?)
        .unwrap();
    let text = String::from_utf8(bytes).unwrap();
    Some(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_delivered_retried_settled_and_dead_lettered() {
    let mut host = Host::start().await;
    host_with_queues(&mut host);
    main_consumer(&mut host).dead_letter_queue = Some("letters".into());
    host.converge().await;
    let id = host
        .call("MAIN", "send", json!([b64(b"plain \x7f"), {}]))
        .await;
    let first = until("the delivery", async || note(&host, "plain \x7f/1").await).await;
    assert_eq!(
        (&first["id"], &first["queue"], &first["same"]),
        (&id, &json!("main-queue"), &json!(true))
    );
    // Retried by request until the third delivery returns without asking for more.
    host.call("MAIN", "send", json!(["retry me"])).await;
    let third = until("the third delivery", async || {
        note(&host, "retry me/3").await
    })
    .await;
    let earlier = note(&host, "retry me/1").await.unwrap();
    assert_eq!(
        (&third["id"], &third["at"]),
        (&earlier["id"], &earlier["at"])
    );
    assert_ne!(third["batch"], earlier["batch"]);
    // Settling twice, or what is not there, has a code.
    host.call("MAIN", "send", json!(["twice"])).await;
    let twice = until("the error", async || note(&host, "unknown error").await).await;
    assert_eq!(
        (twice, note(&host, "twice error").await),
        (json!("unknown_message"), Some(json!("already_settled")))
    );
    // A throw retries what was not acknowledged; after three deliveries it is a dead letter.
    let ids = host
        .call(
            "MAIN",
            "sendBatch",
            json!([[{ "body": "throw" }, { "body": "ack throw" }]]),
        )
        .await;
    assert_eq!(ids.as_array().unwrap().len(), 2);
    until("the last delivery", async || note(&host, "throw/3").await).await;
    assert_eq!(
        note(&host, "ack throw/2").await,
        None,
        "an acknowledgement stands"
    );
    let mut plan = host.plan.clone();
    plan.queues.get_mut("letters").unwrap().consumer = Some(consumer("consumer"));
    plan.queues.get_mut("main").unwrap().consumer = None;
    host.call("SEEN", "delete", json!(["throw/1"])).await;
    host.runtime.converge(plan).await.unwrap();
    let letter = until("the dead letter", async || note(&host, "throw/1").await).await;
    assert_eq!(letter["queue"], "letters-queue");
    assert!(
        !ids.as_array().unwrap().contains(&letter["id"]),
        "a dead letter is a new message"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_filled_delays_kept_and_limits_refused() {
    let mut host = Host::start().await;
    host_with_queues(&mut host);
    main_consumer(&mut host).max_batch_timeout_seconds = 1;
    main_consumer(&mut host).max_batch_size = 3;
    host.converge().await;
    let messages: Vec<_> = (0..5).map(|n| json!({ "body": format!("m{n}") })).collect();
    host.call("MAIN", "sendBatch", json!([messages])).await;
    let mut sizes = Vec::new();
    for n in 0..5 {
        let note = until("each message", async || {
            note(&host, &format!("m{n}/1")).await
        })
        .await;
        sizes.push(note["size"].as_u64().unwrap());
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 2, 3, 3, 3]);
    host.call("MAIN", "send", json!(["later", { "delaySeconds": 2 }]))
        .await;
    let later = until("the delayed message", async || note(&host, "later/1").await).await;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(now >= Duration::from_millis(later["at"].as_u64().unwrap() + 2000));
    host.call("MAIN", "send", json!([b64(&vec![7; 127_000])]))
        .await;
    for (code, method, args) in [
        ("message_too_large", "send", json!([b64(&vec![7; 127_001])])),
        ("invalid_body", "send", json!([7])),
        (
            "invalid_body",
            "send",
            json!(["x", { "delaySeconds": 43_201 }]),
        ),
        (
            "batch_too_large",
            "sendBatch",
            json!([vec![json!({ "body": "x" }); 101]]),
        ),
    ] {
        assert_eq!(host.refusal("MAIN", method, args).await, code);
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_loses_its_process_is_delivered_again() {
    let mut host = Host::start().await;
    host_with_queues(&mut host);
    host.version(
        "consumer",
        "consumer-1",
        "export default { async queue(batch, env) {
           for (const m of batch.messages) {
             const text = new TextDecoder().decode(m.body);
             if (text === 'acked') await batch.acknowledge(m.id);
             if (text === 'slow' && m.attempts === 1) await batch.retry(m.id, { delaySeconds: 1 });
             await env.SEEN.put(text + '/' + m.attempts, JSON.stringify({ id: m.id }));
           }
           if (batch.messages.some((m) => m.attempts === 1)) await new Promise((r) => setTimeout(r, 60000)); } }",
    );
    let spec = host.plan.versions.get_mut("consumer-1").unwrap();
    spec.handlers = [Handler::Queue].into();
    spec.environment = [seen()].into();
    host.converge().await;
    let sent = json!([[{ "body": "acked" }, { "body": "slow" }, { "body": "lost" }]]);
    let ids = host.call("MAIN", "sendBatch", sent).await;
    for text in ["acked", "slow", "lost"] {
        until("the first delivery", async || {
            note(&host, &format!("{text}/1")).await
        })
        .await;
    }
    support::kill(host.pid("consumer").unwrap());
    let second = until("the second delivery", async || note(&host, "lost/2").await).await;
    assert_eq!(second["id"], ids[2]);
    until("the retry", async || note(&host, "slow/2").await).await;
    assert_eq!(
        note(&host, "acked/2").await,
        None,
        "what was acknowledged stays so"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_messages_survive_a_restart_and_wait_for_a_consumer() {
    let mut host = Host::start().await;
    host_with_queues(&mut host);
    let kept = host.plan.queues.get_mut("main").unwrap().consumer.take();
    host.converge().await;
    host.call("MAIN", "send", json!(["kept"])).await;
    let (mut plan, directory) = (host.plan.clone(), host.directory.take().unwrap());
    host.runtime.shutdown().await;
    let mut host = Host::start_in(directory).await;
    host.blob("script:driver-1", DRIVER);
    host.blob("script:consumer-1", CONSUMER);
    plan.queues.get_mut("main").unwrap().consumer = kept;
    host.plan = plan;
    host.converge().await;
    until("the delivery", async || note(&host, "kept/1").await).await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_fires_at_the_next_minute_with_its_expression_and_minute() {
    let mut host = Host::start().await;
    host.worker("driver", DRIVER).environment = [seen()].into();
    let spec = host.worker(
        "clock",
        "export default { async scheduled(event, env, ctx) {
           await env.SEEN.put('cron', JSON.stringify({ ...event, args: arguments.length })); } }",
    );
    spec.handlers = [Handler::Scheduled].into();
    spec.environment = [seen()].into();
    let cron = CronSpec {
        worker: "clock".into(),
        expression: "* * * * *".into(),
    };
    host.plan.crons.insert("trigger".into(), cron);
    host.converge().await;
    let started = std::time::Instant::now();
    let fired = loop {
        if let Some(fired) = note(&host, "cron").await {
            break fired;
        }
        assert!(
            started.elapsed() < Duration::from_secs(90),
            "no match within 90 seconds\n{}",
            host.log()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(
        (&fired["cron"], &fired["args"]),
        (&json!("* * * * *"), &json!(3))
    );
    assert_eq!(fired["scheduledTime"].as_u64().unwrap() % 60_000, 0);
    host.runtime.shutdown().await;
}
