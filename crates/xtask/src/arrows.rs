//! Which crate may name which (`docs/ARCHITECTURE.md`, *Arrows*).

use std::{io, path::Path};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// What one crate may name of ours, and what it must not name from outside.
struct Row {
    from: &'static str,
    may: &'static [&'static str],
    never: &'static [&'static str],
}

/// Crates that do IO or wait.
const ASYNC: &[&str] = &[
    "tokio",
    "futures",
    "async-trait",
    "hyper",
    "axum",
    "reqwest",
    "rusqlite",
];
/// Sources of time and randomness.
const CHANCE: &[&str] = &["rand", "getrandom", "jiff", "time", "chrono", "uuid"];

const TABLE: &[Row] = &[
    Row {
        from: "model",
        may: &[],
        never: ASYNC,
    },
    Row {
        from: "planner",
        may: &["model"],
        never: ASYNC,
    },
    Row {
        from: "provider",
        may: &["model"],
        never: &["tokio", "hyper", "axum", "reqwest", "rusqlite"],
    },
    Row {
        from: "state",
        may: &["model"],
        never: &["axum", "hyper", "reqwest"],
    },
    Row {
        from: "engine",
        may: &["planner", "provider", "state", "model"],
        never: &["axum", "hyper", "reqwest", "rusqlite"],
    },
    Row {
        from: "program",
        may: &["model"],
        never: &["axum", "hyper", "reqwest", "rusqlite"],
    },
    Row {
        from: "provider-edge",
        may: &["provider", "model", "edge-api", "edge"],
        never: &["axum", "rusqlite"],
    },
    Row {
        from: "provider-sim",
        may: &["provider", "model"],
        never: &["axum", "reqwest", "hyper"],
    },
    Row {
        from: "edge",
        may: &[],
        never: ASYNC,
    },
    Row {
        from: "edge-api",
        may: &[],
        never: &["tokio", "axum", "rusqlite"],
    },
    Row {
        from: "host",
        may: &["edge", "edge-api"],
        never: &["rolldown", "rquickjs"],
    },
    Row {
        from: "runtime",
        may: &["edge"],
        never: &["rolldown", "rquickjs"],
    },
];

/// Crates that live in one room each.
const ROOMS: &[(&str, &[&str])] = &[
    ("rolldown", &["program"]),
    ("rquickjs", &["program"]),
    ("oxc", &["program"]),
    ("axum", &["host", "runtime"]),
    ("rusqlite", &["state", "host", "runtime"]),
];

/// Every forbidden arrow of the workspace at `root`, one line each.
pub fn broken(root: &Path) -> io::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(io::Error::other)?;
    Ok(metadata.packages.iter().flat_map(broken_of).collect())
}

fn broken_of(package: &Package) -> Vec<String> {
    let Some(room) = package.name.strip_prefix("notation-") else {
        return Vec::new();
    };
    let named: Vec<&str> = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let mut found = Vec::new();
    if let Some(row) = TABLE.iter().find(|row| row.from == room) {
        for name in &named {
            let ours = name.strip_prefix("notation-");
            if ours.is_some_and(|ours| !row.may.contains(&ours)) || row.never.contains(name) {
                found.push(format!("{room} must not name {name}"));
            }
        }
        if room == "planner" || room == "edge" {
            let chance = named.iter().filter(|name| CHANCE.contains(name));
            found.extend(chance.map(|name| {
                format!("{room} must not name {name}: it has no clock and no randomness")
            }));
        }
    } else if room != "cli" {
        found.push(format!(
            "{room} is not in the table of arrows; add it to the table and to docs/ARCHITECTURE.md"
        ));
    }
    for (heavy, rooms) in ROOMS {
        if named.contains(heavy) && !rooms.contains(&room) {
            found.push(format!(
                "{room} must not name {heavy}; it lives in {}",
                rooms.join(", ")
            ));
        }
    }
    found
}
