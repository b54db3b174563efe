//! The loop over ready steps. It makes no choices: the plan made them.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use notation_planner::Subject;
use tokio::task::JoinSet;

use crate::{
    StepError,
    asked::said,
    board::{Board, Played},
    run::{Run, forecast},
    settle::settle,
    step::run_step,
    step_end::StepEnd,
};

/// Steps at work at a time, per call that may run: while some call, others announce or record.
const STEPS_PER_CALL: usize = 4;
/// At least so many steps at work, so that their announcements share commits.
const LEAST_STEPS: usize = 64;

/// Runs the steps as they become ready.
pub(crate) async fn play(run: &Arc<Run>) -> Played {
    let mut board = Board::new(run);
    let mut tasks: JoinSet<(usize, StepEnd)> = JoinSet::new();
    let mut task_step: HashMap<tokio::task::Id, usize> = HashMap::new();
    let line = &run.line;
    let width = LEAST_STEPS.max(line.options.parallelism.saturating_mul(STEPS_PER_CALL));
    let mut told_to_stop = false;
    loop {
        while !line.stops() {
            let asleep = line.asleep.load(Ordering::Relaxed);
            if tasks.len().saturating_sub(asleep) >= width {
                break;
            }
            let Some(index) = board.next() else { break };
            let run = run.clone();
            let task = tasks.spawn(async move { (index, run_one(&run, index).await) });
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
                        Some(index) if error.is_panic() => {
                            (index, panicked(run, index, error))
                        }
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

/// One step, or the settling of a cycle.
async fn run_one(run: &Run, index: usize) -> StepEnd {
    let step = &run.plan.steps[index];
    match &step.key.subject {
        Subject::Cycle(cycle) => settle(run, &step.key, cycle).await,
        Subject::Incarnation(incarnation) => run_step(run, step, incarnation).await,
    }
}

/// A step whose own code panicked. (A provider's panic is an answer: [`crate::asked`].)
fn panicked(run: &Run, index: usize, error: tokio::task::JoinError) -> StepEnd {
    StepEnd::Failed {
        error: StepError::Bug(said(&*error.into_panic())),
        transition: forecast(run, &run.plan.steps[index].key),
        attempt: 0,
    }
}
