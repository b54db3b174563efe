//! Random programs and what may happen between two deploys.

use super::{Dice, program::program};

/// One resource of a random program.
#[derive(Debug, Clone)]
pub struct Piece {
    pub id: char,
    pub words: Vec<String>,
}

/// A program as text that can be edited.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    pub pieces: Vec<Piece>,
}

impl std::fmt::Display for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, piece) in self.pieces.iter().enumerate() {
            let lead = if index > 0 { "; " } else { "" };
            write!(f, "{lead}{} {}", piece.id, piece.words.join(" "))?;
        }
        Ok(())
    }
}

/// A program of at most `most` resources.
pub fn sketch(dice: &mut Dice, most: usize) -> Sketch {
    let count = 1 + dice.roll(most);
    let mut ids: Vec<char> = ('a'..='z').take(count).collect();
    if dice.one_in(3) {
        for at in (1..ids.len()).rev() {
            ids.swap(at, dice.roll(at + 1));
        }
    }
    let pieces = (0..count).map(|at| piece(dice, &ids, at)).collect();
    drop_dangling(Sketch { pieces })
}

fn piece(dice: &mut Dice, ids: &[char], at: usize) -> Piece {
    let ty = ["W", "W", "W", "W", "W", "W", "T", "T", "S", "P", "G", "F"][dice.roll(12)];
    let mut words = vec![ty.to_owned()];
    if dice.one_in(3) {
        words.push("fixed".to_owned());
    }
    if ty != "T" && ty != "F" && dice.one_in(2) {
        words.push(format!("region={}", dice.roll(2)));
    }
    if dice.one_in(12) {
        words.push("never".to_owned());
    }
    let earlier = &ids[..at];
    let pick = |dice: &mut Dice, from: &[char]| from[dice.roll(from.len())];
    if !earlier.is_empty() {
        if "WSPG".contains(ty) && dice.one_in(4) {
            words.push(format!("={}", pick(dice, earlier)));
        }
        if ty == "T" && dice.one_in(2) {
            words.push(format!("parent<{}", pick(dice, earlier)));
        }
        if "TF".contains(ty) && dice.one_in(3) {
            let field = ["", ".id", ".arn"][dice.roll(3)];
            words.push(format!("value<{}{field}", pick(dice, earlier)));
        }
        if "WSPG".contains(ty) && dice.one_in(5) {
            let field = ["", ".id", ".arn", ".code"][dice.roll(4)];
            words.push(format!("code<{}{field}", pick(dice, earlier)));
        }
    }
    if "WSPG".contains(ty) {
        for _ in 0..dice.roll(4) {
            words.push(format!(">{}", pick(dice, ids)));
        }
        if ty == "S" && !words.iter().any(|word| word.starts_with(['>', '='])) {
            words.push(format!(">{}", pick(dice, ids)));
        }
    }
    if dice.one_in(5) {
        words.push(format!("@{}", pick(dice, ids)));
    }
    let id = ids[at];
    Piece { id, words }
}

/// What somebody deploys next: mostly the program with changes, else another one.
pub fn next(dice: &mut Dice, before: &Sketch, most: usize) -> Sketch {
    if dice.one_in(3) || before.pieces.is_empty() {
        sketch(dice, most)
    } else {
        edit(dice, before, most)
    }
}

