//! A command line that cannot be read: what is wrong with it, and what to type instead.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::PathBuf,
};

use clap::{
    Command, CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use notation_model::StageName;
use serde_json::json;

use crate::{
    args::{Cli, Global},
    exit::Exit,
    failure::Failure,
    printer::{self, Printer},
    project,
};

/// Words of other tools for what stands below a command.
const WORDS_BELOW: &[(&str, &str)] = &[
    ("delete", "rm"),
    ("get", "show"),
    ("ls", "list"),
    ("remove", "rm"),
];

/// What other tools have a command for, and this one has not.
const WITHOUT_COMMAND: &[(&[&str], &str)] = &[
    (
        &["login", "logout"],
        "nobody logs in: state is where `state` in notation.config.ts says, or NOTATION_STATE",
    ),
    (
        &["mv", "rename"],
        "a resource goes on under another id when the program says so: `formerly: [\"old-id\"]`",
    ),
];

/// Commands by the words that other tools have for them.
const WORDS: &[(&str, &str)] = &[
    ("apply", "deploy"),
    ("create", "init"),
    ("diff", "plan"),
    ("down", "destroy"),
    ("force-unlock", "hold clear"),
    ("ls", "stages"),
    ("new", "init"),
    ("output", "outputs"),
    ("preview", "plan"),
    ("remove", "destroy"),
    ("stack", "stages"),
    ("unlock", "hold clear"),
    ("up", "deploy"),
    ("validate", "check"),
    ("workspace", "stages"),
];

/// Flags by the words that other tools have for them.
const FLAGS: &[(&str, &str)] = &[
    ("auto-approve", "yes"),
    ("detailed-exitcode", "fail-on-changes"),
    ("env", "stage"),
    ("force", "yes"),
    ("refresh", "no-refresh"),
    ("s", "stage"),
    ("stack", "stage"),
    ("workspace", "stage"),
];

/// Answers a command line that is no command: help that was asked for, or what is wrong.
pub fn answer(error: &clap::Error) -> (Exit, Printer) {
    let typed: Vec<String> = std::env::args_os()
        .skip(1)
        .map(OsString::into_string)
        .map(|word| word.unwrap_or_else(|word| word.to_string_lossy().into_owned()))
        .collect();
    let global = global(&typed);
    let printer = Printer::new(&global);
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion if !printer.json => {
            let printed = error.print();
            printer::asked_for(printed.and_then(|()| io::stdout().flush()));
            Exit::Done
        }
        ErrorKind::DisplayVersion => {
            printer.event("version", json!({ "version": env!("CARGO_PKG_VERSION") }));
            Exit::Done
        }
        ErrorKind::DisplayHelp => {
            let topic = path(&typed).1.join(" ");
            printer.event(
                "help",
                json!({ "topic": topic, "text": error.render().to_string() }),
            );
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !printer.json => {
            let _ = error.print();
            Exit::Usage
        }
        _ => {
            let failure = failure(error, &typed, &global);
            failure.tell(&printer);
            failure.exit
        }
    };
    (exit, printer)
}

/// What can be read of the flags that every command takes.
fn global(typed: &[String]) -> Global {
    let has = |flag: &str| typed.iter().any(|word| word == flag);
    let after = |flag: &str| {
        let inline = format!("{flag}=");
        typed.iter().enumerate().find_map(|(at, word)| {
            if word == flag {
                return typed.get(at + 1).map(PathBuf::from);
            }
            word.strip_prefix(&inline).map(PathBuf::from)
        })
    };
    Global {
        project: after("--project"),
        json: has("--json"),
        quiet: false,
        verbose: false,
        no_color: has("--no-color"),
    }
}

fn failure(error: &clap::Error, typed: &[String], global: &Global) -> Failure {
    let (root, path) = path(typed);
    let command = path
        .iter()
        .try_fold(&root, |command, word| command.find_subcommand(word))
        .unwrap_or(&root);
    let path = path.join(" ");
    let mut advice = Advice {
        error,
        root: &root,
        command,
        path: &path,
        typed,
        lines: Vec::new(),
    };
    advice.another_command();
    advice.another_flag();
    advice.stage_without_flag();
    advice.entries(global);
    advice.nearest_stage();
    advice.own_tips();
    advice.usage();
    Failure::usage(message(error)).help(advice.lines.join("\n"))
}

/// The commands that the words lead to, with the whole tree they were looked up in.
fn path(typed: &[String]) -> (Command, Vec<String>) {
    let mut root = Cli::command();
    root.build();
    let mut path = Vec::new();
    let mut command = &root;
    let mut words = typed.iter();
    while let Some(word) = words.next() {
        if word == "--project" {
            words.next();
        }
        if word.starts_with('-') {
            continue;
        }
        let Some(next) = command.find_subcommand(word) else {
            // An argument of the command, e.g. the entry.
            break;
        };
        path.push(next.get_name().to_owned());
        command = next;
    }
    (root, path)
}

/// The first paragraph: what is wrong.
fn message(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing".into();
    }
    let text = error.render().to_string();
    let text = text.trim().trim_start_matches("error: ");
    let first = text.split("\n\n").next().unwrap_or(text);
    let mut lines: Vec<&str> = first.lines().map(str::trim).collect();
    if error.kind() == ErrorKind::InvalidValue
        && let Some(values) = lines.iter().position(|line| line.starts_with('['))
    {
        lines.drain(values..);
    }
    lines.join("\n")
}

