//! The running data plane of a host.

mod ahead;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::address::Addresses;
use crate::bundle::Bundle;
use crate::capability;
use crate::cron;
use crate::crowd::Crowd;
use crate::data::{Data, MigrationError, MigrationFile};
use crate::delivery;
use crate::descriptors::connections_that_fit;
use crate::driver;
use crate::ingress::{Front, Ingress, endpoints, serve};
use crate::life::State;
use crate::load::{Exports, InspectError, inspect};
use crate::log::LogSink;
use crate::plan::{Blobs, Uid, VersionSpec, WorkerPlan};
use crate::router::{RouteTable, Router, Selection, routes};
use crate::scheme::Scheme;
use crate::sockets::SocketDirectory;
use crate::spawner::Spawner;
use crate::status::{Status, status};
use crate::sweep;
use crate::unserving::{ConvergeError, Unserving};
use crate::version::{MOST_STARTS, Version, Workshop};

pub use ahead::Ahead;

/// What a runtime is started with.
pub struct RuntimeConfig {
    /// Directory for sockets and process marks; emptied at start. Keep its path short.
    pub run_dir: PathBuf,
    /// Directory for everything that survives a restart.
    pub data_dir: PathBuf,
    /// The `workerd` binary, see [`crate::workerd::ensure`].
    pub workerd: PathBuf,
    /// Loopback address of the ingress that routes by host name; port 0 picks one.
    pub listen: SocketAddr,
    /// What clients of the ingress speak: HTTPS once a proxy with TLS stands in front of it.
    pub scheme: Scheme,
    /// Connections of clients at a time, at all addresses together; no more than
    /// [`connections_that_fit`]. Requests on further ones are answered 503.
    pub connections: usize,
    /// How long a client may take for the head of a request, also of the next one on a
    /// connection that it keeps.
    pub patience: Duration,
    /// Longest wait for invocations and tasks of a version that is stopped.
    pub drain_deadline: Duration,
    /// Where module bytes come from.
    pub blobs: Arc<dyn Blobs>,
    /// Where the lines of worker processes go.
    pub log: Arc<dyn LogSink>,
}

/// Longest drain when nothing else is said (edge runtime contract, reading 16).
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(30);
/// Bundles that are checked at the same time. The host lets no tenant have more than a few.
const MOST_INSPECTIONS: usize = 16;

/// Why a runtime does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Only loopback addresses are served: there is no TLS here.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The ingress address cannot be listened on.
    #[error("{address} cannot be listened on")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A directory cannot be used.
    #[error("{} cannot be used", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The thread that starts processes could not be made.
    #[error("worker processes cannot be started")]
    Spawner(#[source] io::Error),
}

/// A running data plane. Dropped, it lets go of everything as [`Runtime::shutdown`] does,
/// but waits for nothing.
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    shop: Arc<Workshop>,
    router: Arc<Router>,
    data: Arc<Data>,
    ingress: Arc<Ingress>,
    listen: SocketAddr,
    stop: CancellationToken,
    inspections: Semaphore,
    /// One change at a time.
    changing: tokio::sync::Mutex<Arc<WorkerPlan>>,
    /// What cron and queues follow.
    followed: watch::Sender<Arc<WorkerPlan>>,
    versions: Mutex<Versions>,
    _sockets: SocketDirectory,
}

#[derive(Default)]
struct Versions {
    /// By uid, as the latest plan describes them.
    wanted: BTreeMap<Uid, Arc<Version>>,
    /// Started before a plan gives them traffic.
    ahead: Vec<Arc<Version>>,
    /// Routed away and not gone yet, or replaced but still answering.
    others: Vec<Arc<Version>>,
}

