//! The worker runtime's binary, fetched on first use where a person can see it.

use std::{path::PathBuf, sync::Mutex, time::Duration};

use indicatif::ProgressBar;
use notation_runtime::workerd::{self, Progress, Stage, WorkerdError};

use crate::{
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, causes},
    folders,
    printer::Printer,
    render::cell,
};

/// The binary in the cache folder, fetched when it is not there.
pub fn ensure(printer: &Printer) -> Result<PathBuf, Failure> {
    let cache = folders::cache()?;
    let told = Told {
        printer: *printer,
        bar: Mutex::new(None),
    };
    block_on(async { workerd::ensure(&cache, None, &told).await.map_err(missing) })
}

/// There is no binary.
pub fn missing(error: WorkerdError) -> Failure {
    let code = match &error {
        WorkerdError::NpmMissing => "runtime::npm_missing",
        WorkerdError::Network { .. } => "runtime::no_network",
        WorkerdError::Integrity { .. } => "runtime::wrong_content",
        WorkerdError::Unsupported { .. } => "runtime::unsupported",
        _ => "runtime::cannot_fetch",
    };
    let help = error.repair();
    let mut failure = Failure::new(Exit::Fixable, code, error.to_string()).help(help);
    for cause in causes(&error) {
        failure = failure.also(cause);
    }
    failure
}

struct Told {
    printer: Printer,
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress for Told {
    fn stage(&self, stage: Stage) {
        let text = match stage {
            Stage::Waiting => "another command is fetching the worker runtime".to_owned(),
            Stage::Fetching { about_bytes } => format!(
                "fetching the worker runtime through npm, once ({})",
                cell::bytes(about_bytes)
            ),
            Stage::Verifying => "checking the worker runtime".to_owned(),
            Stage::Unpacking => "unpacking the worker runtime".to_owned(),
            Stage::Ready => String::new(),
        };
        let mut bar = self
            .bar
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.printer.moving() {
            if !text.is_empty() {
                self.printer.say(&text);
            }
        } else if text.is_empty() {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        } else {
            let bar = bar.get_or_insert_with(ProgressBar::new_spinner);
            bar.enable_steady_tick(Duration::from_millis(120));
            bar.set_message(text);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let bar = self
            .bar
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(bar) = bar.take() {
            bar.finish_and_clear();
        }
    }
}
