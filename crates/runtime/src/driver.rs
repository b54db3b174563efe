//! The task that drives one version's process through its life, as the table in `life.rs`
//! says.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::bundle::{Bundle, BundleModule};
use crate::config::{Egress, ProcessConfig, encode};
use crate::life::{Action, Event, State, next};
use crate::load;
use crate::log::{self, LogLevel, LogLine, LogSink, LogSource};
use crate::places::Places;
use crate::plan::{Blobs, Uid, VersionSpec};
use crate::process::{self, MOST_WAITING_LINES, Printed, Process, StartError};
use crate::sockets::{Bound, Listening};
use crate::traffic::Traffic;
use crate::upstream::{Upstream, UpstreamError};
use crate::version::{MOST_CALLS, Phase, StartFailure, Version, Workshop, chain};

/// Longest time from starting a process to its answer.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// A process is asked this often, must answer within the limit, and may miss this many.
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBE_LIMIT: Duration = Duration::from_secs(1);
const PROBES_MISSED: u32 = 3;
/// Running this long forgets earlier ends.
const SETTLED_AFTER: Duration = Duration::from_secs(60);
/// From asking a drained process to end to ending it.
const STOP_DEADLINE: Duration = Duration::from_secs(3);
/// How often a draining process is asked for its tasks.
const PENDING_EVERY: Duration = Duration::from_millis(50);

/// Makes the sockets and the driver; starts nothing yet. The second value is the socket
/// on which the process will ask the host; serve it until the version has ended.
pub(crate) fn open(
    shop: &Arc<Workshop>,
    uid: Uid,
    worker_name: String,
    spec: Arc<VersionSpec>,
) -> io::Result<(Arc<Version>, tokio::net::UnixListener)> {
    let listening = Listening::open(&shop.directory)?;
    let data = Bound::open(&shop.directory, 'd')?;
    let accepting = data.accepting()?;
    let (mailbox, events) = mpsc::unbounded_channel();
    let (announce, phase) = watch::channel(Phase {
        state: State::Cold,
        pid: None,
        failure: None,
    });
    let version = Arc::new(Version {
        uid,
        worker_name,
        spec,
        traffic: Traffic::default(),
        calls: Arc::new(Semaphore::new(MOST_CALLS)),
        http: Upstream::new(listening.http_path().to_owned()),
        events: Upstream::new(listening.events_path().to_owned()),
        phase,
        mailbox,
    });
    let driver = Driver::of(shop, &version, Held { listening, data }, announce);
    tokio::spawn(driver.run(events));
    Ok((version, accepting))
}

/// Sockets a version holds for as long as it lives.
pub(crate) struct Held {
    pub(crate) listening: Listening,
    pub(crate) data: Bound,
}

/// Writes log lines in the name of one version.
struct Told {
    uid: Uid,
    worker: String,
    log: Arc<dyn LogSink>,
    /// Known from the first start on.
    places: OnceLock<Places>,
}

impl Told {
    fn line(&self, level: LogLevel, source: LogSource, message: String) {
        self.log.line(LogLine {
            worker: self.worker.clone(),
            version: self.uid.clone(),
            source,
            level,
            message,
        });
    }

    fn host(&self, level: LogLevel, message: String) {
        self.line(level, LogSource::Runtime, message);
    }
}

enum Outcome {
    Event(Event),
    Up(Box<Process>),
    Failed(StartFailure),
}

/// Owns a version's process. Ends when the version is gone.
pub(crate) struct Driver {
    shop: Arc<Workshop>,
    spec: Arc<VersionSpec>,
    traffic: Traffic,
    http: Upstream,
    events: Upstream,
    told: Arc<Told>,
    held: Held,
    announce: watch::Sender<Phase>,
    state: State,
    process: Option<Box<Process>>,
    /// What the current state waits for besides the process and the mailbox.
    work: Option<BoxFuture<'static, Outcome>>,
}

impl Driver {
    /// The driver of `version`, which tells what it does through `announce`.
    pub(crate) fn of(
        shop: &Arc<Workshop>,
        version: &Version,
        held: Held,
        announce: watch::Sender<Phase>,
    ) -> Driver {
        let told = Told {
            uid: version.uid.clone(),
            worker: version.worker_name.clone(),
            log: shop.log.clone(),
            places: OnceLock::new(),
        };
        Driver {
            shop: shop.clone(),
            spec: version.spec.clone(),
            traffic: version.traffic.clone(),
            http: version.http.clone(),
            events: version.events.clone(),
            told: Arc::new(told),
            held,
            announce,
            state: State::Cold,
            process: None,
            work: None,
        }
    }

