//! Bad luck: each gives an error that says what, where and what to do, and loses nothing.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where it fails and says what it measured"
)]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use support::{Project, ran};

const ONE: &str =
    "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n";

#[test]
fn a_syntax_error_is_shown_in_its_own_file_and_line() {
    let shop = Project::new();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} );\n",
    );
    shop.deploy().exits(1).says("infra/main.ts:2");
}

#[test]
fn an_import_that_does_not_exist_is_named_with_its_place() {
    let shop = Project::new();
    shop.program("\nimport { x } from \"./missing\";\nexport const y = x;\n");
    shop.deploy()
        .exits(1)
        .says("./missing")
        .says("infra/main.ts:2");
}

#[test]
fn an_exception_carries_its_line_in_the_users_file() {
    let shop = Project::new();
    shop.write("infra/lib.ts", "interface Shape { x: number }\n\nexport function explode(shape: Shape): never {\n  throw new Error(`no luck with ${shape.x}`);\n}\n");
    shop.program("import { explode } from \"./lib\";\nexplode({ x: 1 });\n");
    shop.deploy()
        .exits(1)
        .says("no luck with 1")
        .says("infra/lib.ts:4");
}

#[test]
fn an_endless_program_is_stopped() {
    let shop = Project::new();
    shop.program("while (true) {}\n");
    shop.run(&["check", "main"]).exits(1).says("infra/main.ts");
    shop.program("const all: string[] = [];\nwhile (true) all.push(\"x\".repeat(1 << 20));\n");
    shop.run(&["check", "main"]).exits(1).says("memory");
}

#[test]
fn a_program_that_asks_for_the_clock_or_chance_is_told_why_not() {
    for text in [
        "export const t = Date.now();\n",
        "export const r = Math.random();\n",
        "export const p = process.env.HOME;\n",
    ] {
        let shop = Project::new();
        shop.program(text);
        shop.run(&["check", "main"])
            .exits(1)
            .says("infra/main.ts:1");
    }
}

#[test]
fn a_state_write_that_fails_is_an_error_and_loses_nothing() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    let program: String = (0..400)
        .map(|i| {
            format!(
                "new Thing({{ id: \"t{i}\", config: {{ value: \"{}\" }} }});\n",
                "x".repeat(2000)
            )
        })
        .collect();
    shop.program(&format!("import {{ Thing, Worker }} from \"@notation/sim\";\nnew Worker({{ id: \"a\", config: {{}} }});\n{program}"));
    // 512-byte blocks: enough for what is there, not for what comes.
    let mut command = Command::new("bash");
    command.arg("-c").arg(format!(
        "ulimit -f 600; exec '{}' deploy main --stage dev --yes",
        env!("CARGO_BIN_EXE_notation")
    ));
    command
        .current_dir(shop.path())
        .env("NOTATION_SIM_DIR", shop.cloud())
        .env("NOTATION_KEY_FILE", shop.path().join("key"))
        .env("NO_COLOR", "1");
    let stopped = ran(command.output().unwrap());
    assert!(matches!(stopped.status, Some(1 | 3)), "{stopped:?}");
    shop.run(&["state", "list", "main", "--stage", "dev"])
        .exits(0)
        .says("a");
    shop.deploy().exits(0);
    assert_eq!(shop.objects().len(), 401);
    shop.is_quiet();
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let shop = Project::new();
    shop.program(ONE);
    // A file where the folder must be is refused for everybody, root included.
    fs::write(shop.path().join(".notation"), "in the way").unwrap();
    shop.deploy().exits(1).says(".notation");
    shop.plan().exits(1).says(".notation");
    shop.run(&["stages"]).exits(1).says(".notation");
    fs::remove_file(shop.path().join(".notation")).unwrap();
    shop.deploy().exits(0);
}

#[test]
fn a_missing_npm_is_explained_and_nothing_is_lost() {
    let mut shop = Project::new();
    shop.write(
        "src/a.ts",
        "export default { fetch: () => new Response(\"a\") };\n",
    );
    shop.program("import { Worker } from \"@notation/edge\";\nnew Worker({ id: \"a\", config: { main: \"src/a.ts\" } });\n");
    shop.set(
        "NOTATION_CACHE_DIR",
        &shop.path().join("empty-cache").display().to_string(),
    );
    shop.set("PATH", "/nonexistent");
    shop.deploy().exits(1).says("npm");
    shop.run(&["host", "status"]);
}

#[test]
fn the_key_file_is_readable_by_its_owner_only_and_secrets_are_stored_encrypted() {
    let shop = Project::new();
    shop.program("import { secret } from \"@notation/core\";\nimport { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: { secret: secret(\"KEY\") } });\n");
    shop.deploy().exits(1).says("KEY").says("secret set");
    shop.set_secret("KEY", "hunter2-hunter2");
    let deployed = shop.deploy().exits(0);
    assert!(!deployed.said().contains("hunter2"));
    let mode = fs::metadata(shop.path().join("key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for file in walk(&shop.path().join(".notation")) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(15).any(|window| window == b"hunter2-hunter2");
        assert!(!found, "in clear in {}", file.display());
    }
    shop.run(&["secret", "list", "main", "--stage", "dev"])
        .exits(0)
        .says("KEY");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found
}

#[test]
fn a_deployment_is_shown_and_destroyed_without_its_entry_file() {
    let shop = Project::new();
    shop.program(ONE).deploy().exits(0);
    fs::remove_file(shop.path().join("infra/main.ts")).unwrap();
    shop.plan().exits(1).says("program::entry_not_found");
    shop.run(&["state", "list", "main", "--stage", "dev"])
        .exits(0)
        .says("a");
    shop.destroy().exits(0);
    assert!(shop.objects().is_empty());
}
