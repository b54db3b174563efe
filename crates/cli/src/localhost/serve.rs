//! `notation host serve`: one host with its worker runtime, in this process.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notation_host::{Grant, Host, Origin, Scope, fresh_token};
use notation_runtime::{DRAIN_DEADLINE, Runtime, RuntimeConfig, StartError, TracingLog};
use serde_json::json;
use tokio::{
    net::{TcpListener, UnixListener},
    sync::watch,
};

use super::{
    answers, control,
    folder::{self, Folder, FolderError, Info, Lock, Ports, STATUS_KEY, TOKEN},
    log,
    plane::{HostBlobs, Plane},
    setup::{config, not_opened, reachable, with_causes},
    start::unusable,
    word::Word,
    workerd,
};
use crate::{
    args::{Global, LogFormat, Serve},
    event_loop::{block_on, block_on_all_cores},
    exit::Exit,
    failure::{Failure, Outcome},
    interrupt::Interrupts,
    printer::{self, Printer},
    project,
};

/// How often a host makes sure that its folder is still there: two questions about a file, which cost
/// nothing.
const LOOK_FOR_FOLDER: Duration = Duration::from_secs(2);

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
        tell_starter(&Word::Failed(failure.into()));
    }
    outcome
}

fn serve(global: &Global, args: &Serve, printer: &Printer) -> Outcome {
    reachable(args)?;
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
    let Some(lock) = folder.move_in().map_err(unusable)? else {
        return Err(Failure::new(
            Exit::Fixable,
            "host::running",
            format!("a host already lives in {}", folder.path().display()),
        )
        .help("use it (`notation host status`), or stop it first (`notation host stop`)"));
    };
    log::to_stderr(args.log_format);
    let workerd = match &args.workerd {
        Some(given) => block_on(async {
            notation_runtime::workerd::ensure(Path::new("."), Some(given), &())
                .await
                .map_err(workerd::missing)
        })?,
        None => workerd::ensure(printer)?,
    };
    block_on_all_cores(live(args, &folder, &lock, project, workerd, printer))
}

