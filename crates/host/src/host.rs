//! The host: what is opened once and shared by every request.

use crate::artifact_store::{ArtifactStore, Folder};
use crate::config::{HostConfig, OpenError, is_endpoint_domain};
use crate::contract_copy;
use crate::contracts::Contracts;
use crate::data_plane::DataPlane;
use crate::failure::HostError;
use crate::key_file;
use crate::metrics::Metrics;
use crate::plane::{Plane, Planes};
use crate::secret::{Keys, random_text};
use crate::snapshot::Snapshot;
use crate::store::{Store, Write};
use crate::tls::Certificate;
use crate::token::{Grant, TokenRecord, Tokens, fresh_token, hash};
use bytes::Bytes;
use notation_edge::{Manifest, Uid};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::watch;

/// A running host. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub config: HostConfig,
    pub contracts: Contracts,
    pub data_plane: Arc<dyn DataPlane>,
    pub artifacts: Arc<dyn ArtifactStore>,
    /// Held for reading while bytes are stored and their hold is not; a collection waits for that.
    pub arrivals: tokio::sync::RwLock<()>,
    pub keys: Keys,
    pub tokens: Tokens,
    /// One permit per request that is being answered.
    pub requests: Arc<tokio::sync::Semaphore>,
    /// One permit per connection of the control plane.
    pub connections: Arc<tokio::sync::Semaphore>,
    pub metrics: Metrics,
    pub store: Store,
    /// Place of the newest resource in the order of makings.
    pub made: AtomicU64,
    pub planes: RwLock<Planes>,
    /// One at a time reads the store again.
    pub rereading: tokio::sync::Mutex<()>,
    worlds: watch::Sender<Snapshot>,
    /// Snapshots announced so far.
    announced: Mutex<u64>,
    /// The newest announced snapshot that what runs was made equal to.
    converged: tokio::sync::Mutex<u64>,
    _lock: std::fs::File,
}

impl Host {
    /// Opens the data directory, installs the contract set and rebuilds every world.
    ///
    /// Call [`Host::converge`] afterwards to bring the data plane back. Errors: `OpenError`, for
    /// a contract set with every reason.
    pub async fn open(
        config: HostConfig,
        data_plane: Arc<dyn DataPlane>,
    ) -> Result<Host, OpenError> {
        let domain = &config.endpoint_domain;
        if !is_endpoint_domain(domain) {
            return Err(OpenError::EndpointDomain(domain.clone()));
        }
        let contracts =
            Contracts::load(config.contracts.as_deref(), config.conformance.as_deref())?;
        if let Some(tls) = &config.tls {
            Certificate::open(tls)?;
        }
        let dir = &config.data_dir;
        let io = |source| OpenError::DataDir {
            path: dir.clone(),
            source,
        };
        make_private(dir).map_err(io)?;
        let lock = lock(dir)?;
        let artifacts = match &config.artifacts {
            Some(artifacts) => artifacts.clone(),
            None => Arc::new(Folder::open(dir.join("blobs")).map_err(io)?),
        };
        let store = Store::open(&dir.join("host.sqlite"))?;
        let oldest = config.clock.before(config.keep_records);
        let epoch = store.epoch();
        let forget = vec![Write::Forget(oldest)];
        store.submit(epoch, forget).durable().await?;
        let loaded = store.load()?;
        let keys = key_file::keys(&dir.join("host.key"), &loaded)?;
        let contracts = contract_copy::suited(contracts, &config, &loaded)?;
        let host = Host {
            inner: Arc::new(Inner {
                contracts,
                data_plane,
                artifacts,
                arrivals: tokio::sync::RwLock::new(()),
                keys,
                tokens: Tokens::default(),
                requests: Arc::new(tokio::sync::Semaphore::new(config.max_requests)),
                connections: Arc::new(tokio::sync::Semaphore::new(config.max_connections)),
                metrics: Metrics::default(),
                store,
                made: AtomicU64::new(0),
                planes: RwLock::default(),
                rereading: tokio::sync::Mutex::default(),
                worlds: watch::Sender::new(Snapshot::default()),
                // What was loaded is the first one, also when it is nothing.
                announced: Mutex::new(1),
                converged: tokio::sync::Mutex::new(0),
                _lock: lock,
                config,
            }),
        };
        for (hash, record) in loaded.tokens {
            host.inner.tokens.insert(hash, record);
        }
        host.take_up(epoch, loaded.tenants);
        Ok(host)
    }

    /// Writes what no plane holds.
    async fn write(&self, write: Write) -> Result<(), HostError> {
        let store = &self.inner.store;
        Ok(store.submit(store.epoch(), vec![write]).durable().await?)
    }

