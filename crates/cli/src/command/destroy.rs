//! `notation destroy ENTRY`: the same road with nothing desired.

use crate::{
    args::{Destroy, Global},
    command::run::{self, Errand, Wanted},
    consent::Consent,
    failure::Outcome,
    printer::Printer,
    project,
    render::plan_text::Purpose,
    session::{self, Wiring},
};

/// Removes everything a deployment has. Needs neither the entry's file nor the entry in the config.
pub fn run(global: &Global, args: &Destroy, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "destroy")?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    session::known(wiring.store.as_ref(), &wiring.deployment, in_config)?;
    let errand = Errand {
        purpose: Purpose::Destroy,
        consent: Consent::by(args.yes),
        saved: None,
    };
    let options = run::options(&args.shaping);
    run::go(&wiring, &Wanted::nothing(), &options, errand, printer)
}
