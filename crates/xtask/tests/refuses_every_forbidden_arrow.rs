//! Draws each forbidden arrow in a copy of the manifests and expects `tidy` to name it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where it fails and says what it measured"
)]

use std::{fs, path::Path, process::Command};

const ROOMS: [&str; 12] = [
    "model",
    "planner",
    "provider",
    "state",
    "engine",
    "program",
    "provider-edge",
    "provider-sim",
    "edge",
    "edge-api",
    "host",
    "runtime",
];

/// `(from, allowed)`: the table of `docs/ARCHITECTURE.md`, written down a second time on purpose.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("model", &[]),
    ("planner", &["model"]),
    ("provider", &["model"]),
    ("state", &["model"]),
    ("engine", &["planner", "provider", "state", "model"]),
    ("program", &["model"]),
    ("provider-edge", &["provider", "model", "edge-api", "edge"]),
    ("provider-sim", &["provider", "model"]),
    ("edge", &[]),
    ("edge-api", &[]),
    ("host", &["edge", "edge-api"]),
    ("runtime", &["edge"]),
];

/// Makes a workspace whose crates are empty and have the given dependency lines.
fn workspace(folder: &Path, extra: &[(&str, String)]) {
    fs::create_dir_all(folder.join("docs/errors")).unwrap();
    fs::write(
        folder.join("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
    )
    .unwrap();
    for room in ROOMS {
        let home = folder.join("crates").join(room);
        fs::create_dir_all(home.join("src")).unwrap();
        fs::write(home.join("src/lib.rs"), "").unwrap();
        let lines: String = extra
            .iter()
            .filter(|(from, _)| *from == room)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        let manifest = format!(
            "[package]\nname = \"notation-{room}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n{lines}"
        );
        fs::write(home.join("Cargo.toml"), manifest).unwrap();
    }
}

fn tidy(folder: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("tidy")
        .arg("--root")
        .arg(folder)
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_workspace_without_arrows_is_tidy() {
    let folder = tempfile::tempdir().unwrap();
    workspace(folder.path(), &[]);
    let (ok, said) = tidy(folder.path());
    assert!(ok, "{said}");
}

#[test]
fn every_arrow_between_rooms_that_is_not_in_the_table_is_refused() {
    for (from, allowed) in ALLOWED {
        let others: Vec<&str> = ROOMS.into_iter().filter(|to| *to != from).collect();
        let lines: Vec<(&str, String)> = others
            .iter()
            .map(|to| (from, format!("notation-{to} = {{ path = \"../{to}\" }}")))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        workspace(folder.path(), &lines);
        let (ok, said) = tidy(folder.path());
        for to in others {
            let named = said
                .lines()
                .any(|line| line == format!("tidy: {from} must not name notation-{to}"));
            assert_eq!(named, !allowed.contains(&to), "{from} -> {to}\n{said}");
        }
        assert!(!ok);
    }
}

#[test]
fn a_crate_from_outside_in_the_wrong_room_is_refused() {
    let cases = [
        ("model", "tokio"),
        ("planner", "tokio"),
        ("planner", "rusqlite"),
        ("planner", "rand"),
        ("provider", "tokio"),
        ("edge", "tokio"),
        ("edge", "axum"),
        ("edge", "rusqlite"),
        ("engine", "rolldown"),
        ("host", "rquickjs"),
        ("engine", "axum"),
        ("program", "rusqlite"),
        ("provider-sim", "axum"),
        ("runtime", "oxc"),
    ];
    for (from, name) in cases {
        let folder = tempfile::tempdir().unwrap();
        workspace(folder.path(), &[(from, format!("{name} = \"*\""))]);
        let (ok, said) = tidy(folder.path());
        assert!(
            !ok && said.contains(&format!("{from} must not name {name}")),
            "{from} -> {name}\n{said}"
        );
    }
}

#[test]
fn a_banned_text_and_a_missing_page_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    workspace(folder.path(), &[]);
    let source = folder.path().join("crates/planner/src/lib.rs");
    fs::write(&source, "use std::collections::HashMap;\nfn f() { println!(\"x\"); SystemTime::now(); }\nconst C: &str = \"plan::no_page\";\n").unwrap();
    let (ok, said) = tidy(folder.path());
    assert!(!ok);
    for text in [
        "HashMap is banned",
        "println!( is banned",
        "SystemTime::now( is banned",
        "plan::no_page has no page",
    ] {
        assert!(said.contains(text), "{text}\n{said}");
    }
}

#[test]
fn a_circle_of_rooms_is_refused_in_every_crate() {
    for room in ROOMS {
        let folder = tempfile::tempdir().unwrap();
        workspace(folder.path(), &[]);
        let source = folder.path().join("crates").join(room).join("src");
        let files = [
            (
                "lib.rs",
                "mod a;\nmod b;\npub use b::B;\n#[cfg(test)]\nmod t;\n",
            ),
            (
                "a.rs",
                "use crate::B;\n#[cfg(test)]\nmod tests { use crate::t; }\n",
            ),
            ("b.rs", "pub struct B;\n"),
            ("t.rs", "use crate::{a, b};\n"),
        ];
        for (name, text) in files {
            fs::write(source.join(name), text).unwrap();
        }
        let (ok, said) = tidy(folder.path());
        assert!(ok, "{said}");
        fs::write(source.join("b.rs"), "pub struct B;\nuse super::a;\n").unwrap();
        let (ok, said) = tidy(folder.path());
        assert!(!ok);
        let line = format!("tidy: {room}: a circle of rooms: a -> b -> a");
        assert!(said.lines().any(|said| said == line), "{said}");
    }
}
