//! `notation sim dump|reset`: the simulated cloud.

use serde_json::{Value as Json, json};

use crate::{
    args::{Global, SimCommand},
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
    project, session,
};

/// Prints or empties it.
pub fn run(global: &Global, command: &SimCommand, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let dir = session::sim_dir(&config);
    let failed = |error: notation_provider_sim::SimError| {
        Failure::new(Exit::Fixable, "sim::folder", error.to_string())
            .help(format!("the simulated cloud lives in {}", dir.display()))
    };
    match command {
        SimCommand::Dump => {
            let text = notation_provider_sim::dump(&dir).map_err(failed)?;
            let objects: Json = serde_json::from_str(&text).unwrap_or(Json::Null);
            printer.event("sim", json!({ "objects": objects }));
            printer.out(text);
        }
        SimCommand::Reset => {
            notation_provider_sim::reset(&dir).map_err(failed)?;
            printer.event("sim", json!({ "objects": {} }));
            printer.say(format!("the simulated cloud in {} is empty", dir.display()));
        }
    }
    Ok(Exit::Done)
}
