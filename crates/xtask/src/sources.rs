//! What must not stand in sources, and which pages must exist.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A text that is banned outside some files, with what to use instead.
struct Ban {
    text: &'static str,
    /// Rooms that are searched; empty means all.
    rooms: &'static [&'static str],
    /// Files (relative to `crates/`) or rooms where it may stand.
    except: &'static [&'static str],
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        text: "println!(",
        rooms: &[],
        except: &["cli/", "xtask/"],
        instead: "hand the text to the cli",
    },
    Ban {
        text: "SystemTime::now(",
        rooms: &[],
        except: &[
            "xtask/",
            "engine/src/clock.rs",
            "host/src/clock.rs",
            "runtime/src/clock.rs",
            "cli/src/clock.rs",
        ],
        instead: "take a Clock",
    },
    Ban {
        text: "HashMap",
        rooms: &["planner/", "edge/"],
        except: &[],
        instead: "use an ordered map",
    },
    Ban {
        text: "HashSet",
        rooms: &["planner/", "edge/"],
        except: &[],
        instead: "use an ordered set",
    },
];

/// Every banned text in library sources, and every error code without a page.
pub fn broken(root: &Path) -> io::Result<Vec<String>> {
    let crates = root.join("crates");
    let mut found = Vec::new();
    for path in rust_files(&crates)? {
        let name = path
            .strip_prefix(&crates)
            .unwrap_or(&path)
            .to_string_lossy()
            .replace('\\', "/");
        if !name.contains("/src/") || name.contains("/tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        found.extend(banned(&name, shipped));
        found.extend(codes(shipped).filter_map(|code| {
            let page = root
                .join("docs/errors")
                .join(format!("{}.md", code.replace("::", "-")));
            (!page.exists())
                .then(|| format!("{name}: error code {code} has no page {}", page.display()))
        }));
    }
    Ok(found)
}

fn banned(name: &str, text: &str) -> Vec<String> {
    let bans = BANS.iter().filter(|ban| {
        let searched = ban.rooms.is_empty() || ban.rooms.iter().any(|room| name.starts_with(room));
        searched && !ban.except.iter().any(|place| name.starts_with(place))
    });
    let lines = |ban: &'static Ban| {
        text.lines().enumerate().filter(move |(_, line)| {
            let code = line.split("//").next().unwrap_or_default();
            code.contains(ban.text)
        })
    };
    bans.flat_map(|ban| {
        lines(ban).map(move |(at, _)| {
            format!(
                "crates/{name}:{}: {} is banned; {}",
                at + 1,
                ban.text,
                ban.instead
            )
        })
    })
    .collect()
}

/// Error codes in a source: string literals of the form `room::what_happened`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    text.split('"').filter(move |literal| {
        literal
            .split_once("::")
            .is_some_and(|(room, what)| room != "std" && word(room) && word(what))
    })
}

pub(crate) fn rust_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("fixtures") {
                found.extend(rust_files(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_is_banned_outside_the_cli_only() {
        let text = "fn f() { println!(\"x\"); }";
        assert_eq!(banned("engine/src/run.rs", text).len(), 1);
        assert_eq!(banned("cli/src/main.rs", text), Vec::<String>::new());
    }

    #[test]
    fn a_hash_map_is_banned_in_the_pure_rooms_only() {
        assert_eq!(
            banned("planner/src/plan.rs", "use std::collections::HashMap;").len(),
            1
        );
        assert_eq!(
            banned("host/src/store.rs", "use std::collections::HashMap;"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn error_codes_are_found_in_literals() {
        let text = "code(\"plan::unbreakable_loop\") \"std::io\" \"plan::Not\"";
        assert_eq!(codes(text).collect::<Vec<_>>(), ["plan::unbreakable_loop"]);
    }
}
