//! `notation resolve ENTRY ID --created KEY | --absent`: answers for a create that nobody can look up.

use std::sync::Arc;

use notation_engine::{Answer, RunOptions};
use serde_json::json;

use crate::{
    args::{Global, Resolve},
    command::run::{self, Wanted},
    event_loop::block_on,
    exit::Exit,
    failure::Outcome,
    interrupt,
    printer::Printer,
    progress::Teller,
    project,
    session::Wiring,
};

/// Records the answer.
pub fn run(global: &Global, args: &Resolve, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "resolve")?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let state = block_on(async { Ok(wiring.store.load(&wiring.deployment).await?) })?;
    in_config.or_in(state.last_run_ms.is_some() || !state.open.is_empty())?;
    let session = run::session(&wiring, &Wanted::nothing(), &Arc::new(Teller::new(printer)));
    let answer = match &args.created {
        Some(key) => Answer::Created { key: key.clone() },
        None => Answer::Absent,
    };
    block_on(async {
        interrupt::pass_on(&session);
        notation_engine::resolve(&session, &args.id, &answer, &RunOptions::default())
            .await
            .map_err(|error| wiring.failure(error))
    })?;
    printer.event(
        "resolve",
        json!({
            "deployment": wiring.deployment.to_string(),
            "resource": args.id.as_str(),
            "created": args.created,
        }),
    );
    printer.say(match &args.created {
        Some(key) => format!("{} is recorded as {key}; deploy goes on from here", args.id),
        None => format!("{} was not created; deploy makes it", args.id),
    });
    Ok(Exit::Done)
}
