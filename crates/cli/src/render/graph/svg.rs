//! The drawing as a picture.

use super::{
    Drawing, Kind, Line,
    layout::{LONGEST_ID, Layout, layout},
};

const STYLE: &str = "\
text{font-family:system-ui,sans-serif;fill:#1c2430}\
.id{font-size:14px;font-weight:600}.ty{font-size:11px;fill:#5b6675}\
.label{font-size:10px;fill:#5b6675;paint-order:stroke;stroke:#fff;stroke-width:3px}\
.cycle{fill:#eef4ff;stroke:#8fb0e8;stroke-width:1.2}.cycle-name{font-size:11px;fill:#3d68b0;paint-order:stroke;stroke:#eef4ff;stroke-width:4px}\
.box{fill:#fff;stroke:#44505f;stroke-width:1.4}.bare{stroke-dasharray:6 4;stroke:#b06a00;fill:#fff6e6}\
.bare-name{font-size:10px;fill:#b06a00}\
.edge{fill:none;stroke:#44505f;stroke-width:1.5}.contribution{stroke:#b06a00;stroke-dasharray:6 4}\
.dependOn{stroke:#8a94a3;stroke-dasharray:2 4}";

/// A standalone SVG with a legend. Solid = config, dashed = contribution, dotted = dependOn.
pub fn svg(drawing: &Drawing) -> String {
    let laid = layout(drawing);
    let lines: Vec<(String, f64)> = drawing
        .edges
        .iter()
        .map(|edge| line(drawing, &laid, edge))
        .collect();
    let lowest = lines.iter().map(|(_, y)| *y).fold(laid.size.1, f64::max);
    let top = lines.iter().map(|(_, y)| *y).fold(0.0, f64::min)
        - if lines.is_empty() { 0.0 } else { 6.0 };
    let (width, height) = (laid.size.0.max(640.0), lowest - top + 44.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 {top:.0} {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n"
    );
    text.push_str("<defs>");
    for (kind, color) in [
        ("config", "#44505f"),
        ("contribution", "#b06a00"),
        ("dependOn", "#8a94a3"),
    ] {
        text.push_str(&format!(
            "<marker id=\"{kind}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"{color}\"/></marker>"
        ));
    }
    text.push_str("</defs>\n");
    text.push_str(&format!(
        "<rect y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n"
    ));
    for (x, y, w, h) in &laid.cycles {
        text.push_str(&format!(
            "<rect class=\"cycle\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"14\"/>\n"
        ));
    }
    for (drawn, _) in &lines {
        text.push_str(drawn);
    }
    // Above the lines, so that none crosses a title.
    for (members, (x, y, w, _)) in drawing.cycles.iter().zip(&laid.cycles) {
        let names: Vec<_> = members
            .iter()
            .map(|at| drawing.nodes[*at].id.as_str())
            .collect();
        text.push_str(&format!(
            "<text class=\"cycle-name\" x=\"{:.1}\" y=\"{:.1}\">cycle: {}</text>\n",
            x + 12.0,
            y + 16.0,
            escape(&short(&names.join(", "), (*w as usize / 7).max(12))),
        ));
    }
    let (wide, high) = laid.one;
    for (node, (x, y)) in drawing.nodes.iter().zip(&laid.boxes) {
        let bare = if node.placeholder { " bare" } else { "" };
        let left = x + 12.0;
        let lines = if node.placeholder { 22.0 } else { 28.0 };
        text.push_str(&format!(
            "<rect class=\"box{bare}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"7\"/>\n<text class=\"id\" x=\"{left:.1}\" y=\"{:.1}\">{}</text>\n<text class=\"ty\" x=\"{left:.1}\" y=\"{:.1}\">{}</text>\n",
            y + lines,
            escape(&short(&node.id, LONGEST_ID)),
            y + lines + 16.0,
            escape(&short(&node.ty, (wide as usize - 24) / 6)),
        ));
        if node.placeholder {
            text.push_str(&format!(
                "<text class=\"bare-name\" x=\"{left:.1}\" y=\"{:.1}\">placeholder first</text>\n",
                y + 54.0
            ));
        }
    }
    text.push_str(&legend(top + height - 20.0));
    text.push_str("</svg>\n");
    text
}

fn legend(y: f64) -> String {
    let mut text = String::new();
    let mut x = 20.0;
    for (kind, name, width) in [
        ("config", "config", 110.0),
        ("contribution", "contribution", 140.0),
        ("dependOn", "dependOn", 125.0),
    ] {
        text.push_str(&format!(
            "<path class=\"edge {kind}\" marker-end=\"url(#{kind})\" d=\"M{x:.1},{y:.1} h34\"/><text class=\"ty\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
            x + 42.0,
            y + 4.0
        ));
        x += width;
    }
    for (class, name, width) in [
        ("bare", "created as placeholder", 170.0),
        ("cycle", "cycle", 0.0),
    ] {
        text.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"26\" height=\"14\" rx=\"4\"/><text class=\"ty\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
            y - 7.0,
            x + 34.0,
            y + 4.0
        ));
        x += width;
    }
    text
}

