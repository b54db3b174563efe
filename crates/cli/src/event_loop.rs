//! Where the asynchronous part of a command runs.

use std::future::Future;

use tokio::runtime::Builder;

use crate::{exit::Exit, failure::Failure};

/// Runs the asynchronous part of a command. One thread: nothing here computes for long.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(&mut Builder::new_current_thread(), work)
}

/// Runs a host, on all cores.
pub fn block_on_all_cores<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(&mut Builder::new_multi_thread(), work)
}

fn run<T>(
    builder: &mut Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let made = builder.enable_all().build();
    let event_loop = made.map_err(|error| {
        Failure::new(
            Exit::Fixable,
            "system::no_threads",
            format!("no event loop can be made: {error}"),
        )
    })?;
    event_loop.block_on(work)
}
