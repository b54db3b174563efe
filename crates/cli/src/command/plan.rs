//! `notation plan ENTRY`: what deploy would do; writes nothing.

use std::sync::Arc;

use crate::{
    args::{Global, Plan},
    command::run::{self, Wanted},
    event_loop::block_on,
    exit::Exit,
    failure::Outcome,
    interrupt, neighbours,
    printer::Printer,
    progress::Teller,
    project,
    render::plan_text::{Purpose, Shown},
    saved_plan::{Flags, SavedPlan},
    session::Wiring,
};

/// Plans and shows.
pub fn run(global: &Global, args: &Plan, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let deployment = project::deployment(&config, &args.entry, "plan")?;
    let wanted = Wanted::by(&config, &deployment, printer)?;
    let wiring = Wiring::of(&config, deployment, printer)?;
    let options = run::options(&args.shaping);
    let session = run::session(&wiring, &wanted, &Arc::new(Teller::new(printer)));
    let (planned, besides, secrets) = block_on(async {
        wiring.reach_recorded(&options).await?;
        interrupt::pass_on(&session);
        let planned = notation_engine::plan(&session, &wanted.graph, &options)
            .await
            .map_err(|error| wanted.failure(&wiring, error))?;
        let besides =
            neighbours::notes(wiring.store.as_ref(), &planned, &options.plan.adopt).await?;
        let secrets = wiring.store.secret_marks(&wiring.deployment).await?;
        Ok((planned, besides, secrets))
    })?;
    let shown = Shown::of(&planned, &besides, Purpose::Deploy);
    run::show(shown, printer, |printer, text| printer.out(text));
    if let Some(path) = &args.out {
        SavedPlan::of(shown, Flags::of(&args.shaping), &wanted.graph, &secrets).write(path)?;
        printer.say(format!(
            "saved; apply exactly this with: notation deploy {} --stage {} --plan {}",
            wiring.deployment.entry,
            wiring.deployment.stage,
            path.display()
        ));
    }
    Ok(match (shown.anything(), args.fail_on_changes) {
        (true, true) => Exit::Changes,
        (true, false) | (false, _) => Exit::Done,
    })
}
