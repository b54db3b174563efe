//! The loop over ready steps. It makes no choices: the plan made them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use notation_model::{DesiredGraph, Incarnation, Record, ResourceId, SecretName, TypeName, Value};
use notation_planner::{Goal, Observed, Plan, PlanOptions, Step, StepKey, Subject, Transition};
use notation_state::{Change, OpenIntent};
use tokio::task::JoinSet;

use crate::{
    BlockedStep, DoneStep, EngineError, EngineEvent, FailedStep, OnFailure, Report, RunStatus,
    StepError, StepEvent,
    call::Line,
    prepare::{Planned, as_observed, make_plan},
    recover::not_recorded,
    step::{self, StepEnd},
    world::{Exported, World},
};

/// Steps at work at a time, per call that may run: while some call, others announce or record.
const STEPS_PER_CALL: usize = 4;
/// At least so many steps at work, so that their announcements share commits.
const LEAST_STEPS: usize = 64;

/// Everything the rounds of one run need.
pub(crate) struct Rounds {
    pub line: Arc<Line>,
    pub desired: Arc<DesiredGraph>,
    pub secrets: Arc<BTreeMap<SecretName, Value>>,
    pub planned: Planned,
    pub open: Vec<OpenIntent>,
    /// What was exported before.
    pub exports: BTreeMap<String, Value>,
    pub started_ms: u64,
}

/// One plan being run.
pub(crate) struct Run {
    pub line: Arc<Line>,
    pub plan: Plan,
    pub desired: Arc<DesiredGraph>,
    pub secrets: Arc<BTreeMap<SecretName, Value>>,
    world: Mutex<World>,
    /// Replaced by an earlier round of this run.
    pub replaced: BTreeSet<ResourceId>,
}

