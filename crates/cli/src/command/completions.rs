//! `notation completions SHELL`: the script with which a shell asks while a person types.

use clap_complete::env::Shells;
use serde_json::json;

use crate::{
    args::{Completions, Shell},
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
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
