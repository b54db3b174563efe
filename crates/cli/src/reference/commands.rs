//! `docs/reference/commands.md`: commands and flags, made from the command line itself.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// The whole document.
pub fn document() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "# Commands\n\nMade from the binary's own help; `notation help COMMAND` prints the same.\n\n## Everywhere\n\n",
    );
    let everywhere: Vec<clap::Id> = root
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .map(|argument| argument.get_id().clone())
        .collect();
    options(&mut text, &root, |id| everywhere.contains(id));
    for command in root.get_subcommands() {
        section(&mut text, command, "notation", 2, &everywhere);
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

fn section(
    text: &mut String,
    command: &Command,
    before: &str,
    level: usize,
    everywhere: &[clap::Id],
) {
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
        options(text, command, |id| !everywhere.contains(id));
    }
    for command in below {
        section(text, command, &name, level + 1, everywhere);
    }
}

fn options(text: &mut String, command: &Command, wanted: impl Fn(&clap::Id) -> bool) {
    let arguments = command
        .get_arguments()
        .filter(|argument| wanted(argument.get_id()) && !argument.is_hide_set())
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
