//! Batches: which messages form one, and what becomes of them. Every decision takes the time
//! as an argument.

use rusqlite::{Connection, params};
use serde::Serialize;

use super::super::operation::{EncodedBytes, Refusal};
use super::{insert, new_id};
use crate::plan::{ConsumerSpec, QueueSpec, Uid};

/// A message of a batch that was taken.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) timestamp_millis: i64,
    pub(crate) attempts: i64,
    pub(crate) body: EncodedBytes,
}

/// Messages that are out for delivery.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) id: String,
    pub(crate) messages: Vec<Message>,
}

/// What a queue has to offer.
#[derive(Clone, Debug)]
pub(crate) enum Taken {
    /// Nothing is waiting.
    Nothing,
    /// Something will be deliverable at this time (ms since 1970).
    Later(i64),
    /// A batch, which stays out until it is settled.
    Batch(Batch),
}

/// How one message of a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Done, never delivered again.
    Acknowledged,
    /// Delivered again after a delay, unless it has been delivered often enough.
    Retried {
        /// Delay asked for; the consumer's own otherwise.
        delay_seconds: Option<u32>,
    },
    /// The handler was not reached: as if it had not been taken.
    Returned,
}

/// Batches that were out when the host ended have an unknown outcome: they wait again, and
/// the delivery counts.
pub(crate) fn release_all(connection: &mut Connection) -> Result<(), Refusal> {
    connection.execute(
        "UPDATE message SET batch = NULL WHERE batch IS NOT NULL",
        [],
    )?;
    Ok(())
}

