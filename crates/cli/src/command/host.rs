//! `notation host ...`: the local host of a project, or a host in the foreground.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
    thread,
    time::Duration,
};

use serde_json::{Value as Json, json};

use crate::{
    args::{Global, HostCommand, TokenArgs, TokenCommand, TokenScope},
    exit::Exit,
    failure::{Failure, Outcome},
    localhost::{
        control::{self, Ask},
        folder::{Folder, Info, Tenancy},
        problem, serve, start, workerd,
    },
    printer::Printer,
    project,
    render::cell,
};

/// Starts, stops, shows or serves.
pub fn run(global: &Global, command: &HostCommand, printer: &Printer) -> Outcome {
    match command {
        HostCommand::Serve(args) => return serve::run(global, args, printer),
        HostCommand::Token(args) => return token(global, args, printer),
        HostCommand::Start | HostCommand::Stop | HostCommand::Status | HostCommand::Logs { .. } => {
        }
    }
    let config = project::of_recorded(global)?;
    let folder = Folder::of(&config.root);
    match command {
        HostCommand::Start => {
            let info = start::ensure(&config.root, || workerd::ensure(printer).map(drop))?;
            printer.event("host", running(&info, &folder));
            printer.out(format!(
                "the local host runs (process {}) at http://{}",
                info.pid, info.api
            ));
            printer.say(format!("its log is {}", folder.log().display()));
            warn(&problem::problems(&config.root), printer);
            Ok(Exit::Done)
        }
        HostCommand::Stop => {
            let stopped = start::stop(&folder)?;
            printer.event("host", json!({ "running": false }));
            printer.out(match stopped {
                start::Stopped::NotRunning => "the local host does not run",
                start::Stopped::InOrder => "the local host is stopped",
                start::Stopped::Killed => "the local host did not answer and was ended",
            });
            Ok(Exit::Done)
        }
        HostCommand::Status => status(&config.root, &folder, printer),
        HostCommand::Logs { follow, lines } => logs(&folder.log(), *follow, *lines, printer),
        HostCommand::Serve(_) | HostCommand::Token(_) => Ok(Exit::Done),
    }
}

fn running(info: &Info, folder: &Folder) -> Json {
    json!({
        "running": true,
        "pid": info.pid,
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": info.started_at,
        "endpoint": format!("http://{}", info.api),
        "ingress": format!("http://{}", info.ingress),
        "log": folder.log().display().to_string(),
    })
}

fn status(project: &Path, folder: &Folder, printer: &Printer) -> Outcome {
    let Some(info) = start::find(project)? else {
        printer.event(
            "host",
            json!({ "running": false, "workers": [], "resources": [] }),
        );
        printer.out("the local host does not run; deploy and `notation host start` start it");
        return Ok(Exit::Done);
    };
    let answer = ask(folder, &info, Ask::Status)?;
    let mut event = running(&info, folder);
    if let (Json::Object(event), Json::Object(answer)) = (&mut event, &answer) {
        event.extend(answer.clone());
    }
    printer.event("host", event);
    printer.out(format!(
        "the local host runs (process {}) since {}",
        info.pid, info.started_at
    ));
    printer.out(format!("  control plane  http://{}", info.api));
    printer.out(format!("  workers        http://{}", info.ingress));
    printer.out(format!("  log            {}", folder.log().display()));
    let text = |row: &Json, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut workers = answer["workers"].as_array().cloned().unwrap_or_default();
    workers.sort_by_key(|row| text(row, "worker"));
    let width = workers
        .iter()
        .map(|row| text(row, "worker").len())
        .max()
        .unwrap_or(0);
    for row in &workers {
        let pid = row["pid"]
            .as_i64()
            .map(|pid| format!("process {pid}"))
            .unwrap_or_default();
        let line = format!(
            "  {:width$}   {:10}   {pid:15}   {}",
            text(row, "worker"),
            text(row, "state"),
            text(row, "url")
        );
        printer.out(line.trim_end());
    }
    warn(&problem::of_status(&answer), printer);
    let resources = answer["resources"].as_array().map_or(0, Vec::len);
    printer.out(format!(
        "  {}, {}",
        cell::count(workers.len(), "worker process").replace("processs", "processes"),
        cell::count(resources, "host resource")
    ));
    Ok(Exit::Done)
}

