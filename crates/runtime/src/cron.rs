//! The cron clock.
//!
//! Source: edge runtime contract, "Cron": UTC, minute boundaries, at least once per match
//! while the host is healthy, no make-up for missed or overlapped matches.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use notation_edge::{Cron, Instant};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::event::invoke;
use crate::plan::{CronSpec, Handler, Uid, WorkerPlan};
use crate::router::Router;

const MINUTE_MS: u64 = 60_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Scheduled<'a> {
    cron: &'a str,
    scheduled_time: u64,
}

#[derive(Deserialize)]
struct Outcome {
    outcome: String,
}

/// Triggers whose invocation has not ended.
type Running = Arc<Mutex<BTreeSet<Uid>>>;

/// Fires triggers at every minute boundary until `stop`.
pub(crate) async fn run(
    router: Weak<Router>,
    plan: watch::Receiver<Arc<WorkerPlan>>,
    stop: CancellationToken,
) {
    let running = Running::default();
    let mut last = clock::since_epoch().as_millis() as u64 / MINUTE_MS;
    loop {
        let now = clock::since_epoch().as_millis() as u64;
        let boundary = (now / MINUTE_MS + 1) * MINUTE_MS;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(boundary - now)) => {}
            () = stop.cancelled() => return,
        }
        // A machine that slept has missed matches: only the present minute counts. A timer
        // that fires early is in the old minute still.
        let minute = clock::since_epoch().as_millis() as u64 / MINUTE_MS;
        if minute <= last {
            continue;
        }
        last = minute;
        let Some(router) = router.upgrade() else {
            return;
        };
        let plan = plan.borrow().clone();
        for (uid, spec) in due(&plan, minute) {
            fire(
                &router,
                uid.clone(),
                spec.clone(),
                minute * MINUTE_MS,
                running.clone(),
            );
        }
    }
}

/// Triggers that match this minute (minutes since 1970 UTC).
fn due(plan: &WorkerPlan, minute: u64) -> impl Iterator<Item = (&Uid, &CronSpec)> {
    let at = instant(minute);
    plan.crons.iter().filter(move |(_, spec)| {
        let cron = Cron::parse(&spec.expression);
        at.is_some_and(|at| cron.is_ok_and(|cron| cron.matches(&at)))
    })
}

fn instant(minute: u64) -> Option<Instant> {
    let seconds = i64::try_from(minute).ok()?.checked_mul(60)?;
    let at = jiff::Timestamp::from_second(seconds)
        .ok()?
        .to_zoned_datetime(jiff::tz::TimeZone::UTC);
    Some(Instant {
        minute: at.minute().cast_unsigned(),
        hour: at.hour().cast_unsigned(),
        day: at.day().cast_unsigned(),
        month: at.month().cast_unsigned(),
        weekday: at.weekday().to_sunday_zero_offset().cast_unsigned(),
    })
}

fn fire(router: &Arc<Router>, uid: Uid, spec: CronSpec, scheduled_time: u64, running: Running) {
    if !running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(uid.clone())
    {
        tracing::warn!(trigger = %uid, worker = %spec.worker, "skipped: the last invocation still runs");
        return;
    }
    let router = router.clone();
    tokio::spawn(async move {
        let document = Scheduled {
            cron: &spec.expression,
            scheduled_time,
        };
        match invoke::<Outcome>(&router, &spec.worker, Handler::Scheduled, &document).await {
            Ok(Outcome { outcome }) if outcome == "returned" => {
                tracing::debug!(trigger = %uid, worker = %spec.worker, "scheduled invocation done");
            }
            Ok(_) => {
                tracing::warn!(trigger = %uid, worker = %spec.worker, "scheduled invocation failed")
            }
            Err(error) => {
                tracing::warn!(trigger = %uid, worker = %spec.worker, %error, "scheduled invocation failed")
            }
        }
        running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&uid);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_due_in_the_minutes_they_name() {
        let mut plan = WorkerPlan::default();
        for (uid, expression) in [
            ("every", "* * * * *"),
            ("noon", "0 12 * * *"),
            ("sunday", "30 4 * * 0"),
            ("odd", "no cron"),
        ] {
            plan.crons.insert(
                uid.into(),
                CronSpec {
                    worker: "w".into(),
                    expression: expression.into(),
                },
            );
        }
        let due_at = |text: &str| {
            let minute = text.parse::<jiff::Timestamp>().unwrap().as_second() as u64 / 60;
            due(&plan, minute)
                .map(|(uid, _)| uid.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(due_at("2026-11-29T12:00:00Z"), ["every", "noon"]);
        assert_eq!(due_at("2026-11-29T04:30:00Z"), ["every", "sunday"]); // a Sunday
        assert_eq!(due_at("2026-11-30T04:30:00Z"), ["every"]);
        assert_eq!(due_at("2028-02-29T00:01:00Z"), ["every"]);
    }
}
