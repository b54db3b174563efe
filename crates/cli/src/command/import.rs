//! `notation import ENTRY ID KEY`: adopts an existing object under a resource id.

use std::sync::Arc;

use notation_engine::RunOptions;
use notation_planner::PlanOptions;
use serde_json::json;

use crate::{
    args::{Global, Import},
    command::run::{self, Wanted},
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, Outcome},
    interrupt,
    printer::Printer,
    progress::Teller,
    project,
    session::Wiring,
};

/// Adopts it; one that has an owner only with `--adopt`.
pub fn run(global: &Global, args: &Import, printer: &Printer) -> Outcome {
    if let Some(other) = args.adopt.iter().find(|id| **id != args.id) {
        let message = format!("--adopt {other}: this imports {} alone", args.id);
        return Err(Failure::usage(message));
    }
    let config = project::of(global)?;
    let deployment = project::deployment(&config, &args.entry, "import")?;
    let wanted = Wanted::by(&config, &deployment, printer)?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let session = run::session(&wiring, &wanted, &Arc::new(Teller::new(printer)));
    let options = RunOptions {
        hold: run::hold(args.no_wait),
        plan: PlanOptions {
            adopt: args.adopt.iter().cloned().collect(),
            ..PlanOptions::default()
        },
        ..RunOptions::default()
    };
    let record = block_on(async {
        wiring.reach_recorded(&options).await?;
        interrupt::pass_on(&session);
        notation_engine::import(&session, &wanted.graph, &args.id, &args.key, &options)
            .await
            .map_err(|error| wiring.failure(error))
    })?;
    printer.event(
        "import",
        json!({
            "deployment": wiring.deployment.to_string(),
            "resource": args.id.as_str(),
            "type": record.ty.as_str(),
            "key": record.key,
        }),
    );
    printer.out(format!("{} is {} now", record.key, args.id));
    printer.say("the next deploy brings it to what the program says; look with plan first");
    Ok(Exit::Done)
}
