//! The reference of commands, `docs/reference/commands.md`, made from the command line itself.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// The whole document.
fn document() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "# Commands\n\nMade from the binary's own help; `notation help COMMAND` prints the same.\n\n## Everywhere\n\n",
    );
    options(&mut text, &root, |argument| argument.is_global_set());
    for command in root.get_subcommands() {
        section(&mut text, command, "notation", 2);
    }
    text.push_str("\n## Exit statuses\n\n");
    text.push_str(
        &root
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    text.push('\n');
    text
}

fn section(text: &mut String, command: &Command, before: &str, level: usize) {
    let name = format!("{before} {}", command.get_name());
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = write!(text, "\n{} {name}\n\n{about}.\n", "#".repeat(level));
    let below: Vec<&Command> = command.get_subcommands().collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _ = write!(text, "\n```\n{usage}\n```\n\n");
        options(text, command, |argument| !argument.is_global_set());
    }
    for command in below {
        section(text, command, &name, level + 1);
    }
}

fn options(text: &mut String, command: &Command, wanted: impl Fn(&clap::Arg) -> bool) {
    let arguments = command
        .get_arguments()
        .filter(|argument| wanted(argument) && !argument.is_hide_set())
        .filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"));
    for argument in arguments {
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let default: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let default = match default.as_slice() {
            _ if !argument.get_action().takes_values() => String::new(),
            [] => String::new(),
            values => format!(" Default: `{}`.", values.join(" ")),
        };
        let name = argument.to_string();
        let _ = writeln!(text, "- `{name}`: {}.{default}", help.trim_end_matches('.'));
    }
}

#[test]
fn the_reference_is_current() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let made = document();
    if std::env::var_os("NOTATION_WRITE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().expect("it has one")).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "run this test with NOTATION_WRITE_REFERENCE=1 and commit the file"
    );
}
