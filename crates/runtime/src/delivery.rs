//! Delivering queue messages to their consumers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::data::Data;
use crate::data::queue::{self, Batch, Message, Settled, Settlement, Taken};
use crate::event::{EventError, invoke};
use crate::plan::{ConsumerSpec, Handler, QueueSpec, Uid, WorkerPlan};
use crate::router::Router;

/// Longest time between two looks at the queues: retention needs no more.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Wait after the store failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery<'a> {
    batch_id: &'a str,
    queue: &'a str,
    messages: &'a [Message],
}

#[derive(Deserialize)]
struct Report {
    outcome: String,
    #[serde(default)]
    settlements: Vec<Settled>,
}

/// Batches in flight, by queue.
type InFlight = Mutex<BTreeMap<Uid, u32>>;

struct Engine {
    router: Weak<Router>,
    data: Arc<Data>,
    in_flight: InFlight,
    /// A batch has ended, so there may be room for another.
    ended: Notify,
}

/// Delivers until `stop`. Batches in flight then finish with their versions.
pub(crate) async fn run(
    router: Weak<Router>,
    data: Arc<Data>,
    mut plan: watch::Receiver<Arc<WorkerPlan>>,
    stop: CancellationToken,
) {
    let engine = Arc::new(Engine {
        router,
        data,
        in_flight: InFlight::default(),
        ended: Notify::new(),
    });
    if let Err(refusal) = engine.release().await {
        tracing::error!(message = refusal, "queues cannot be opened");
    }
    loop {
        let arrived = engine.data.arrived.notified();
        let ended = engine.ended.notified();
        tokio::pin!(arrived, ended);
        arrived.as_mut().enable();
        ended.as_mut().enable();
        let current = plan.borrow_and_update().clone();
        let wait = engine.look(&current).await;
        tokio::select! {
            () = arrived => {}
            () = ended => {}
            changed = plan.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
    }
}

impl Engine {
    async fn release(&self) -> Result<(), String> {
        let database = queue::messages(&self.data).map_err(|refusal| refusal.message)?;
        database
            .with(queue::release_all)
            .await
            .map_err(|refusal| refusal.message)
    }

    /// Starts every delivery that can start now; gives the time until the next look.
    async fn look(self: &Arc<Self>, plan: &Arc<WorkerPlan>) -> Duration {
        let mut wait = LOOK_EVERY;
        let consumed: BTreeSet<&Uid> = plan
            .queues
            .iter()
            .filter(|(_, spec)| spec.consumer.is_some())
            .map(|(uid, _)| uid)
            .collect();
        for uid in consumed {
            let spec = &plan.queues[uid];
            let most = spec
                .consumer
                .as_ref()
                .map_or(0, |consumer| consumer.max_concurrency);
            while self.count(uid) < most {
                match self.take(plan, uid).await {
                    Ok(Taken::Batch(batch)) => self.deliver(uid.clone(), spec.clone(), batch),
                    Ok(Taken::Later(at)) => {
                        let until = at.saturating_sub(clock::now_ms()).max(1);
                        wait = wait.min(Duration::from_millis(until.unsigned_abs()));
                        break;
                    }
                    Ok(Taken::Nothing) => break,
                    Err(message) => {
                        tracing::warn!(queue = %uid, message, "a queue cannot be read");
                        wait = wait.min(STORE_PAUSE);
                        break;
                    }
                }
            }
        }
        wait
    }

    fn count(&self, queue: &Uid) -> u32 {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(queue)
            .copied()
            .unwrap_or(0)
    }

    async fn take(&self, plan: &Arc<WorkerPlan>, uid: &Uid) -> Result<Taken, String> {
        let database = queue::messages(&self.data).map_err(|refusal| refusal.message)?;
        let (plan, uid) = (plan.clone(), uid.clone());
        let taken = database.with(move |connection| {
            let spec = &plan.queues[&uid];
            let letters = spec
                .consumer
                .as_ref()
                .and_then(|consumer| consumer.dead_letter_queue.as_ref());
            let dead = letters.and_then(|letters| plan.queues.get_key_value(letters));
            queue::take(connection, &uid, spec, dead, clock::now_ms())
        });
        taken.await.map_err(|refusal| refusal.message)
    }

    fn deliver(self: &Arc<Self>, uid: Uid, spec: QueueSpec, batch: Batch) {
        *self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(uid.clone())
            .or_insert(0) += 1;
        let engine = self.clone();
        tokio::spawn(async move {
            if let Some(consumer) = &spec.consumer {
                engine.hand_over(&uid, &spec, consumer, batch).await;
            }
            if let Some(count) = engine
                .in_flight
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_mut(&uid)
            {
                *count -= 1;
            }
            engine.ended.notify_waiters();
        });
    }

    async fn hand_over(&self, uid: &Uid, spec: &QueueSpec, consumer: &ConsumerSpec, batch: Batch) {
        let report = match self.router.upgrade() {
            Some(router) => {
                let delivery = Delivery {
                    batch_id: &batch.id,
                    queue: &spec.name,
                    messages: &batch.messages,
                };
                invoke::<Report>(&router, &consumer.worker, Handler::Queue, &delivery).await
            }
            None => Err(EventError::Undelivered(consumer.worker.clone())),
        };
        match &report {
            Ok(report) if report.outcome == "returned" => {}
            Ok(_) => tracing::warn!(queue = %uid, worker = %consumer.worker, "a batch failed"),
            Err(error) => {
                tracing::warn!(queue = %uid, worker = %consumer.worker, %error, "a batch was not handled")
            }
        }
        let verdict = verdict(report);
        let consumer = consumer.clone();
        let settled = match queue::messages(&self.data) {
            Ok(database) => {
                let work = move |connection: &mut rusqlite::Connection| {
                    queue::settle(connection, &batch, &consumer, &verdict, clock::now_ms())
                };
                database.with(work).await
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = settled {
            tracing::error!(queue = %uid, message = refusal.message, "a batch could not be settled");
        }
    }
}

/// How each message of a batch ended, by what the handler did.
fn verdict(report: Result<Report, EventError>) -> impl Fn(&str) -> Settlement + Send + 'static {
    let (settled, rest) = match report {
        Ok(Report {
            outcome,
            settlements,
        }) => {
            let rest = match outcome.as_str() {
                "returned" => Settlement::Acknowledged,
                _ => Settlement::Retried {
                    delay_seconds: None,
                },
            };
            (settlements, rest)
        }
        Err(EventError::Undelivered(_)) => (Vec::new(), Settlement::Returned),
        Err(EventError::Lost(_)) => (
            Vec::new(),
            Settlement::Retried {
                delay_seconds: None,
            },
        ),
    };
    let settled: BTreeMap<String, Settlement> = settled
        .into_iter()
        .map(|settled| (settled.id.clone(), settled.settlement()))
        .collect();
    move |id| settled.get(id).copied().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(report: &str, id: &str) -> Settlement {
        verdict(Ok(serde_json::from_str(report).unwrap()))(id)
    }

    #[test]
    fn what_was_settled_stands_and_the_rest_follows_the_outcome() {
        let report = |outcome: &str| {
            let settlements = r#"[{"id":"a","as":"ack"},{"id":"r","as":"retry","delaySeconds":7}]"#;
            format!(r#"{{"outcome":"{outcome}","settlements":{settlements}}}"#)
        };
        let retried = |delay_seconds| Settlement::Retried { delay_seconds };
        for outcome in ["returned", "threw"] {
            assert_eq!(of(&report(outcome), "a"), Settlement::Acknowledged);
            assert_eq!(of(&report(outcome), "r"), retried(Some(7)));
        }
        assert_eq!(of(&report("returned"), "other"), Settlement::Acknowledged);
        assert_eq!(of(&report("threw"), "other"), retried(None));
        assert_eq!(
            verdict(Err(EventError::Undelivered("w".into())))("a"),
            Settlement::Returned
        );
        assert_eq!(
            verdict(Err(EventError::Lost(String::new())))("a"),
            retried(None)
        );
    }

    #[test]
    fn odd_delays_of_tenant_code_spoil_nothing() {
        for (delay, expected) in [
            ("-1", None),
            ("1.5", None),
            ("\"x\"", None),
            ("99999999", Some(43_200)),
        ] {
            let report = format!(
                r#"{{"outcome":"returned","settlements":[{{"id":"r","as":"retry","delaySeconds":{delay}}},{{"id":"a","as":"ack"}}]}}"#
            );
            assert_eq!(
                of(&report, "r"),
                Settlement::Retried {
                    delay_seconds: expected
                }
            );
            assert_eq!(of(&report, "a"), Settlement::Acknowledged);
        }
    }
}
