//! `notation import ENTRY ID KEY`: adopts an existing object under a resource id.

use std::{collections::BTreeSet, sync::Arc};

use notation_engine::RunOptions;
use serde_json::json;

use crate::{
    args::{Global, Import},
    command::run::{self, Wanted},
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    progress::Teller,
    project,
    session::{self, Wiring},
};

/// Adopts it; naming the resource is being asked to.
pub fn run(global: &Global, args: &Import, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let deployment = project::deployment(&config, &args.entry, "import")?;
    let wanted = Wanted::by(&config, &deployment, printer)?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let session = run::session(&wiring, &wanted, &Arc::new(Teller::new(printer)));
    let options = RunOptions {
        hold: run::hold(args.no_wait),
        adopt: BTreeSet::from([args.id.clone()]),
        ..RunOptions::default()
    };
    let record = session::block_on(async {
        wiring.reach_recorded(&options).await?;
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