impl Run {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What one plan came to.
#[derive(Default)]
struct Played {
    done: Vec<DoneStep>,
    failed: Vec<FailedStep>,
    blocked: Vec<BlockedStep>,
    /// Replacements found while running, to be planned once more.
    replace: Vec<FailedStep>,
    interrupted: bool,
}

/// Runs the plan; while running shows replacements that were announced and nothing failed,
/// plans once more with those (`engine.md` §6, *Found while running*).
pub(crate) async fn rounds(rounds: Rounds) -> Result<Report, EngineError> {
    let Rounds {
        line,
        desired,
        secrets,
        mut planned,
        mut open,
        exports,
        started_ms,
    } = rounds;
    let mut total = Played::default();
    let mut replaced = BTreeSet::new();
    loop {
        let (live, gone) = as_observed(&line.session, &planned);
        let world = World::new(live, gone, open, &planned.plan);
        let run = Arc::new(Run {
            line: line.clone(),
            plan: planned.plan,
            desired: desired.clone(),
            secrets: secrets.clone(),
            world: Mutex::new(world),
            replaced: replaced.clone(),
        });
        open_books(&run).await?;
        let played = play(&run).await;
        let again = !played.replace.is_empty()
            && played.failed.is_empty()
            && !played.interrupted
            && !line.stops();
        total.done.extend(played.done);
        total.failed.extend(played.failed);
        total.interrupted |= played.interrupted;
        if !again {
            total.failed.extend(played.replace);
            total.blocked.extend(played.blocked);
            return finish(&run, total, exports, started_ms).await;
        }
        let next: BTreeSet<ResourceId> = played
            .replace
            .into_iter()
            .map(|step| step.resource)
            .collect();
        replaced.extend(next.iter().cloned());
        let state = line.session.store.load(&line.session.deployment).await?;
        let options = PlanOptions {
            replace: next,
            ..line.options.plan.clone()
        };
        planned = make_plan(
            &line.session,
            &desired,
            state.records,
            Observed::default(),
            &secrets,
            &options,
        )?;
        open = state.open;
    }
}

/// What changes without any call, in one commit before the first step: records under new ids or
/// with new edges, those found gone, intents that nobody takes over.
async fn open_books(run: &Run) -> Result<(), EngineError> {
    let mut entries = Vec::new();
    let mut changes = Vec::new();
    {
        let mut world = run.world();
        for incarnation in &run.plan.forgotten {
            world.live.remove(incarnation);
            world.gone.remove(incarnation);
            changes.push(Change::Remove(incarnation.clone()));
        }
        for record in &run.plan.restated {
            let known = world
                .live
                .get(&record.incarnation)
                .or_else(|| world.gone.get(&record.incarnation));
            let before = known.map_or(record.version, |known| known.version);
            let record = Record {
                version: before + 1,
                ..record.clone()
            };
            changes.push(Change::put(record.clone()));
            world.live.remove(&record.incarnation);
            world.gone.remove(&record.incarnation);
            let into = match record.gone {
                true => &mut world.gone,
                false => &mut world.live,
            };
            into.insert(record.incarnation.clone(), record);
        }
        let subjects: BTreeSet<&Incarnation> = run
            .plan
            .steps
            .iter()
            .filter_map(|step| match &step.key.subject {
                Subject::Incarnation(incarnation) => Some(incarnation),
                Subject::Cycle(_) => None,
            })
            .chain(run.plan.cycles.iter().flat_map(|cycle| &cycle.members))
            .collect();
        world.open.retain(|incarnation, open| {
            let wanted = subjects.contains(incarnation);
            if !wanted {
                entries.extend(open.iter().map(|open| run.line.closed(open)));
            }
            wanted
        });
    }
    if entries.is_empty() && changes.is_empty() {
        return Ok(());
    }
    let appended = run.line.append(entries, changes).await;
    appended.map_err(|error| not_recorded(&error))
}

/// Runs the steps as they become ready.
async fn play(run: &Arc<Run>) -> Played {
    let mut board = Board::new(run);
    let mut tasks: JoinSet<(usize, StepEnd)> = JoinSet::new();
    let mut task_step: HashMap<tokio::task::Id, usize> = HashMap::new();
    let line = &run.line;
    let width = LEAST_STEPS.max(line.options.parallelism.saturating_mul(STEPS_PER_CALL));
    let mut told_to_stop = false;
    loop {
        while !line.stops() {
            let asleep = line.asleep.load(std::sync::atomic::Ordering::Relaxed);
            if tasks.len().saturating_sub(asleep) >= width {
                break;
            }
            let Some(index) = board.next() else { break };
            let run = run.clone();
            let task = tasks.spawn(async move { (index, step::run_step(&run, index).await) });
            task_step.insert(task.id(), index);
        }
        if tasks.is_empty() {
            break;
        }
        tokio::select! {
            ended = tasks.join_next_with_id() => {
                let (index, end) = match ended {
                    Some(Ok((id, ended))) => { task_step.remove(&id); ended }
                    Some(Err(error)) => match task_step.remove(&error.id()) {
                        Some(index) if error.is_panic() => (index, panicked(error)),
                        Some(index) => (index, StepEnd::Interrupted),
                        None => continue,
                    },
                    None => continue,
                };
                board.ended(index, end);
            }
            () = line.moved.notified() => {}
            () = line.session.interrupt.given(2), if !told_to_stop => {
                told_to_stop = true;
                tasks.abort_all();
            }
        }
    }
    board.close()
}

fn panicked(error: tokio::task::JoinError) -> StepEnd {
    let payload = error.into_panic();
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| {
            payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
        })
        .unwrap_or_else(|| "no reason given".to_owned());
    StepEnd::Failed {
        error: StepError::Panicked(text),
        transition: Transition::None,
        attempt: 0,
    }
}

/// Where every step stands.
struct Board<'r> {
    run: &'r Run,
    index: HashMap<&'r StepKey, usize>,
    /// Steps that wait for a step.
    waiting_for: Vec<Vec<usize>>,
    /// How many steps a step still waits for.
    left: Vec<usize>,
    state: Vec<State>,
    /// Ready steps by type, in plan order: who waits for a narrow limit keeps nobody else back.
    ready: BTreeMap<Option<&'r TypeName>, BTreeSet<usize>>,
    at_work: BTreeMap<Option<&'r TypeName>, usize>,
    played: Played,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    AtWork,
    Done,
    Failed,
    Blocked,
}

impl<'r> Board<'r> {
    fn new(run: &'r Run) -> Board<'r> {
        let steps = &run.plan.steps;
        let index: HashMap<&StepKey, usize> = steps
            .iter()
            .enumerate()
            .map(|(index, step)| (&step.key, index))
            .collect();
        let mut board = Board {
            run,
            waiting_for: vec![Vec::new(); steps.len()],
            left: vec![0; steps.len()],
            state: vec![State::Waiting; steps.len()],
            ready: BTreeMap::new(),
            at_work: BTreeMap::new(),
            played: Played::default(),
            index,
        };
        for (number, step) in steps.iter().enumerate() {
            for before in &step.after {
                if let Some(&before) = board.index.get(before) {
                    board.waiting_for[before].push(number);
                    board.left[number] += 1;
                }
            }
            if board.left[number] == 0 {
                board.make_ready(number);
            }
        }
        board
    }

    fn step(&self, index: usize) -> &'r Step {
        &self.run.plan.steps[index]
    }

