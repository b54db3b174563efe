//! From a desired graph to a plan, and from there to a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use notation_model::{DesiredGraph, ResourceId, SecretName, Value};
use notation_planner::{Observed, Plan, PlanError};
use notation_state::{DeploymentState, Hold, OpenIntent};

use crate::{
    DriftCheck, EngineError, LostTags, Planned, Report, RunOptions, Session, exports,
    hold::{self, Held, LastWord},
    limits::Limits,
    line::Line,
    look::Looker,
    observe::observe,
    planned::make_plan,
    recover::{self, Recovered},
    rounds::{Rounds, rounds as run_rounds},
    run::Shared,
    sensitive::Sensitive,
    unrecorded::take_up,
};

/// Plans without a hold: looks at intents without outcome and at the providers, and writes
/// nothing, anywhere.
///
/// Errors: as [`EngineError`] says; all problems of a kind at once.
pub async fn plan(
    session: &Session,
    desired: &DesiredGraph,
    options: &RunOptions,
) -> Result<Planned, EngineError> {
    session
        .interrupt
        .or(look_and_plan(session, desired, options))
        .await
}

async fn look_and_plan(
    session: &Session,
    desired: &DesiredGraph,
    options: &RunOptions,
) -> Result<Planned, EngineError> {
    judge(session, desired)?;
    let secrets = secrets(session, desired).await?;
    let state = session.store.load(&session.deployment).await?;
    let limits = Limits::new(&session.registry, options.parallelism);
    let looker = Looker {
        session,
        limits: &limits,
        sensitive: &Sensitive::of(desired, session.registry.types()),
        max_attempts: options.max_attempts,
    };
    let former = former(desired);
    let mut recovered = recover::look(&looker, state, &former).await?;
    let observed = look_around(&looker, &mut recovered, options).await?;
    let mut planned = make_plan(
        session,
        desired,
        recovered.records,
        observed,
        &secrets,
        &options.plan,
    )?;
    planned.exports = exports::changed(session, &planned, &recovered.exports, &secrets)?;
    Ok(planned)
}

/// A run that holds its deployment, has recovered and planned, and did nothing else yet.
///
/// # Cancellation
///
/// Dropping it, or the future of [`Started::run`], gives the hold back in the background, as
/// [`begin`] says.
#[must_use = "it holds the deployment: `run` it or `give_up`"]
pub struct Started {
    held: Held,
    rounds: Rounds,
}

/// Takes the hold, recovers what earlier runs left open, looks, and plans.
///
/// Errors: as [`EngineError`] says; the hold is given back.
///
/// # Cancellation
///
/// [`crate::Interrupt`] is the way to stop a run: calls that are under way end, and a report tells
/// what was done. A future that is dropped (a timeout, a `select!`) loses that report and cuts its
/// calls off: they stay open in the journal, and the next run looks what became of them. The hold
/// is given back by a task of the runtime once the steps have stopped; where the runtime ends with
/// the future, it stays until its lease ends ([`notation_state::LEASE_MS`]).
pub async fn begin(
    session: &Session,
    desired: Arc<DesiredGraph>,
    options: &RunOptions,
) -> Result<Started, EngineError> {
    judge(session, &desired)?;
    let started_ms = session.clock.now_ms();
    let secrets = Arc::new(secrets(session, &desired).await?);
    let held = hold::take(session, options.hold).await?;
    let line = Arc::new(line(session, &held, options, &desired));
    let ready = tokio::select! {
        ready = get_ready(&line, &desired, &secrets) => ready,
        () = session.interrupt.given(2) => Err(EngineError::Interrupted),
    };
    match ready {
        Ok((planned, open, exports)) => Ok(Started {
            held,
            rounds: Rounds {
                shared: Shared {
                    line,
                    desired,
                    secrets,
                },
                planned,
                open,
                exports,
                started_ms,
            },
        }),
        Err(error) => {
            // The first error says more than one of giving back could.
            drop(held.release().await);
            Err(error)
        }
    }
}

/// Deploys: [`begin`] and [`Started::run`] in one go, for programs that ask nobody.
///
/// Errors: as [`begin`] and [`Started::run`]. What fails from the first step on is in the report.
///
/// # Cancellation
///
/// As [`begin`] says: stop it by [`Session::interrupt`]; dropping the future cuts its calls off and
/// gives the hold back in the background.
pub async fn deploy(
    session: &Session,
    desired: Arc<DesiredGraph>,
    options: &RunOptions,
) -> Result<Report, EngineError> {
    begin(session, desired, options).await?.run().await
}

/// Destroys: a deploy of the empty graph. Needs no program.
pub async fn destroy(session: &Session, options: &RunOptions) -> Result<Report, EngineError> {
    deploy(session, Arc::new(DesiredGraph::default()), options).await
}

impl Started {
    /// What will be done.
    pub fn plan(&self) -> &Plan {
        &self.rounds.planned.plan
    }

    /// The plan and what it was made from.
    pub fn planned(&self) -> &Planned {
        &self.rounds.planned
    }

    /// The hold of this run.
    pub fn hold(&self) -> &Hold {
        &self.held.hold
    }

