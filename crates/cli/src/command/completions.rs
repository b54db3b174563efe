//! `notation completions SHELL`, and what the shell asks for while a person types.

use std::path::Path;

use clap_complete::{CompletionCandidate, env::Shells};

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
    printer.raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

/// Entry names of the project around the working directory.
pub fn entries() -> Vec<CompletionCandidate> {
    let Ok(config) = project::load(Path::new(".")) else {
        return Vec::new();
    };
    config
        .entries
        .keys()
        .map(|name| CompletionCandidate::new(name.as_str()))
        .collect()
}

/// Stages that have state, and the default one.
pub fn stages() -> Vec<CompletionCandidate> {
    let Ok(config) = project::load(Path::new(".")) else {
        return Vec::new();
    };
    let mut stages: std::collections::BTreeSet<String> = config
        .default_stage
        .iter()
        .map(ToString::to_string)
        .collect();
    if let Ok(deployments) = session::deployments(&config) {
        stages.extend(
            deployments
                .into_iter()
                .map(|found| found.deployment.stage.to_string()),
        );
    }
    stages.into_iter().map(CompletionCandidate::new).collect()
}
