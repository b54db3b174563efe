//! A thread with a deep stack, watched from outside: parsers and the evaluator recurse, and an
//! endless loop must be stopped by somebody else. No clock is read.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use crate::{Limits, sandbox::Stop};

/// Begins and ends the time that is limited.
pub(crate) struct Watch {
    pub stop: Stop,
    events: mpsc::Sender<()>,
}

impl Watch {
    /// Does something whose time is limited; `stop` is set when it takes too long.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        // Nobody listens only when the watching thread is gone, and then there is no limit.
        let _ = self.events.send(());
        let done = work();
        let _ = self.events.send(());
        done
    }
}

/// Runs `work` on a thread of its own.
///
/// Errors: the machine starts no more threads. A panic in `work` goes on here.
pub(crate) fn run<T: Send>(
    limits: &Limits,
    work: impl FnOnce(&Watch) -> T + Send,
) -> io::Result<T> {
    let stop: Stop = Arc::new(AtomicBool::new(false));
    let (events, watched) = mpsc::channel();
    let watch = Watch {
        stop: Arc::clone(&stop),
        events,
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("program".into())
            .stack_size(limits.stack_bytes + PARSER_STACK_BYTES)
            .spawn_scoped(scope, move || work(&watch))?;
        // Pairs of begin and end, until the worker is done.
        while watched.recv().is_ok() {
            if watched.recv_timeout(limits.time) == Err(mpsc::RecvTimeoutError::Timeout) {
                stop.store(true, Ordering::Relaxed);
                // It stops at its next look.
                let _ = watched.recv();
            }
        }
        worker
            .join()
            .map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// For everything but the evaluator.
const PARSER_STACK_BYTES: usize = 12 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_that_takes_too_long_is_told_to_stop() {
        let limits = Limits {
            time: Duration::from_millis(1),
            ..Limits::default()
        };
        let stopped = run(&limits, |watch| {
            watch.timed(|| {
                while !watch.stop.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                true
            })
        });
        assert!(stopped.unwrap());
    }

    #[test]
    fn what_is_not_timed_may_take_long() {
        let limits = Limits {
            time: Duration::ZERO,
            ..Limits::default()
        };
        let stopped = run(&limits, |watch| watch.stop.load(Ordering::Relaxed));
        assert!(!stopped.unwrap());
    }
}