/// The program with one or two random changes.
pub fn edit(dice: &mut Dice, sketch: &Sketch, most: usize) -> Sketch {
    let mut edited = sketch.clone();
    for _ in 0..1 + dice.roll(3) {
        let ids: Vec<char> = edited.pieces.iter().map(|piece| piece.id).collect();
        if ids.is_empty() {
            return self::sketch(dice, most);
        }
        let at = dice.roll(ids.len());
        match dice.roll(6) {
            0 => {
                edited.pieces.remove(at);
            }
            1 if ids.len() < most => {
                let free = ('a'..='z')
                    .find(|id| !ids.contains(id))
                    .expect("26 letters");
                let mut with: Vec<char> = ids.clone();
                with.push(free);
                let added = piece(dice, &with, ids.len());
                edited.pieces.push(added);
            }
            2 => {
                let words = &mut edited.pieces[at].words;
                match words.iter().position(|word| word.starts_with("region=")) {
                    Some(region) => words[region] = format!("region={}", dice.roll(4)),
                    None if !"TF".contains(words[0].as_str()) => words.push("region=9".to_owned()),
                    None => {
                        words.retain(|word| !word.starts_with("value"));
                        words.push(format!("value={}", dice.roll(3)));
                    }
                }
            }
            3 => edited.pieces[at] = piece(dice, &ids, at),
            4 => {
                let Piece { id, words } = &mut edited.pieces[at];
                let is_name = |word: &String| word == "fixed" || word.starts_with("Name=");
                let other = format!("Name={id}{}", dice.roll(3));
                match words.iter().position(is_name) {
                    Some(name) if dice.one_in(3) => words[name] = other,
                    Some(name) => {
                        words.remove(name);
                    }
                    None if dice.one_in(3) => words.push(other),
                    None => words.push("fixed".to_owned()),
                }
            }
            _ => {
                let words = &mut edited.pieces[at].words;
                let edge = words.iter().position(|word| word.starts_with(['>', '@']));
                match edge {
                    Some(edge) => {
                        words.remove(edge);
                    }
                    None => words.push(format!("@{}", ids[dice.roll(ids.len())])),
                }
            }
        }
        edited = drop_dangling(edited);
    }
    edited
}

/// Takes out references to what is not declared, and config references to what comes later. What is
/// read is an output of its type.
fn drop_dangling(mut sketch: Sketch) -> Sketch {
    let ids: Vec<char> = sketch.pieces.iter().map(|piece| piece.id).collect();
    let things = sketch.pieces.iter();
    let things = things.filter(|piece| "TF".contains(piece.words[0].as_str()));
    let things: Vec<char> = things.map(|piece| piece.id).collect();
    for (at, piece) in sketch.pieces.iter_mut().enumerate() {
        for word in &mut piece.words {
            if let Some((source, field)) = word.rsplit_once('.') {
                let thing = source.ends_with(things.as_slice());
                let field = match (thing, field) {
                    (true, _) => "id",
                    (false, "id") => "arn",
                    (false, field) => field,
                };
                *word = format!("{source}.{field}");
            }
        }
        let strict = piece.words[0] == "S";
        piece.words.retain(|word| {
            let target = |mark: &str| {
                word.split_once(mark)
                    .filter(|(_, target)| target.len() == 1 || target.contains('.'))
                    .and_then(|(_, target)| target.chars().next())
            };
            let anywhere = target(">").or(target("@"));
            let in_config = target("<").or_else(|| target("=").filter(|_| word.starts_with('=')));
            match (anywhere, in_config) {
                (Some(target), _) => ids.contains(&target),
                (None, Some(target)) => ids[..at].contains(&target),
                (None, None) => true,
            }
        });
        if strict && !piece.words.iter().any(|word| word.starts_with(['>', '='])) {
            piece.words.push(format!(">{}", piece.id));
        }
    }
    sketch
}

/// Whether `engine.md` §2 accepts the program, found without the planner.
pub fn is_deployable(text: &str) -> bool {
    let graph = program(text);
    let types = super::types();
    let count = graph.resources.len();
    let mut reach = vec![vec![false; count]; count];
    for (from, resource) in graph.resources.values().enumerate() {
        let ty = types.get(&resource.ty).expect("a known type");
        let bare = resource.cannot_be_bare(ty).is_none();
        for edge in resource.edges() {
            let to = graph
                .resources
                .get_index_of(edge.to)
                .expect("it is declared");
            if matches!(edge.via, notation_model::Via::Config(_)) || !bare {
                reach[from][to] = true;
            }
        }
    }
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                reach[from][to] |= reach[from][via] && reach[via][to];
            }
        }
    }
    (0..count).all(|node| !reach[node][node])
}