    /// Gives the hold back; nothing was done.
    pub async fn give_up(self) -> Result<(), EngineError> {
        Ok(self.held.release().await?)
    }

    /// Runs the plan, plans once more where running showed a replacement that was announced as
    /// possible, and gives the hold back.
    ///
    /// Errors: state could not be written before the first step; what fails later is in the
    /// report.
    pub async fn run(self) -> Result<Report, EngineError> {
        let Started { held, rounds } = self;
        let report = run_rounds(rounds).await;
        let released = held.release().await;
        let mut report = report?;
        if let Err(error) = released {
            report.unrecorded(Arc::new(error));
        }
        Ok(report)
    }
}

type Ready = (Planned, Vec<OpenIntent>, BTreeMap<String, Value>);

async fn get_ready(
    line: &Line,
    desired: &DesiredGraph,
    secrets: &BTreeMap<SecretName, Value>,
) -> Result<Ready, EngineError> {
    let (session, options) = (&line.session, &line.options);
    let state = session.store.load(&session.deployment).await?;
    let mut recovered = recovered(line, state).await?;
    if recovered.met {
        take_up(line, desired, secrets, &BTreeSet::new(), &[]).await?;
        recovered.records = session.store.load(&session.deployment).await?.records;
    }
    let observed = look_around(&line.looker(), &mut recovered, options).await?;
    let mut planned = make_plan(
        session,
        desired,
        recovered.records,
        observed,
        secrets,
        &options.plan,
    )?;
    planned.exports = exports::changed(session, &planned, &recovered.exports, secrets)?;
    if session.interrupt.is_given() {
        return Err(EngineError::Interrupted);
    }
    Ok((planned, recovered.open, recovered.exports))
}

/// Looks up what earlier runs left open and records what was found.
pub(crate) async fn recovered(
    line: &Line,
    state: DeploymentState,
) -> Result<Recovered, EngineError> {
    let mut recovered = recover::look(&line.looker(), state, &line.former).await?;
    recovered.record(line).await?;
    Ok(recovered)
}

pub(crate) fn line(
    session: &Session,
    held: &Held,
    options: &RunOptions,
    desired: &DesiredGraph,
) -> Line {
    Line {
        session: session.clone(),
        hold: held.hold.clone(),
        _alive: held.alive(),
        last_word: LastWord::default(),
        limits: Limits::new(&session.registry, options.parallelism),
        options: options.clone(),
        former: former(desired),
        sensitive: Sensitive::of(desired, session.registry.types()),
        stopped: AtomicBool::new(false),
        lost: AtomicBool::new(false),
        met: AtomicBool::new(false),
        asleep: AtomicUsize::new(0),
        moved: tokio::sync::Notify::new(),
    }
}

/// What a program is refused for whatever exists, before anybody is asked.
fn judge(session: &Session, desired: &DesiredGraph) -> Result<(), EngineError> {
    notation_planner::judge(desired, session.registry.types())
        .map_err(|problems| EngineError::Plan(PlanError { problems }))
}

/// Values of the secrets that the program names.
///
/// Errors: [`EngineError::MissingSecrets`] with all that are not set.
async fn secrets(
    session: &Session,
    desired: &DesiredGraph,
) -> Result<BTreeMap<SecretName, Value>, EngineError> {
    let named = desired.secrets();
    if named.is_empty() {
        return Ok(BTreeMap::new());
    }
    let set: BTreeSet<SecretName> = session
        .store
        .secret_names(&session.deployment)
        .await?
        .into_iter()
        .collect();
    let missing: Vec<SecretName> = named
        .into_iter()
        .filter(|name| !set.contains(*name))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(EngineError::MissingSecrets(missing));
    }
    Ok(session.store.secrets(&session.deployment).await?)
}

fn former(desired: &DesiredGraph) -> BTreeMap<ResourceId, Vec<ResourceId>> {
    let renamed = desired
        .resources
        .values()
        .filter(|desired| !desired.formerly.is_empty());
    renamed
        .map(|desired| (desired.id.clone(), desired.formerly.clone()))
        .collect()
}

/// Reads what is recorded. An object without tags is written in full when a person takes it back,
/// so that it has them again.
///
/// Errors: [`EngineError::LostTags`] with all that nobody takes back.
async fn look_around(
    looker: &Looker<'_>,
    recovered: &mut Recovered,
    options: &RunOptions,
) -> Result<Observed, EngineError> {
    if options.drift == DriftCheck::Skip {
        return Ok(Observed::default());
    }
    let (observed, untagged) = observe(looker, &recovered.records, options.parallelism).await?;
    let mut lost = Vec::new();
    for incarnation in untagged {
        let Some(record) = recovered.records.get_mut(&incarnation) else {
            continue;
        };
        if options.plan.adopt.contains(&incarnation.resource) {
            record.in_doubt = true;
        } else {
            lost.push(LostTags {
                resource: incarnation.resource,
                key: record.key.to_string(),
            });
        }
    }
    if lost.is_empty() {
        Ok(observed)
    } else {
        Err(EngineError::LostTags(lost))
    }
}
