//! From places in the evaluated bundle back to the user's own source.

use std::{path::Path, sync::Arc};

use notation_model::Origin;

use crate::{
    bundle::{Bundle, MAIN_MARK},
    sdk,
    source::Sources,
};

/// The name under which a bundle is evaluated; it marks its frames in a stack.
pub(crate) const MODULE: &str = "program.js";

/// Maps places of one bundle. Built once per evaluation.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Ascending by `from`.
    tokens: Vec<Token>,
    /// Files of the project; `None` for files of the embedded packages.
    files: Vec<Option<Arc<str>>>,
}

/// One place of the bundle and where it comes from. Lines and columns from 0.
#[derive(Debug)]
struct Token {
    from: (u32, u32),
    source: u32,
    line: u32,
    column: u32,
}

impl Trace {
    /// Reads the map of a program, and keeps the texts that were bundled for showing them.
    pub fn of(bundle: &Bundle, sources: &Sources) -> Trace {
        Trace::named(bundle, sources, |name| name.to_owned())
    }

    /// Reads the map of worker code, whose main file goes by an alias.
    pub fn of_code(bundle: &Bundle, sources: &Sources, main: &Path) -> Trace {
        let main = sources.name_of(main);
        Trace::named(bundle, sources, |name| {
            if name.ends_with(MAIN_MARK) {
                main.clone()
            } else {
                name.to_owned()
            }
        })
    }

    fn named(bundle: &Bundle, sources: &Sources, real: impl Fn(&str) -> String) -> Trace {
        let tokens = bundle
            .map
            .get_tokens()
            .filter_map(|token| {
                Some(Token {
                    from: (token.get_dst_line(), token.get_dst_col()),
                    source: token.get_source_id()?,
                    line: token.get_src_line(),
                    column: token.get_src_col(),
                })
            })
            .collect();
        let files = bundle
            .map
            .get_sources()
            .zip(
                bundle
                    .map
                    .get_source_contents()
                    .chain(std::iter::repeat(None)),
            )
            .map(|(name, text)| {
                if name.contains(&sdk::PREFIX[1..]) {
                    return None;
                }
                let file = match text {
                    Some(text) => sources.add(&real(name), text.into()),
                    None => sources.get(&real(name))?,
                };
                Some(Arc::clone(&file.name))
            })
            .collect();
        Trace { tokens, files }
    }

    /// The places of a stack in the project's own files, innermost first. A caller is told at its
    /// call; the evaluator tells some word inside the call's arguments.
    pub fn frames(&self, stack: &str, sources: &Sources) -> Vec<Origin> {
        let mut found: Vec<Origin> = Vec::new();
        let mut callee = "";
        for frame in stack.lines() {
            let origin = position(frame)
                .and_then(|(line, column)| self.map(line, column, sources))
                .map(|origin| match found.is_empty() {
                    true => origin,
                    false => calling(origin, callee, sources),
                });
            found.extend(origin);
            callee = function(frame);
        }
        found
    }

    /// The innermost call of a stack that is written in the project's own files: the
    /// `new Worker(..)` or `a.bind(..)` that led into a package of ours.
    pub fn call(&self, stack: &str, sources: &Sources) -> Option<Origin> {
        let mut callee = "";
        for frame in stack.lines() {
            if let Some((line, column)) = position(frame)
                && let Some(origin) = self.map(line, column, sources)
            {
                return Some(calling(origin, callee, sources));
            }
            callee = function(frame);
        }
        None
    }

    /// A place of the bundle (from 0) in a file of the project.
    pub fn map(&self, line: u32, column: u32, sources: &Sources) -> Option<Origin> {
        let after = self
            .tokens
            .partition_point(|token| token.from <= (line, column));
        // A place before the first token of its line belongs to that token.
        let index = match after.checked_sub(1) {
            Some(before) if self.tokens[before].from.0 == line => before,
            _ if self.tokens.get(after)?.from.0 == line => after,
            _ => return None,
        };
        let token = &self.tokens[index];
        let name = self.files.get(token.source as usize)?.as_ref()?;
        let file = sources.get(name)?;
        Some(file.place(file.offset(token.line, token.column), 0).origin)
    }
}

/// The call of `callee` around a place; the place when there is none.
fn calling(origin: Origin, callee: &str, sources: &Sources) -> Origin {
    let Some(file) = sources.get(&origin.file) else {
        return origin;
    };
    match file.calls().calling(file.offset_of(&origin), callee) {
        Some(call) => file.place(call.at, 0).origin,
        None => origin,
    }
}

/// The function of one line of a stack.
fn function(frame: &str) -> &str {
    let name = frame.trim_start().strip_prefix("at ").unwrap_or("");
    name.split_once(" (").map_or("", |(name, _)| name)
}

/// Line and column (from 0) in the bundle of one line of a stack.
fn position(frame: &str) -> Option<(u32, u32)> {
    let (before, at) = frame.split_once(MODULE)?;
    if !before.ends_with(['(', ' ']) {
        return None;
    }
    let mut numbers = at
        .strip_prefix(':')?
        .split([':', ')'])
        .map_while(|part| part.parse::<u32>().ok());
    let line = numbers.next()?.checked_sub(1)?;
    Some((line, numbers.next().unwrap_or(1).saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_of_the_program_have_a_position() {
        assert_eq!(position("    at bind (program.js:9:22)"), Some((8, 21)));
        assert_eq!(position("    at program.js:1:1"), Some((0, 0)));
        assert_eq!(position("    at declare (eval_script:322:31)"), None);
        assert_eq!(position("    at map (native)"), None);
        assert_eq!(position("    at my_program.js (program.jsx:1:1)"), None);
    }
}
