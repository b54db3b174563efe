//! Taking, keeping and giving back the right to change a deployment (`engine.md` §7, *Hold*).

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use notation_state::{Acquired, Claim, Fence, Hold, RENEW_MS, RunId, StoreError};
use tokio::{sync::Mutex, task::JoinHandle};

use crate::{EngineError, EngineEvent, HoldWait, Session};

/// How often a run that waits asks again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// For how long the store is believed that the hold is this run's.
const BELIEVED_MS: u64 = 100;

/// A hold that is renewed as long as this lives.
pub(crate) struct Held {
    pub hold: Hold,
    session: Session,
    renewer: JoinHandle<()>,
}

/// Takes the hold, waiting for it if asked to.
///
/// Errors: [`EngineError::Held`] when it is taken and nobody shall wait,
/// [`EngineError::Interrupted`] when the person stopped waiting.
pub(crate) async fn take(session: &Session, wait: HoldWait) -> Result<Held, EngineError> {
    let run = RunId::random();
    let mut over: Option<Fence> = None;
    let mut told = false;
    loop {
        let claim = Claim {
            run: run.clone(),
            machine: session.machine.clone(),
            now_ms: session.clock.now_ms(),
            over,
        };
        match session.store.acquire(&session.deployment, &claim).await? {
            Acquired::Free(hold) => return Ok(Held::new(session, hold)),
            Acquired::TakenOver { hold, from } => {
                session.sink.event(&EngineEvent::HoldTakenOver(from));
                return Ok(Held::new(session, hold));
            }
            Acquired::Taken(theirs) => {
                if over != Some(theirs.fence) && session.machine.knows_dead(&theirs.machine) {
                    over = Some(theirs.fence);
                    continue;
                }
                if wait == HoldWait::GiveUp {
                    return Err(EngineError::Held(Box::new(theirs)));
                }
                if !told {
                    session.sink.event(&EngineEvent::HoldWaiting(theirs));
                    told = true;
                }
                tokio::select! {
                    () = session.clock.sleep(ASK_AGAIN) => {}
                    () = session.interrupt.given(1) => return Err(EngineError::Interrupted),
                }
            }
        }
    }
}

impl Held {
    fn new(session: &Session, hold: Hold) -> Held {
        let renewer = tokio::spawn(renew(session.clone(), hold.clone()));
        Held {
            hold,
            session: session.clone(),
            renewer,
        }
    }

    /// Gives it back.
    pub(crate) async fn release(self) -> Result<(), StoreError> {
        self.renewer.abort();
        let Session {
            store, deployment, ..
        } = &self.session;
        store.release(deployment, &self.hold).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewer.abort();
    }
}

/// Renews until the hold is lost. A renewal that fails otherwise is tried again with the next
/// one: every append is fenced, so nothing can go wrong meanwhile.
async fn renew(session: Session, hold: Hold) {
    loop {
        session.clock.sleep(Duration::from_millis(RENEW_MS)).await;
        let now_ms = session.clock.now_ms();
        let renewed = session
            .store
            .renew(&session.deployment, &hold, now_ms)
            .await;
        match renewed {
            Ok(()) => {}
            Err(StoreError::Fenced { .. }) => {
                tracing::warn!(fence = hold.fence.0, "the hold was lost");
                return;
            }
            Err(error) => tracing::warn!(%error, "the hold could not be renewed"),
        }
    }
}

/// When the store last took something under the hold, so that it was this run's then.
///
/// An append is refused once another run has the hold, a call to a provider is not. So no call
/// begins on an older word than [`BELIEVED_MS`]: a run that slept while its hold was taken asks
/// first. (What was under way when it fell asleep is the other run's to look for.)
#[derive(Debug, Default)]
pub(crate) struct LastWord {
    /// In milliseconds since 1970; 0 for never.
    at_ms: AtomicU64,
    asks: Mutex<()>,
}

impl LastWord {
    /// The store took something that was sent at this time.
    pub(crate) fn heard(&self, sent_ms: u64) {
        self.at_ms.store(sent_ms, Ordering::Relaxed);
    }

    /// True when it is too old, or of a time that is still to come: clocks jump.
    fn is_old(&self, now_ms: u64) -> bool {
        self.at_ms.load(Ordering::Relaxed).abs_diff(now_ms) > BELIEVED_MS
    }

    /// Asks the store, unless it said so a moment ago. Whoever else asks meanwhile hears the same
    /// answer.
    ///
    /// Errors: `Fenced` when the hold is another run's.
    pub(crate) async fn again(&self, session: &Session, hold: &Hold) -> Result<(), StoreError> {
        if !self.is_old(session.clock.now_ms()) {
            return Ok(());
        }
        let _asking = self.asks.lock().await;
        let now_ms = session.clock.now_ms();
        if self.is_old(now_ms) {
            let Session {
                store, deployment, ..
            } = session;
            store.renew(deployment, hold, now_ms).await?;
            self.heard(now_ms);
        }
        Ok(())
    }
}
