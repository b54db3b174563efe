//! `notation secret set|list|rm`: values the program refers to by name.

use std::io::{IsTerminal as _, Read as _};

use notation_model::{SecretValue, Value};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;

use crate::{
    advice::spelled,
    args::{Global, SecretCommand},
    event_loop::block_on,
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
            block_on(async { Ok(store.set_secret(&deployment, name, &value).await?) })?;
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
            let names = block_on(async { Ok(store.secret_names(&deployment).await?) })?;
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
            let was = block_on(async { Ok(store.remove_secret(&deployment, name).await?) })?;
            if !was {
                return Err(Failure::new(
                    Exit::Fixable,
                    "secret::unknown",
                    format!("{deployment} has no secret called {name}"),
                )
                .help(spelled(
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
        hidden_line(&format!("Value of {name} (not shown):"), printer)?.map_err(unreadable)?
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

/// A line from the terminal that it does not show. An interrupt ends it; either way the terminal
/// is put back as it was.
fn hidden_line(prompt: &str, printer: &Printer) -> Result<std::io::Result<String>, Failure> {
    block_on(async {
        let mut interrupts = Interrupts::listen();
        // Before it is asked for: what is typed at once is neither shown nor lost.
        let shown = match hide() {
            Ok(shown) => shown,
            Err(error) => return Ok(Err(error.into())),
        };
        printer.warn(prompt);
        let (send, line) = tokio::sync::oneshot::channel();
        // It stays behind at the prompt when an interrupt ends the command.
        std::thread::spawn(move || {
            let mut line = String::new();
            send.send(std::io::stdin().read_line(&mut line).map(|_| line))
        });
        let line = tokio::select! {
            line = line => Ok(line.unwrap_or_else(|_| Err(std::io::ErrorKind::UnexpectedEof.into()))),
            () = interrupts.next() => Err(Failure::new(
                Exit::Interrupted,
                "run::interrupted",
                "interrupted; nothing was written",
            )),
        };
        // What cannot be put back stays; there is nothing else to try.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &shown);
        line.map(|line| line.map(|line| line.trim_end_matches(['\r', '\n']).to_owned()))
    })
}

/// Has the terminal show nothing of what is typed but the end of the line. How it was before.
fn hide() -> rustix::io::Result<Termios> {
    let shown = tcgetattr(std::io::stdin())?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(std::io::stdin(), OptionalActions::Now, &hidden)?;
    Ok(shown)
}