async fn live(
    args: &Serve,
    folder: &Folder,
    lock: &Lock,
    project: PathBuf,
    workerd: PathBuf,
    printer: &Printer,
) -> Outcome {
    let kept = folder.ports();
    let kept = |port: fn(Ports) -> u16| kept.map(port);
    let api = bind(args.listen, kept(|ports| ports.api), folder).await?;
    let pages = bind(args.status, kept(|ports| ports.status), folder).await?;
    let wanted = same_port(args.ingress, kept(|ports| ports.ingress));
    let blobs = Arc::new(HostBlobs::default());
    let own_name = args.public_origin.as_ref().map(Origin::host);
    let plane = Arc::new(Plane::beside(own_name));
    // Before anything runs: what refuses to open has nothing to end.
    let host = Host::open(config(args, folder)?, plane.clone())
        .await
        .map_err(|error| not_opened(&error, args, folder))?;
    blobs.of(host.clone());
    let runtime = Runtime::start(RuntimeConfig {
        run_dir: folder.run_dir(),
        data_dir: folder.runtime(),
        workerd,
        listen: wanted,
        scheme: args.ingress_scheme.into(),
        connections: args.limits.max_connections,
        patience: args.limits.read_timeout,
        drain_deadline: DRAIN_DEADLINE,
        blobs: blobs.clone(),
        log: Arc::new(TracingLog),
    })
    .await
    .map_err(|error| not_started(&error, args.ingress, folder))?;
    let ingress = runtime.listen();
    plane.run_on(runtime);
    token(&host, folder).await?;
    let key = status_key(folder)?;
    host.converge().await;

    let socket = folder.socket();
    let unheard = |source| {
        let path = socket.clone();
        unusable(FolderError {
            path,
            verb: "made",
            source,
        })
    };
    let control = control::listen(&socket).map_err(unheard)?;
    control.set_nonblocking(true).map_err(unheard)?;
    let control = UnixListener::from_std(control).map_err(unheard)?;
    let info = Info {
        pid: std::process::id(),
        build: folder::build(),
        project,
        started_at: printer::now(),
        api: local(&api, args.listen, folder)?,
        ingress,
        control: socket.clone(),
        status: Some(local(&pages, args.status, folder)?),
        tls: args.tls_cert.is_some(),
    };
    let ports = Ports {
        api: info.api.port(),
        ingress: info.ingress.port(),
        status: info.status.map_or(0, |status| status.port()),
    };
    folder.keep_ports(ports).map_err(unusable)?;
    // Whoever reads that it serves may stop it at once.
    let mut interrupts = Interrupts::listen();
    // Whoever sees the control plane answer finds the folder's word and socket there.
    folder.say(&info).map_err(unusable)?;
    let (stop, stopped) = watch::channel(false);
    let closing = || {
        let mut stopped = stopped.clone();
        async move {
            // The sender lives until the end of `live`.
            let _ = stopped.wait_for(|stop| *stop).await;
        }
    };
    let serving = tokio::spawn({
        let (host, closing) = (host.clone(), closing());
        async move { host.serve(api, closing).await }
    });
    tokio::spawn({
        let (host, closing) = (host.clone(), closing());
        async move { host.serve_status(pages, &key, closing).await }
    });
    let house = tokio::spawn({
        let (host, pause) = (host.clone(), args.limits.collect_every);
        async move { host.keep_house(pause).await }
    });
    tokio::spawn(answers::answer_all(
        control,
        host.clone(),
        plane.clone(),
        stop.clone(),
    ));
    tracing::info!(api = %info.api, %ingress, "the host serves");
    if args.detached {
        tell_starter(&Word::Ready(info));
        // The starter reads no further; what is printed from here on belongs into the log.
        let _ = rustix::stdio::dup2_stdout(io::stderr());
    } else {
        ready(&info, folder, args.log_format, printer);
    }

    let homeless = tokio::select! {
        () = interrupts.next() => false,
        () = closing() => false,
        () = displaced(lock) => true,
    };
    match homeless {
        true => tracing::warn!("the folder of the host was removed or moved: the host stops"),
        false => tracing::info!("the host stops"),
    }
    let end = tokio::time::Instant::now() + args.limits.grace;
    stop.send_replace(true);
    house.abort();
    // First what was asked of the control plane comes to its end, workers and all; it takes the
    // grace at most. Then the workers do, with what they are answering, in what is left of it.
    match serving.await {
        Ok(Err(error)) => tracing::warn!(%error, "the control plane ended badly"),
        Err(error) => tracing::warn!(%error, "the control plane ended badly"),
        Ok(Ok(())) => {}
    }
    if let Some(runtime) = plane.take() {
        match Arc::try_unwrap(runtime) {
            Ok(runtime) => {
                let left = end.saturating_duration_since(tokio::time::Instant::now());
                runtime.shutdown_within(left).await;
            }
            // Somebody still converges; dropping the last one ends every process at once.
            Err(shared) => drop(shared),
        }
    }
    if homeless {
        // What has these names by now is another host's.
        return Err(Failure::new(
            Exit::Stopped,
            "host::folder_removed",
            format!("{} was removed or moved while its host ran", folder.path().display()),
        )
        .help("deploy again, from where the folder is now: a host is started there; what was removed is gone"));
    }
    if let Err(error) = host.flush().await {
        tracing::error!(%error, "the last changes may not be durable");
    }
    if lock.is_in_place() {
        // It may be gone already. Told to stop in a folder that was moved, it leaves the name alone:
        // that may be another host's by now.
        let _ = std::fs::remove_file(&socket);
    }
    Ok(Exit::Done)
}

