//! The drawing as Graphviz text.

use super::{Drawing, Kind};

/// A digraph: solid = config, dashed = contribution, dotted = dependOn; cycles are clusters,
/// placeholders have a dashed border.
pub fn dot(drawing: &Drawing) -> String {
    let mut text = String::from(
        "digraph notation {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    let node = |at: usize| {
        let node = &drawing.nodes[at];
        let label = format!("{}\\n{}", escape(&node.id), escape(&node.ty));
        if node.placeholder {
            format!("n{at} [label=\"{label}\\nplaceholder first\", style=dashed];")
        } else {
            format!("n{at} [label=\"{label}\"];")
        }
    };
    for (number, members) in drawing.cycles.iter().enumerate() {
        let names: Vec<_> = members
            .iter()
            .map(|at| escape(&drawing.nodes[*at].id))
            .collect();
        text.push_str(&format!(
            "  subgraph cluster_{number} {{\n    label=\"cycle: {}\";\n    style=rounded;\n",
            names.join(", ")
        ));
        for member in members {
            text.push_str(&format!("    {}\n", node(*member)));
        }
        text.push_str("  }\n");
    }
    for at in 0..drawing.nodes.len() {
        if drawing.cycle_of(at).is_none() {
            text.push_str(&format!("  {}\n", node(at)));
        }
    }
    for edge in &drawing.edges {
        let field = escape(&edge.field);
        let look = match edge.kind {
            Kind::Config => format!("label=\"{field}\""),
            Kind::Contribution => format!("label=\"{field}\", style=dashed"),
            Kind::DependOn => "style=dotted".into(),
        };
        text.push_str(&format!("  n{} -> n{} [{look}];\n", edge.from, edge.to));
    }
    text.push_str("}\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    #[test]
    fn cycles_placeholders_and_kinds_are_told_apart() {
        insta::assert_snapshot!(super::dot(&super::super::tests::sample()));
    }
}