/// What to type instead, gathered line by line.
struct Advice<'a> {
    error: &'a clap::Error,
    root: &'a Command,
    command: &'a Command,
    path: &'a str,
    typed: &'a [String],
    lines: Vec<String>,
}

impl Advice<'_> {
    fn text(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::StyledStrs(texts)) => {
                texts.iter().map(ToString::to_string).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A command that is somewhere else, or has another name here.
    fn another_command(&mut self) {
        if self.error.kind() != ErrorKind::InvalidSubcommand {
            return;
        }
        let Some(word) = self.text(ContextKind::InvalidSubcommand).pop() else {
            return;
        };
        if let Some((_, instead)) = WITHOUT_COMMAND
            .iter()
            .find(|(words, _)| words.contains(&&*word))
        {
            self.lines.push((*instead).to_owned());
            return;
        }
        let here = WORDS_BELOW
            .iter()
            .filter(|(other, _)| *other == word)
            .filter_map(|(_, ours)| self.command.find_subcommand(ours));
        if let Some(ours) = here.map(Command::get_name).next() {
            self.lines
                .push(format!("did you mean notation {} {ours}?", self.path));
            return;
        }
        let below = self.root.get_subcommands().flat_map(|command| {
            command
                .get_subcommands()
                .filter(|below| below.get_name() == word)
                .map(|below| format!("{} {}", command.get_name(), below.get_name()))
        });
        let known = WORDS
            .iter()
            .filter(|(other, _)| *other == word)
            .map(|(_, ours)| (*ours).to_owned());
        let mut found: Vec<String> = below.chain(known).collect();
        if found.is_empty() {
            found = self.text(ContextKind::SuggestedSubcommand);
            if !self.path.is_empty() {
                found
                    .iter_mut()
                    .for_each(|one| *one = format!("{} {one}", self.path));
            }
        }
        if word == "status" {
            found.push("stages".into());
        }
        if !found.is_empty() {
            let found: Vec<_> = found.iter().map(|one| format!("notation {one}")).collect();
            self.lines.push(format!("did you mean {}?", either(&found)));
        }
    }

    /// A flag with a typo, with one dash, of another command, or of another tool.
    fn another_flag(&mut self) {
        if self.error.kind() != ErrorKind::UnknownArgument {
            return;
        }
        let Some(given) = self.text(ContextKind::InvalidArg).pop() else {
            return;
        };
        // Of `-stage` only `-s` is told.
        let whole = self
            .typed
            .iter()
            .find(|word| word.starts_with(&given))
            .unwrap_or(&given);
        let name = whole.trim_start_matches('-');
        let name = name.split('=').next().unwrap_or(name);
        if !given.starts_with('-') || name.is_empty() {
            return;
        }
        let takes = |command: &Command, flag: &str| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(flag))
        };
        let foreign = FLAGS
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, ours)| *ours);
        let here = [Some(name), foreign]
            .into_iter()
            .flatten()
            .find(|flag| takes(self.command, flag));
        if let Some(flag) = here {
            self.lines.push(format!("did you mean --{flag}?"));
            return;
        }
        if let Some(suggested) = self.text(ContextKind::SuggestedArg).pop() {
            self.lines.push(format!("did you mean {suggested}?"));
            return;
        }
        let others: Vec<_> = self
            .root
            .get_subcommands()
            .filter(|command| takes(command, name))
            .map(Command::get_name)
            .collect();
        if !others.is_empty() {
            self.lines
                .push(format!("--{name} is a flag of {}", others.join(", ")));
        }
    }

    /// `notation deploy app dev`: the stage stands where nothing stands.
    fn stage_without_flag(&mut self) {
        let has_stage = self
            .command
            .get_arguments()
            .any(|argument| argument.get_long() == Some("stage"));
        if self.error.kind() != ErrorKind::UnknownArgument || !has_stage {
            return;
        }
        let Some(word) = self.text(ContextKind::InvalidArg).pop() else {
            return;
        };
        if word.starts_with('-') || self.typed.iter().any(|word| word.starts_with("--stage")) {
            return;
        }
        let before: Vec<&str> = self
            .typed
            .iter()
            .map(String::as_str)
            .take_while(|one| *one != word)
            .collect();
        self.lines.push(format!(
            "the stage is given with --stage:\nnotation {} --stage {word}",
            before.join(" ")
        ));
    }

    /// Names to choose from where the entry is missing.
    fn entries(&mut self, global: &Global) {
        if self.error.kind() != ErrorKind::MissingRequiredArgument {
            return;
        }
        let missing = self.text(ContextKind::InvalidArg);
        if !missing.iter().any(|argument| argument.contains("ENTRY")) {
            return;
        }
        let Ok(config) = project::of_recorded(global) else {
            return;
        };
        let names: Vec<_> = config.entries.keys().map(ToString::to_string).collect();
        self.lines
            .push(format!("entries of {}: {}", config.app, names.join(", ")));
        if let Some(first) = names.first() {
            let stage = match &config.default_stage {
                Some(_) => "",
                None => " --stage dev",
            };
            let rest: String = missing
                .iter()
                .filter(|argument| !argument.contains("ENTRY"))
                .map(|argument| format!(" {}", argument.trim_matches(['<', '>'])))
                .collect();
            self.lines
                .push(format!("type: notation {} {first}{rest}{stage}", self.path));
        }
    }

    /// The nearest stage where one breaks the rules of names.
    fn nearest_stage(&mut self) {
        let of_stage = self
            .text(ContextKind::InvalidArg)
            .iter()
            .any(|argument| argument.starts_with("--stage"));
        let Some(given) = self.text(ContextKind::InvalidValue).pop() else {
            return;
        };
        let safe: String = given
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        if of_stage && let Ok(stage) = safe.trim_matches('-').parse::<StageName>() {
            self.lines.push(format!("did you mean --stage {stage}?"));
        }
    }

    /// Values that are allowed.
    fn own_tips(&mut self) {
        let values = self.text(ContextKind::ValidValue);
        if self.error.kind() == ErrorKind::InvalidValue && !values.is_empty() {
            self.lines.push(format!("one of: {}", values.join(", ")));
        }
    }

    fn usage(&mut self) {
        let usage = self.command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        self.lines.push(format!("usage: {usage}"));
        let help = if self.path.is_empty() {
            "`notation help` lists the commands".to_owned()
        } else {
            format!("`notation help {}` explains all of it", self.path)
        };
        self.lines.push(help);
    }
}

/// `a`, `a or b`, `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}
