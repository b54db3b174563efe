//! The life of one version's process, as a table. The driver in `driver.rs` only does what
//! the table says.

use std::time::Duration;

/// Where a version's process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never started, or nobody wanted it yet.
    Cold,
    /// A process is coming up. Requests wait.
    Starting {
        /// Starts since the version last ran for a while.
        attempt: u32,
    },
    /// Coming up once more only to answer what was routed here before the version left.
    LastStart,
    /// Serving.
    Warm {
        /// Starts since the version last ran for a while.
        attempt: u32,
    },
    /// Ended or did not come up; started again after a delay. Requests are refused.
    BackOff {
        /// Starts so far.
        attempt: u32,
    },
    /// Routed away; invocations and their tasks are finishing.
    Draining,
    /// Asked to end.
    Stopping,
    /// Gone.
    Stopped,
}

impl State {
    /// One word for people.
    pub fn word(self) -> &'static str {
        match self {
            State::Cold => "cold",
            State::Starting { .. } | State::LastStart => "starting",
            State::Warm { .. } => "serving",
            State::BackOff { .. } => "failing",
            State::Draining => "draining",
            State::Stopping => "stopping",
            State::Stopped => "stopped",
        }
    }
}

/// What happened to a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It takes traffic from now on.
    Demanded,
    /// It was routed away.
    Left,
    /// The process serves.
    Served,
    /// The process did not come up.
    StartFailed,
    /// The process ended.
    Exited,
    /// The process did not answer several times in a row.
    Hung,
    /// The process ran for a while without trouble.
    Settled,
    /// The delay before the next start is over.
    DelayOver,
    /// No invocation and no task is left.
    Drained,
    /// The wait for the current state is over.
    Overdue,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a process; ends in `Served` or `StartFailed`.
    Start,
    /// Ends in `DelayOver` after this time.
    Delay(Duration),
    /// Look after the process; ends in `Hung` or `Settled`.
    Watch,
    /// Wait for invocations and tasks; ends in `Drained` or `Overdue`.
    Drain,
    /// Ask the process to end; `Overdue` follows when it does not.
    Terminate,
    /// End the process now.
    Kill,
    /// Release everything the version holds.
    Close,
}

/// An event the table has no row for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} cannot happen to a version that is {state:?}")]
pub struct IllegalEvent {
    /// State of the version.
    pub state: State,
    /// The event.
    pub event: Event,
}

/// The next state and what to do. A process that ends for the first time in a while is
/// replaced at once, later ones after a growing delay.
pub fn next(state: State, event: Event) -> Result<(State, &'static [Action]), IllegalEvent> {
    use Action::{Close, Drain, Kill, Start, Terminate, Watch};
    use State::{BackOff, Cold, Draining, LastStart, Starting, Stopped, Stopping, Warm};
    Ok(match (state, event) {
        (Cold, Event::Demanded) => (Starting { attempt: 0 }, &[Start]),
        (Cold, Event::Left) => (Stopped, &[Close]),

        (Starting { attempt }, Event::Served) => (Warm { attempt }, &[Watch]),
        (Starting { attempt }, Event::StartFailed) => back_off(attempt + 1),
        (Starting { .. }, Event::Left) => (LastStart, &[]),

        (LastStart, Event::Served) => (Draining, &[Drain]),
        (LastStart, Event::StartFailed | Event::Overdue) => (Stopped, &[Close]),

        (Warm { attempt: 0 }, Event::Exited) => (Starting { attempt: 1 }, &[Start]),
        (Warm { attempt }, Event::Exited) => back_off(attempt + 1),
        (Warm { attempt }, Event::Hung) => (Warm { attempt }, &[Kill]),
        (Warm { .. }, Event::Settled) => (Warm { attempt: 0 }, &[Watch]),
        (Warm { .. }, Event::Left) => (Draining, &[Drain]),

        (BackOff { attempt }, Event::DelayOver) => (Starting { attempt }, &[Start]),
        (BackOff { .. }, Event::Left) => (Stopped, &[Close]),

        (Draining, Event::Drained) => (Stopping, &[Terminate]),
        // What it still does is cut off in any case.
        (Draining, Event::Overdue) => (Stopping, &[Kill]),
        (Draining | Stopping, Event::Exited) => (Stopped, &[Close]),
        (Stopping, Event::Overdue) => (Stopping, &[Kill]),

        // Wanted again or let go again changes nothing once it is under way.
        (Starting { .. } | Warm { .. } | BackOff { .. }, Event::Demanded)
        | (LastStart | Draining | Stopping | Stopped, Event::Left) => (state, &[]),

        (state, event) => return Err(IllegalEvent { state, event }),
    })
}

