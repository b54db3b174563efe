//! The server under test.

use super::documented::Documented;
use super::{Client, SPACE};
use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Bench {
    pub base: String,
    pub host: Host,
    pub dir: PathBuf,
    documented: Arc<Documented>,
    _temp: Option<tempfile::TempDir>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

/// The published set, when the environment names one.
pub fn published() -> Option<PathBuf> {
    std::env::var_os("NOTATION_CONTRACTS").map(PathBuf::from)
}

/// The conformance adapter's contract.
pub fn adapter() -> PathBuf {
    match published() {
        Some(root) => root.join("conformance/portable-host-v1beta1"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapter"),
    }
}

pub fn config(dir: &Path) -> HostConfig {
    HostConfig {
        contracts: published(),
        ..HostConfig::new(dir)
    }
}

impl Bench {
    /// A host with the conformance adapter and an empty store.
    pub async fn start() -> Bench {
        Bench::start_with(Arc::new(NoDataPlane)).await
    }

    /// The same with something behind it.
    pub async fn start_with(plane: Arc<dyn notation_host::DataPlane>) -> Bench {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let config = config(&dir).with_conformance(adapter());
        let mut bench = Bench::open_with(config, plane).await;
        bench._temp = Some(temp);
        bench
    }

    /// A production host with an empty store.
    pub async fn plain() -> Bench {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let mut bench = Bench::open(config(&dir)).await;
        bench._temp = Some(temp);
        bench
    }

    pub async fn open(config: HostConfig) -> Bench {
        Bench::open_with(config, Arc::new(NoDataPlane)).await
    }

    pub async fn open_with(config: HostConfig, plane: Arc<dyn notation_host::DataPlane>) -> Bench {
        let dir = config.data_dir.clone();
        let host = Host::open(config, plane).await.unwrap();
        for (token, tenant, principal) in [
            ("t1p1", "t1", "p1"),
            ("t1p2", "t1", "p2"),
            ("t2p1", "t2", "p1"),
        ] {
            let grant = Grant {
                tenant: tenant.to_owned(),
                principal: principal.to_owned(),
                scopes: [Scope::Api, Scope::Sealed].into(),
                label: String::new(),
            };
            host.install_token(token, grant).await.unwrap();
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = host.clone();
        let serving = tokio::spawn(async move {
            let ended = async { drop(stopped.await) };
            serving.serve(listener, ended).await.unwrap();
        });
        Bench {
            base,
            documented: Arc::new(Documented::of(&host)),
            host,
            dir,
            _temp: None,
            stop: Some(stop),
            serving: Some(serving),
        }
    }

    /// Ends the server and lets go of the data directory.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.serving.take().unwrap().await.unwrap();
    }

    /// Ends the server and opens the same data directory again.
    pub async fn restart(mut self, config: HostConfig) -> Bench {
        drop(self.stop.take());
        self.serving.take().unwrap().await.unwrap();
        let temp = self._temp.take();
        drop(self);
        let mut bench = Bench::open(config).await;
        bench._temp = temp;
        bench
    }

    pub fn as_(&self, token: &'static str) -> Client {
        Client {
            base: self.base.clone(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            token: Some(token),
            space: SPACE,
            documented: self.documented.clone(),
            catalog: self.host.contracts().catalog.clone(),
        }
    }

    /// Tenant 1, principal 1.
    pub fn t1(&self) -> Client {
        self.as_("t1p1")
    }

    /// Tenant 1, principal 2.
    pub fn t1p2(&self) -> Client {
        self.as_("t1p2")
    }

    /// Tenant 2.
    pub fn t2(&self) -> Client {
        self.as_("t2p1")
    }
}
