//! `notation secret set|list|rm`: values the program refers to by name.

use std::io::{IsTerminal as _, Read as _};

use notation_model::{SecretValue, Value};
use serde_json::json;

use crate::{
    args::{Global, SecretCommand},
    exit::Exit,
    failure::{Failure, Outcome},
    interrupt::Interrupts,
    printer::Printer,
    project, session,
};

/// Sets, lists or removes. Nothing prints a value.
pub fn run(global: &Global, command: &SecretCommand, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let store = session::store(&config)?;
    match command {
        SecretCommand::Set { entry, name } => {
            let deployment = project::deployment(&config, entry, "secret set")?;
            let value = SecretValue::new(Value::from(read_value(
                name.as_str(),
                &format!(
                    "notation secret set {} {name} --stage {}",
                    deployment.entry, deployment.stage
                ),
                printer,
            )?));
            session::block_on(async { Ok(store.set_secret(&deployment, name, &value).await?) })?;
            printer.event(
                "secrets",
                json!({ "deployment": deployment.to_string(), "set": name.as_str() }),
            );
            printer.say(format!(
                "{name} is set for {deployment}; the next deploy uses it"
            ));
        }
        SecretCommand::List { entry } => {
            let (deployment, in_config) =
                project::deployment_or_gone(&config, entry, "secret list")?;
            let names = session::block_on(async { Ok(store.secret_names(&deployment).await?) })?;
            in_config.or_in(!names.is_empty())?;
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            printer.event(
                "secrets",
                json!({ "deployment": deployment.to_string(), "secrets": names }),
            );
            if names.is_empty() {
                printer.say(format!("{deployment} has no secrets"));
            } else {
                printer.out(names.join("\n"));
            }
        }
        SecretCommand::Rm { entry, name } => {
            let (deployment, _) = project::deployment_or_gone(&config, entry, "secret rm")?;
            let was =
                session::block_on(async { Ok(store.remove_secret(&deployment, name).await?) })?;
            if !was {
                return Err(Failure::new(
                    Exit::Fixable,
                    "secret::unknown",
                    format!("{deployment} has no secret called {name}"),
                )
                .help(session::spelled(
                    "`notation secret list ENTRY` shows the names",
                    &deployment,
                )));
            }
            printer.event(
                "secrets",
                json!({ "deployment": deployment.to_string(), "removed": name.as_str() }),
            );
            printer.say(format!("{name} is removed from {deployment}"));
        }
    }
    Ok(Exit::Done)
}

/// The value: asked for on a terminal without showing it, else all of stdin less one line break.
pub fn read_value(name: &str, command: &str, printer: &Printer) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(
            Exit::Fixable,
            "secret::unreadable",
            format!("the value of {name} cannot be read from stdin: {error}"),
        )
        .help("pipe the value in as UTF-8 text, or type it at the prompt")
    };
    let value = if std::io::stdin().is_terminal() {
        printer.warn(format!("Value of {name} (not shown):"));
        hidden_line()?.map_err(unreadable)?
    } else {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        let cut = text.strip_suffix('\n').unwrap_or(&text);
        cut.strip_suffix('\r').unwrap_or(cut).to_owned()
    };
    if value.is_empty() {
        return Err(Failure::new(
            Exit::Fixable,
            "secret::empty",
            format!("no value for {name} was given"),
        )
        .help(format!("pipe it in, e.g. printf %s \"$VALUE\" | {command}")));
    }
    Ok(value)
}

/// A line from the terminal that it does not show. An interrupt ends it and puts the terminal
/// back as it was.
fn hidden_line() -> Result<std::io::Result<String>, Failure> {
    let before = rustix::termios::tcgetattr(std::io::stdin());
    session::block_on(async {
        let mut interrupts = Interrupts::listen();
        let (send, line) = tokio::sync::oneshot::channel();
        // It stays behind at the prompt when an interrupt ends the command.
        std::thread::spawn(move || send.send(console::Term::stderr().read_secure_line()));
        tokio::select! {
            line = line => Ok(line.unwrap_or_else(|_| Err(std::io::ErrorKind::UnexpectedEof.into()))),
            () = interrupts.next() => {
                if let Ok(before) = before {
                    // What cannot be put back stays; there is nothing else to try.
                    let _ = rustix::termios::tcsetattr(
                        std::io::stdin(),
                        rustix::termios::OptionalActions::Now,
                        &before,
                    );
                }
                Err(Failure::new(
                    Exit::Interrupted,
                    "run::interrupted",
                    "interrupted; nothing was written",
                ))
            }
        }
    })
}
