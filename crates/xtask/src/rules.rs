//! `docs/rules.md` names a test for every rule of the engine; every test that it names exists.

use std::{collections::BTreeSet, fs, io, path::Path};

use crate::sources::rust_files;

/// Every name in the tables of the page that is no test.
pub fn broken(root: &Path) -> io::Result<Vec<String>> {
    let page = match fs::read_to_string(root.join("docs/rules.md")) {
        Ok(page) => page,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut tests = BTreeSet::new();
    for folder in ["crates", "tests"] {
        let folder = root.join(folder);
        if folder.exists() {
            for file in rust_files(&folder)? {
                tests.extend(tests_in(&fs::read_to_string(file)?));
            }
        }
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        let named = named_in(line);
        if line.starts_with("| ") && !line.ends_with(" tests |") && !line.ends_with(" test |") {
            if named.is_empty() {
                found.push(format!("docs/rules.md:{number}: a rule without a test"));
            }
            let missing = named.iter().filter(|name| !tests.contains(**name));
            found.extend(missing.map(|name| format!("docs/rules.md:{number}: no test {name}")));
        }
    }
    Ok(found)
}

/// The names in the last cell of a row.
fn named_in(row: &str) -> Vec<&str> {
    let cell = row.trim_end_matches(['|', ' ']).rsplit(" | ").next();
    let pieces = cell.unwrap_or_default().split('`');
    pieces.skip(1).step_by(2).collect()
}

/// Functions that an attribute makes a test.
fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if is_test && !line.starts_with(['#', '/']) {
            is_test = false;
            let name = line
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split_once('('));
            found.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_tests_in_the_last_cell() {
        assert_eq!(named_in("| a `word` | `one`, `two` |"), ["one", "two"]);
        assert_eq!(named_in("| nothing | - |"), Vec::<&str>::new());
    }

    #[test]
    fn a_test_is_a_function_under_an_attribute() {
        let text = "#[test]\n#[cfg(unix)]\nfn one() {}\nfn two() {}\n    #[tokio::test]\n    async fn three() {}\n";
        assert_eq!(tests_in(text), ["one", "three"]);
    }
}