    /// Waits until everything that was answered is on disk.
    pub async fn flush(&self) -> Result<(), HostError> {
        Ok(self
            .inner
            .store
            .submit(self.inner.store.epoch(), Vec::new())
            .durable()
            .await?)
    }

    /// Snapshots of every tenant, newest last; each is durable.
    pub fn worlds(&self) -> watch::Receiver<Snapshot> {
        self.inner.worlds.subscribe()
    }

    /// The installed contract set.
    pub fn contracts(&self) -> &Contracts {
        &self.inner.contracts
    }

    /// Bytes of a blob by digest, whoever holds it; for the data plane. Errors: `NotFound`.
    pub async fn blob(&self, digest: &str) -> std::io::Result<Bytes> {
        self.inner.artifacts.read(digest).await
    }

    /// A committed manifest by digest, whoever holds it; for the data plane.
    pub fn manifest(&self, digest: &str) -> Option<Arc<Manifest>> {
        let planes = self.planes();
        planes
            .iter()
            .find_map(|plane| plane.world().manifest(digest).cloned())
    }

    /// Mints a token; its text is given once and never stored. Only a hash is.
    pub async fn create_token(&self, grant: Grant) -> Result<(TokenRecord, String), HostError> {
        let text = fresh_token();
        let record = self.install_token(&text, grant).await?;
        Ok((record, text))
    }

    /// Adds a token whose text the caller chose, e.g. one that is kept in a file.
    ///
    /// Errors: `Refused` for names that cannot be.
    pub async fn install_token(&self, text: &str, grant: Grant) -> Result<TokenRecord, HostError> {
        grant.judge().map_err(HostError::Refused)?;
        let record = TokenRecord {
            id: format!("tok_{}", random_text(10)),
            grant,
            created: self.inner.config.clock.now(),
        };
        let hash = hash(text);
        self.write(Write::Token(hash, record.clone())).await?;
        self.inner.tokens.insert(hash, record.clone());
        Ok(record)
    }

    /// Every token, without its text.
    pub fn tokens(&self) -> Vec<TokenRecord> {
        self.inner.tokens.list()
    }

    /// Revokes a token by id; whether there was one. It takes effect before this returns.
    pub async fn revoke_token(&self, id: &str) -> Result<bool, HostError> {
        let found = self.inner.tokens.remove(id);
        self.write(Write::RemoveToken(id.to_owned())).await?;
        Ok(found)
    }

    pub(crate) fn now(&self) -> String {
        self.inner.config.clock.now()
    }

    /// A uid: short, so that two fit into one hostReason, and random, so that it occurs nowhere
    /// by accident (host API §3.5).
    pub(crate) fn mint(&self) -> Uid {
        Uid::new(format!("r{}", random_text(16)))
    }

    /// The next place in the order in which resources are made on this host.
    pub(crate) fn next_made(&self) -> u64 {
        self.inner.made.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Tells everybody who watches that a tenant changed; returns the number of the announcement.
    pub(crate) fn announce(&self, plane: &Plane) -> u64 {
        // One at a time, so that an older snapshot never replaces a newer one.
        let mut announced = self
            .inner
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.inner.worlds.send_modify(|worlds| {
            worlds
                .tenants
                .insert(plane.tenant.clone(), plane.snapshot());
        });
        *announced += 1;
        *announced
    }

    /// Makes what runs equal to the newest world; waits for it within the configured time.
    pub async fn converge(&self) {
        let wanted = self.announced();
        self.converge_to(wanted).await;
    }

    fn announced(&self) -> u64 {
        *self
            .inner
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn converge_to(&self, wanted: u64) {
        let limit = self.inner.config.converge_timeout;
        let host = self.clone();
        // Whoever gives up waiting does not stop it: what was deployed comes to serve all the same.
        let work = tokio::spawn(async move {
            let mut converged = host.inner.converged.lock().await;
            if *converged >= wanted {
                return;
            }
            let current = host.announced();
            let snapshot = host.inner.worlds.borrow().clone();
            match host.inner.data_plane.converge(&snapshot).await {
                Ok(()) => *converged = current,
                Err(error) => tracing::warn!(%error, "what runs is not what was deployed"),
            }
        });
        if tokio::time::timeout(limit, work).await.is_err() {
            tracing::warn!(
                seconds = limit.as_secs(),
                "the data plane takes long; not waiting for it"
            );
        }
    }
}

fn make_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

/// One host per data directory; the lock goes with the process.
fn lock(dir: &Path) -> Result<std::fs::File, OpenError> {
    let io = |source| OpenError::DataDir {
        path: dir.to_owned(),
        source,
    };
    let file = std::fs::File::create(dir.join("host.lock")).map_err(io)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse {
            path: dir.to_owned(),
        }),
        Err(error) => Err(io(error.into())),
    }
}
