//! One mutating call: announced, made, repeated as long as that may help, its answer understood.

use std::{sync::atomic::Ordering, time::Duration};

use notation_model::{Look, ResourceType};
use notation_provider::{Found, Object, OpContext, OpError, Progress, Token, Update};
use notation_state::{Call, Entry, Event, Intent, Outcome};

use crate::{
    EngineEvent, StepError, StepEvent,
    answer::{Next, understood},
    asked::asked,
    draft,
    job::{Job, Now},
    line::Line,
    mask::Mask,
};

/// A call that was carried out. Its outcome is not recorded yet.
pub(crate) struct Carried {
    /// What there is now.
    pub now: Now,
    /// How many calls were made in all.
    pub attempt: u32,
}

/// Why a call was not carried out.
pub(crate) enum CallEnd {
    /// It failed.
    Failed { error: StepError, attempt: u32 },
    /// An object of ours is there that no record knows; nothing was made.
    Met(Box<Found>),
    /// It was not made, since the run stops.
    NotStarted,
    /// A person stopped waiting for it; its intent stays open.
    Interrupted,
}

impl Line {
    /// Makes the call. On success its intent is still open: the caller records the outcome
    /// together with what changed.
    pub(crate) async fn carry_out(&self, ty: &ResourceType, job: Job) -> Result<Carried, CallEnd> {
        // Nothing can tell what became of such a call but its answer: each one is announced by
        // itself, right before it is made.
        let only_once = job.call == Call::Create && ty.look == Look::Never;
        let repeats = job.taken.same.is_some();
        let (token, mut attempt, mut resume) = match &job.taken.same {
            Some(open) => (
                Token(open.intent.token.clone()),
                open.attempt,
                open.resume.clone(),
            ),
            None => (random_token(), 0, None),
        };
        let mut closing = self.not_taken_over(&job);
        if !only_once {
            let closing = std::mem::take(&mut closing);
            self.announce(&job, &token, attempt + 1, closing).await?;
        }
        self.until_due(&job).await?;
        let started_ms = self.session.clock.now_ms();
        let before = job.before.as_ref().map(|record| &record.applied);
        let mask = Mask::of(before.into_iter().chain([&job.draft.applied]));
        let mut last = String::new();
        for times in 1..=self.options.max_attempts.max(1) {
            let slot = self.limits.slot(ty).await;
            if times == 1 && self.stops() {
                drop(slot);
                return match only_once {
                    true => Err(CallEnd::NotStarted),
                    false => self.not_started(&job, attempt + 1).await,
                };
            }
            let held = self.still_held().await;
            held.map_err(|error| CallEnd::Failed { error, attempt })?;
            attempt += 1;
            if only_once {
                let closing = std::mem::take(&mut closing);
                self.announce(&job, &token, attempt, closing).await?;
            }
            let tell = |event: fn(StepEvent) -> EngineEvent, error: Option<String>| {
                self.session.sink.event(&event(StepEvent {
                    key: job.key.clone(),
                    resource: job.draft.incarnation.resource.clone(),
                    transition: job.transition,
                    attempt,
                    took_ms: self.session.clock.now_ms().saturating_sub(started_ms),
                    error,
                }));
            };
            if times == 1 {
                tell(EngineEvent::StepStarted, None);
            }
            let context = OpContext {
                token: token.clone(),
                attempt,
                resume: resume.clone(),
                owner: self.owner(&job.draft),
                earlier: job.earlier(),
                assets: &*self.session.assets,
            };
            let answer = self.make(ty, &job, &context).await;
            drop(slot);
            let next = match answer {
                Ok(Progress::Done(now)) => understood(now),
                Ok(Progress::Waiting {
                    after_ms,
                    resume: data,
                    reason,
                }) => {
                    let reason = mask.text(reason);
                    let event = Event::Waiting {
                        resume: data.clone(),
                        due_ms: self.session.clock.now_ms().saturating_add(after_ms),
                        reason: reason.clone(),
                    };
                    let entry = self.entry(&job.step, attempt, event);
                    self.append(vec![entry], Vec::new())
                        .await
                        .map_err(|error| CallEnd::Failed { error, attempt })?;
                    resume = Some(data);
                    Next::Again {
                        why: reason,
                        after: Duration::from_millis(after_ms),
                    }
                }
                Err(error) => {
                    let again = repeats || times > 1;
                    let error = mask.error(error);
                    let waits = resume.is_some();
                    self.understand(ty, &job, error, times, again, waits).await
                }
            };
            match next {
                Next::Done(now) => return Ok(Carried { now, attempt }),
                Next::Met(found) => {
                    self.met.store(true, Ordering::Relaxed);
                    let event = Event::Outcome(Outcome::Closed);
                    let entry = self.entry(&job.step, attempt, event);
                    return match self.append(vec![entry], Vec::new()).await {
                        Ok(()) => Err(CallEnd::Met(Box::new(found))),
                        Err(error) => Err(CallEnd::Failed { error, attempt }),
                    };
                }
                Next::LeaveOpen(error) => {
                    self.failed();
                    return Err(CallEnd::Failed { error, attempt });
                }
                Next::Fail(error) => {
                    self.failed();
                    let event = Event::Failed {
                        error: error.to_string(),
                    };
                    let entry = self.entry(&job.step, attempt, event);
                    let error = match self.append(vec![entry], Vec::new()).await {
                        Ok(()) => error,
                        Err(store) => store,
                    };
                    return Err(CallEnd::Failed { error, attempt });
                }
                Next::Again { why, after } => {
                    last.clone_from(&why);
                    if times < self.options.max_attempts {
                        tell(EngineEvent::StepWaiting, Some(why));
                        self.pause(after).await?;
                    }
                }
            }
        }
        self.failed();
        let error = StepError::Attempts {
            attempts: attempt,
            last,
        };
        Err(CallEnd::Failed { error, attempt })
    }