/// Waits until the folder is no longer in its place: nobody finds or stops what lives in it, and the
/// paths that it goes by may be another host's.
async fn displaced(lock: &Lock) {
    let mut looks = tokio::time::interval(LOOK_FOR_FOLDER);
    while lock.is_in_place() {
        looks.tick().await;
    }
}

async fn bind(
    given: SocketAddr,
    kept: Option<u16>,
    folder: &Folder,
) -> Result<TcpListener, Failure> {
    let address = same_port(given, kept);
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| taken(given, address, folder, &error))
}

fn local(
    listener: &TcpListener,
    given: SocketAddr,
    folder: &Folder,
) -> Result<SocketAddr, Failure> {
    let address = listener.local_addr();
    address.map_err(|error| taken(given, given, folder, &error))
}

/// The key of the status page; made when there is none. Who can read the folder can look.
fn status_key(folder: &Folder) -> Result<String, Failure> {
    if let Some(key) = folder.secret(STATUS_KEY) {
        return Ok(key);
    }
    // 132 bits of a token are enough for a listener on loopback, and fit into a line.
    let key = fresh_token()[4..26].to_owned();
    folder.keep_secret(STATUS_KEY, &key).map_err(unusable)?;
    Ok(key)
}

/// An address given with port 0 takes the port of the last start, so that it stays what it was.
fn same_port(given: SocketAddr, kept: Option<u16>) -> SocketAddr {
    match (given.port(), kept) {
        (0, Some(port)) => SocketAddr::new(given.ip(), port),
        _ => given,
    }
}

/// The token of the folder; made and installed when there is none, or it was revoked.
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
    // Never the text that was there: whoever revoked it meant that.
    let text = fresh_token();
    folder.keep_secret(TOKEN, &text).map_err(unusable)?;
    host.install_token(&text, grant).await.map_err(failed)?;
    Ok(())
}

fn ready(info: &Info, folder: &Folder, log: LogFormat, printer: &Printer) {
    printer.event(
        "host",
        json!({
            "running": true,
            "pid": info.pid,
            "endpoint": info.endpoint(),
            "ingress": format!("http://{}", info.ingress),
            "status_page": info.status.map(|status| format!("http://{status}/")),
        }),
    );
    if log == LogFormat::Json {
        // The log says it; whoever reads it as JSON wants nothing else in it.
        return;
    }
    printer.say(format!("control plane  {}", info.endpoint()));
    printer.say(format!("workers        http://{}", info.ingress));
    if let Some(status) = info.status {
        printer.say(format!(
            "status page    http://{status}/ (its password is in {})",
            folder.path().join(STATUS_KEY).display()
        ));
    }
    printer.say(format!("data           {}", folder.path().display()));
    printer.say(format!(
        "token          in {}",
        folder.path().join(TOKEN).display()
    ));
    printer.say("stop it with Ctrl-C");
}

/// `given` with port 0 took the port of the last start.
fn taken(given: SocketAddr, address: SocketAddr, folder: &Folder, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AddrInUse {
        let failure = Failure::new(
            Exit::Fixable,
            "host::port_taken",
            format!("port {} is used by another program", address.port()),
        );
        return failure.help(if given.port() == 0 {
            format!(
                "stop that program, or remove {} to get other ports (addresses of workers change then)",
                folder.path().join("ports.json").display()
            )
        } else {
            "stop that program, or give another port".to_owned()
        });
    }
    Failure::new(
        Exit::Fixable,
        "host::arguments",
        format!("{address} cannot be listened on: {error}"),
    )
    .help("give an address of this machine with a free port")
}

fn not_started(error: &StartError, given: SocketAddr, folder: &Folder) -> Failure {
    match error {
        StartError::Listen { address, source } => taken(given, *address, folder, source),
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

/// Writes the one line that the starter waits for. A starter that went away is no problem.
fn tell_starter(word: &Word) {
    let line = serde_json::to_string(word).expect("it is plain data");
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