    fn type_of(&self, index: usize) -> Option<&'r TypeName> {
        match &self.step(index).key.subject {
            Subject::Incarnation(incarnation) => {
                let intended = self.run.plan.intended.get(incarnation)?;
                Some(&intended.ty)
            }
            Subject::Cycle(_) => None,
        }
    }

    fn make_ready(&mut self, index: usize) {
        let ty = self.type_of(index);
        self.ready.entry(ty).or_default().insert(index);
    }

    /// The first ready step of a type that is not crowded.
    fn next(&mut self) -> Option<usize> {
        let types = self.run.line.session.registry.types();
        let free = self.ready.iter().filter(|(ty, _)| {
            let limit = ty.and_then(|ty| types.get(ty)?.concurrency);
            let at_work = self.at_work.get(*ty).copied().unwrap_or(0);
            limit.is_none_or(|limit| at_work < limit.max(1) * 2)
        });
        let (ty, index) = free
            .filter_map(|(ty, steps)| Some((*ty, *steps.first()?)))
            .min_by_key(|(_, index)| *index)?;
        if let Some(steps) = self.ready.get_mut(&ty) {
            steps.remove(&index);
            if steps.is_empty() {
                self.ready.remove(&ty);
            }
        }
        *self.at_work.entry(ty).or_default() += 1;
        self.state[index] = State::AtWork;
        Some(index)
    }

    fn ended(&mut self, index: usize, end: StepEnd) {
        let ty = self.type_of(index);
        if let Some(at_work) = self.at_work.get_mut(&ty) {
            *at_work -= 1;
        }
        match end {
            StepEnd::Done(done) => {
                self.state[index] = State::Done;
                self.played.done.extend(done);
                for next in std::mem::take(&mut self.waiting_for[index]) {
                    self.left[next] -= 1;
                    if self.left[next] == 0 && self.state[next] == State::Waiting {
                        self.make_ready(next);
                    }
                }
            }
            StepEnd::NotStarted => self.state[index] = State::Waiting,
            StepEnd::Interrupted => {
                self.state[index] = State::Waiting;
                self.played.interrupted = true;
            }
            StepEnd::Failed {
                error,
                transition,
                attempt,
            } => {
                let failed = self.failure(index, None, transition, attempt, error);
                self.tell_failed(&failed);
                self.played.failed.push(failed);
                self.state[index] = State::Failed;
                if self.run.line.options.on_failure == OnFailure::Stop {
                    let stopped = &self.run.line.stopped;
                    stopped.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                self.block(index);
            }
            StepEnd::Replace {
                resource,
                error,
                attempt,
            } => {
                let failed =
                    self.failure(index, Some(resource), Transition::Unknown, attempt, error);
                self.played.replace.push(failed);
                self.state[index] = State::Failed;
                self.block(index);
            }
        }
    }

    fn failure(
        &self,
        index: usize,
        resource: Option<ResourceId>,
        transition: Transition,
        attempt: u32,
        error: StepError,
    ) -> FailedStep {
        let key = self.step(index).key.clone();
        FailedStep {
            resource: resource.unwrap_or_else(|| resource_of(&key)),
            key,
            transition,
            attempt,
            error,
        }
    }

    fn tell_failed(&self, failed: &FailedStep) {
        let sink = &self.run.line.session.sink;
        sink.event(&EngineEvent::StepFailed(StepEvent {
            key: failed.key.clone(),
            resource: failed.resource.clone(),
            transition: failed.transition,
            attempt: failed.attempt,
            took_ms: 0,
            error: Some(failed.error.to_string()),
        }));
    }

    /// Everything that waits for a failed step, directly or not.
    fn block(&mut self, failed: usize) {
        let mut found = vec![failed];
        while let Some(index) = found.pop() {
            for next in self.waiting_for[index].clone() {
                if self.state[next] == State::Waiting {
                    self.state[next] = State::Blocked;
                    self.blocked_by(next, failed);
                    found.push(next);
                }
            }
        }
    }

    fn blocked_by(&mut self, index: usize, failed: usize) {
        let key = self.step(index).key.clone();
        self.played.blocked.push(BlockedStep {
            resource: resource_of(&key),
            key,
            by: self.step(failed).key.clone(),
        });
    }

    /// When nothing runs any more: what a stop left over is blocked by what stopped it.
    fn close(mut self) -> Played {
        let interrupted = self.run.line.session.interrupt.is_given();
        let failed = self.state.iter().position(|state| *state == State::Failed);
        let mut left_over = false;
        for index in 0..self.state.len() {
            match (self.state[index], failed) {
                (State::Waiting, Some(failed)) if !interrupted => {
                    self.state[index] = State::Blocked;
                    self.blocked_by(index, failed);
                }
                (State::Waiting, _) => left_over = true,
                (State::AtWork | State::Done | State::Failed | State::Blocked, _) => {}
            }
        }
        self.played.interrupted |= left_over;
        self.played
    }
}

