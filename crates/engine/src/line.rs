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

use crate::{RunOptions, Session, StepError, limits::Limits, look::Looker, sensitive::Sensitive};

/// What every call of a run needs.
pub(crate) struct Line {
    pub session: Session,
    pub hold: Hold,
    pub limits: Limits,
    pub options: RunOptions,
    /// Earlier ids of the program's resources.
    pub former: BTreeMap<ResourceId, Vec<ResourceId>>,
    /// What the program makes of secrets.
    pub sensitive: Sensitive,
    /// No new call: state cannot be written, or a failure ends the run.
    pub stopped: AtomicBool,
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
            || self.met.load(Ordering::Relaxed)
            || self.session.interrupt.is_given()
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
        store
            .append(deployment, &self.hold, batch)
            .await
            .map_err(|error: StoreError| {
                self.stopped.store(true, Ordering::Relaxed);
                StepError::Store(Arc::new(error))
            })
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
