//! Names that a shell offers while a person types.

use std::{collections::BTreeSet, path::Path};

use clap::Command;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use notation_model::DeploymentId;
use notation_program::ProjectConfig;

use crate::{project, session};

/// The command line with what to offer for entries, stages and apps: the arguments whose values
/// are called `ENTRY`, `STAGE` and `APP`.
pub fn offered_by(command: Command) -> Command {
    command
        .mut_args(|argument| match argument.get_value_names() {
            Some([name]) => match name.as_str() {
                "ENTRY" => argument.add(ArgValueCandidates::new(entries)),
                "STAGE" => argument.add(ArgValueCandidates::new(stages)),
                "APP" => argument.add(ArgValueCandidates::new(apps)),
                _ => argument,
            },
            _ => argument,
        })
        .mut_subcommands(offered_by)
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
fn entries() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let mut names: BTreeSet<String> = config.entries.keys().map(ToString::to_string).collect();
    names.extend(recorded(&config, |id| id.entry.to_string()));
    candidates(names)
}

/// Stages that have state, and the default one.
fn stages() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let default = config.default_stage.iter().map(ToString::to_string);
    let mut names: BTreeSet<String> = default.collect();
    names.extend(recorded(&config, |id| id.stage.to_string()));
    candidates(names)
}

/// Apps that have state.
fn apps() -> Vec<CompletionCandidate> {
    let Some(config) = config() else {
        return Vec::new();
    };
    let apps = recorded(&config, |id| id.app.to_string());
    candidates(apps.into_iter().collect())
}