/// Whom a step is about.
pub(crate) fn resource_of(key: &StepKey) -> ResourceId {
    match &key.subject {
        Subject::Incarnation(incarnation) => incarnation.resource.clone(),
        Subject::Cycle(cycle) => cycle.0.clone(),
    }
}

/// Resolves and stores the exports of a run that did everything, and writes the report.
async fn finish(
    run: &Run,
    total: Played,
    before: BTreeMap<String, Value>,
    started_ms: u64,
) -> Result<Report, EngineError> {
    let line = &run.line;
    let mut failed = total.failed;
    let mut outputs = before.clone();
    if failed.is_empty() && total.blocked.is_empty() && !total.interrupted {
        outputs = exports(run, &before);
        close_books(run, &before, &outputs).await?;
    }
    for blocked in &total.blocked {
        line.session
            .sink
            .event(&EngineEvent::StepBlocked(StepEvent {
                key: blocked.key.clone(),
                resource: blocked.resource.clone(),
                transition: forecast(run, &blocked.key),
                attempt: 0,
                took_ms: 0,
                error: Some(format!("waits for {}", blocked.by)),
            }));
    }
    for step in &mut failed {
        if step.transition == Transition::None {
            step.transition = forecast(run, &step.key);
        }
    }
    let status = match (failed.is_empty(), total.interrupted) {
        (_, true) => RunStatus::Interrupted,
        (true, false) => RunStatus::Done,
        (false, false) => RunStatus::Failed,
    };
    let took_ms = line.session.clock.now_ms().saturating_sub(started_ms);
    Ok(Report {
        status,
        done: total.done,
        failed,
        blocked: total.blocked,
        outputs,
        took: Duration::from_millis(took_ms),
    })
}

/// After a run that did everything: the exports, and intents of earlier runs that no step had to
/// take over.
async fn close_books(
    run: &Run,
    before: &BTreeMap<String, Value>,
    exports: &BTreeMap<String, Value>,
) -> Result<(), EngineError> {
    let line = &run.line;
    let open = std::mem::take(&mut run.world().open);
    let entries: Vec<_> = open
        .values()
        .flatten()
        .map(|open| line.closed(open))
        .collect();
    let mut changes = Vec::new();
    if exports != before {
        changes.push(Change::Exports(exports.clone()));
    }
    if entries.is_empty() && changes.is_empty() {
        return Ok(());
    }
    let appended = line.append(entries, changes).await;
    appended.map_err(|error| not_recorded(&error))
}

/// What the plan expected of a step.
pub(crate) fn forecast(run: &Run, key: &StepKey) -> Transition {
    let step = run.plan.steps.iter().find(|step| step.key == *key);
    match step {
        Some(step) if step.goal == Goal::Settled => Transition::Settle,
        Some(step) => step.forecast.transition,
        None => Transition::None,
    }
}

/// The exports as they are now; one that reads something that was not deployed (`--target`)
/// keeps its value.
fn exports(run: &Run, before: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let world = run.world();
    let scope = Exported {
        world: &world,
        secrets: &run.secrets,
    };
    let resolved = run.plan.exports.iter().filter_map(|(name, expr)| {
        let value = expr.resolve(&scope);
        if value.is_known() {
            Some((name.clone(), value))
        } else {
            Some((name.clone(), before.get(name)?.clone()))
        }
    });
    resolved.collect()
}