/// Says which workers are not reached and why.
pub fn warn(problems: &[String], printer: &Printer) {
    for problem in problems {
        let text = cell::wrap(problem, printer.width.saturating_sub(11)).join("\n           ");
        printer.warn(format!(
            "  {}  {text}",
            cell::paint(cell::UPDATE, "warning")
        ));
    }
}

fn ask(folder: &Folder, info: &Info, ask: Ask) -> Result<Json, Failure> {
    let secret = folder.secret(control::SECRET).unwrap_or_default();
    control::ask(info.control, &secret, ask).map_err(|error| {
        Failure::new(
            Exit::Fixable,
            "host::no_answer",
            format!("the host (process {}) does not answer: {error}", info.pid),
        )
        .help("stop it and start it again: `notation host stop`, `notation host start`")
    })
}

/// Makes, lists or revokes tokens of a living host. Who can read its folder may.
fn token(global: &Global, args: &TokenArgs, printer: &Printer) -> Outcome {
    let folder = match &args.data {
        Some(data) => Folder::at(std::path::absolute(data).unwrap_or_else(|_| data.clone())),
        None => Folder::of(&project::of_recorded(global)?.root),
    };
    let Tenancy::Running(info) = folder.tenancy().map_err(start::unusable)? else {
        return Err(Failure::new(
            Exit::Fixable,
            "host::not_running",
            format!("no host runs in {}", folder.path().display()),
        )
        .help("start it: `notation host start`, or `notation host serve --data DIR`"));
    };
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
    let answer = ask(&folder, &info, question)?;
    if let Some(error) = answer["error"].as_str() {
        return Err(Failure::new(Exit::Fixable, "host::no_data", error));
    }
    let mut event = json!({ "running": true });
    if let (Json::Object(event), Json::Object(answer)) = (&mut event, &answer) {
        event.extend(answer.clone());
    }
    printer.event("host", event);
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

fn logs(path: &Path, follow: bool, lines: usize, printer: &Printer) -> Outcome {
    let unreadable = |error: std::io::Error| {
        Failure::new(
            Exit::Fixable,
            "host::no_log",
            format!("{} cannot be read: {error}", path.display()),
        )
        .help("the log is made when the local host first starts: `notation host start`")
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut last = std::collections::VecDeque::new();
    for line in BufReader::new(&file).lines() {
        last.push_back(line.map_err(unreadable)?);
        if last.len() > lines {
            last.pop_front();
        }
    }
    last.iter().for_each(|line| tell(line, printer));
    if !follow {
        return Ok(Exit::Done);
    }
    let mut rest = String::new();
    // Where reading ended, not where the file ends by now: nothing is lost in between.
    let mut at = file.stream_position().map_err(unreadable)?;
    loop {
        // A log that was cut short starts anew.
        if file.metadata().map_err(unreadable)?.len() < at {
            at = file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        }
        let mut bytes = Vec::new();
        at += file.read_to_end(&mut bytes).map_err(unreadable)? as u64;
        rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = rest.find('\n') {
            tell(&rest[..end], printer);
            rest.drain(..=end);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn tell(line: &str, printer: &Printer) {
    if printer.json {
        printer.event("log", json!({ "line": line }));
        return;
    }
    match printer.reader() {
        // What is folded can still be told from what begins a line.
        Some(_) => {
            let lines = cell::wrap(line, printer.width.saturating_sub(2));
            printer.out(lines.join("\n  "));
        }
        None => printer.out(line),
    }
}