    /// A wait that an earlier run did not end goes on.
    async fn until_due(&self, job: &Job) -> Result<(), CallEnd> {
        let due_ms = job.taken.same.as_ref().map_or(0, |open| open.due_ms);
        match due_ms.checked_sub(self.session.clock.now_ms()) {
            Some(left_ms) if left_ms > 0 => self.pause(Duration::from_millis(left_ms)).await,
            Some(_) | None => Ok(()),
        }
    }

    /// The ends of the intents that nobody takes over. One that is taken over goes on under this
    /// step's name.
    fn not_taken_over(&self, job: &Job) -> Vec<Entry> {
        let renamed = job.taken.same.iter().filter(|open| open.step != job.step);
        let stale = job.taken.stale.iter().chain(renamed);
        stale.map(|open| self.closed(open)).collect()
    }

    /// Makes the intent durable, and with it the ends of others.
    async fn announce(
        &self,
        job: &Job,
        token: &Token,
        attempt: u32,
        mut entries: Vec<Entry>,
    ) -> Result<(), CallEnd> {
        let intent = Intent {
            call: job.call,
            token: token.0.clone(),
            draft: job.draft.clone(),
        };
        entries.push(self.entry(&job.step, attempt, Event::Intent(Box::new(intent))));
        self.append(entries, Vec::new())
            .await
            .map_err(|error| CallEnd::Failed { error, attempt })
    }

    /// The run stops before the call: the intent is closed, unless it is an earlier run's, whose
    /// outcome is still not known.
    async fn not_started(&self, job: &Job, attempt: u32) -> Result<Carried, CallEnd> {
        if job.taken.same.is_none() && !self.lost.load(Ordering::Relaxed) {
            let event = Event::Outcome(Outcome::Closed);
            let entry = self.entry(&job.step, attempt, event);
            self.append(vec![entry], Vec::new())
                .await
                .map_err(|error| CallEnd::Failed { error, attempt })?;
        }
        Err(CallEnd::NotStarted)
    }

    async fn make(
        &self,
        ty: &ResourceType,
        job: &Job,
        context: &OpContext<'_>,
    ) -> Result<Progress<Now>, OpError> {
        let provider = self
            .session
            .registry
            .provider(&ty.name)
            .expect("the type came from the registry");
        let key = job.draft.key.as_str();
        let made = |progress: Progress<Object>| {
            progress.map(|object| Now::Made(draft::answered(ty, &job.draft, object)))
        };
        match (job.call, &job.before) {
            (Call::Update, Some(before)) => {
                let update = Update {
                    params: &job.draft.applied,
                    prior: &before.applied,
                    outputs: &before.outputs,
                };
                let answer = asked(|| provider.update(context, &ty.name, key, update));
                answer.await.map(made)
            }
            (Call::Create, _) | (Call::Update, None) => {
                let params = &job.draft.applied;
                let answer = asked(|| provider.create(context, &ty.name, params));
                answer.await.map(made)
            }
            (Call::Delete, _) => {
                let outputs = &job.draft.outputs;
                match asked(|| provider.delete(context, &ty.name, key, outputs)).await {
                    Ok(progress) => Ok(progress.map(|()| Now::Gone)),
                    Err(OpError::NotFound) => Ok(Progress::Done(Now::Gone)),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Waits, unless a person stops it: what is waited for is in the journal.
    async fn pause(&self, after: Duration) -> Result<(), CallEnd> {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        self.moved.notify_one();
        let waited = tokio::select! {
            () = self.session.clock.sleep(after) => Ok(()),
            () = self.session.interrupt.given(1) => Err(CallEnd::Interrupted),
        };
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        waited
    }
}

/// A token that was never used: 32 lower-case hex digits.
fn random_token() -> Token {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
