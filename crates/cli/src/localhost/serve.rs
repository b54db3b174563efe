//! `notation host serve`: one host with its worker runtime, in this process.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, IsTerminal as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notation_host::{Grant, Host, HostConfig, OpenError, Scope, fresh_token};
use notation_runtime::{DRAIN_DEADLINE, Runtime, RuntimeConfig, StartError, TracingLog};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};

use super::{
    answers, control,
    folder::{self, Folder, Info, Ports},
    plane::{HostBlobs, Plane},
    start::{Word, unusable},
    workerd,
};
use crate::{
    args::{Global, Serve},
    exit::Exit,
    failure::{Failure, Outcome, Problem, causes},
    interrupt,
    printer::{self, Printer},
    project, session,
};

/// Name of the file with the token for the control plane.
pub const TOKEN: &str = "token";
/// Tenant of a host that belongs to one person.
const TENANT: &str = "local";

/// Serves until it is told to stop.
pub fn run(global: &Global, args: &Serve, printer: &Printer) -> Outcome {
    if args.detached {
        // The terminal that started it may close; a failure here means it has no terminal.
        let _ = rustix::process::setsid();
    }
    let outcome = serve(global, args, printer);
    if args.detached
        && let Err(failure) = &outcome
    {
        tell_starter(&Word::from(failure));
    }
    outcome
}

fn serve(global: &Global, args: &Serve, printer: &Printer) -> Outcome {
    let (folder, project) = match &args.data {
        Some(data) => {
            let data = std::path::absolute(data).unwrap_or_else(|_| data.clone());
            (Folder::at(data.clone()), data)
        }
        None => {
            let root = project::of_recorded(global)?.root;
            (Folder::of(&root), root)
        }
    };
    folder.make().map_err(unusable)?;
    let Some(_lock) = folder.move_in().map_err(unusable)? else {
        return Err(Failure::new(
            Exit::Fixable,
            "host::running",
            format!("a host already lives in {}", folder.path().display()),
        )
        .help("use it (`notation host status`), or stop it first (`notation host stop`)"));
    };
    log_to_stderr();
    let workerd = match &args.workerd {
        Some(given) => session::block_on(async {
            notation_runtime::workerd::ensure(Path::new("."), Some(given), &())
                .await
                .map_err(workerd::missing)
        })?,
        None => workerd::ensure(printer)?,
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(
                Exit::Fixable,
                "system::no_threads",
                format!("no event loop can be made: {error}"),
            )
        })?
        .block_on(live(args, &folder, project, workerd, printer))
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // A second subscriber cannot be set; there is none before this one.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init();
}

async fn live(
    args: &Serve,
    folder: &Folder,
    project: PathBuf,
    workerd: PathBuf,
    printer: &Printer,
) -> Outcome {
    let kept = folder.ports();
    let listen = same_port(args.listen, kept.map(|ports| ports.api));
    let ingress = same_port(args.ingress, kept.map(|ports| ports.ingress));
    let api = TcpListener::bind(listen)
        .await
        .map_err(|error| taken(listen, folder, &error))?;
    let blobs = Arc::new(HostBlobs::default());
    let runtime = Runtime::start(RuntimeConfig {
        run_dir: run_dir(folder.path()),
        data_dir: folder.runtime(),
        workerd,
        listen: ingress,
        drain_deadline: DRAIN_DEADLINE,
        blobs: blobs.clone(),
        log: Arc::new(TracingLog),
    })
    .await
    .map_err(|error| not_started(&error, folder))?;
    let api_address = api
        .local_addr()
        .map_err(|error| taken(listen, folder, &error))?;
    let ingress_address = runtime.listen();
    let plane = Arc::new(Plane::default());
    plane.run_on(runtime);
    let mut config = HostConfig::new(folder.data());
    config.contracts = args.contracts.clone();
    config.endpoint_domain = args.endpoint_domain.clone();
    let host = Host::open(config, plane.clone())
        .await
        .map_err(|error| not_opened(&error))?;
    blobs.of(host.clone());
    token(&host, folder).await?;
    host.converge().await;

    let control = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| taken((Ipv4Addr::LOCALHOST, 0).into(), folder, &error))?;
    let control_address = control
        .local_addr()
        .map_err(|error| taken((Ipv4Addr::LOCALHOST, 0).into(), folder, &error))?;
    let secret = fresh_token();
    folder
        .keep_secret(control::SECRET, &secret)
        .map_err(unusable)?;
    folder
        .keep_ports(Ports {
            api: api_address.port(),
            ingress: ingress_address.port(),
        })
        .map_err(unusable)?;
    let info = Info {
        pid: std::process::id(),
        build: folder::build(),
        project,
        started_at: printer::now(),
        api: api_address,
        ingress: ingress_address,
        control: control_address,
    };
    let (stop, stopped) = watch::channel(false);
    let mut closing = stopped.clone();
    let serving = tokio::spawn({
        let host = host.clone();
        async move {
            host.serve(api, async move {
                // The sender lives until the end of `live`.
                let _ = closing.wait_for(|stop| *stop).await;
            })
            .await
        }
    });
    tokio::spawn(answers::answer_all(
        control,
        secret,
        host.clone(),
        plane.clone(),
        stop.clone(),
    ));
    folder.say(&info).map_err(unusable)?;
    if args.detached {
        tell_starter(&Word::Ready(info));
        // The starter reads no further; what is printed from here on belongs into the log.
        let _ = rustix::stdio::dup2_stdout(io::stderr());
    } else {
        ready(&info, folder, printer);
    }
    tracing::info!(api = %api_address, ingress = %ingress_address, "the host serves");

    let mut asked = stopped;
    tokio::select! {
        () = interrupt::next() => {}
        _ = asked.wait_for(|stop| *stop) => {}
    }
    tracing::info!("the host stops");
    stop.send_replace(true);
    if let Some(runtime) = plane.take() {
        match Arc::try_unwrap(runtime) {
            Ok(runtime) => runtime.shutdown().await,
            // Somebody still converges; dropping the last one ends every process at once.
            Err(shared) => drop(shared),
        }
    }
    // Connections that stay open with nothing in flight must not keep it alive.
    if let Ok(Ok(Err(error))) = tokio::time::timeout(Duration::from_secs(5), serving).await {
        tracing::warn!(%error, "the control plane ended badly");
    }
    if let Err(error) = host.flush().await {
        tracing::error!(%error, "the last changes may not be durable");
    }
    Ok(Exit::Done)
}

