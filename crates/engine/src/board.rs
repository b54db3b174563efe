//! Where every step of a running plan stands, and which one comes next.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{ResourceId, TypeName};
use notation_planner::{Recorded, Step, StepKey, Subject, Transition};

use crate::{
    Blocked, BlockedStep, DoneStep, FailedStep, StepError,
    run::{Left, Run, forecast, resource_of},
    step,
    step_end::StepEnd,
    unrecorded::Met,
};

/// What one plan came to.
#[derive(Default)]
pub(crate) struct Played {
    pub done: Vec<DoneStep>,
    pub failed: Vec<FailedStep>,
    pub blocked: Vec<BlockedStep>,
    /// Replacements found while running, to be planned once more.
    pub replace: Vec<FailedStep>,
    /// Objects of ours that no record knows; everything is planned once more.
    pub met: Vec<Met>,
    pub interrupted: bool,
    /// What was neither tried nor blocked: for the next plan, or for the run after an interrupt.
    pub left_over: Vec<StepKey>,
    /// Ids and marks that are recorded now.
    pub recorded: Vec<Recorded>,
}

/// Where every step stands.
pub(crate) struct Board<'r> {
    run: &'r Run,
    /// Steps that wait for a step.
    waiting_for: Vec<Vec<usize>>,
    /// How many steps a step still waits for.
    left: Vec<usize>,
    state: Vec<State>,
    /// Ready steps by type, in plan order: who waits for a narrow limit keeps nobody else back.
    ready: BTreeMap<Option<&'r TypeName>, BTreeSet<usize>>,
    at_work: BTreeMap<Option<&'r TypeName>, usize>,
    /// When each step was given out, in milliseconds since 1970.
    started_ms: Vec<u64>,
    /// Steps that another one failed: one of their own writes, or what failed in an earlier round.
    failed_by: BTreeMap<usize, StepKey>,
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
    pub(crate) fn new(run: &'r Run) -> Board<'r> {
        let steps = &run.plan.steps;
        let mut board = Board {
            run,
            waiting_for: vec![Vec::new(); steps.len()],
            left: vec![0; steps.len()],
            state: vec![State::Waiting; steps.len()],
            ready: BTreeMap::new(),
            at_work: BTreeMap::new(),
            started_ms: vec![0; steps.len()],
            failed_by: BTreeMap::new(),
            played: Played::default(),
        };
        for (number, step) in steps.iter().enumerate() {
            for before in &step.after {
                if let Some(before) = run.place(before) {
                    board.waiting_for[before].push(number);
                    board.left[number] += 1;
                }
            }
            match run.left_before(&step.key) {
                Some(Left::Told(failed)) => {
                    board.state[number] = State::Failed;
                    board.failed_by.insert(number, failed.clone());
                }
                Some(Left::Behind(failed)) => {
                    board.state[number] = State::Blocked;
                    board.failed_by.insert(number, failed.clone());
                    board.blocked_by(number, number, Blocked::Waits);
                }
                None if board.left[number] == 0 => board.make_ready(number),
                None => {}
            }
        }
        for left in board.failed_by.keys().copied().collect::<Vec<_>>() {
            board.block(left);
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
    pub(crate) fn next(&mut self) -> Option<usize> {
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
        self.started_ms[index] = self.run.line.session.clock.now_ms();
        Some(index)
    }

    pub(crate) fn ended(&mut self, index: usize, end: StepEnd) {
        let ty = self.type_of(index);
        if let Some(at_work) = self.at_work.get_mut(&ty) {
            *at_work -= 1;
        }
        let (part, end) = match end {
            StepEnd::Write { key, end } => (Some(key), *end),
            end => (None, end),
        };
        let key = part.clone().unwrap_or_else(|| self.step(index).key.clone());
        match end {
            // A write has no writes of its own.
            StepEnd::Write { .. } => {}
            StepEnd::Done(_) => {
                self.state[index] = State::Done;
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
                // What was not tried is what it was to be.
                let transition = match transition {
                    Transition::None => forecast(self.run, &key),
                    transition => transition,
                };
                let failed = failure(key, None, transition, attempt, error);
                step::tell_failed(self.run, &failed, self.started_ms[index]);
                self.played.failed.push(failed);
                self.state[index] = State::Failed;
                if let Some(part) = part {
                    self.failed_by.insert(index, part);
                    self.blocked_by(index, index, Blocked::Waits);
                }
                self.run.line.failed();
                self.block(index);
            }
            StepEnd::Met { incarnation, found } => {
                self.state[index] = State::Waiting;
                self.played.met.push(Met {
                    key,
                    incarnation,
                    found,
                    started_ms: self.started_ms[index],
                });
            }
            StepEnd::Replace {
                resource,
                error,
                attempt,
            } => {
                let failed = failure(key, Some(resource), Transition::Unknown, attempt, error);
                self.played.replace.push(failed);
                self.state[index] = State::Failed;
                self.block(index);
            }
        }
    }

    /// Takes steps as failed that are not tried, and the rest of the plan as stopped by them.
    pub(crate) fn refused(mut self, steps: Vec<FailedStep>) -> Played {
        let now_ms = self.run.line.session.clock.now_ms();
        for failed in steps {
            if let Some(index) = self.run.place(&failed.key) {
                self.started_ms[index] = now_ms;
                let FailedStep {
                    error,
                    transition,
                    attempt,
                    ..
                } = failed;
                let end = StepEnd::Failed {
                    error,
                    transition,
                    attempt,
                };
                self.ended(index, end);
            }
        }
        self.close()
    }

    /// Everything that waits for a failed step, directly or not.
    fn block(&mut self, failed: usize) {
        let mut found = vec![failed];
        while let Some(index) = found.pop() {
            for next in self.waiting_for[index].clone() {
                if self.state[next] == State::Waiting {
                    self.state[next] = State::Blocked;
                    self.blocked_by(next, failed, Blocked::Waits);
                    found.push(next);
                }
            }
        }
    }

    fn blocked_by(&mut self, index: usize, failed: usize, why: Blocked) {
        let key = self.step(index).key.clone();
        let write = self.failed_by.get(&failed);
        let by = write.unwrap_or(&self.step(failed).key).clone();
        self.played.blocked.push(BlockedStep {
            resource: resource_of(&key),
            key,
            by,
            why,
        });
    }

    /// When nothing runs any more: what a stop left over is blocked by what stopped it.
    pub(crate) fn close(mut self) -> Played {
        self.played.done = std::mem::take(&mut self.run.world().done);
        let interrupted = self.run.line.session.interrupt.is_given();
        // What failed before this plan did not stop it.
        let failed = |index: &usize| self.state[*index] == State::Failed;
        let in_this_plan =
            |index: &usize| failed(index) && self.run.left_before(&self.step(*index).key).is_none();
        let mut steps = 0..self.state.len();
        let failed = steps
            .clone()
            .find(in_this_plan)
            .or_else(|| steps.find(failed));
        for index in 0..self.state.len() {
            match (self.state[index], failed) {
                (State::Waiting, Some(failed)) if !interrupted => {
                    self.state[index] = State::Blocked;
                    self.blocked_by(index, failed, Blocked::Stopped);
                }
                (State::Waiting, _) => {
                    let key = self.step(index).key.clone();
                    self.played.left_over.push(key);
                }
                (State::AtWork | State::Done | State::Failed | State::Blocked, _) => {}
            }
        }
        // What is planned once more is not left over.
        let left_over = !self.played.left_over.is_empty();
        self.played.interrupted |= left_over && (interrupted || self.played.met.is_empty());
        self.played
    }
}

fn failure(
    key: StepKey,
    resource: Option<ResourceId>,
    transition: Transition,
    attempt: u32,
    error: StepError,
) -> FailedStep {
    FailedStep {
        resource: resource.unwrap_or_else(|| resource_of(&key)),
        key,
        transition,
        attempt,
        error,
    }
}