    /// Drives until the version is gone.
    pub(crate) async fn run(mut self, mut mailbox: mpsc::UnboundedReceiver<Event>) {
        let mut held = true;
        loop {
            let outcome = tokio::select! {
                event = mailbox.recv(), if held => {
                    // Nobody holds the version any more: that is leaving, too.
                    held = event.is_some();
                    Outcome::Event(event.unwrap_or(Event::Left))
                }
                status = ended(&mut self.process) => {
                    self.buried(&status);
                    Outcome::Event(Event::Exited)
                }
                () = self.shop.ended(), if self.state == State::LastStart => {
                    Outcome::Event(Event::Overdue)
                }
                outcome = finished(&mut self.work) => {
                    self.work = None;
                    outcome
                }
            };
            if !self.handle(outcome) {
                return;
            }
        }
    }

    /// Takes one step of the table; false when the version is gone.
    fn handle(&mut self, outcome: Outcome) -> bool {
        let mut failure = self.announce.borrow().failure.clone();
        let event = match outcome {
            Outcome::Event(event) => event,
            Outcome::Up(process) => {
                self.told.host(
                    LogLevel::Debug,
                    format!("serving in process {}", process.pid()),
                );
                self.process = Some(process);
                failure = None;
                Event::Served
            }
            Outcome::Failed(error) => {
                self.told.host(
                    LogLevel::Error,
                    format!("does not start: {}", chain(&error)),
                );
                failure = Some(Arc::new(error));
                Event::StartFailed
            }
        };
        let (state, actions) = match next(self.state, event) {
            Ok(step) => step,
            Err(error) => {
                tracing::error!(%error, version = %self.told.uid, "the supervisor met an event out of order");
                return true;
            }
        };
        self.state = state;
        for action in actions {
            self.act(*action);
        }
        let pid = self.process.as_ref().map(|process| process.pid());
        self.announce.send_replace(Phase {
            state,
            pid,
            failure,
        });
        state != State::Stopped
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start => self.work = Some(self.start().boxed()),
            Action::Delay(delay) => {
                self.work = Some(after(delay, Event::DelayOver));
            }
            Action::Watch => self.work = Some(self.watch()),
            Action::Drain => self.work = Some(self.drain()),
            Action::Terminate => {
                if let Some(process) = &self.process {
                    process.terminate();
                }
                self.work = Some(after(STOP_DEADLINE, Event::Overdue));
            }
            Action::Kill => {
                if let Some(process) = &mut self.process {
                    process.kill();
                }
            }
            Action::Close => self.work = None,
        }
    }

    /// The process has ended, wanted or not.
    fn buried(&mut self, status: &str) {
        let pid = self.process.take().map_or(0, |process| process.pid());
        self.shop.spawner.buried(pid);
        self.http.forget();
        self.events.forget();
        self.work = None;
        if !matches!(self.state, State::Stopping) {
            self.told.host(
                LogLevel::Warn,
                format!("process {pid} ended unexpectedly ({status})"),
            );
        }
    }

    fn start(&self) -> impl Future<Output = Outcome> + use<> {
        let shop = self.shop.clone();
        let spec = self.spec.clone();
        let told = self.told.clone();
        let events = self.events.clone();
        let data = self.held.data.path().to_owned();
        let inherited = self.held.listening.inherited();
        async move {
            let _permit = shop.starts.acquire().await;
            let inherited = match inherited {
                Ok(inherited) => inherited,
                Err(error) => {
                    return Outcome::Failed(StartFailure::Process {
                        detail: error.to_string(),
                    });
                }
            };
            let (config, places) = match configuration(&*shop.blobs, &spec, &data).await {
                Ok(config) => config,
                Err(failure) => return Outcome::Failed(failure),
            };
            // A version's modules never change.
            let places = told.places.get_or_init(|| places);
            let printed = printer(told.clone());
            match process::start(
                &shop.spawner,
                &shop.workerd,
                &inherited,
                config,
                START_DEADLINE,
                printed,
            )
            .await
            {
                Ok(process) => greet(process, &events, &spec).await,
                Err(error) => Outcome::Failed(refused(error, places)),
            }
        }
    }

    /// Asks the process for a sign of life until it fails to give one.
    fn watch(&self) -> BoxFuture<'static, Outcome> {
        let events = self.events.clone();
        let told = self.told.clone();
        let troubled = matches!(self.state, State::Warm { attempt } if attempt > 0);
        let look = async move {
            let (mut missed, mut unasked) = (0, 0);
            loop {
                tokio::time::sleep(PROBE_EVERY).await;
                match tokio::time::timeout(PROBE_LIMIT, events.get("/pending")).await {
                    Ok(Ok(_)) => (missed, unasked) = (0, 0),
                    // Nothing was asked, so nothing was missed.
                    Ok(Err(error @ UpstreamError::Shortage(_))) => {
                        unasked += 1;
                        let level = match unasked {
                            1 => LogLevel::Warn,
                            _ => LogLevel::Debug,
                        };
                        told.host(
                            level,
                            format!("was not asked for a sign of life: {}", chain(&error)),
                        );
                    }
                    Ok(Err(_)) | Err(_) => missed += 1,
                }
                if missed == PROBES_MISSED {
                    told.host(
                        LogLevel::Error,
                        "does not answer any more and is ended".to_owned(),
                    );
                    return Outcome::Event(Event::Hung);
                }
            }
        };
        async move {
            if !troubled {
                return look.await;
            }
            tokio::select! {
                outcome = look => outcome,
                () = tokio::time::sleep(SETTLED_AFTER) => Outcome::Event(Event::Settled),
            }
        }
        .boxed()
    }

    /// Waits for invocations, then for the tasks they registered.
    fn drain(&self) -> BoxFuture<'static, Outcome> {
        let traffic = self.traffic.clone();
        let events = self.events.clone();
        let told = self.told.clone();
        let shop = self.shop.clone();
        async move {
            let quiet = async {
                traffic.drained().await;
                while pending(&events).await != Some(0) {
                    tokio::time::sleep(PENDING_EVERY).await;
                }
            };
            let since = tokio::time::Instant::now();
            tokio::select! {
                () = quiet => return Outcome::Event(Event::Drained),
                () = shop.overdue() => {}
            }
            let (count, tasks) = (traffic.count(), pending(&events).await);
            let tasks = tasks.map_or("an unknown number of".to_owned(), |tasks| tasks.to_string());
            let seconds = since.elapsed().as_secs();
            told.host(
                LogLevel::Warn,
                format!("cut off {count} invocations and {tasks} tasks after {seconds}s"),
            );
            Outcome::Event(Event::Overdue)
        }
        .boxed()
    }
}

