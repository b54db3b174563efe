//! `notation completions SHELL`, and what the shell asks for while a person types.

use std::{collections::BTreeSet, path::Path};

use clap_complete::{CompletionCandidate, env::Shells};
use notation_model::DeploymentId;
use notation_program::ProjectConfig;
use serde_json::json;

use crate::{
    args::{Completions, Shell},
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
    project, session,
};

/// Prints the script that a shell loads once.
pub fn run(args: &Completions, printer: &Printer) -> Outcome {
    let name = match args.shell {
        Shell::Bash => "bash",
        Shell::Elvish => "elvish",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
        Shell::Zsh => "zsh",
    };
    let bug = |why: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Bug,
            "notation::bug",
            format!("completions for {name}: {why}"),
        )
    };
    let shells = Shells::builtins();
    let shell = shells
        .completer(name)
        .ok_or_else(|| bug(&"unknown shell"))?;
    let mut script = Vec::new();
    shell
        .write_registration("COMPLETE", "notation", "notation", "notation", &mut script)
        .map_err(|error| bug(&error))?;
    let script = String::from_utf8_lossy(&script);
    printer.event("completions", json!({ "shell": name, "script": script }));
    printer.out(script);
    Ok(Exit::Done)
}

/// The project that the words on the command line are about.
fn config() -> Option<ProjectConfig> {
    let words: Vec<String> = std::env::args().collect();
    let given = words
        .iter()
        .position(|word| word == "--project")
        .and_then(|at| words.get(at + 1));
    let project = given.map_or(Path::new("."), Path::new);
    project::load_recorded(project).ok()
}

fn candidates(names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// What the deployments with state have at one place of their ids.
fn recorded(config: &ProjectConfig, part: fn(&DeploymentId) -> String) -> Vec<String> {
    let found = session::deployments(config).unwrap_or_default();
    found.iter().map(|found| part(&found.deployment)).collect()
}

/// Entry names of the project, and those that left it and have state.
pub fn entries() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let mut names: BTreeSet<String> = config.entries.keys().map(ToString::to_string).collect();
    names.extend(recorded(&config, |id| id.entry.to_string()));
    candidates(names)
}

/// Stages that have state, and the default one.
pub fn stages() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let default = config.default_stage.iter().map(ToString::to_string);
    let mut names: BTreeSet<String> = default.collect();
    names.extend(recorded(&config, |id| id.stage.to_string()));
    candidates(names)
}

/// Apps that have state.
pub fn apps() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let apps = recorded(&config, |id| id.app.to_string());
    candidates(apps.into_iter().collect())
}
