//! The host's border to workers, kept by the worker runtime.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use notation_edge::{Exports, LedgerEntry, Uid};
use notation_host::{
    Ahead, BundleSource, ConvergeError, DataPlane, Host, SecretBytes, Snapshot, TenantSnapshot,
};
use notation_runtime::{
    Blobs, Bundle, BundleModule, InspectError, MigrationError, MigrationFile, Runtime, Secret,
    derive,
};

/// How often a bundle is loaded to see what it exports, when the process that loads it ends early.
const MOST_LOOKS: usize = 3;

/// Wires one host to one runtime.
#[derive(Default)]
pub struct Plane {
    runtime: Mutex<Option<Arc<Runtime>>>,
    /// Host name under which the control plane is known; no worker is reached by it.
    own_name: Option<String>,
}

/// Module bytes from the host's artifacts; the host is there before the first version starts.
#[derive(Default)]
pub struct HostBlobs(OnceLock<Host>);

impl HostBlobs {
    /// The host that holds the bytes.
    pub fn of(&self, host: Host) {
        // A second host is never opened in this process.
        let _ = self.0.set(host);
    }
}

#[async_trait]
impl Blobs for HostBlobs {
    async fn read(&self, digest: &str) -> io::Result<Bytes> {
        match self.0.get() {
            Some(host) => host.blob(digest).await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Plane {
    /// For a control plane that clients know under a name.
    pub fn beside(own_name: Option<String>) -> Plane {
        Plane {
            own_name,
            ..Plane::default()
        }
    }

    /// From now on workers run here.
    pub fn run_on(&self, runtime: Runtime) {
        *self.lock() = Some(Arc::new(runtime));
    }

    /// The runtime, while it runs.
    pub fn runtime(&self) -> Option<Arc<Runtime>> {
        self.lock().clone()
    }

    /// Takes the runtime out, to end it.
    pub fn take(&self) -> Option<Arc<Runtime>> {
        self.lock().take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Runtime>>> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DataPlane for Plane {
    async fn inspect(&self, bundle: &BundleSource) -> Exports {
        let Some(runtime) = self.runtime() else {
            return Exports::Unknown;
        };
        let Ok(bundle) = read(bundle).await else {
            return Exports::Unknown;
        };
        // A process that was killed says nothing about the code: another one is asked.
        for _ in 0..MOST_LOOKS {
            match runtime.inspect(&bundle).await {
                Ok(exports) => {
                    let handlers = exports.handlers.iter();
                    let names = handlers.map(|handler| handler.name().to_owned());
                    return Exports::Known(names.collect());
                }
                Err(InspectError::Refused(error)) => {
                    return Exports::Broken(format!("{}: {error}", error.code()));
                }
                Err(InspectError::Unavailable { detail }) => {
                    tracing::warn!(detail, "a bundle could not be checked");
                }
            }
        }
        Exports::Unknown
    }

    async fn start_ahead(&self, next: &TenantSnapshot) -> Result<Ahead, ConvergeError> {
        let Some(runtime) = self.runtime() else {
            return Ok(Box::new(()));
        };
        let sealed = |worker: &Uid, name: &str| next.sealed(worker, name).map(secret);
        let plan = derive([&next.world], &sealed);
        match runtime.start_ahead(&plan).await {
            Ok(ahead) => Ok(Box::new(ahead)),
            Err(error) => Err(ConvergeError(error.to_string())),
        }
    }

    async fn converge(&self, snapshot: &Snapshot) -> Result<(), ConvergeError> {
        let Some(runtime) = self.runtime() else {
            return Ok(());
        };
        let sealed = |worker: &Uid, name: &str| {
            let mut tenants = snapshot.tenants.values();
            let value = tenants.find_map(|tenant| tenant.sealed(worker, name))?;
            Some(secret(value))
        };
        let mut plan = derive(
            snapshot.tenants.iter().map(|(_, tenant)| &tenant.world),
            &sealed,
        );
        if let Some(own) = &self.own_name {
            plan.endpoints.remove(own);
        }
        runtime
            .converge(plan)
            .await
            .map_err(|error| ConvergeError(error.to_string()))
    }

    async fn migrate(
        &self,
        database: &Uid,
        files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)> {
        let Some(runtime) = self.runtime() else {
            return Err((0, "the worker runtime is not there; try again".into()));
        };
        let files = files.iter().map(|(entry, sql)| MigrationFile {
            path: entry.path.to_string(),
            digest: entry.digest.to_string(),
            sql: sql.to_vec(),
        });
        runtime
            .migrate(&database.as_str().into(), files.collect())
            .await
            .map_err(|error| match error {
                MigrationError::File { done, message, .. } => (done, message),
                MigrationError::Unavailable(detail) => (0, detail),
            })
    }

    async fn kept(&self) -> io::Result<Vec<Uid>> {
        let Some(runtime) = self.runtime() else {
            return Ok(Vec::new());
        };
        let kept = runtime.kept().await?;
        Ok(kept.iter().map(|uid| Uid::new(uid.as_str())).collect())
    }

    async fn forget(&self, uid: &Uid) -> io::Result<()> {
        match self.runtime() {
            Some(runtime) => runtime.forget(&uid.as_str().into()).await,
            None => Ok(()),
        }
    }

    fn address(&self, hostname: &str) -> Option<String> {
        let status = self.runtime()?.status();
        status
            .addresses
            .get(hostname)
            .map(|address| address.url.clone())
    }
}

fn secret(value: &SecretBytes) -> Secret {
    Secret::new(String::from_utf8_lossy(value.expose()).into_owned())
}

async fn read(source: &BundleSource) -> io::Result<Bundle> {
    let mut modules = Vec::new();
    for entry in &source.manifest.entries {
        modules.push(BundleModule {
            name: entry.path.clone(),
            media_type: entry.media_type.clone(),
            bytes: source.module(&entry.path).await?,
        });
    }
    Ok(Bundle {
        main_module: source.manifest.main_module.clone().unwrap_or_default(),
        modules,
    })
}
