//! Rooms inside a crate (`docs/ARCHITECTURE.md`, *Inside a crate*): no circle among them.
//!
//! A room is a module at the crate's root with everything below it. Its arrows are read from the
//! tokens of its files, so that none hides in a macro and none is seen in a text or a comment. A
//! name that the root lends from a room leads to that room; tests may name whatever they test.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs, io,
    path::Path,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources::rust_files;

/// Rooms that each room names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// One line for every circle, and for every arrow that leads to no room.
pub fn broken(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for room in fs::read_dir(root.join("crates"))? {
        let room = room?;
        let source = room.path().join("src");
        if source.exists() {
            let name = room.file_name().to_string_lossy().into_owned();
            let arrows = arrows(&source)?;
            found.extend(problems(&arrows).map(|problem| format!("{name}: {problem}")));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn arrows(source: &Path) -> io::Result<Arrows> {
    let mut modules = Vec::new();
    for file in rust_files(source)? {
        let below = file
            .strip_prefix(source)
            .unwrap_or(&file)
            .with_extension("");
        let path: Vec<_> = below
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .filter(|part| !["main", "lib", "mod"].contains(&part.as_str()))
            .collect();
        let tokens = fs::read_to_string(&file)?
            .parse::<TokenStream>()
            .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        modules.push((path, shipped(tokens)));
    }
    let mut only_tests = BTreeSet::new();
    for (path, shipped) in &modules {
        let below = |name: &String| [path.as_slice(), std::slice::from_ref(name)].concat();
        only_tests.extend(shipped.only_tests.iter().map(below));
    }
    let mut arrows = Arrows::new();
    let mut lent = BTreeMap::new();
    for (path, shipped) in modules {
        let is_test = (1..=path.len()).any(|length| only_tests.contains(&path[..length]));
        match path.first() {
            None => lent.extend(lent_by(shipped.tokens)),
            Some(_) if is_test => {}
            Some(room) => {
                let named = arrows.entry(room.clone()).or_default();
                named_at_root(shipped.tokens, path.len(), named);
            }
        }
    }
    let rooms: BTreeSet<_> = arrows.keys().cloned().collect();
    for (room, named) in &mut arrows {
        let behind = |name: String| match lent.get(&name) {
            Some(room) if !rooms.contains(&name) => room.clone(),
            _ => name,
        };
        *named = std::mem::take(named).into_iter().map(behind).collect();
        named.remove(room);
    }
    Ok(arrows)
}

/// A file without its tests, which may name what stands above.
struct Shipped {
    tokens: TokenStream,
    /// Modules in files of their own that are tests.
    only_tests: Vec<String>,
}

fn shipped(tokens: TokenStream) -> Shipped {
    let mut kept = Vec::new();
    let mut only_tests = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let is_test = matches!(&token, TokenTree::Group(group)
            if group.stream().to_string().replace(' ', "") == "cfg(test)");
        if !is_test {
            kept.push(token);
            continue;
        }
        // The `#` before it, and the item behind it up to its body or its end.
        kept.pop();
        let mut last = String::new();
        let mut is_module = false;
        for token in tokens.by_ref() {
            match token {
                TokenTree::Ident(word) => {
                    is_module |= last == "mod";
                    last = word.to_string();
                }
                TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => break,
                TokenTree::Punct(punct) if punct.as_char() == ';' => {
                    only_tests.extend(is_module.then_some(last));
                    break;
                }
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    Shipped {
        tokens: kept.into_iter().collect(),
        only_tests,
    }
}

/// The room behind each name that a root lends with `use room::Name` or `use room::{Name, ..}`.
fn lent_by(root: TokenStream) -> BTreeMap<String, String> {
    let mut lent = BTreeMap::new();
    let mut tokens = root.into_iter();
    while tokens.any(|token| matches!(&token, TokenTree::Ident(word) if word == "use")) {
        let mut words = Vec::new();
        for token in tokens.by_ref() {
            match token {
                TokenTree::Ident(word) => words.push(word.to_string()),
                TokenTree::Group(list) => words.extend(lasts(list.stream())),
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        if let [room, names @ ..] = &words[..] {
            lent.extend(names.iter().map(|name| (name.clone(), room.clone())));
        }
    }
    lent
}

/// The last word of each path of a list.
fn lasts(list: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut last = None;
    for token in list {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => found.extend(last.take()),
            TokenTree::Ident(word) => last = Some(word.to_string()),
            TokenTree::Group(inner) => found.extend(lasts(inner.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found.extend(last);
    found
}

/// The names behind `crate::`, and behind as many `super::` as lead to the root from a module at
/// this depth.
fn named_at_root(tokens: TokenStream, depth: usize, named: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let (mut before, mut steps) = (String::new(), 0);
    while let Some(token) = tokens.next() {
        let is_module = before == "mod";
        match token {
            TokenTree::Group(group) => named_at_root(group.stream(), depth, named),
            TokenTree::Ident(word) => {
                before = word.to_string();
                match before.as_str() {
                    "crate" => steps = depth,
                    "super" => steps += 1,
                    _ => steps = 0,
                }
                if is_module && let Some(TokenTree::Group(body)) = tokens.peek() {
                    named_at_root(body.stream(), depth + 1, named);
                    tokens.next();
                }
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                let second =
                    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == ':');
                if second {
                    tokens.next();
                    if steps == depth {
                        match tokens.peek() {
                            Some(TokenTree::Ident(name)) => {
                                if name != "super" {
                                    named.insert(name.to_string());
                                }
                            }
                            Some(TokenTree::Group(list)) => named.extend(firsts(list.stream())),
                            Some(_) | None => {}
                        }
                    }
                    continue;
                }
                steps = 0;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => steps = 0,
        }
        before.clear();
    }
}

/// The first word of each path of a list.
fn firsts(list: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut at_start = true;
    for token in list {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => at_start = true,
            TokenTree::Ident(word) if at_start => {
                found.push(word.to_string());
                at_start = false;
            }
            _ => at_start = false,
        }
    }
    found
}

fn problems(arrows: &Arrows) -> impl Iterator<Item = String> {
    let strange = arrows.iter().flat_map(|(room, named)| {
        let strange = named.iter().filter(|name| !arrows.contains_key(*name));
        strange.map(move |name| format!("{room} names crate::{name}, which is no room"))
    });
    let circles = arrows.keys().filter_map(|room| {
        let circle = circle(arrows, room)?;
        // Once, told from its first room.
        (circle.iter().min() == Some(&room.as_str()))
            .then(|| format!("a circle of rooms: {} -> {room}", circle.join(" -> ")))
    });
    strange.chain(circles)
}

/// The shortest way from a room back to it.
fn circle<'a>(arrows: &'a Arrows, room: &'a str) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([room]);
    while let Some(at) = next.pop_front() {
        for named in arrows.get(at).into_iter().flatten() {
            if named == room {
                let mut way = vec![at];
                while let Some(before) = from.get(way[way.len() - 1]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(named.as_str()) {
                from.insert(named, at);
                next.push_back(named);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, depth: usize) -> Vec<String> {
        let mut named = BTreeSet::new();
        named_at_root(text.parse().unwrap(), depth, &mut named);
        named.into_iter().collect()
    }

    fn arrows(table: &[(&str, &[&str])]) -> Arrows {
        let row = |(room, named): &(&str, &[&str])| {
            let named = named.iter().map(|name| (*name).to_owned());
            ((*room).to_owned(), named.collect())
        };
        table.iter().map(row).collect()
    }

    #[test]
    fn a_room_is_named_in_a_list_in_a_path_and_in_a_macro() {
        let text = "use crate::{a::{self, X}, b}; fn f() { m!(crate::c::g()); } // crate::d\n";
        assert_eq!(named(text, 1), ["a", "b", "c"]);
        assert_eq!(
            named("const T: &str = \"crate::e\";", 1),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn the_parent_of_a_room_is_the_root() {
        assert_eq!(named("use super::a;", 1), ["a"]);
        assert_eq!(named("use super::a;", 2), Vec::<&str>::new());
        assert_eq!(named("use super::super::{a, b::C};", 2), ["a", "b"]);
        assert_eq!(
            named("mod tests { use super::*; use super::super::a; }", 1),
            ["a"]
        );
    }

    #[test]
    fn a_name_that_the_root_lends_leads_to_its_room() {
        let root = "mod a; pub use a::{A, B as C}; use b::D; fn f() {}";
        let lent = lent_by(root.parse().unwrap());
        let lent: Vec<_> = lent
            .iter()
            .map(|(name, room)| (name.as_str(), room.as_str()))
            .collect();
        assert_eq!(lent, [("A", "a"), ("C", "a"), ("D", "b")]);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "mod a; #[cfg(test)] #[path = \"b.rs\"] mod b; fn f() {} #[cfg(test)] mod c { use crate::d; }";
        let shipped = shipped(text.parse().unwrap());
        assert_eq!(shipped.tokens.to_string(), "mod a ; fn f () { }");
        assert_eq!(shipped.only_tests, ["b"]);
    }

    #[test]
    fn a_circle_is_told_once_and_a_tree_is_none() {
        let tree = arrows(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
        assert_eq!(problems(&tree).collect::<Vec<_>>(), Vec::<String>::new());
        let circle = arrows(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"])]);
        assert_eq!(
            problems(&circle).collect::<Vec<_>>(),
            [
                "c names crate::d, which is no room",
                "a circle of rooms: a -> b -> c -> a"
            ]
        );
    }
}
