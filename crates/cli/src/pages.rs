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

/// Codes and pages that go by this name in some area: `no_stage` is `usage::no_stage`.
pub fn without_area(name: &str) -> Vec<(&'static str, &'static str)> {
    let named = |code: &str| code.split_once("::").is_some_and(|(_, own)| own == name);
    PAGES
        .iter()
        .filter(|(code, _)| named(code))
        .copied()
        .collect()
}