impl Runtime {
    /// Opens the ingress. No worker runs until [`Runtime::converge`].
    ///
    /// Errors: [`StartError`].
    pub async fn start(config: RuntimeConfig) -> Result<Runtime, StartError> {
        let RuntimeConfig {
            run_dir,
            data_dir,
            workerd,
            listen,
            scheme,
            connections,
            patience,
            drain_deadline,
            blobs,
            log,
        } = config;
        if !listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(listen));
        }
        let connections = connections.min(connections_that_fit());
        let unusable = |path: &PathBuf| {
            let path = path.clone();
            move |source| StartError::Directory { path, source }
        };
        std::fs::create_dir_all(&data_dir).map_err(unusable(&data_dir))?;
        let addresses = Arc::new(Addresses::load(&data_dir).map_err(unusable(&data_dir))?);
        let data = Arc::new(Data::open(&data_dir).map_err(unusable(&data_dir))?);
        sweep::sweep(&run_dir, &workerd);
        let sockets = SocketDirectory::prepare(&run_dir).map_err(unusable(&run_dir))?;
        let refused = |source| StartError::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let listen = listener.local_addr().map_err(refused)?;
        let shop = Workshop {
            spawner: Spawner::start(sweep::Marks::in_directory(sockets.path()))
                .map_err(StartError::Spawner)?,
            workerd,
            directory: sockets.path().to_owned(),
            blobs: blobs.clone(),
            log,
            drain_deadline,
            end: watch::Sender::new(None),
            starts: Semaphore::new(MOST_STARTS),
        };
        let router = Arc::new(Router::default());
        let ingress = Arc::new(Ingress {
            router: router.clone(),
            addresses,
            blobs,
            crowd: Crowd::of(connections),
            patience,
        });
        let stop = CancellationToken::new();
        let (followed, plan) = watch::channel(Arc::new(WorkerPlan::default()));
        tokio::spawn(cron::run(
            Arc::downgrade(&router),
            plan.clone(),
            stop.clone(),
        ));
        tokio::spawn(delivery::run(
            Arc::downgrade(&router),
            data.clone(),
            plan,
            stop.clone(),
        ));
        tokio::spawn(serve(
            ingress.clone(),
            listener,
            Front::AnyHost(scheme),
            stop.clone(),
        ));
        let inner = Inner {
            shop: Arc::new(shop),
            router,
            data,
            ingress,
            listen,
            stop,
            inspections: Semaphore::new(MOST_INSPECTIONS),
            changing: tokio::sync::Mutex::default(),
            followed,
            versions: Mutex::new(Versions::default()),
            _sockets: sockets,
        };
        Ok(Runtime {
            inner: Arc::new(inner),
        })
    }

    /// Starts what `plan` would give traffic, and waits until it serves: whoever is about to accept
    /// `plan` learns whether it can be kept. Nothing is routed there before [`Runtime::converge`],
    /// which takes over what runs by then. `plan` may be of one tenant alone.
    ///
    /// Errors: [`ConvergeError`] with everything that does not come up after a few attempts.
    pub async fn start_ahead(&self, plan: &WorkerPlan) -> Result<Ahead, ConvergeError> {
        let ahead = Ahead::start(&self.inner, plan)?;
        ahead.serves().await?;
        Ok(ahead)
    }

    /// Brings what runs in line with `plan`: starts the versions that will take traffic,
    /// waits until they serve, switches routes in one go, then lets go of the rest, which
    /// finishes its requests by itself. The same plan again changes nothing.
    ///
    /// Errors: [`ConvergeError`] with everything that does not serve; all else is done.
    pub async fn converge(&self, plan: WorkerPlan) -> Result<(), ConvergeError> {
        let mut current = self.inner.changing.lock().await;
        let plan = Arc::new(plan);
        *current = plan.clone();
        self.inner.data.follow(plan.clone());
        let mut unserving = Vec::new();
        let started = self.inner.launch(&current, &mut unserving);
        join_all(started.iter().map(|version| version.ready())).await;
        self.inner.route(&current);
        self.inner.followed.send_replace(plan);
        let hostnames = current.endpoints.keys().cloned().collect();
        if let Err(error) = self
            .inner
            .ingress
            .addresses
            .set(&endpoints(&self.inner.ingress), hostnames)
            .await
        {
            unserving.push(Unserving::Address {
                detail: error.to_string(),
            });
        }
        for version in started {
            if matches!(version.phase.borrow().state, State::Warm { .. }) {
                continue;
            }
            unserving.push(Unserving::of(&version));
            tokio::spawn(route_when_serving(Arc::downgrade(&self.inner), version));
        }
        if unserving.is_empty() {
            Ok(())
        } else {
            Err(ConvergeError(unserving))
        }
    }

    /// What the main module of `bundle` exports, found by loading it in a throw-away process.
    ///
    /// Errors: [`InspectError`].
    pub async fn inspect(&self, bundle: &Bundle) -> Result<Exports, InspectError> {
        let inner = &self.inner;
        let _permit = inner
            .inspections
            .acquire()
            .await
            .expect("the semaphore is never closed");
        inspect(
            &inner.shop.spawner,
            &inner.shop.workerd,
            &inner.shop.directory,
            bundle,
        )
        .await
    }

    /// Applies the migrations that come next to the database of a `SQLiteDatabase`, each in
    /// one transaction with its ledger entry. Files at the start that are applied already,
    /// because the caller ended before it could note them, are skipped.
    ///
    /// Errors: [`MigrationError`]; files before the failing one stay applied.
    pub async fn migrate(
        &self,
        database: &Uid,
        files: Vec<MigrationFile>,
    ) -> Result<(), MigrationError> {
        self.inner.data.migrate(database, files).await
    }

    /// Every resource that data of bindings is kept of, whether it still exists or not.
    ///
    /// Errors: the data directory cannot be read.
    pub async fn kept(&self) -> io::Result<BTreeSet<Uid>> {
        self.inner.data.kept().await
    }

    /// Removes the data of a resource that is gone for good.
    ///
    /// Errors: what is kept cannot be removed.
    pub async fn forget(&self, uid: &Uid) -> io::Result<()> {
        self.inner.data.forget(uid).await
    }

    /// Address of the ingress that routes by host name.
    pub fn listen(&self) -> SocketAddr {
        self.inner.listen
    }

    /// Loopback address of the endpoint with this host name, when it is in the plan.
    pub fn address(&self, hostname: &str) -> Option<String> {
        self.inner.ingress.addresses.url(hostname)
    }

    /// What runs now.
    pub fn status(&self) -> Status {
        let versions = self
            .inner
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let all = versions.wanted.values();
        let all = all.chain(&versions.ahead).chain(&versions.others);
        Status {
            listen: Some(self.inner.listen),
            versions: all
                .map(|version| status(version))
                .filter(|status| status.state != State::Stopped)
                .collect(),
            addresses: self.inner.ingress.addresses.all(),
        }
    }

    /// [`Runtime::shutdown_within`] the drain deadline.
    pub async fn shutdown(self) {
        let grace = self.inner.shop.drain_deadline;
        self.shutdown_within(grace).await;
    }

    /// Stops accepting, lets invocations and tasks finish within `grace`, and ends every process.
    /// What takes longer is cut off, and the log says what.
    pub async fn shutdown_within(self, grace: Duration) {
        let end = tokio::time::Instant::now() + grace;
        self.inner.shop.end.send_replace(Some(end));
        let _change = self.inner.changing.lock().await;
        self.inner.stop.cancel();
        self.inner.ingress.addresses.close();
        self.inner.router.replace(RouteTable::default());
        let all: Vec<_> = {
            let mut versions = self
                .inner
                .versions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let Versions {
                wanted,
                ahead,
                others,
            } = std::mem::take(&mut *versions);
            wanted.into_values().chain(ahead).chain(others).collect()
        };
        for version in &all {
            version.leave();
        }
        join_all(all.iter().map(|version| version.ended())).await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
        self.ingress.addresses.close();
        self.router.replace(RouteTable::default());
        let versions = self
            .versions
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let all = versions.wanted.values();
        for version in all.chain(&versions.ahead).chain(&versions.others) {
            version.leave();
        }
    }
}

