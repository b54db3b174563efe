//! Pages about errors, from `docs/errors/`, laid into the binary.

/// Code and text of every page, by code.
pub const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

/// The page of a code.
pub fn page(code: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, text)| *text)
}
