//! `notation outputs ENTRY`: what the entry exported at its last deploy.

use serde_json::json;

use crate::{
    args::{Global, Outputs},
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    project,
    render::outputs::{self, Sensitive},
    session,
};

/// Prints them from state.
pub fn run(global: &Global, args: &Outputs, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (deployment, in_config) = project::deployment_or_gone(&config, &args.entry, "outputs")?;
    let store = session::store(&config)?;
    let state = session::known(store.as_ref(), &deployment, in_config)?;
    session::was_deployed(store.as_ref(), &deployment, &state)?;
    let shown = if args.show_secrets {
        Sensitive::Clear
    } else {
        Sensitive::Hidden
    };
    printer.event(
        "outputs",
        json!({ "deployment": deployment.to_string(), "outputs": outputs::to_json(&state.exports, shown) }),
    );
    if state.exports.is_empty() {
        printer.say(format!("{deployment} has no outputs"));
    } else {
        printer.out(outputs::to_text(&state.exports, shown));
    }
    Ok(Exit::Done)
}
