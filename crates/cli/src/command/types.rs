//! `notation types`: TypeScript types of the built-in packages, for the editor.

use serde_json::json;

use crate::{args::Global, exit::Exit, failure::Outcome, printer::Printer, project};

/// Lays them into the project.
pub fn run(global: &Global, printer: &Printer) -> Outcome {
    let config = project::of(global)?;
    let laid = notation_program::lay_types(&config.root)?;
    let files: Vec<_> = laid.iter().map(|path| path.display().to_string()).collect();
    printer.event("types", json!({ "files": files }));
    for file in &files {
        printer.out(file);
    }
    Ok(Exit::Done)
}
