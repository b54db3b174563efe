//! Source text as a syntax tree.

use std::path::Path;

use oxc::{allocator::Allocator, ast::ast::Program, parser::Parser, span::SourceType};

/// Reads the tree of a file; what cannot be parsed is an empty one.
pub(crate) fn parsed<T>(
    name: &str,
    text: &str,
    read: impl FnOnce(&Program<'_>) -> Option<T>,
) -> Option<T> {
    let allocator = Allocator::default();
    let kind = SourceType::from_path(Path::new(name)).unwrap_or_else(|_| SourceType::ts());
    read(&Parser::new(&allocator, text, kind).parse().program)
}
