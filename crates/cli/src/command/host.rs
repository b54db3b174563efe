//! `notation host ...`: the local host of a project, or a host in the foreground.

mod admin;
mod logs;

use serde_json::{Value as Json, json};

use crate::{
    args::{Global, HostCommand},
    exit::Exit,
    failure::{Failure, Outcome},
    localhost::{
        control::{self, Ask},
        folder::{Folder, Info, STATUS_KEY},
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
        HostCommand::Token(args) => return admin::token(global, args, printer),
        HostCommand::Tenants(folder) => return admin::tenants(global, folder, printer),
        HostCommand::Secret(args) => return admin::secret(global, args, printer),
        HostCommand::Collect(folder) => return admin::collect(global, folder, printer),
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
                "the local host runs (process {}) at {}",
                info.pid,
                info.endpoint()
            ));
            if let Some(page) = status_page(&info, &folder) {
                printer.out(format!("  status page    {page}"));
            }
            printer.say(format!("its log is {}", folder.log().display()));
            problem::warn(&problem::problems(&config.root), printer);
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
        HostCommand::Status => status(&folder, printer),
        HostCommand::Logs { follow, lines } => logs::show(&folder.log(), *follow, *lines, printer),
        HostCommand::Serve(_)
        | HostCommand::Token(_)
        | HostCommand::Tenants(_)
        | HostCommand::Secret(_)
        | HostCommand::Collect(_) => Ok(Exit::Done),
    }
}

fn running(info: &Info, folder: &Folder) -> Json {
    json!({
        "running": true,
        "pid": info.pid,
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": info.started_at,
        "endpoint": info.endpoint(),
        "ingress": format!("http://{}", info.ingress),
        "status_page": status_page(info, folder),
        "log": folder.log().display().to_string(),
    })
}

/// Address of the status page with its key as the password, ready to be opened: who asks can read
/// the folder, and so may look.
fn status_page(info: &Info, folder: &Folder) -> Option<String> {
    let key = folder.secret(STATUS_KEY)?;
    Some(format!("http://status:{key}@{}/", info.status?))
}

fn status(folder: &Folder, printer: &Printer) -> Outcome {
    let Some(info) = start::living(folder)? else {
        printer.event(
            "host",
            json!({ "running": false, "workers": [], "resources": [] }),
        );
        printer.out("the local host does not run; deploy and `notation host start` start it");
        return Ok(Exit::Done);
    };
    let answer = ask(&info, &Ask::Status)?;
    let mut event = running(&info, folder);
    if let (Json::Object(event), Json::Object(answer)) = (&mut event, &answer) {
        event.extend(answer.clone());
    }
    printer.event("host", event);
    printer.out(format!(
        "the local host runs (process {}) since {}",
        info.pid, info.started_at
    ));
    printer.out(format!("  control plane  {}", info.endpoint()));
    printer.out(format!("  workers        http://{}", info.ingress));
    if let Some(page) = status_page(&info, folder) {
        printer.out(format!("  status page    {page}"));
    }
    printer.out(format!("  log            {}", folder.log().display()));
    let text = |row: &Json, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut workers = answer["workers"].as_array().cloned().unwrap_or_default();
    workers.sort_by_key(|row| text(row, "worker"));
    let width = workers
        .iter()
        .map(|row| text(row, "worker").len())
        .max()
        .unwrap_or(0);
    let addresses = answer["addresses"].as_array().cloned().unwrap_or_default();
    let taken = |row: &Json| {
        let mut at = addresses.iter().filter(|at| at["url"] == row["url"]);
        match at.any(|at| at["problem"].is_string()) {
            true => "   (not answered: see below)",
            false => "",
        }
    };
    for row in &workers {
        let pid = row["pid"]
            .as_i64()
            .map(|pid| format!("process {pid}"))
            .unwrap_or_default();
        let line = format!(
            "  {:width$}   {:10}   {pid:15}   {}{}",
            text(row, "worker"),
            text(row, "state"),
            text(row, "url"),
            taken(row)
        );
        printer.out(line.trim_end());
    }
    problem::warn(&problem::of_status(&answer), printer);
    let resources = answer["resources"].as_array().map_or(0, Vec::len);
    printer.out(format!(
        "  {}, {}",
        cell::count(workers.len(), "worker process").replace("processs", "processes"),
        cell::count(resources, "host resource")
    ));
    Ok(Exit::Done)
}

/// Asks a living host. A refusal of the host is a failure.
fn ask(info: &Info, ask: &Ask) -> Result<Json, Failure> {
    let answer = control::ask(&info.control, ask).map_err(|error| {
        Failure::new(
            Exit::Fixable,
            "host::no_answer",
            format!("the host (process {}) does not answer: {error}", info.pid),
        )
        .help("stop it and start it again: `notation host stop`, `notation host start`")
    })?;
    match answer["error"].as_str() {
        None => Ok(answer),
        Some(error) if answer["refused"] == true => {
            Err(Failure::new(Exit::Fixable, "host::refused", error)
                .help("the host's status page shows tenants, spaces and workers"))
        }
        Some(error) => Err(Failure::new(Exit::Fixable, "host::no_data", error)),
    }
}
