//! The drawing as Mermaid text, for Markdown documents.

use super::{Drawing, Kind};

/// A flowchart: solid = config, dotted = contribution, thin with a note = dependOn; cycles are
/// boxes, placeholders have a dashed border.
pub fn mermaid(drawing: &Drawing) -> String {
    let mut text = String::from("flowchart LR\n");
    let node = |at: usize| {
        let node = &drawing.nodes[at];
        let mark = if node.placeholder {
            "<br/>placeholder first"
        } else {
            ""
        };
        format!(
            "n{at}[\"{}<br/><i>{}</i>{mark}\"]",
            escape(&node.id),
            escape(&node.ty)
        )
    };
    for (number, members) in drawing.cycles.iter().enumerate() {
        let names: Vec<_> = members
            .iter()
            .map(|at| escape(&drawing.nodes[*at].id))
            .collect();
        text.push_str(&format!(
            "  subgraph c{number} [\"cycle: {}\"]\n",
            names.join(", ")
        ));
        for member in members {
            text.push_str(&format!("    {}\n", node(*member)));
        }
        text.push_str("  end\n");
    }
    for at in 0..drawing.nodes.len() {
        if drawing.cycle_of(at).is_none() {
            text.push_str(&format!("  {}\n", node(at)));
        }
    }
    for edge in &drawing.edges {
        let field = escape(&edge.field);
        let arrow = match edge.kind {
            Kind::Config => format!("-->|{field}|"),
            Kind::Contribution => format!("-.->|{field}|"),
            Kind::DependOn => "-.->|dependOn|".into(),
        };
        text.push_str(&format!("  n{} {arrow} n{}\n", edge.from, edge.to));
    }
    let bare: Vec<_> = (0..drawing.nodes.len())
        .filter(|at| drawing.nodes[*at].placeholder)
        .map(|at| format!("n{at}"))
        .collect();
    if !bare.is_empty() {
        text.push_str("  classDef bare stroke-dasharray: 5 4\n");
        text.push_str(&format!("  class {} bare\n", bare.join(",")));
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn cycles_placeholders_and_kinds_are_told_apart() {
        insta::assert_snapshot!(super::mermaid(&super::super::tests::sample()));
    }
}
