//! Source files of a project, and places in them.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use miette::{LabeledSpan, NamedSource};
use notation_model::Origin;
use oxc::span::Span;

use crate::call_index::CallIndex;

/// One file as it was read.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the project, with `/`.
    pub name: Arc<str>,
    pub text: Arc<str>,
    /// Start of every line, in bytes.
    lines: Vec<usize>,
    calls: OnceLock<CallIndex>,
}

/// A stretch of a source file.
#[derive(Debug, Clone)]
pub struct Place {
    /// File (relative to the project), line and column of its start.
    pub origin: Origin,
    /// Length in bytes; 0 when only the start is known.
    pub length: usize,
    /// What to write under it, if anything.
    pub label: Option<String>,
    /// Start in bytes from the start of the file.
    pub(crate) offset: usize,
    pub(crate) source: Arc<SourceFile>,
}

/// Source files of a project by name, read when first asked for. Shared, so that two worker
/// bundles can be made at the same time.
#[derive(Debug)]
pub(crate) struct Sources {
    root: PathBuf,
    files: Mutex<BTreeMap<Arc<str>, Arc<SourceFile>>>,
}

impl Place {
    /// The whole text of the file, for showing the place in it.
    pub fn text(&self) -> &Arc<str> {
        &self.source.text
    }

    /// Start of the stretch in bytes from the start of the file.
    pub fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn with_label(mut self, label: impl Into<String>) -> Place {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn named_source(&self) -> NamedSource<Arc<str>> {
        NamedSource::new(&self.source.name, Arc::clone(&self.source.text))
            .with_language("TypeScript")
    }

    pub(crate) fn span(&self, text: Option<String>) -> LabeledSpan {
        LabeledSpan::new(text, self.offset, self.length)
    }
}

impl SourceFile {
    /// A file of that name with that text.
    pub fn new(name: Arc<str>, text: Arc<str>) -> SourceFile {
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        SourceFile {
            name,
            text,
            lines,
            calls: OnceLock::new(),
        }
    }

    /// Byte offset of a line (from 0) and a column (from 0, in UTF-16 units as in source maps).
    pub fn offset(&self, line: u32, column: u32) -> usize {
        let Some(&start) = self.lines.get(line as usize) else {
            return self.text.len();
        };
        let end = self
            .lines
            .get(line as usize + 1)
            .copied()
            .unwrap_or(self.text.len());
        let mut units = 0;
        for (at, c) in self.text[start..end].char_indices() {
            if units >= column as usize {
                return start + at;
            }
            units += c.len_utf16();
        }
        end
    }

    /// The place of a stretch of bytes.
    pub fn place(self: &Arc<SourceFile>, offset: usize, length: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.lines.partition_point(|&start| start <= offset) - 1;
        let column = self.text[self.lines[line]..offset].chars().count();
        Place {
            origin: Origin {
                file: Arc::clone(&self.name),
                line: line as u32 + 1,
                column: column as u32 + 1,
            },
            length: length.min(self.text.len() - offset),
            label: None,
            offset,
            source: Arc::clone(self),
        }
    }

    /// The place of a syntax node.
    pub fn span(self: &Arc<SourceFile>, span: Span) -> Place {
        self.place(span.start as usize, span.size() as usize)
    }

    /// The place of the word or quoted text that starts here; one character for anything else.
    pub fn word(self: &Arc<SourceFile>, offset: usize) -> Place {
        let rest = self.text.get(offset..).unwrap_or("");
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => rest[1..].find(quote).map_or(1, |at| at + 2),
            Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            Some(c) => c.len_utf8(),
            None => 0,
        };
        self.place(offset, length)
    }

    /// The place of a range of bytes.
    pub fn range(self: &Arc<SourceFile>, range: Range<usize>) -> Place {
        self.place(range.start, range.len())
    }

    /// Its calls, read when first asked for.
    pub fn calls(&self) -> &CallIndex {
        self.calls
            .get_or_init(|| CallIndex::of(&self.name, &self.text))
    }

    /// Byte offset of a place that only knows line and column.
    pub fn offset_of(&self, origin: &Origin) -> usize {
        let line = origin.line.saturating_sub(1) as usize;
        let Some(&start) = self.lines.get(line) else {
            return self.text.len();
        };
        self.text[start..]
            .char_indices()
            .nth(origin.column.saturating_sub(1) as usize)
            .map_or(self.text.len(), |(at, _)| start + at)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

impl Sources {
    pub fn of(root: &Path) -> Sources {
        Sources {
            root: root.to_owned(),
            files: Mutex::default(),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of that name (relative to the project); `None` when it cannot be read.
    pub fn get(&self, name: &str) -> Option<Arc<SourceFile>> {
        if let Some(file) = self.locked().get(name) {
            return Some(Arc::clone(file));
        }
        let text = fs::read_to_string(self.root.join(name)).ok()?;
        Some(self.add(name, text.into()))
    }

    /// Keeps a text that was read elsewhere, so that it is shown as it was then.
    pub fn add(&self, name: &str, text: Arc<str>) -> Arc<SourceFile> {
        let name: Arc<str> = name.into();
        let file = Arc::new(SourceFile::new(Arc::clone(&name), text));
        self.locked().entry(name).or_insert(file).clone()
    }

    /// The place of an origin, as a word.
    pub fn place(&self, origin: &Origin) -> Option<Place> {
        let file = self.get(&origin.file)?;
        let offset = file.offset_of(origin);
        Some(file.word(offset))
    }

    /// Every file read so far, by name.
    pub fn texts(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.locked()
            .iter()
            .map(|(name, file)| (Arc::clone(name), Arc::clone(&file.text)))
            .collect()
    }

    /// A path as people see it: relative to the project, with `/`.
    pub fn name_of(&self, path: &Path) -> String {
        relative(&self.root, path)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, Arc<SourceFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `path` as seen from `base`, with `/` and with `..` where it lies outside.
pub(crate) fn relative(base: &Path, path: &Path) -> String {
    let path = normal(path);
    let mut base_parts = base.components().peekable();
    let mut parts = path.components().peekable();
    while let (Some(a), Some(b)) = (base_parts.peek(), parts.peek()) {
        if a != b {
            break;
        }
        base_parts.next();
        parts.next();
    }
    let ups = base_parts.map(|_| "..".to_owned());
    let downs = parts.map(|part| part.as_os_str().to_string_lossy().into_owned());
    ups.chain(downs).collect::<Vec<_>>().join("/")
}

/// Without `.` and `..`, as far as the text alone can tell.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => {
                out.push(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_is_told_with_dots() {
        let base = Path::new("/a/b");
        assert_eq!(relative(base, Path::new("/a/b/c/d.ts")), "c/d.ts");
        assert_eq!(relative(base, Path::new("/a/b/../x.ts")), "../x.ts");
    }

    #[test]
    fn a_place_counts_lines_and_columns_from_one() {
        let sources = Sources::of(Path::new("/nowhere"));
        let file = sources.add("x.ts", "one\nzwei drei\n".into());
        let place = file.word(file.offset(1, 5));
        assert_eq!(place.origin.to_string(), "x.ts:2:6");
        assert_eq!(place.length, 4);
        assert_eq!(file.offset_of(&place.origin), place.offset);
    }
}
