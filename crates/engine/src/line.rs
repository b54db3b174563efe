//! What all calls of a run share: the way to the journal, the limits, and what stops them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use notation_model::{Owner, Record, ResourceId};
use notation_state::{Batch, Change, Entry, Event, Hold, OpenIntent, Outcome, StoreError};

use crate::{
    OnFailure, RunOptions, Session, StepError,
    hold::{Alive, LastWord},
    limits::Limits,
    look::Looker,
    sensitive::Sensitive,
};

/// What every call of a run needs.
pub(crate) struct Line {
    pub session: Session,
    pub hold: Hold,
    /// As long as this is there, that hold is not given back.
    pub _alive: Alive,
    /// When that hold was last seen to be this run's.
    pub last_word: LastWord,
    pub limits: Limits,
    pub options: RunOptions,
    /// Earlier ids of the program's resources.
    pub former: BTreeMap<ResourceId, Vec<ResourceId>>,
    /// What the program makes of secrets.
    pub sensitive: Sensitive,
    /// No new call: a failure ends the run.
    pub stopped: AtomicBool,
    /// No new call: state cannot be written, or the hold is another run's.
    pub lost: AtomicBool,
    /// No new call: an object of ours was met that no record knows, and everything is planned
    /// once more.
    pub met: AtomicBool,
    /// Steps that wait for a delay to pass; they leave their place to others meanwhile.
    pub asleep: AtomicUsize,
    /// Told when `asleep` moves.
    pub moved: tokio::sync::Notify,
}

impl Line {
    /// True when no new call shall start.
    pub(crate) fn stops(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
            || self.lost.load(Ordering::Relaxed)
            || self.met.load(Ordering::Relaxed)
            || self.session.interrupt.is_given()
    }

    /// Something failed: that ends the run when it was asked for, before whoever waits for a turn
    /// to call gets it.
    pub(crate) fn failed(&self) {
        if self.options.on_failure == OnFailure::Stop {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Makes sure that the hold is still this run's, right before a call.
    pub(crate) async fn still_held(&self) -> Result<(), StepError> {
        let told = self.last_word.again(&self.session, &self.hold).await;
        told.map_err(|error| self.lose(error))
    }

    fn lose(&self, error: StoreError) -> StepError {
        self.lost.store(true, Ordering::Relaxed);
        StepError::Store(Arc::new(error))
    }

    /// Writes journal lines and changes. A store that fails ends the run: without a journal
    /// there is no next call.
    pub(crate) async fn append(
        &self,
        entries: Vec<Entry>,
        changes: Vec<Change>,
    ) -> Result<(), StepError> {
        let Session {
            store, deployment, ..
        } = &self.session;
        let batch = Batch { entries, changes };
        let sent_ms = self.session.clock.now_ms();
        let appended = store.append(deployment, &self.hold, batch).await;
        appended.map_err(|error| self.lose(error))?;
        self.last_word.heard(sent_ms);
        Ok(())
    }

    /// A journal line of now.
    pub(crate) fn entry(&self, step: &str, attempt: u32, event: Event) -> Entry {
        Entry {
            run: self.hold.run.clone(),
            step: step.to_owned(),
            attempt,
            at_ms: self.session.clock.now_ms(),
            event,
        }
    }

    pub(crate) fn looker(&self) -> Looker<'_> {
        Looker {
            session: &self.session,
            limits: &self.limits,
            sensitive: &self.sensitive,
            max_attempts: self.options.max_attempts,
        }
    }

    pub(crate) fn owner(&self, record: &Record) -> Owner {
        Owner {
            deployment: self.session.deployment.clone(),
            resource: record.incarnation.resource.clone(),
            generation: record.incarnation.generation,
        }
    }

    pub(crate) fn former(&self, resource: &ResourceId) -> &[ResourceId] {
        self.former.get(resource).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn closed(&self, open: &OpenIntent) -> Entry {
        self.entry(&open.step, open.attempt, Event::Outcome(Outcome::Closed))
    }
}
