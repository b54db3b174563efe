//! The drawing as Mermaid text, for Markdown documents.

use super::{Drawing, Kind, walk::Dialect};

/// Solid = config, dotted = contribution, dotted with its name = dependOn; cycles are boxes,
/// placeholders have a dashed border.
const MERMAID: Dialect = Dialect {
    head: "flowchart LR\n",
    node: |at, node| {
        let mark = if node.placeholder {
            "<br/>placeholder first"
        } else {
            ""
        };
        format!("n{at}[\"{}<br/><i>{}</i>{mark}\"]", node.id, node.ty)
    },
    open: |number, names| format!("subgraph c{number} [\"cycle: {names}\"]"),
    close: "end",
    edge: |edge| {
        let field = &edge.field;
        let arrow = match edge.kind {
            Kind::Config => format!("-->|{field}|"),
            Kind::Contribution => format!("-.->|{field}|"),
            Kind::DependOn => "-.->|dependOn|".into(),
        };
        format!("n{} {arrow} n{}", edge.from, edge.to)
    },
    escapes: &[
        ('&', "&amp;"),
        ('"', "&quot;"),
        ('<', "&lt;"),
        ('>', "&gt;"),
    ],
};

/// A flowchart.
pub fn mermaid(drawing: &Drawing) -> String {
    let mut text = MERMAID.write(drawing);
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

#[cfg(test)]
mod tests {
    #[test]
    fn cycles_placeholders_and_kinds_are_told_apart() {
        insta::assert_snapshot!(super::mermaid(&super::super::tests::sample()));
    }
}