async fn ended(process: &mut Option<Box<Process>>) -> String {
    match process {
        Some(process) => match process.ended().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}

async fn finished(work: &mut Option<BoxFuture<'static, Outcome>>) -> Outcome {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn after(delay: Duration, event: Event) -> BoxFuture<'static, Outcome> {
    tokio::time::sleep(delay)
        .map(move |()| Outcome::Event(event))
        .boxed()
}

/// The encoded configuration with the modules' bytes, and the places of these.
async fn configuration(
    blobs: &dyn Blobs,
    spec: &VersionSpec,
    data: &Path,
) -> Result<(Vec<u8>, Places), StartFailure> {
    let modules = try_join_all(spec.modules.iter().map(async |module| {
        let bytes = blobs.read(&module.digest).await;
        let bytes = bytes.map_err(|source| StartFailure::Blob {
            module: module.name.clone(),
            source,
        })?;
        Ok::<_, StartFailure>(BundleModule {
            name: module.name.clone(),
            media_type: module.media_type.clone(),
            bytes,
        })
    }));
    let bundle = Bundle {
        main_module: spec.main_module.clone(),
        modules: modules.await?,
    };
    let modules = load::classify(&bundle)?;
    let places = Places::of(&bundle.modules);
    let config = encode(&ProcessConfig {
        main_module: &spec.main_module,
        modules: &modules,
        environment: spec
            .environment
            .iter()
            .map(|(name, capability)| (name.as_str(), capability))
            .collect(),
        data_socket: Some(data),
        egress: Egress::Public,
    });
    Ok((config, places))
}

/// A process serves once it has said that it exports what the version declares.
async fn greet(mut process: Process, events: &Upstream, spec: &VersionSpec) -> Outcome {
    let checked = match load::report(events).await {
        Ok(report) => load::exports(report)
            .and_then(|exports| exports.cover(spec.handlers.iter().copied()))
            .map_err(StartFailure::Load),
        Err(detail) => Err(StartFailure::Process { detail }),
    };
    match checked {
        Ok(()) => Outcome::Up(Box::new(process)),
        Err(failure) => {
            process.kill();
            let _ = process.ended().await;
            Outcome::Failed(failure)
        }
    }
}

fn refused(error: StartError, places: &Places) -> StartFailure {
    if let StartError::Ended { said } = &error {
        return match load::load_error(said, places) {
            Some(error) => StartFailure::Load(error),
            None => StartFailure::Process {
                detail: format!("{error}: {}", said.join("; ")),
            },
        };
    }
    StartFailure::Process {
        detail: chain(&error),
    }
}

/// Sends what a process prints to the log.
fn printer(told: Arc<Told>) -> mpsc::Sender<Printed> {
    let (send, mut lines) = mpsc::channel(MOST_WAITING_LINES);
    tokio::spawn(async move {
        while let Some(printed) = lines.recv().await {
            let (level, source, message) = log::read(&printed);
            let message = match (source, told.places.get()) {
                (LogSource::Code | LogSource::Uncaught, Some(places)) => places.tell(&message),
                (LogSource::Runtime, _) | (_, None) => message,
            };
            told.line(level, source, message);
        }
    });
    send
}

#[derive(Deserialize)]
struct Pending {
    pending: u64,
}

async fn pending(events: &Upstream) -> Option<u64> {
    let answer = tokio::time::timeout(PROBE_LIMIT, events.get("/pending"))
        .await
        .ok()?
        .ok()?;
    serde_json::from_slice::<Pending>(&answer)
        .ok()
        .map(|answer| answer.pending)
}
