//! A runtime with the real `workerd`, a plan made of scripts, and an HTTP client.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use notation_runtime::{
    Blobs, Bundle, BundleModule, Capability, Handler, LogLine, LogSink, ModuleSource, Runtime,
    RuntimeConfig, Scheme, Uid, VersionSpec, WorkerPlan, WorkerSpec, workerd,
};
use tempfile::TempDir;

pub const SCRIPT: &str = "application/javascript+module";

/// The real binary, fetched once for all tests.
pub async fn binary() -> PathBuf {
    let cache = std::env::var_os("NOTATION_CACHE_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workerd-cache"),
        PathBuf::from,
    );
    let found = workerd::ensure(&cache, None, &()).await;
    found.unwrap_or_else(|error| panic!("{error}: {}", error.repair()))
}

#[derive(Default)]
pub struct MemoryBlobs(Mutex<HashMap<String, Bytes>>);

#[async_trait::async_trait]
impl Blobs for MemoryBlobs {
    async fn read(&self, digest: &str) -> io::Result<Bytes> {
        let blobs = self.0.lock().unwrap();
        blobs
            .get(digest)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[derive(Default)]
pub struct Lines(pub Mutex<Vec<LogLine>>);

impl LogSink for Lines {
    fn line(&self, line: LogLine) {
        self.0.lock().unwrap().push(line);
    }
}

pub struct Host {
    pub runtime: Runtime,
    pub blobs: Arc<MemoryBlobs>,
    pub lines: Arc<Lines>,
    pub plan: WorkerPlan,
    pub client: Client<HttpConnector, Full<Bytes>>,
    pub directory: Option<TempDir>,
}

impl Host {
    pub async fn start() -> Host {
        Host::start_in(tempfile::tempdir().unwrap()).await
    }

    pub async fn start_in(directory: TempDir) -> Host {
        Host::start_behind(directory, Scheme::Http).await
    }

    /// A host whose clients use a scheme.
    pub async fn start_behind(directory: TempDir, scheme: Scheme) -> Host {
        let blobs = Arc::new(MemoryBlobs::default());
        let lines = Arc::new(Lines::default());
        let runtime = Runtime::start(RuntimeConfig {
            run_dir: directory.path().join("run"),
            data_dir: directory.path().join("data"),
            workerd: binary().await,
            listen: "127.0.0.1:0".parse().unwrap(),
            scheme,
            connections: 4096,
            patience: Duration::from_secs(30),
            drain_deadline: Duration::from_secs(10),
            blobs: blobs.clone(),
            log: lines.clone(),
        })
        .await
        .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let plan = WorkerPlan::default();
        Host {
            runtime,
            blobs,
            lines,
            plan,
            client,
            directory: Some(directory),
        }
    }

    /// A version of `worker` with one script; not yet weighted.
    pub fn version(&mut self, worker: &str, version: &str, script: &str) -> &mut VersionSpec {
        let digest = format!("script:{version}");
        let bytes = Bytes::from(script.to_owned());
        self.blobs.0.lock().unwrap().insert(digest.clone(), bytes);
        let spec = VersionSpec {
            worker: worker.into(),
            main_module: "index.js".into(),
            modules: vec![ModuleSource {
                name: "index.js".into(),
                media_type: SCRIPT.into(),
                digest,
            }],
            handlers: [Handler::Fetch].into(),
            environment: BTreeMap::new(),
            assets: None,
        };
        self.plan.versions.insert(version.into(), spec);
        self.plan.versions.get_mut(version).unwrap()
    }

    pub fn blob(&self, digest: &str, bytes: impl Into<Bytes>) {
        self.blobs
            .0
            .lock()
            .unwrap()
            .insert(digest.into(), bytes.into());
    }

    /// The active deployment of `worker`, with an endpoint named `worker.test`.
    pub fn weigh(&mut self, worker: &str, weights: &[(&str, u16)]) {
        let weights = weights
            .iter()
            .map(|(version, weight)| (Uid::from(*version), *weight));
        let spec = WorkerSpec {
            name: worker.into(),
            weights: weights.collect(),
        };
        self.plan.workers.insert(worker.into(), spec);
        self.plan
            .endpoints
            .insert(format!("{worker}.test"), worker.into());
    }

    /// A worker that serves one script at `worker.test`.
    pub fn worker(&mut self, worker: &str, script: &str) -> &mut VersionSpec {
        let version = format!("{worker}-1");
        self.weigh(worker, &[(&version, 10_000)]);
        self.version(worker, &version, script)
    }

    pub async fn converge(&self) {
        let done = self.runtime.converge(self.plan.clone()).await;
        done.unwrap_or_else(|error| panic!("{error}\n{}", self.log()));
    }

    pub fn address(&self, worker: &str) -> String {
        self.runtime
            .address(&format!("{worker}.test"))
            .expect("the endpoint has an address")
    }

    pub async fn get(&self, worker: &str, path: &str) -> (u16, String) {
        self.send(worker, Request::get(path).body(Full::default()).unwrap())
            .await
            .unwrap()
    }

    /// Sends to the worker's own address; an error is a request that got no answer.
    pub async fn send(
        &self,
        worker: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<(u16, String), String> {
        request_to(&self.client, &self.address(worker), request).await
    }

    pub fn pid(&self, worker: &str) -> Option<u32> {
        let status = self.runtime.status();
        let version = status
            .versions
            .iter()
            .find(|version| version.worker_name == worker);
        version.and_then(|version| version.pid)
    }

    pub fn log(&self) -> String {
        let lines = self.lines.0.lock().unwrap();
        lines
            .iter()
            .map(|line| {
                format!(
                    "{} {:?} {:?} {}\n",
                    line.worker, line.source, line.level, line.message
                )
            })
            .collect()
    }
}

pub async fn request_to(
    client: &Client<HttpConnector, Full<Bytes>>,
    address: &str,
    mut request: Request<Full<Bytes>>,
) -> Result<(u16, String), String> {
    let path = request.uri().to_string();
    *request.uri_mut() = format!("{}{path}", address.trim_end_matches('/'))
        .parse()
        .unwrap();
    let response = client
        .request(request)
        .await
        .map_err(|error| format!("{error:?}"))?;
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|error| error.to_string())?;
    Ok((
        status,
        String::from_utf8_lossy(&body.to_bytes()).into_owned(),
    ))
}

/// Waits until `condition` gives a value.
pub async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 30 seconds"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn service(worker: &str) -> Capability {
    Capability::Service {
        worker: worker.into(),
    }
}

pub fn bundle(main_module: &str, modules: &[(&str, &str, &[u8])]) -> Bundle {
    let module = |(name, media_type, bytes): &(&str, &str, &[u8])| BundleModule {
        name: (*name).into(),
        media_type: (*media_type).into(),
        bytes: Bytes::copy_from_slice(bytes),
    };
    Bundle {
        main_module: main_module.into(),
        modules: modules.iter().map(module).collect(),
    }
}

pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .trim_start()
            .starts_with('Z')
    })
}

