//! Taking, keeping and giving back the right to change a deployment (`engine.md` §7, *Hold*).

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use notation_state::{Acquired, Claim, Fence, Hold, RENEW_MS, RunId, StoreError};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

use crate::{EngineError, EngineEvent, HoldWait, Session};

/// How often a run that waits asks again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// For how long the store is believed that the hold is this run's.
const BELIEVED_MS: u64 = 100;

/// A hold that is renewed as long as this lives, and given back once nobody works under it any
/// more.
pub(crate) struct Held {
    pub hold: Hold,
    session: Session,
    keeper: JoinHandle<()>,
    alive: Alive,
}

/// Whoever has one works under a hold: it is not given back before. Nothing is ever sent.
pub(crate) type Alive = mpsc::Sender<Infallible>;

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
        match ask(session, claim).await? {
            Asked::Held(held, from) => {
                if let Some(from) = from {
                    session.sink.event(&EngineEvent::HoldTakenOver(from));
                }
                return Ok(*held);
            }
            Asked::Taken(theirs) => {
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

/// What the store said to a claim.
enum Asked {
    /// The hold, and from whom it was taken over.
    Held(Box<Held>, Option<Hold>),
    /// It is somebody else's.
    Taken(Hold),
}

/// Asks the store in a task of its own: whoever stops waiting meanwhile leaves no hold behind.
async fn ask(session: &Session, claim: Claim) -> Result<Asked, StoreError> {
    let session = session.clone();
    let asking = tokio::spawn(async move {
        let acquired = session.store.acquire(&session.deployment, &claim).await?;
        Ok(match acquired {
            Acquired::Free(hold) => Asked::Held(Box::new(Held::new(&session, hold)), None),
            Acquired::TakenOver { hold, from } => {
                Asked::Held(Box::new(Held::new(&session, hold)), Some(from))
            }
            Acquired::Taken(theirs) => Asked::Taken(theirs),
        })
    });
    match asking.await {
        Ok(asked) => asked,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and everything on it.
            Err(_) => std::future::pending().await,
        },
    }
}

impl Held {
    fn new(session: &Session, hold: Hold) -> Held {
        let (alive, at_work) = mpsc::channel(1);
        let keeper = tokio::spawn(keep(session.clone(), hold.clone(), at_work));
        Held {
            hold,
            session: session.clone(),
            keeper,
            alive,
        }
    }

    /// For whoever works under it.
    pub(crate) fn alive(&self) -> Alive {
        self.alive.clone()
    }

    /// Gives it back. Nobody works under it any more.
    pub(crate) async fn release(self) -> Result<(), StoreError> {
        self.keeper.abort();
        let Session {
            store, deployment, ..
        } = &self.session;
        store.release(deployment, &self.hold).await
    }
}

/// Renews until the hold is lost, or until nobody is alive who works under it: then it is given
/// back. A renewal that fails otherwise is tried again with the next one: every append is fenced,
/// so nothing can go wrong meanwhile.
async fn keep(session: Session, hold: Hold, mut at_work: mpsc::Receiver<Infallible>) {
    let Session {
        store,
        deployment,
        clock,
        ..
    } = &session;
    loop {
        tokio::select! {
            () = clock.sleep(Duration::from_millis(RENEW_MS)) => {}
            None = at_work.recv() => {
                if let Err(error) = store.release(deployment, &hold).await {
                    tracing::warn!(%error, "the hold could not be given back");
                }
                return;
            }
        }
        let now_ms = clock.now_ms();
        match store.renew(deployment, &hold, now_ms).await {
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
