//! Why workers of a running local host are not reached at the moment.

use std::path::Path;

use serde_json::Value as Json;

use super::{
    control::{self, Ask},
    start,
};
use crate::{printer::Printer, render::cell};

/// Asks the project's local host; nothing when none runs or it does not answer.
pub fn problems(project: &Path) -> Vec<String> {
    let Ok(Some(info)) = start::find(project) else {
        return Vec::new();
    };
    match control::ask(&info.control, &Ask::Status) {
        Ok(status) => of_status(&status),
        Err(_) => Vec::new(),
    }
}

/// Those of an answer to [`Ask::Status`].
pub fn of_status(status: &Json) -> Vec<String> {
    let addresses = status["addresses"].as_array().into_iter().flatten();
    addresses
        .filter_map(|address| {
            let problem = address["problem"].as_str()?;
            Some(problem.to_owned())
        })
        .collect()
}

/// Says which workers are not reached and why.
pub fn warn(problems: &[String], printer: &Printer) {
    for problem in problems {
        let text = cell::wrap(problem, printer.width.saturating_sub(11)).join("\n           ");
        printer.warn(format!(
            "  {}  {text}",
            cell::paint(cell::UPDATE, "warning")
        ));
    }
}
