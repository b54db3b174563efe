//! Versions that run before a plan gives them traffic: what is to be promoted shows first that it
//! serves (edge runtime contract, "Changing the deployment").

use std::sync::{Arc, PoisonError, Weak};

use futures::future::join_all;

use super::Inner;
use crate::life::State;
use crate::plan::WorkerPlan;
use crate::unserving::{ConvergeError, Unserving};
use crate::version::Version;

/// Starts that may fail before it counts as not coming up: about two seconds of delays.
const MOST_ATTEMPTS: u32 = 3;

/// What runs ahead. Dropped, it lets go of every version that no plan has taken over.
pub struct Ahead {
    inner: Weak<Inner>,
    versions: Vec<Arc<Version>>,
}

impl Ahead {
    /// Starts what takes traffic in `plan` and does not run as `plan` describes it.
    pub(super) fn start(inner: &Arc<Inner>, plan: &WorkerPlan) -> Result<Ahead, ConvergeError> {
        let mut ahead = Ahead {
            inner: Arc::downgrade(inner),
            versions: Vec::new(),
        };
        let mut unserving = Vec::new();
        let mut running = inner
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for uid in plan.serving() {
            // What the plan does not describe is told when it is the plan.
            let Some(spec) = plan.versions.get(uid) else {
                continue;
            };
            if running
                .wanted
                .get(uid)
                .is_some_and(|version| *version.spec == *spec)
            {
                continue;
            }
            match inner.open(plan, uid, spec) {
                Ok(version) => {
                    running.ahead.push(version.clone());
                    ahead.versions.push(version);
                }
                Err(error) => unserving.push(error),
            }
        }
        drop(running);
        match unserving.is_empty() {
            true => Ok(ahead),
            false => Err(ConvergeError(unserving)),
        }
    }

    /// Waits until all of it serves, or some of it failed to come up several times.
    pub(super) async fn serves(&self) -> Result<(), ConvergeError> {
        let decided = self.versions.iter().map(async |version| {
            let mut phase = version.phase.clone();
            let decided = phase.wait_for(|phase| match phase.state {
                State::Warm { .. } | State::Stopped => true,
                State::BackOff { attempt } => attempt > MOST_ATTEMPTS,
                State::Cold
                | State::Starting { .. }
                | State::LastStart
                | State::Draining
                | State::Stopping => false,
            });
            let serves = decided
                .await
                .is_ok_and(|phase| matches!(phase.state, State::Warm { .. }));
            (!serves).then(|| Unserving::of(version))
        });
        let unserving: Vec<_> = join_all(decided).await.into_iter().flatten().collect();
        match unserving.is_empty() {
            true => Ok(()),
            false => Err(ConvergeError(unserving)),
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        let mut running = inner
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for version in self.versions.drain(..) {
            let kept = running
                .ahead
                .iter()
                .position(|it| Arc::ptr_eq(it, &version));
            if let Some(at) = kept {
                running.ahead.swap_remove(at);
                version.leave();
                running.others.push(version);
            }
        }
    }
}
