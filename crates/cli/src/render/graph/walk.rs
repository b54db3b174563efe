//! The one walk of a drawing that every text language shares: cycles with their members, the other
//! nodes, the edges.

use super::{Drawing, Line, Node};

/// How a language writes the parts.
pub(super) struct Dialect {
    /// Before everything.
    pub head: &'static str,
    /// A node, by its position.
    pub node: fn(usize, &Node) -> String,
    /// The beginning of a cycle, by its number, with the ids of its members.
    pub open: fn(usize, &str) -> String,
    /// The end of a cycle.
    pub close: &'static str,
    /// An edge.
    pub edge: fn(&Line) -> String,
    /// Characters that mean something, with what stands for them.
    pub escapes: &'static [(char, &'static str)],
}

impl Dialect {
    /// The drawing in this language, without what stands after the edges.
    pub(super) fn write(&self, drawing: &Drawing) -> String {
        let drawing = &self.escaped(drawing);
        let mut text = self.head.to_owned();
        for (number, members) in drawing.cycles.iter().enumerate() {
            let names: Vec<_> = members
                .iter()
                .map(|at| drawing.nodes[*at].id.as_str())
                .collect();
            text.push_str(&format!("  {}\n", (self.open)(number, &names.join(", "))));
            for member in members {
                let node = (self.node)(*member, &drawing.nodes[*member]);
                text.push_str(&format!("    {node}\n"));
            }
            text.push_str(&format!("  {}\n", self.close));
        }
        for (at, node) in drawing.nodes.iter().enumerate() {
            if drawing.cycle_of(at).is_none() {
                text.push_str(&format!("  {}\n", (self.node)(at, node)));
            }
        }
        for edge in &drawing.edges {
            text.push_str(&format!("  {}\n", (self.edge)(edge)));
        }
        text
    }

    /// The same drawing with texts that mean nothing in this language.
    fn escaped(&self, drawing: &Drawing) -> Drawing {
        let mut drawing = drawing.clone();
        for node in &mut drawing.nodes {
            node.id = self.escape(&node.id);
            node.ty = self.escape(&node.ty);
        }
        for edge in &mut drawing.edges {
            edge.field = self.escape(&edge.field);
        }
        drawing
    }

    fn escape(&self, text: &str) -> String {
        let mut escaped = String::new();
        for c in text.chars() {
            match self.escapes.iter().find(|(other, _)| *other == c) {
                Some((_, stands)) => escaped.push_str(stands),
                None => escaped.push(c),
            }
        }
        escaped
    }
}
