//! `notation refresh ENTRY`: records what the providers say, changes nothing there.

use std::sync::Arc;

use notation_engine::RunOptions;
use serde_json::json;

use crate::{
    args::{Global, Refresh},
    command::run::{self, Wanted},
    event_loop::block_on,
    exit::Exit,
    failure::Outcome,
    interrupt,
    printer::Printer,
    progress::Teller,
    project,
    render::cell,
    session::{self, Wiring},
};

/// Refreshes and says what was found.
pub fn run(global: &Global, args: &Refresh, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "refresh")?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    session::known(wiring.store.as_ref(), &wiring.deployment, in_config)?;
    let session = run::session(&wiring, &Wanted::nothing(), &Arc::new(Teller::new(printer)));
    let options = RunOptions {
        hold: run::hold(args.no_wait),
        ..RunOptions::default()
    };
    let found = block_on(async {
        wiring.reach_recorded(&options).await?;
        interrupt::pass_on(&session);
        notation_engine::refresh(&session, &options)
            .await
            .map_err(|error| wiring.failure(error))
    })?;
    let names = |incarnations: &[notation_model::Incarnation]| {
        incarnations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    printer.event(
        "refresh",
        json!({
            "deployment": wiring.deployment.to_string(),
            "gone": names(&found.gone),
            "changed": names(&found.changed),
            "unchanged": found.unchanged,
            "unread": names(&found.unread),
        }),
    );
    for name in names(&found.gone) {
        printer.out(format!(
            "  - {name}   is gone; the next deploy makes it again"
        ));
    }
    for name in names(&found.changed) {
        printer.out(format!("  ~ {name}   differs from what was recorded"));
    }
    for name in names(&found.unread) {
        printer.out(format!(
            "  ? {name}   cannot be read, and is believed to be as recorded"
        ));
    }
    let unread = match found.unread.len() {
        0 => String::new(),
        many => format!(", {many} not read"),
    };
    printer.out(format!(
        "{}: {} as recorded, {} changed, {} gone{unread}",
        wiring.deployment,
        cell::count(found.unchanged, "resource"),
        found.changed.len(),
        found.gone.len()
    ));
    Ok(Exit::Done)
}