fn back_off(attempt: u32) -> (State, &'static [Action]) {
    const fn delay(ms: u64) -> Action {
        Action::Delay(Duration::from_millis(ms))
    }
    const STEPS: [&[Action]; 6] = [
        &[delay(250)],
        &[delay(500)],
        &[delay(1_000)],
        &[delay(4_000)],
        &[delay(15_000)],
        &[delay(30_000)],
    ];
    let step = (attempt.saturating_sub(1) as usize).min(STEPS.len() - 1);
    (State::BackOff { attempt }, STEPS[step])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(from: State, events: &[Event]) -> State {
        events.iter().fold(from, |state, event| {
            next(state, *event).expect("a row of the table").0
        })
    }

    #[test]
    fn a_process_that_ends_once_is_replaced_at_once() {
        assert_eq!(
            next(State::Warm { attempt: 0 }, Event::Exited),
            Ok((State::Starting { attempt: 1 }, &[Action::Start][..]))
        );
    }

    #[test]
    fn a_process_that_keeps_ending_is_started_ever_later() {
        let mut state = State::Starting { attempt: 0 };
        let mut last = Duration::ZERO;
        for _ in 0..6 {
            let (after, actions) = next(state, Event::StartFailed).expect("a row");
            let [Action::Delay(delay)] = actions else {
                panic!("a delay, not {actions:?}")
            };
            assert!(*delay > last);
            last = *delay;
            state = next(after, Event::DelayOver).expect("a row").0;
        }
        assert_eq!(state, State::Starting { attempt: 6 });
        let (_, actions) =
            next(State::Starting { attempt: 900 }, Event::StartFailed).expect("a row");
        assert_eq!(actions, &[Action::Delay(last)]);
    }

    #[test]
    fn running_for_a_while_forgets_old_trouble() {
        assert_eq!(
            walk(State::Warm { attempt: 4 }, &[Event::Settled, Event::Exited]),
            State::Starting { attempt: 1 }
        );
    }

    #[test]
    fn a_version_that_leaves_is_drained_then_stopped() {
        let state = walk(
            State::Warm { attempt: 0 },
            &[Event::Left, Event::Drained, Event::Exited],
        );
        assert_eq!(state, State::Stopped);
        assert_eq!(
            walk(
                State::Draining,
                &[Event::Overdue, Event::Overdue, Event::Exited]
            ),
            State::Stopped
        );
    }

    #[test]
    fn a_version_that_leaves_while_restarting_still_answers_what_waits() {
        assert_eq!(
            walk(
                State::Starting { attempt: 1 },
                &[Event::Left, Event::Served]
            ),
            State::Draining
        );
    }

    #[test]
    fn what_takes_too_long_to_leave_is_ended_at_once() {
        assert_eq!(
            next(State::Draining, Event::Overdue),
            Ok((State::Stopping, &[Action::Kill][..]))
        );
        assert_eq!(
            next(State::LastStart, Event::Overdue),
            Ok((State::Stopped, &[Action::Close][..]))
        );
    }

    #[test]
    fn what_is_not_in_the_table_names_both() {
        let error = next(State::Stopped, Event::Served).expect_err("no row");
        assert_eq!(
            error.to_string(),
            "Served cannot happen to a version that is Stopped"
        );
    }
}
