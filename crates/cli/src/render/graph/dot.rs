//! The drawing as Graphviz text.

use super::{Drawing, Kind, walk::Dialect};

/// Solid = config, dashed = contribution, dotted = dependOn; cycles are clusters, placeholders have
/// a dashed border.
const DOT: Dialect = Dialect {
    head: "digraph notation {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
    node: |at, node| {
        let label = format!("{}\\n{}", node.id, node.ty);
        if node.placeholder {
            format!("n{at} [label=\"{label}\\nplaceholder first\", style=dashed];")
        } else {
            format!("n{at} [label=\"{label}\"];")
        }
    },
    open: |number, names| {
        format!(
            "subgraph cluster_{number} {{\n    label=\"cycle: {names}\";\n    style=\"rounded,filled\"; color=\"#8fb0e8\"; fillcolor=\"#eef4ff\";"
        )
    },
    close: "}",
    edge: |edge| {
        let field = &edge.field;
        let look = match edge.kind {
            Kind::Config => format!("label=\"{field}\""),
            Kind::Contribution => format!("label=\"{field}\", style=dashed"),
            Kind::DependOn => "label=\"dependOn\", style=dotted".into(),
        };
        format!("n{} -> n{} [{look}];", edge.from, edge.to)
    },
    escapes: &[('\\', "\\\\"), ('"', "\\\"")],
};

/// A digraph.
pub fn dot(drawing: &Drawing) -> String {
    format!("{}}}\n", DOT.write(drawing))
}

#[cfg(test)]
mod tests {
    #[test]
    fn cycles_placeholders_and_kinds_are_told_apart() {
        insta::assert_snapshot!(super::dot(&super::super::tests::sample()));
    }
}
