//! `notation version`.

use serde_json::json;

use crate::{exit::Exit, failure::Outcome, printer::Printer};

/// Prints the version.
pub fn run(printer: &Printer) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    printer.event("version", json!({ "version": version }));
    printer.out(format!("notation {version}"));
    Ok(Exit::Done)
}
