//! `notation destroy ENTRY`: the same road with nothing desired.

use crate::{
    args::{Destroy, Global},
    command::run::{self, Consent, Errand, Wanted},
    event_loop::block_on,
    failure::Outcome,
    printer::Printer,
    project,
    render::plan_text::Purpose,
    session,
    session::Wiring,
};

/// Removes everything a deployment has. Needs neither the entry's file nor the entry in the config.
pub fn run(global: &Global, args: &Destroy, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "destroy")?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let state = block_on(async { Ok(wiring.store.load(&wiring.deployment).await?) })?;
    session::known(&state, in_config)?;
    let consent = if args.yes {
        Consent::Given
    } else {
        Consent::Ask
    };
    let errand = Errand {
        purpose: Purpose::Destroy,
        consent,
        saved: None,
    };
    let options = run::options(&args.shaping);
    run::go(&wiring, &Wanted::nothing(), &options, errand, printer)
}