/// An address given with port 0 takes the port of the last start, so that it stays what it was.
fn same_port(given: SocketAddr, kept: Option<u16>) -> SocketAddr {
    match (given.port(), kept) {
        (0, Some(port)) => SocketAddr::new(given.ip(), port),
        _ => given,
    }
}

/// Paths of Unix sockets are short, those of projects are not.
fn run_dir(folder: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("notation-{user}-{:016x}", hasher.finish()))
}

/// The token of the folder; made and installed when there is none.
async fn token(host: &Host, folder: &Folder) -> Result<(), Failure> {
    let failed = |error: notation_host::HostError| {
        Failure::new(
            Exit::Fixable,
            "host::no_data",
            format!("the host cannot store its token: {error}"),
        )
        .help("the message names the file; make it writable for this user")
    };
    let installed = host
        .tokens()
        .into_iter()
        .find(|record| record.grant.label == TOKEN);
    if installed.is_some() && folder.secret(TOKEN).is_some() {
        return Ok(());
    }
    if let Some(lost) = installed {
        host.revoke_token(&lost.id).await.map_err(failed)?;
    }
    let grant = Grant {
        tenant: TENANT.into(),
        principal: "owner".into(),
        scopes: BTreeSet::from([Scope::Api, Scope::Sealed]),
        label: TOKEN.into(),
    };
    let text = folder.secret(TOKEN).unwrap_or_else(fresh_token);
    folder.keep_secret(TOKEN, &text).map_err(unusable)?;
    host.install_token(&text, grant).await.map_err(failed)?;
    Ok(())
}

fn ready(info: &Info, folder: &Folder, printer: &Printer) {
    printer.event(
        "host",
        json!({
            "running": true,
            "pid": info.pid,
            "endpoint": format!("http://{}", info.api),
            "ingress": format!("http://{}", info.ingress),
        }),
    );
    printer.say(format!("control plane  http://{}", info.api));
    printer.say(format!("workers        http://{}", info.ingress));
    printer.say(format!("data           {}", folder.path().display()));
    printer.say(format!(
        "token          in {}",
        folder.path().join(TOKEN).display()
    ));
    printer.say("stop it with Ctrl-C");
}

fn taken(address: SocketAddr, folder: &Folder, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AddrInUse {
        return Failure::new(
            Exit::Fixable,
            "host::port_taken",
            format!("port {} is used by another program", address.port()),
        )
        .help(format!(
            "stop that program, or remove {} to get other ports (addresses of workers change then)",
            folder.path().join("ports.json").display()
        ));
    }
    Failure::new(
        Exit::Fixable,
        "host::arguments",
        format!("{address} cannot be listened on: {error}"),
    )
    .help("give an address of this machine with a free port")
}

fn not_started(error: &StartError, folder: &Folder) -> Failure {
    match error {
        StartError::Listen { address, source } => taken(*address, folder, source),
        StartError::NotLoopback(_) => {
            Failure::new(Exit::Usage, "host::arguments", error.to_string())
                .help("workers are served on loopback only; put a reverse proxy with TLS in front")
        }
        other => with_causes(
            Failure::new(Exit::Fixable, "host::no_data", other.to_string()),
            other,
        ),
    }
}

fn not_opened(error: &OpenError) -> Failure {
    let failure = Failure::new(Exit::Fixable, "host::no_data", error.to_string());
    with_causes(failure, error)
}

fn with_causes(failure: Failure, error: &dyn std::error::Error) -> Failure {
    causes(error)
        .into_iter()
        .fold(failure, Failure::also)
        .help("make the named folder usable for this user, or give another one with --data")
}

/// Writes the one line that the starter waits for. A starter that went away is no problem.
fn tell_starter(word: &Word) {
    let line = serde_json::to_string(word).expect("it is plain data");
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

impl From<&Failure> for Word {
    fn from(failure: &Failure) -> Word {
        match failure.problems.first() {
            Some(Problem::Plain(plain)) => Word::Failed {
                code: plain.code.into(),
                message: std::iter::once(plain.message.clone())
                    .chain(plain.related.iter().cloned())
                    .collect::<Vec<_>>()
                    .join("; "),
                help: plain.help.clone(),
            },
            Some(Problem::Project(problem)) => Word::Failed {
                code: problem.code.into(),
                message: problem.message.clone(),
                help: problem.help.clone(),
            },
            None => Word::Failed {
                code: "host::cannot_start".into(),
                message: "the local host ended".into(),
                help: None,
            },
        }
    }
}

/// The code as a constant; one that this build does not know is of a host that cannot start.
pub fn known_code(code: &str) -> &'static str {
    crate::pages::PAGES
        .iter()
        .map(|(known, _)| *known)
        .find(|known| *known == code)
        .unwrap_or("host::cannot_start")
}
