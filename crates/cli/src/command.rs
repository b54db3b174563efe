//! One file per command; each reads as the road it takes.

mod check;
mod completions;
mod deploy;
mod destroy;
mod fresh;
mod graph;
mod help;
mod hold;
mod host;
mod import;
mod init;
mod outputs;
mod plan;
mod refresh;
mod resolve;
mod run;
mod secret;
mod sim;
mod stages;
mod state;
mod types;
mod version;

use crate::{
    args::{Cli, Command},
    failure::Outcome,
    printer::Printer,
};

/// Runs what was asked for.
pub fn run(cli: Cli, printer: &Printer) -> Outcome {
    let global = &cli.global;
    match cli.command {
        Command::Init(args) => init::run(&args, printer),
        Command::Check(args) => check::run(global, &args, printer),
        Command::Plan(args) => plan::run(global, &args, printer),
        Command::Deploy(args) => deploy::run(global, &args, printer),
        Command::Destroy(args) => destroy::run(global, &args, printer),
        Command::Refresh(args) => refresh::run(global, &args, printer),
        Command::Import(args) => import::run(global, &args, printer),
        Command::Outputs(args) => outputs::run(global, &args, printer),
        Command::Secret(args) => secret::run(global, &args.command, printer),
        Command::State(args) => state::run(global, &args.command, printer),
        Command::Stages => stages::run(global, printer),
        Command::Hold(args) => hold::run(global, &args.command, printer),
        Command::Resolve(args) => resolve::run(global, &args, printer),
        Command::Graph(args) => graph::run(global, &args, printer),
        Command::Types => types::run(global, printer),
        Command::Host(args) => host::run(global, &args.command, printer),
        Command::Sim(args) => sim::run(global, &args.command, printer),
        Command::Completions(args) => completions::run(&args, printer),
        Command::Version => version::run(printer),
        Command::Help(args) => help::run(&args, printer),
    }
}
