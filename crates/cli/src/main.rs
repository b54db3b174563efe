//! `notation`: deploys apps whose parts depend on each other, and runs the host they live on.

mod advice;
mod args;
mod candidates;
mod command;
mod consent;
mod edge_host;
mod event_loop;
mod exit;
mod failure;
mod folders;
mod interrupt;
mod localhost;
mod neighbours;
mod pages;
mod printer;
mod progress;
mod project;
#[cfg(test)]
mod reference;
mod render;
mod saved_plan;
mod session;
mod usage;

use std::{
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use clap::{CommandFactory as _, Parser as _};
use serde_json::json;

use crate::{args::Cli, exit::Exit, failure::Failure, printer::Printer};

/// Size limit of files (`ulimit -f`); its number is the same on every system we build for.
const SIGXFSZ: i32 = 25;

fn main() -> ExitCode {
    // A write beyond the limit must fail like a write to a full disk, not end the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let completed = || candidates::offered_by(Cli::command());
    clap_complete::CompleteEnv::with_factory(completed).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let (exit, printer) = usage::answer(&error);
            return heard(exit, Exit::Fixable, &printer).into();
        }
    };
    let printer = Printer::new(&cli.global);
    interrupt::until_heard(&printer);
    let unheard = match cli.command.only_asks() {
        true => Exit::Fixable,
        false => Exit::Stopped,
    };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| command::run(cli, &printer)));
    let exit = match ended {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            failure.tell(&printer);
            failure.exit
        }
        // The panic itself was printed by the standard hook.
        Err(_) => {
            printer.warn("this is a bug of notation; please report it with the lines above");
            printer.event(
                "error",
                json!({ "code": "notation::bug", "message": "a bug of notation", "help": null, "place": null, "related": [] }),
            );
            Exit::Bug
        }
    };
    heard(exit, unheard, &printer).into()
}

/// What a command ends with once it is known whether what it printed was written. Who reads the
/// status of a command takes 0 for an answer that is there.
fn heard(exit: Exit, unheard: Exit, printer: &Printer) -> Exit {
    let Some(error) = printer::not_written() else {
        return exit;
    };
    let failure = Failure::new(
        unheard,
        "system::not_written",
        format!("what was asked for could not be written to stdout: {error}"),
    )
    .help(match unheard {
        Exit::Stopped => {
            "everything else was done; `outputs`, `state` and `plan` tell what there is"
        }
        _ => "make room where stdout goes to, then ask again",
    });
    // Not as an event: there is nowhere to write one.
    failure.tell(&Printer {
        json: false,
        ..*printer
    });
    match exit {
        Exit::Done => failure.exit,
        worse => worse,
    }
}
