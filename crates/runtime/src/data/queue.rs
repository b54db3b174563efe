//! `edge.queue@1.0.0`: messages of all queues in one file, so that a dead letter leaves one
//! queue and enters the other in one transaction.
//!
//! A message is waiting, or it belongs to a batch. `attempts` counts deliveries begun.

mod batch;

use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use super::Data;
use super::file::{Database, Family};
use super::operation::{Answer, Call, EncodedBytes, Refusal};
use crate::clock;
use crate::plan::{QueueSpec, Uid};

use batch::settle_one;
pub(crate) use batch::{Batch, Message, Settlement, Taken, release_all, settle, take};

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS message (
        id TEXT PRIMARY KEY NOT NULL,
        queue TEXT NOT NULL,
        body BLOB NOT NULL,
        accepted_at_ms INTEGER NOT NULL,
        visible_at_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        batch TEXT
    );
    CREATE INDEX IF NOT EXISTS message_waiting ON message (queue, visible_at_ms) WHERE batch IS NULL;
    CREATE INDEX IF NOT EXISTS message_batch ON message (batch) WHERE batch IS NOT NULL;
    CREATE INDEX IF NOT EXISTS message_age ON message (queue, accepted_at_ms);
";

const MOST_BODY_BYTES: usize = 127_000;
const MOST_MESSAGES: usize = 100;
const MOST_DELAY_SECONDS: u64 = 43_200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendInput {
    body: serde_json::Value,
    delay_seconds: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct SendBatchInput {
    messages: Vec<SendInput>,
}

/// `send` and `sendBatch`. Durable when they return; all messages or none.
pub(super) async fn operate(data: &Data, queue: &Uid, call: Call) -> Result<Answer, Refusal> {
    let inputs = match call.operation.as_str() {
        "send" => vec![call.input::<SendInput>("invalid_body")?],
        "sendBatch" => call.input::<SendBatchInput>("invalid_body")?.messages,
        _ => return Err(call.unknown()),
    };
    if !(1..=MOST_MESSAGES).contains(&inputs.len()) {
        let message = format!("a batch has 1 to {MOST_MESSAGES} messages");
        return Err(Refusal::new("batch_too_large", message));
    }
    let spec = data
        .queue(queue)
        .ok_or_else(|| Refusal::unavailable("the queue is not known"))?;
    let accepted: Vec<_> = inputs
        .into_iter()
        .map(|input| accepted(input, &spec))
        .collect::<Result<_, _>>()?;
    let ids: Vec<String> = accepted.iter().map(|(id, ..)| id.clone()).collect();
    let queue_uid = queue.clone();
    messages(data)?
        .with(move |connection| {
            let transaction = connection.transaction()?;
            let now = clock::now_ms();
            for (id, body, delay) in accepted {
                insert(
                    &transaction,
                    &id,
                    queue_uid.as_str(),
                    &body,
                    now,
                    now + delay,
                )?;
            }
            Ok(transaction.commit()?)
        })
        .await?;
    data.arrived.notify_waiters();
    Ok(Answer::document(&match call.operation.as_str() {
        "send" => serde_json::json!({ "messageId": ids.first() }),
        _ => serde_json::json!({ "messageIds": ids }),
    }))
}

/// The file all queues live in.
pub(crate) fn messages(data: &Data) -> Result<Database, Refusal> {
    data.files.database(Family::Queue, &Uid::from("messages"))
}

fn accepted(input: SendInput, spec: &QueueSpec) -> Result<(String, Vec<u8>, i64), Refusal> {
    let invalid = |what: &str| Refusal::new("invalid_body", what.to_owned());
    let body: EncodedBytes =
        serde_json::from_value(input.body).map_err(|_| invalid("a body is encoded bytes"))?;
    let body = body
        .decode()
        .ok_or_else(|| invalid("a body is canonical base64"))?;
    if body.len() > MOST_BODY_BYTES {
        return Err(Refusal::new(
            "message_too_large",
            format!("a message has at most {MOST_BODY_BYTES} bytes"),
        ));
    }
    let delay = match input.delay_seconds {
        None | Some(serde_json::Value::Null) => u64::from(spec.delivery_delay_seconds),
        Some(delay) => delay
            .as_u64()
            .filter(|delay| *delay <= MOST_DELAY_SECONDS)
            .ok_or_else(|| invalid("delaySeconds is a whole number up to 43200"))?,
    };
    Ok((new_id(), body, delay.cast_signed() * 1000))
}

/// An identity nobody can guess or meet twice.
pub(crate) fn new_id() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system has random numbers");
    hex::encode(random)
}

fn insert(
    connection: &Connection,
    id: &str,
    queue: &str,
    body: &[u8],
    now: i64,
    visible_at: i64,
) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT INTO message (id, queue, body, accepted_at_ms, visible_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id, queue, body, now, visible_at],
    )
}

/// What tenant code did with one message, on the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settled {
    pub(crate) id: String,
    #[serde(rename = "as")]
    verb: Verb,
    /// Whatever tenant code passed; what is no delay counts as none.
    #[serde(default)]
    delay_seconds: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Ack,
    Retry,
}

impl Settled {
    pub(crate) fn settlement(&self) -> Settlement {
        match self.verb {
            Verb::Ack => Settlement::Acknowledged,
            Verb::Retry => Settlement::Retried {
                delay_seconds: self
                    .delay_seconds
                    .as_u64()
                    .map(|delay| delay.min(MOST_DELAY_SECONDS) as u32),
            },
        }
    }
}

#[derive(Deserialize)]
struct SettleInput {
    settlements: Vec<Settled>,
}

/// Settlements of a batch that is still being handled; durable when it returns. Nobody but
/// the handler knows the identity of its batch.
pub(super) async fn record(data: &Data, batch: String, call: Call) -> Result<Answer, Refusal> {
    let SettleInput { settlements } = call.input("unknown_batch")?;
    let asked = batch.clone();
    let queue: Option<String> = messages(data)?
        .with(move |connection| {
            let query = "SELECT queue FROM message WHERE batch = ?1 LIMIT 1";
            Ok(connection
                .query_row(query, [asked], |row| row.get(0))
                .optional()?)
        })
        .await?;
    let unknown = || Refusal::new("unknown_batch", "this batch is no longer being handled");
    let queue = queue.ok_or_else(unknown)?;
    let consumer = data.queue(&Uid::from(queue)).and_then(|spec| spec.consumer);
    let retry_delay_seconds = consumer.map_or(0, |consumer| consumer.retry_delay_seconds);
    messages(data)?
        .with(move |connection| {
            let now = clock::now_ms();
            let transaction = connection.transaction()?;
            for settled in &settlements {
                let settlement = settled.settlement();
                settle_one(
                    &transaction,
                    (&batch, &settled.id),
                    settlement,
                    retry_delay_seconds,
                    now,
                )?;
            }
            Ok(transaction.commit()?)
        })
        .await?;
    data.arrived.notify_waiters();
    Ok(Answer::nothing())
}
