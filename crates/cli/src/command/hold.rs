//! `notation hold show|clear`.

use serde_json::json;

use crate::{
    args::{Global, HoldCommand},
    consent::Consent,
    event_loop::block_on,
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    project,
    render::hold,
    session,
};

/// Shows or clears who holds a deployment.
pub fn run(global: &Global, command: &HoldCommand, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (args, verb) = match command {
        HoldCommand::Show { entry } => (entry, "hold show"),
        HoldCommand::Clear { entry, .. } => (entry, "hold clear"),
    };
    let (deployment, in_config) = project::deployment_or_gone(&config, args, verb)?;
    let store = session::store(&config)?;
    block_on(async {
        let hold = store.hold(&deployment).await?;
        let state = store.load(&deployment).await?;
        in_config.or_in(hold.is_some() || session::is_known(&state))?;
        let Some(hold) = hold else {
            printer.event(
                "hold",
                json!({ "deployment": deployment.to_string(), "hold": null }),
            );
            printer.out(format!("nobody holds {deployment}"));
            return Ok(Exit::Done);
        };
        if let HoldCommand::Clear { yes, .. } = command {
            printer.say(hold::to_text(&hold));
            let alive = !session::machine().knows_dead(&hold.machine);
            if alive {
                printer.warn("its process is not known to be gone; if it still runs, it will be refused from now on");
            }
            let question = format!("Clear the hold of {deployment}?");
            Consent::by(*yes).obtain("hold clear", &question, "the hold stays", printer)?;
            store.clear_hold(&deployment).await?;
            printer.event("hold", json!({ "deployment": deployment.to_string(), "hold": null, "cleared": hold::to_json(&hold) }));
            printer.say(format!("the hold of {deployment} is cleared"));
            return Ok(Exit::Done);
        }
        printer.event(
            "hold",
            json!({ "deployment": deployment.to_string(), "hold": hold::to_json(&hold) }),
        );
        printer.out(hold::to_text(&hold));
        Ok(Exit::Done)
    })
}