pub fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// A worker that calls binding methods for a test; see `driver.js`.
pub const DRIVER: &str = include_str!("driver.js");

impl Host {
    /// What a binding method of the worker `driver` resolves to.
    pub async fn call(
        &self,
        binding: &str,
        method: &str,
        args: serde_json::Value,
    ) -> serde_json::Value {
        let mut answer = self.called(binding, method, args).await;
        assert!(
            answer.get("value").is_some(),
            "{binding}.{method}: {answer}\n{}",
            self.log()
        );
        answer["value"].take()
    }

    /// The code a binding method of the worker `driver` rejects with.
    pub async fn refusal(&self, binding: &str, method: &str, args: serde_json::Value) -> String {
        let answer = self.called(binding, method, args).await;
        assert_eq!(answer["isError"], true, "{binding}.{method}: {answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    async fn called(
        &self,
        binding: &str,
        method: &str,
        args: serde_json::Value,
    ) -> serde_json::Value {
        let call = serde_json::json!({ "binding": binding, "method": method, "args": args });
        let request = Request::post("/")
            .body(Full::from(call.to_string()))
            .unwrap();
        let (status, body) = self.send("driver", request).await.unwrap();
        assert_eq!(status, 200, "{body}\n{}", self.log());
        serde_json::from_str(&body).unwrap()
    }
}

pub fn b64(bytes: &[u8]) -> serde_json::Value {
    use base64::Engine;
    serde_json::json!({ "$b64": base64::engine::general_purpose::STANDARD.encode(bytes) })
}
