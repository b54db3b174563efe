//! Places for boxes: every cycle is a block of its own, blocks stand in layers from those who refer
//! to those who are referred to.

use std::collections::BTreeSet;

use super::Drawing;

/// Width and height of a box; a long id makes all of them wider.
const BOX: (f64, f64) = (150.0, 64.0);
/// Width of a letter of an id, and the longest id that is written in full.
const LETTER: f64 = 8.6;
/// Ids longer than this are cut.
pub const LONGEST_ID: usize = 30;
/// Room between boxes of one block, and around them for the block's border.
const GAP: f64 = 70.0;
const BORDER: f64 = 26.0;
/// Room between blocks.
const BETWEEN: (f64, f64) = (120.0, 40.0);

/// Where everything stands; lengths in pixels, from the upper left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Upper left corner of every box.
    pub boxes: Vec<(f64, f64)>,
    /// Upper left corner, width and height around every cycle.
    pub cycles: Vec<(f64, f64, f64, f64)>,
    /// Width and height of a box.
    pub one: (f64, f64),
    /// Width and height of everything.
    pub size: (f64, f64),
}

struct Block {
    members: Vec<usize>,
    /// Of each member, inside the block.
    places: Vec<(f64, f64)>,
    size: (f64, f64),
    layer: usize,
}

/// Lays a drawing out. The same drawing always looks the same.
pub fn layout(drawing: &Drawing) -> Layout {
    let one = box_of(drawing);
    let mut blocks: Vec<Block> = drawing
        .cycles
        .iter()
        .map(|members| cycle(members, one))
        .collect();
    let alone = (0..drawing.nodes.len()).filter(|at| drawing.cycle_of(*at).is_none());
    blocks.extend(alone.map(|at| Block {
        members: vec![at],
        places: vec![(0.0, 0.0)],
        size: one,
        layer: 0,
    }));
    let mut block_of = vec![0; drawing.nodes.len()];
    for (at, block) in blocks.iter().enumerate() {
        for member in &block.members {
            block_of[*member] = at;
        }
    }
    let edges: BTreeSet<(usize, usize)> = drawing
        .edges
        .iter()
        .map(|edge| (block_of[edge.from], block_of[edge.to]))
        .filter(|(from, to)| from != to)
        .collect();
    rank(&mut blocks, &edges);
    place(drawing, &blocks, &edges, one)
}

fn box_of(drawing: &Drawing) -> (f64, f64) {
    let letters = drawing.nodes.iter().map(|node| node.id.chars().count());
    let longest = letters.max().unwrap_or(0).min(LONGEST_ID);
    (BOX.0.max(24.0 + longest as f64 * LETTER), BOX.1)
}

/// A cycle alone: one box, a pair side by side, more on a circle.
fn cycle(members: &[usize], one: (f64, f64)) -> Block {
    let count = members.len();
    let places: Vec<(f64, f64)> = match count {
        1 => vec![(0.0, 24.0)],
        2 => vec![(0.0, 0.0), (one.0 + GAP, 0.0)],
        _ => {
            let around = count as f64 * (one.0 + GAP * 1.6);
            let radius = (around / std::f64::consts::TAU).max(150.0);
            (0..count)
                .map(|at| {
                    let angle = std::f64::consts::TAU * at as f64 / count as f64
                        - std::f64::consts::FRAC_PI_2;
                    (
                        radius * (1.0 + angle.cos()),
                        radius * 0.75 * (1.0 + angle.sin()),
                    )
                })
                .collect()
        }
    };
    let right = places.iter().map(|place| place.0).fold(0.0, f64::max) + one.0;
    let bottom = places.iter().map(|place| place.1).fold(0.0, f64::max) + one.1;
    Block {
        members: members.to_vec(),
        places: places
            .into_iter()
            .map(|(x, y)| (x + BORDER, y + BORDER + 6.0))
            .collect(),
        size: (right + 2.0 * BORDER, bottom + 2.0 * BORDER + 6.0),
        layer: 0,
    }
}

/// Layer = longest way from a block nobody refers to. Blocks form no loop.
fn rank(blocks: &mut [Block], edges: &BTreeSet<(usize, usize)>) {
    let mut next = vec![Vec::new(); blocks.len()];
    let mut waiting = vec![0usize; blocks.len()];
    for (from, to) in edges {
        next[*from].push(*to);
        waiting[*to] += 1;
    }
    let mut ready: Vec<usize> = (0..blocks.len()).filter(|at| waiting[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &to in &next[at] {
            blocks[to].layer = blocks[to].layer.max(blocks[at].layer + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(to);
            }
        }
    }
}

fn place(
    drawing: &Drawing,
    blocks: &[Block],
    edges: &BTreeSet<(usize, usize)>,
    one: (f64, f64),
) -> Layout {
    let layers = blocks
        .iter()
        .map(|block| block.layer + 1)
        .max()
        .unwrap_or(0);
    let mut boxes = vec![(0.0, 0.0); drawing.nodes.len()];
    let mut cycles = vec![(0.0, 0.0, 0.0, 0.0); drawing.cycles.len()];
    let mut middle = vec![0.0; blocks.len()];
    let (mut x, mut height) = (20.0, 0.0_f64);
    for layer in 0..layers {
        let mut row: Vec<usize> = (0..blocks.len())
            .filter(|at| blocks[*at].layer == layer)
            .collect();
        // Near those who refer to it, so that lines cross little.
        let wish = |at: usize| {
            let from: Vec<f64> = edges
                .iter()
                .filter(|(_, to)| *to == at)
                .map(|(from, _)| middle[*from])
                .collect();
            if from.is_empty() {
                0.0
            } else {
                from.iter().sum::<f64>() / from.len() as f64
            }
        };
        row.sort_by(|a, b| wish(*a).total_cmp(&wish(*b)).then(a.cmp(b)));
        let mut y = 20.0;
        let width = row.iter().map(|at| blocks[*at].size.0).fold(0.0, f64::max);
        for at in row {
            let block = &blocks[at];
            let left = x + (width - block.size.0) / 2.0;
            for (member, (dx, dy)) in block.members.iter().zip(&block.places) {
                boxes[*member] = (left + dx, y + dy);
            }
            if let Some(cycle) = cycles.get_mut(at) {
                *cycle = (left, y, block.size.0, block.size.1);
            }
            middle[at] = y + block.size.1 / 2.0;
            y += block.size.1 + BETWEEN.1;
        }
        height = height.max(y - BETWEEN.1);
        x += width + BETWEEN.0;
    }
    Layout {
        boxes,
        cycles,
        one,
        size: ((x - BETWEEN.0 + 20.0).max(40.0), height + 20.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_do_not_overlap_and_lie_inside() {
        let laid = layout(&super::super::tests::sample());
        for (at, one) in laid.boxes.iter().enumerate() {
            assert!(one.0 + laid.one.0 <= laid.size.0 && one.1 + laid.one.1 <= laid.size.1);
            for other in &laid.boxes[at + 1..] {
                let apart =
                    (one.0 - other.0).abs() >= laid.one.0 || (one.1 - other.1).abs() >= laid.one.1;
                assert!(apart, "{one:?} {other:?}");
            }
        }
    }
}
