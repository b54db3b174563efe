//! From places in the evaluated bundle back to the user's own source.

use std::{path::Path, sync::Arc};

use notation_model::Origin;

use crate::{
    bundle::{Bundle, MAIN_MARK}, sdk, source::Sources};

/// The name under which a bundle is evaluated; it marks its frames in a stack.
pub(crate) const MODULE: &str = "program.js";

/// Maps places of one bundle. Built once per evaluation.
#[derive(Debug)]
pub(crate) struct Trace {
    /// (line, column) in the bundle, from 0, ascending; (source, line, column) from 0.
    tokens: Vec<((u32, u32), (u32, u32, u32))>,
    /// Files of the project; `None` for files of the embedded packages.
    files: Vec<Option<Arc<str>>>,
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
            if name.ends_with(MAIN_MARK) { main.clone() } else { name.to_owned() }
        })
    }

    fn named(bundle: &Bundle, sources: &Sources, real: impl Fn(&str) -> String) -> Trace {
        let tokens = bundle
            .map
            .get_tokens()
            .filter_map(|token| {
                let from = (token.get_dst_line(), token.get_dst_col());
                let to = (
                    token.get_source_id()?,
                    token.get_src_line(),
                    token.get_src_col(),
                );
                Some((from, to))
            })
            .collect();
        let files = bundle
            .map
            .get_sources()
            .zip(bundle.map.get_source_contents())
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

    /// The places of a stack in the project's own files, innermost first.
    pub fn frames(&self, stack: &str, sources: &Sources) -> Vec<Origin> {
        stack
            .lines()
            .filter_map(|line| {
                let (_, at) = line.split_once(&format!("{MODULE}:"))?;
                let mut numbers = at.split([':', ')']).map_while(|part| part.parse::<u32>().ok());
                let line = numbers.next()?.checked_sub(1)?;
                let column = numbers.next().unwrap_or(1).saturating_sub(1);
                self.map(line, column, sources)
            })
            .collect()
    }

    /// The innermost place of a stack in the project's own files.
    pub fn first(&self, stack: &str, sources: &Sources) -> Option<Origin> {
        self.frames(stack, sources).into_iter().next()
    }

    /// A place of the bundle (from 0) in a file of the project.
    pub fn map(&self, line: u32, column: u32, sources: &Sources) -> Option<Origin> {
        let after = self
            .tokens
            .partition_point(|(from, _)| *from <= (line, column));
        // A place before the first token of its line belongs to that token.
        let index = match after.checked_sub(1) {
            Some(before) if self.tokens[before].0.0 == line => before,
            _ if self.tokens.get(after)?.0.0 == line => after,
            _ => return None,
        };
        let (source, line, column) = self.tokens[index].1;
        let name = self.files.get(source as usize)?.as_ref()?;
        let file = sources.get(name)?;
        Some(file.place(file.offset(line, column), 0).origin)
    }
}
