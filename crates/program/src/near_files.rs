//! Files that a path which leads nowhere may mean.

use std::path::{Path, PathBuf};

use crate::{
    nearest::{list, nearest},
    source::relative,
};

/// Folders deeper than this are not looked into.
const DEEPEST: usize = 4;
/// At most so many files are listed.
const MOST_LISTED: usize = 6;

/// What to do about a file of a project that is not there: the nearest name beside it, the same
/// name elsewhere, or what there is. `otherwise` when nothing is near.
pub(crate) fn advice(root: &Path, missing: &Path, otherwise: &str) -> String {
    let told = |file: &Path| format!("did you mean `{}`?", relative(root, file));
    if let Some(near) = beside(missing) {
        return told(&near);
    }
    if let Some(same) = missing
        .file_name()
        .and_then(|name| elsewhere(root, name, 0))
    {
        return told(&same);
    }
    let Some(folder) = missing.parent() else {
        return otherwise.to_owned();
    };
    let name = match relative(root, folder).as_str() {
        "" => "the project".to_owned(),
        name => format!("`{name}`"),
    };
    if !folder.is_dir() {
        return format!("there is no folder {name}; {otherwise}");
    }
    let code: Vec<String> = names(folder)
        .into_iter()
        .filter(|name| is_code(name))
        .collect();
    let code: Vec<&str> = code.iter().map(String::as_str).take(MOST_LISTED).collect();
    match code.is_empty() {
        true => otherwise.to_owned(),
        false => format!("{name} has {}; {otherwise}", list(&code)),
    }
}

/// A file of nearly the same name in the same folder.
fn beside(missing: &Path) -> Option<PathBuf> {
    let names = names(missing.parent()?);
    let wanted = missing.file_name()?.to_str()?;
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(missing.with_file_name(near))
}

/// A file of the same name in another folder of the project.
fn elsewhere(folder: &Path, wanted: &std::ffi::OsStr, depth: usize) -> Option<PathBuf> {
    let same = folder.join(wanted);
    if same.is_file() {
        return Some(same);
    }
    if depth == DEEPEST {
        return None;
    }
    names(folder)
        .iter()
        .filter(|name| !name.starts_with('.') && *name != "node_modules")
        .map(|name| folder.join(name))
        .filter(|path| path.is_dir())
        .find_map(|path| elsewhere(&path, wanted, depth + 1))
}

fn is_code(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    matches!(extension, Some("ts" | "tsx" | "mts" | "js" | "jsx" | "mjs"))
}

/// Names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}
