//! `notation graph ENTRY`: the program's graph as text or picture.

use std::collections::BTreeSet;

use notation_model::ResourceId;
use serde_json::json;

use crate::{
    args::{Global, Graph, GraphFormat},
    command::fresh::Fresh,
    exit::Exit,
    failure::Outcome,
    printer::Printer,
    render::graph::{Drawing, dot, mermaid, svg},
};

/// Draws it. Placeholders are those of a fresh stage: state is not read.
pub fn run(global: &Global, args: &Graph, printer: &Printer) -> Outcome {
    let Fresh { graph, plan, .. } = Fresh::of(global, &args.entry, "graph", printer)?;
    let placeholders: BTreeSet<ResourceId> = plan
        .cycles
        .iter()
        .flat_map(|cycle| &cycle.placeholders)
        .map(|incarnation| incarnation.resource.clone())
        .collect();
    let drawing = Drawing::of(&graph, &placeholders);
    let text = match args.format {
        GraphFormat::Mermaid => mermaid(&drawing),
        GraphFormat::Dot => dot(&drawing),
        GraphFormat::Svg => svg(&drawing),
    };
    if printer.json {
        let mut fields = drawing.to_json();
        fields["text"] = json!(text);
        printer.event("graph", fields);
    } else {
        printer.raw(&text);
    }
    Ok(Exit::Done)
}