impl Inner {
    /// Versions of the plan that take traffic, started where they are new or described
    /// differently than before.
    fn launch(&self, plan: &WorkerPlan, unserving: &mut Vec<Unserving>) -> Vec<Arc<Version>> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut versions.wanted);
        for uid in plan.serving() {
            let Some(spec) = plan.versions.get(uid) else {
                let missing_values = plan.missing_values.get(uid).cloned().unwrap_or_default();
                unserving.push(Unserving::Unknown {
                    version: uid.clone(),
                    missing_values,
                });
                continue;
            };
            let kept = before.remove(uid).and_then(|version| {
                let same = *version.spec == *spec;
                if !same {
                    versions.others.push(version.clone());
                }
                same.then_some(version)
            });
            let ready = || {
                let ahead = &mut versions.ahead;
                let fits = |version: &Arc<Version>| version.uid == *uid && *version.spec == *spec;
                let at = ahead.iter().position(fits)?;
                Some(ahead.swap_remove(at))
            };
            let version = match kept.or_else(ready) {
                Some(version) => version,
                None => match self.open(plan, uid, spec) {
                    Ok(version) => version,
                    Err(error) => {
                        unserving.push(error);
                        continue;
                    }
                },
            };
            versions.wanted.insert(uid.clone(), version);
        }
        versions.others.extend(before.into_values());
        versions.wanted.values().cloned().collect()
    }

    /// Starts a version as `plan` describes it.
    fn open(
        &self,
        plan: &WorkerPlan,
        uid: &Uid,
        spec: &VersionSpec,
    ) -> Result<Arc<Version>, Unserving> {
        let name = plan
            .workers
            .get(&spec.worker)
            .map_or(spec.worker.as_str(), |worker| &worker.name);
        let spec = Arc::new(spec.clone());
        let opened = driver::open(&self.shop, uid.clone(), name.to_owned(), spec);
        let (version, listener) = opened.map_err(|error| Unserving::Sockets {
            version: uid.clone(),
            detail: error.to_string(),
        })?;
        tokio::spawn(capability::serve(
            self.router.clone(),
            self.data.clone(),
            version.clone(),
            listener,
        ));
        version.demand();
        Ok(version)
    }

    /// Switches to the plan's routes, then lets go of every version no route leads to.
    fn route(&self, plan: &WorkerPlan) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let table = routes(plan, &versions.wanted, &self.router.table());
        let routed: BTreeSet<*const Version> = table
            .workers
            .values()
            .flat_map(Selection::versions)
            .map(Arc::as_ptr)
            .collect();
        self.router.replace(table);
        versions
            .others
            .retain(|version| version.phase.borrow().state != State::Stopped);
        for version in &versions.others {
            if !routed.contains(&Arc::as_ptr(version)) {
                version.leave();
            }
        }
    }
}

/// Brings a version into its routes later than planned.
async fn route_when_serving(inner: std::sync::Weak<Inner>, version: Arc<Version>) {
    let mut phase = version.phase.clone();
    let done = phase
        .wait_for(|phase| matches!(phase.state, State::Warm { .. } | State::Stopped))
        .await;
    let serves = done.is_ok_and(|phase| phase.state != State::Stopped);
    if let Some(inner) = inner.upgrade().filter(|_| serves) {
        let plan = inner.changing.lock().await;
        inner.route(&plan);
    }
}
