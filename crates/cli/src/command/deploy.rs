//! `notation deploy ENTRY`: plans, shows, asks, runs, reports.

use crate::{
    args::{Deploy, Global},
    command::run::{self, Errand, Wanted},
    consent::Consent,
    failure::Outcome,
    printer::Printer,
    project,
    render::plan_text::Purpose,
    saved_plan::SavedPlan,
    session::Wiring,
};

/// Deploys an entry to a stage.
pub fn run(global: &Global, args: &Deploy, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let deployment = project::deployment(&config, &args.entry, "deploy")?;
    let saved = args.plan.as_deref().map(SavedPlan::read).transpose()?;
    let shaping = match &saved {
        Some(saved) => saved.flags.onto(&args.shaping)?,
        None => args.shaping.clone(),
    };
    let wanted = Wanted::by(&config, &deployment, printer)?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let errand = Errand {
        purpose: Purpose::Deploy,
        consent: Consent::by(args.yes),
        saved: saved.as_ref(),
    };
    run::go(&wiring, &wanted, &run::options(&shaping), errand, printer)
}