/// A curve from border to border, bent to one side so that the way back is another curve; and how
/// far down or up it may reach.
fn line(drawing: &Drawing, laid: &Layout, edge: &Line) -> (String, f64) {
    let kind = edge.kind.name();
    let (wide, high) = laid.one;
    let center = |at: usize| {
        let (x, y) = laid.boxes[at];
        (x + wide / 2.0, y + high / 2.0)
    };
    let (path, label, reach) = if edge.from == edge.to {
        let (x, y) = laid.boxes[edge.from];
        let (left, right) = (x + wide * 0.55, x + wide * 0.85);
        let path = format!(
            "M{left:.1},{y:.1} C{left:.1},{:.1} {right:.1},{:.1} {right:.1},{y:.1}",
            y - 34.0,
            y - 34.0
        );
        (path, ((left + right) / 2.0, y - 28.0), y - 34.0)
    } else {
        let (from, to) = (center(edge.from), center(edge.to));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1.0);
        let both = drawing
            .edges
            .iter()
            .any(|other| other.from == edge.to && other.to == edge.from);
        // Longer lines bend more, so that they pass by the boxes between.
        let bend = (length * 0.14).max(if both { 26.0 } else { 10.0 });
        let middle = (
            (from.0 + to.0) / 2.0 - dy / length * bend,
            (from.1 + to.1) / 2.0 + dx / length * bend,
        );
        let (start, end) = (border(from, middle, laid.one), border(to, middle, laid.one));
        let path = format!(
            "M{:.1},{:.1} Q{:.1},{:.1} {:.1},{:.1}",
            start.0, start.1, middle.0, middle.1, end.0, end.1
        );
        // Kinds are labelled at different parts of their way, so that labels meet less.
        let part = match edge.kind {
            Kind::Config | Kind::DependOn => 0.5,
            Kind::Contribution => 0.4,
        };
        let along = |start: f64, middle: f64, end: f64| {
            let rest = 1.0 - part;
            start * rest * rest + 2.0 * middle * part * rest + end * part * part
        };
        let label = (
            along(start.0, middle.0, end.0),
            along(start.1, middle.1, end.1) + 3.0,
        );
        (path, label, label.1)
    };
    let name = match edge.kind {
        Kind::Config | Kind::Contribution => edge.field.as_str(),
        Kind::DependOn => "",
    };
    let drawn = format!(
        "<path class=\"edge {kind}\" marker-end=\"url(#{kind})\" d=\"{path}\"/>\n<text class=\"label\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        label.0,
        label.1,
        escape(&short(name, 20))
    );
    (drawn, reach)
}

/// Where the way from a box's centre to a point leaves the box.
fn border(center: (f64, f64), toward: (f64, f64), one: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (toward.0 - center.0, toward.1 - center.1);
    let across = (one.0 / 2.0) / dx.abs().max(1e-6);
    let down = (one.1 / 2.0) / dy.abs().max(1e-6);
    let part = across.min(down);
    (center.0 + dx * part, center.1 + dy * part)
}

fn short(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let start: String = text.chars().take(length - 1).collect();
    format!("{start}…")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_box_edge_and_cycle_is_drawn() {
        let picture = super::svg(&super::super::tests::sample());
        assert_eq!(picture.matches("class=\"box").count(), 4);
        // Two, and one of the legend.
        assert_eq!(picture.matches("class=\"cycle\"").count(), 3);
        // Five edges and three of the legend.
        assert_eq!(picture.matches("class=\"edge").count(), 8);
        assert_eq!(picture.matches("placeholder first").count(), 2);
    }
}