/// Takes the next batch of a queue: drops what is too old, moves what was delivered often
/// enough, and fills a batch as full as it gets within the consumer's patience.
pub(crate) fn take(
    connection: &mut Connection,
    queue: &Uid,
    spec: &QueueSpec,
    dead: Option<(&Uid, &QueueSpec)>,
    now: i64,
) -> Result<Taken, Refusal> {
    let Some(consumer) = &spec.consumer else {
        return Ok(Taken::Nothing);
    };
    let transaction = connection.transaction()?;
    let oldest = now - i64::from(spec.retention_seconds) * 1000;
    transaction.execute(
        "DELETE FROM message WHERE queue = ?1 AND accepted_at_ms <= ?2 AND batch IS NULL",
        params![queue.as_str(), oldest],
    )?;
    exhaust(&transaction, queue, consumer, dead, now)?;
    let waiting = |limit: u32| -> rusqlite::Result<Vec<(String, i64)>> {
        let mut query = transaction.prepare_cached(
            "SELECT id, visible_at_ms FROM message
             WHERE queue = ?1 AND batch IS NULL ORDER BY visible_at_ms LIMIT ?2",
        )?;
        let rows = query.query_map(params![queue.as_str(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect()
    };
    let waiting = waiting(consumer.max_batch_size)?;
    let ready: Vec<&str> = waiting
        .iter()
        .filter(|(_, visible)| *visible <= now)
        .map(|(id, _)| id.as_str())
        .collect();
    let next = waiting
        .iter()
        .map(|(_, visible)| *visible)
        .find(|visible| *visible > now);
    let fill_until = waiting
        .first()
        .map(|(_, visible)| visible + i64::from(consumer.max_batch_timeout_seconds) * 1000);
    let full = ready.len() >= consumer.max_batch_size as usize;
    let taken = match (ready.is_empty(), fill_until) {
        (true, _) | (_, None) => next.map_or(Taken::Nothing, Taken::Later),
        (false, Some(until)) if !full && until > now => {
            Taken::Later(next.map_or(until, |next| next.min(until)))
        }
        (false, Some(_)) => Taken::Batch(lease(&transaction, &ready)?),
    };
    transaction.commit()?;
    Ok(taken)
}

fn lease(connection: &Connection, ids: &[&str]) -> Result<Batch, Refusal> {
    let batch = new_id();
    let mut messages = Vec::with_capacity(ids.len());
    let mut update = connection.prepare_cached(
        "UPDATE message SET batch = ?1, attempts = attempts + 1 WHERE id = ?2
         RETURNING accepted_at_ms, attempts, body",
    )?;
    for id in ids {
        let message = update.query_row(params![batch, id], |row| {
            Ok(Message {
                id: (*id).to_owned(),
                timestamp_millis: row.get(0)?,
                attempts: row.get(1)?,
                body: EncodedBytes::of(&row.get::<_, Vec<u8>>(2)?),
            })
        })?;
        messages.push(message);
    }
    Ok(Batch {
        id: batch,
        messages,
    })
}

/// Dead-letters or drops every waiting message that was delivered often enough. A dead
/// letter is a new message: new id, new time, nothing of the original but its bytes.
fn exhaust(
    connection: &Connection,
    queue: &Uid,
    consumer: &ConsumerSpec,
    dead: Option<(&Uid, &QueueSpec)>,
    now: i64,
) -> Result<(), Refusal> {
    let most = i64::from(consumer.max_retries) + 1;
    let mut gone = connection.prepare_cached(
        "DELETE FROM message WHERE queue = ?1 AND batch IS NULL AND attempts >= ?2 RETURNING body",
    )?;
    let rows = gone.query_map(params![queue.as_str(), most], |row| row.get(0))?;
    let bodies: Vec<Vec<u8>> = rows.collect::<Result<_, _>>()?;
    if let Some((letters, spec)) = dead {
        let visible_at = now + i64::from(spec.delivery_delay_seconds) * 1000;
        for body in &bodies {
            insert(
                connection,
                &new_id(),
                letters.as_str(),
                body,
                now,
                visible_at,
            )?;
        }
    }
    Ok(())
}

/// Ends a batch: each message as it was settled, all in one transaction. Messages whose
/// settlement was recorded before are not in the batch any more.
pub(crate) fn settle(
    connection: &mut Connection,
    batch: &Batch,
    consumer: &ConsumerSpec,
    settlement: impl Fn(&str) -> Settlement,
    now: i64,
) -> Result<(), Refusal> {
    let transaction = connection.transaction()?;
    for Message { id, .. } in &batch.messages {
        settle_one(
            &transaction,
            (&batch.id, id),
            settlement(id),
            consumer.retry_delay_seconds,
            now,
        )?;
    }
    Ok(transaction.commit()?)
}

/// Ends one message of a batch that is still in it.
pub(super) fn settle_one(
    connection: &Connection,
    (batch, id): (&str, &str),
    settlement: Settlement,
    retry_delay_seconds: u32,
    now: i64,
) -> rusqlite::Result<()> {
    let wait = "UPDATE message SET batch = NULL, attempts = attempts - ?4, visible_at_ms = ?3
        WHERE id = ?1 AND batch = ?2";
    match settlement {
        Settlement::Acknowledged => connection.execute(
            "DELETE FROM message WHERE id = ?1 AND batch = ?2",
            params![id, batch],
        )?,
        Settlement::Retried { delay_seconds } => {
            let delay = i64::from(delay_seconds.unwrap_or(retry_delay_seconds)) * 1000;
            connection.execute(wait, params![id, batch, now + delay, 0])?
        }
        Settlement::Returned => {
            connection.execute(wait, params![id, batch, now + RETURNED_AFTER_MS, 1])?
        }
    };
    Ok(())
}

/// A handler that could not be reached is tried again after this time.
const RETURNED_AFTER_MS: i64 = 1000;

#[cfg(test)]
mod tests {
    use super::super::SCHEMA;
    use super::*;

    fn file() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection
    }

    fn spec(consumer: ConsumerSpec) -> QueueSpec {
        QueueSpec {
            name: "jobs".into(),
            delivery_delay_seconds: 0,
            retention_seconds: 60,
            consumer: Some(consumer),
        }
    }

    fn consumer() -> ConsumerSpec {
        ConsumerSpec {
            worker: "w".into(),
            max_batch_size: 2,
            max_batch_timeout_seconds: 0,
            max_retries: 1,
            retry_delay_seconds: 5,
            max_concurrency: 1,
            dead_letter_queue: None,
        }
    }

    fn send(connection: &Connection, id: &str, now: i64, delay_ms: i64) {
        insert(connection, id, "q", id.as_bytes(), now, now + delay_ms).unwrap();
    }

    fn taken(connection: &mut Connection, spec: &QueueSpec, now: i64) -> Taken {
        take(connection, &"q".into(), spec, None, now).unwrap()
    }

    fn batch(connection: &mut Connection, spec: &QueueSpec, now: i64) -> Batch {
        match taken(connection, spec, now) {
            Taken::Batch(batch) => batch,
            other => panic!("a batch, not {other:?}"),
        }
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch
            .messages
            .iter()
            .map(|message| message.id.as_str())
            .collect()
    }

    #[test]
    fn a_batch_waits_until_it_is_full_or_its_first_message_has_waited_long_enough() {
        let (mut file, spec) = (
            file(),
            spec(ConsumerSpec {
                max_batch_timeout_seconds: 3,
                ..consumer()
            }),
        );
        send(&file, "a", 1_000, 0);
        assert!(matches!(
            taken(&mut file, &spec, 1_500),
            Taken::Later(4_000)
        ));
        send(&file, "b", 2_000, 500);
        assert!(
            matches!(taken(&mut file, &spec, 2_100), Taken::Later(2_500)),
            "full then"
        );
        assert_eq!(ids(&batch(&mut file, &spec, 2_500)), ["a", "b"]);
        send(&file, "c", 3_000, 0);
        assert_eq!(ids(&batch(&mut file, &spec, 6_000)), ["c"]);
        assert!(
            matches!(taken(&mut file, &spec, 6_000), Taken::Nothing),
            "all are out"
        );
    }

    #[test]
    fn messages_past_retention_are_dropped_unless_they_are_out() {
        let (mut file, spec) = (file(), spec(consumer()));
        send(&file, "old", 0, 0);
        send(&file, "out", 1, 0);
        let both = batch(&mut file, &spec, 1_000);
        settle(
            &mut file,
            &both,
            &consumer(),
            |id| match id {
                "old" => Settlement::Retried {
                    delay_seconds: Some(0),
                },
                _ => Settlement::Returned,
            },
            1_000,
        )
        .unwrap();
        let again = batch(&mut file, &spec, 59_000);
        assert_eq!(ids(&again), ["old", "out"]);
        let attempts: Vec<_> = again
            .messages
            .iter()
            .map(|message| message.attempts)
            .collect();
        assert_eq!(
            attempts,
            [2, 1],
            "a message that came back undelivered was not delivered"
        );
        assert!(matches!(taken(&mut file, &spec, 61_000), Taken::Nothing));
        settle(
            &mut file,
            &again,
            &consumer(),
            |_| Settlement::Returned,
            61_000,
        )
        .unwrap();
        assert!(
            matches!(taken(&mut file, &spec, 70_000), Taken::Nothing),
            "too old now"
        );
    }

    #[test]
    fn a_message_delivered_often_enough_is_dropped_or_becomes_another_in_the_dead_letter_queue() {
        let (mut file, spec) = (file(), spec(consumer()));
        let letters = QueueSpec {
            consumer: Some(consumer()),
            ..spec.clone()
        };
        send(&file, "m", 0, 0);
        let first = batch(&mut file, &spec, 0);
        settle(
            &mut file,
            &first,
            &consumer(),
            |_| Settlement::Retried {
                delay_seconds: None,
            },
            0,
        )
        .unwrap();
        assert!(
            matches!(taken(&mut file, &spec, 4_999), Taken::Later(5_000)),
            "the consumer's delay"
        );
        let second = batch(&mut file, &spec, 5_000);
        settle(
            &mut file,
            &second,
            &consumer(),
            |_| Settlement::Retried {
                delay_seconds: Some(0),
            },
            6_000,
        )
        .unwrap();
        let (queue, dead): (Uid, Uid) = ("q".into(), "dead".into());
        let left = take(&mut file, &queue, &spec, Some((&dead, &letters)), 6_000).unwrap();
        assert!(matches!(left, Taken::Nothing));
        let Taken::Batch(letter) = take(&mut file, &dead, &letters, None, 6_000).unwrap() else {
            panic!("a dead letter");
        };
        let Message {
            id,
            timestamp_millis,
            attempts,
            body,
        } = &letter.messages[0];
        assert_ne!(id, "m");
        assert_eq!(
            (*timestamp_millis, *attempts, body.decode().unwrap()),
            (6_000, 1, b"m".to_vec())
        );
    }

    #[test]
    fn batches_of_a_host_that_ended_wait_again_and_count_as_delivered() {
        let (mut file, spec) = (file(), spec(consumer()));
        send(&file, "m", 0, 0);
        batch(&mut file, &spec, 0);
        assert!(matches!(taken(&mut file, &spec, 0), Taken::Nothing));
        release_all(&mut file).unwrap();
        assert_eq!(batch(&mut file, &spec, 0).messages[0].attempts, 2);
    }
}
