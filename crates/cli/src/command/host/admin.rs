//! What whoever runs a host does with it while it runs. Who can open its socket may.

use serde_json::{Value as Json, json};

use super::ask;
use crate::{
    args::{
        DataFolder, Global, HostSecret, HostSecretCommand, TokenArgs, TokenCommand, TokenScope,
    },
    command::secret::read_value,
    exit::Exit,
    failure::{Failure, Outcome},
    localhost::{
        control::{Ask, Hidden, WorkerAt},
        folder::{Folder, Info},
        start,
    },
    printer::Printer,
    project,
    render::cell,
};

/// The living host of a folder.
fn living(global: &Global, given: &DataFolder) -> Result<Info, Failure> {
    let folder = match &given.data {
        Some(data) => Folder::at(std::path::absolute(data).unwrap_or_else(|_| data.clone())),
        None => Folder::of(&project::of_recorded(global)?.root),
    };
    start::living(&folder)?.ok_or_else(|| {
        Failure::new(
            Exit::Fixable,
            "host::not_running",
            format!("no host runs in {}", folder.path().display()),
        )
        .help("start it: `notation host start`, or `notation host serve --data DIR`")
    })
}

fn event(printer: &Printer, answer: &Json) {
    let mut event = json!({ "running": true });
    if let (Json::Object(event), Json::Object(answer)) = (&mut event, answer) {
        event.extend(answer.clone());
    }
    printer.event("host", event);
}

/// Makes, lists or revokes tokens of a living host. Who can read its folder may.
pub fn token(global: &Global, args: &TokenArgs, printer: &Printer) -> Outcome {
    let info = living(global, &args.folder)?;
    let question = match &args.command {
        TokenCommand::Create {
            tenant,
            principal,
            scope,
            label,
        } => {
            let all = [TokenScope::Api, TokenScope::Sealed];
            let scopes = if scope.is_empty() {
                all.as_slice()
            } else {
                scope
            };
            let name = |scope: &TokenScope| match scope {
                TokenScope::Api => "api".to_owned(),
                TokenScope::Sealed => "sealed".to_owned(),
            };
            Ask::CreateToken {
                tenant: tenant.clone(),
                principal: principal.clone(),
                scopes: scopes.iter().map(name).collect(),
                label: label.clone(),
            }
        }
        TokenCommand::List => Ask::ListTokens,
        TokenCommand::Revoke { id } => Ask::RevokeToken { id: id.clone() },
    };
    let answer = ask(&info, &question)?;
    event(printer, &answer);
    let row = |row: &Json| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let scopes: Vec<_> = row["scopes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .collect();
        format!(
            "{}   {}   {}   {}   {}   {}",
            text("id"),
            text("created"),
            text("tenant"),
            text("principal"),
            scopes.join(","),
            text("label")
        )
    };
    match &args.command {
        TokenCommand::Create { .. } => {
            printer.say("this is shown once; keep it where only its user can read it");
            printer.out(answer["text"].as_str().unwrap_or_default());
        }
        TokenCommand::List => {
            for token in answer["tokens"].as_array().into_iter().flatten() {
                printer.out(row(token).trim_end());
            }
        }
        TokenCommand::Revoke { id } if answer["revoked"] == true => {
            printer.out(format!("{id} is revoked"));
        }
        TokenCommand::Revoke { id } => {
            return Err(Failure::new(
                Exit::Fixable,
                "host::unknown_token",
                format!("the host has no token with the id {id}"),
            )
            .help("`notation host token list` shows the ids"));
        }
    }
    Ok(Exit::Done)
}

/// Lists tenants with their principals.
pub fn tenants(global: &Global, folder: &DataFolder, printer: &Printer) -> Outcome {
    let answer = ask(&living(global, folder)?, &Ask::Tenants)?;
    event(printer, &answer);
    for row in answer["tenants"].as_array().into_iter().flatten() {
        let count = |name: &str| row[name].as_u64().unwrap_or_default() as usize;
        let principals: Vec<_> = row["principals"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .collect();
        printer.out(format!(
            "{}   {}   {}   {}",
            row["tenant"].as_str().unwrap_or_default(),
            principals.join(","),
            cell::count(count("tokens"), "token"),
            cell::count(count("resources"), "resource"),
        ));
    }
    Ok(Exit::Done)
}

/// Sets, lists or removes sealed values. Nothing prints one.
pub fn secret(global: &Global, args: &HostSecret, printer: &Printer) -> Outcome {
    let info = living(global, &args.folder)?;
    let at = |worker: &str| WorkerAt {
        tenant: args.tenant.clone(),
        space: args.space.clone(),
        name: worker.to_owned(),
    };
    let of = |worker: &str| format!("{worker} of tenant {} in {}", args.tenant, args.space);
    match &args.command {
        HostSecretCommand::Set { worker, name } => {
            let value = Hidden(read_value(
                name,
                &format!("notation host secret set {worker} {name}"),
                printer,
            )?);
            let question = Ask::SetSecret {
                worker: at(worker),
                name: name.clone(),
                value,
            };
            event(printer, &ask(&info, &question)?);
            printer.say(format!("{name} is set for {}", of(worker)));
        }
        HostSecretCommand::List { worker } => {
            let answer = ask(&info, &Ask::ListSecrets { worker: at(worker) })?;
            event(printer, &answer);
            let names = answer["secrets"].as_array().cloned().unwrap_or_default();
            for name in names.iter().filter_map(Json::as_str) {
                printer.out(name);
            }
            if names.is_empty() {
                printer.say(format!("{} has no secrets", of(worker)));
            }
        }
        HostSecretCommand::Rm { worker, name } => {
            let question = Ask::RemoveSecret {
                worker: at(worker),
                name: name.clone(),
            };
            let answer = ask(&info, &question)?;
            if answer["removed"] != true {
                return Err(Failure::new(
                    Exit::Fixable,
                    "secret::unknown",
                    format!("{} has no secret called {name}", of(worker)),
                )
                .help("`notation host secret list WORKER` shows the names"));
            }
            event(printer, &answer);
            printer.say(format!("{name} is removed from {}", of(worker)));
        }
    }
    Ok(Exit::Done)
}

/// Removes what nobody holds.
pub fn collect(global: &Global, folder: &DataFolder, printer: &Printer) -> Outcome {
    let answer = ask(&living(global, folder)?, &Ask::Collect)?;
    event(printer, &answer);
    let count = |name: &str| answer[name].as_u64().unwrap_or_default() as usize;
    printer.out(format!(
        "removed {}, {}, {}, {}",
        cell::count(count("artifacts"), "artifact"),
        cell::count(count("holds"), "hold"),
        cell::count(count("uploads"), "unfinished upload"),
        cell::count(count("operations"), "old operation"),
    ));
    Ok(Exit::Done)
}
