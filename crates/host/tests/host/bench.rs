//! A server on port 0 and clients that speak to it in raw requests.

use notation_edge_api as wire;
use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const API: &str = "/apis/forms.takoform.com/v1beta1";
pub const EDGE: &str = "edge.forms.takoform.com/v1beta1";
pub const SPACE: &str = "conformance";
pub const OTHER_SPACE: &str = "conformance-alt";
pub const ALL_HANDLERS: &str = "export default {\n  async fetch() { return new Response(\"all\"); },\n  async scheduled() {},\n  async queue() {},\n};\n";
pub const FETCH_ONLY: &str =
    "export default { async fetch() { return new Response(\"one\"); } };\n";

static KEYS: AtomicU64 = AtomicU64::new(0);

/// A key no request used before.
pub fn key() -> String {
    format!("key-{}", KEYS.fetch_add(1, Ordering::Relaxed))
}

pub struct Bench {
    pub base: String,
    pub host: Host,
    pub dir: PathBuf,
    _temp: Option<tempfile::TempDir>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

/// The published set, when the environment names one.
pub fn published() -> Option<PathBuf> {
    std::env::var_os("NOTATION_CONTRACTS").map(PathBuf::from)
}

fn adapter() -> PathBuf {
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
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let mut bench = Bench::open(config(&dir).with_conformance(adapter())).await;
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

#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
    pub token: Option<&'static str>,
    pub space: &'static str,
    catalog: Arc<notation_edge::Catalog>,
}

/// One answer, read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        wire::parse(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The exact envelope of a code.
    #[track_caller]
    pub fn refused(&self, code: &str) -> wire::ErrorBody {
        let envelope: wire::ErrorEnvelope = serde_json::from_value(self.json())
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()));
        let error = envelope.error;
        assert_eq!(error.code.as_str(), code, "{}", error.message);
        assert_eq!(self.status, error.code.status());
        assert_eq!(error.retryable, error.code.retryable());
        assert!(!error.message.trim().is_empty() && !error.request_id.trim().is_empty());
        assert!(error.host_code.is_none() && error.details.is_none() && self.etag.is_none());
        error
    }

    /// A bare resource document with everything a client checks.
    #[track_caller]
    pub fn resource(&self) -> wire::Resource {
        let resource: wire::Resource = serde_json::from_value(self.json())
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()));
        check(&resource);
        assert_eq!(
            self.etag.as_deref(),
            Some(format!("\"{}\"", resource.metadata.revision).as_str())
        );
        resource
    }

    #[track_caller]
    pub fn created(&self) -> wire::Resource {
        assert_eq!(self.status, 201, "{}", self.text());
        self.resource()
    }

    #[track_caller]
    pub fn updated(&self) -> wire::Resource {
        assert_eq!(self.status, 200, "{}", self.text());
        self.resource()
    }
}

/// What every decoded resource is held to (closed decoding happened already).
#[track_caller]
pub fn check(resource: &wire::Resource) {
    let text = serde_json::to_string(resource).unwrap();
    assert!(
        resource.metadata.uid.len() <= 21,
        "two uids must fit a hostReason"
    );
    assert_eq!(
        resource.status.observed_generation,
        resource.metadata.generation
    );
    let ready = resource
        .status
        .conditions
        .iter()
        .find(|it| it.condition_type == "Ready")
        .expect(&text);
    assert!(ready.status == "True" || ready.status == "False");
    for condition in &resource.status.conditions {
        assert!(
            [
                "Available",
                "Provisioning",
                "Reconciling",
                "DependencyMissing",
                "ExternalChange",
                "UnsupportedCapability"
            ]
            .contains(&condition.reason.as_str()),
            "{text}"
        );
        assert!(condition.host_reason.as_ref() != Some(&condition.reason));
        assert!(
            condition
                .host_reason
                .as_ref()
                .is_none_or(|text| text.chars().count() <= 256)
        );
        assert!(!condition.last_transition_time.is_empty());
        if condition.status == "False" {
            assert!(
                condition
                    .host_reason
                    .as_ref()
                    .is_some_and(|text| !text.is_empty())
            );
        }
    }
}

pub fn ready(resource: &wire::Resource) -> (&str, &str, &str) {
    let condition = &resource.status.conditions[0];
    (
        &condition.status,
        &condition.reason,
        condition.host_reason.as_deref().unwrap_or_default(),
    )
}

/// A reference of the family.
pub fn to(kind: &str, name: &str) -> Value {
    json!({"apiVersion": EDGE, "kind": kind, "name": name})
}

impl Client {
    pub fn in_space(&self, space: &'static str) -> Client {
        Client {
            space,
            ..self.clone()
        }
    }

    pub fn anonymous(&self) -> Client {
        Client {
            token: None,
            ..self.clone()
        }
    }

    pub fn with_token(&self, token: &'static str) -> Client {
        Client {
            token: Some(token),
            ..self.clone()
        }
    }

    /// The installed Form of a kind of the family at 0.1.0.
    pub fn form(&self, kind: &str) -> wire::FormRef {
        self.form_at(EDGE, kind, "0.1.0")
    }

    pub fn form_at(&self, group: &str, kind: &str, version: &str) -> wire::FormRef {
        let form = self.catalog.forms().find(|form| {
            let id = &form.form_ref;
            (&*id.api_version, &*id.kind, &*id.definition_version) == (group, kind, version)
        });
        let id = &form
            .unwrap_or_else(|| panic!("{kind} {version} is not installed"))
            .form_ref;
        wire::FormRef {
            api_version: id.api_version.to_string(),
            kind: id.kind.to_string(),
            definition_version: id.definition_version.to_string(),
            schema_digest: id.schema_digest.to_string(),
        }
    }

    pub async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, format!("{}{target}", self.base));
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.into()).send().await.unwrap();
        let status = response.status().as_u16();
        let header = |name: &str| {
            let mut values = response.headers().get_all(name).iter();
            let value = values
                .next()
                .map(|value| value.to_str().unwrap().to_owned());
            assert!(values.next().is_none(), "{name} is sent twice");
            value
        };
        let (etag, retry_after) = (header("etag"), header("retry-after"));
        let body = response.bytes().await.unwrap().to_vec();
        if status == 204 {
            assert!(body.is_empty());
        }
        Answer {
            status,
            etag,
            retry_after,
            body,
        }
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &[], "").await
    }

    pub fn document(&self, kind: &str, name: &str, spec: Value) -> Value {
        self.document_of(&self.form(kind), name, spec)
    }

    pub fn document_of(&self, form: &wire::FormRef, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": form.api_version, "kind": form.kind, "form": {"formRef": form},
            "metadata": {"name": name, "space": self.space}, "spec": spec,
        })
    }

    pub fn query(&self, form: &wire::FormRef) -> String {
        let encode = |text: &str| {
            text.replace('/', "%2F")
                .replace(':', "%3A")
                .replace(' ', "+")
        };
        format!(
            "space={}&group={}&kind={}&definitionVersion={}&schemaDigest={}",
            encode(self.space),
            encode(&form.api_version),
            form.kind,
            form.definition_version,
            encode(&form.schema_digest)
        )
    }

    pub fn path(&self, document: &Value) -> String {
        format!(
            "{API}/resources/{}/{}/{}",
            document["apiVersion"].as_str().unwrap(),
            document["kind"].as_str().unwrap(),
            document["metadata"]["name"].as_str().unwrap()
        )
    }

    pub async fn validate(&self, document: &Value) -> Answer {
        self.send(
            "POST",
            &format!("{API}/resources/validate"),
            &[],
            document.to_string(),
        )
        .await
    }

    pub async fn prepare(&self, document: &Value, generation: Option<&str>) -> Answer {
        let headers: Vec<(&str, &str)> = generation
            .map(|generation| ("Takoform-Expected-Generation", generation))
            .into_iter()
            .collect();
        self.send(
            "POST",
            &format!("{API}/resources/prepare"),
            &headers,
            document.to_string(),
        )
        .await
    }

    /// The document with the review a prepare gives for it.
    pub async fn reviewed(&self, document: &Value, generation: Option<&str>) -> Value {
        let prepared: wire::PreparedReply =
            serde_json::from_value(self.prepare(document, generation).await.is(200).json())
                .unwrap();
        assert_eq!(
            prepared.review.spec_digest,
            wire::digest(&prepared.resource.spec)
        );
        let mut reviewed = document.clone();
        reviewed["review"] = json!({"prepareDigest": prepared.review.prepare_digest});
        reviewed
    }

    /// Prepare without a fence and create.
    pub async fn create(&self, kind: &str, name: &str, spec: Value) -> Answer {
        self.create_document(&self.document(kind, name, spec)).await
    }

    pub async fn create_document(&self, document: &Value) -> Answer {
        let reviewed = self.reviewed(document, None).await;
        self.put(
            &reviewed,
            &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
        )
        .await
    }

    pub async fn put(&self, document: &Value, headers: &[(&str, &str)]) -> Answer {
        self.send("PUT", &self.path(document), headers, document.to_string())
            .await
    }

    /// Prepare with the current generation and update.
    pub async fn update(&self, kind: &str, name: &str, spec: Value) -> Answer {
        let generation = self.read(kind, name).await.resource().metadata.generation;
        let document = self.document(kind, name, spec);
        let reviewed = self.reviewed(&document, Some(&generation)).await;
        self.put(
            &reviewed,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", &generation),
            ],
        )
        .await
    }

    pub fn resource_target(&self, form: &wire::FormRef, name: &str, action: &str) -> String {
        format!(
            "{API}/resources/{}/{}/{name}{action}?{}",
            form.api_version,
            form.kind,
            self.query(form)
        )
    }

    pub async fn read(&self, kind: &str, name: &str) -> Answer {
        self.read_of(&self.form(kind), name).await
    }

    pub async fn read_of(&self, form: &wire::FormRef, name: &str) -> Answer {
        self.get(&self.resource_target(form, name, "")).await
    }

    pub async fn absent(&self, kind: &str, name: &str) {
        self.read(kind, name).await.refused("resource_not_found");
    }

    pub async fn observe(&self, kind: &str, name: &str, headers: &[(&str, &str)]) -> Answer {
        let target = self.resource_target(&self.form(kind), name, "/observe");
        self.send("POST", &target, headers, "").await
    }

    pub async fn delete_with(&self, kind: &str, name: &str, headers: &[(&str, &str)]) -> Answer {
        let target = self.resource_target(&self.form(kind), name, "");
        self.send("DELETE", &target, headers, "").await
    }

    /// Deletes under the current generation.
    pub async fn delete(&self, kind: &str, name: &str) -> Answer {
        let generation = self.read(kind, name).await.resource().metadata.generation;
        self.delete_with(
            kind,
            name,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", &generation),
            ],
        )
        .await
    }

    /// Removes a resource as if the object behind it had vanished.
    pub async fn vanish(&self, kind: &str, name: &str) {
        let generation = self.read(kind, name).await.resource().metadata.generation;
        self.delete_with(
            kind,
            name,
            &[
                ("Idempotency-Key", &key()),
                ("Takoform-Expected-Generation", &generation),
                ("Takoform-Conformance-Probe", "external-change"),
            ],
        )
        .await
        .is(204);
    }

    pub async fn import(&self, document: &Value, native: &str, headers: &[(&str, &str)]) -> Answer {
        let mut document = document.clone();
        document["nativeId"] = native.into();
        let target = format!("{}/import", self.path(&document));
        self.send("POST", &target, headers, document.to_string())
            .await
    }

    pub async fn import_new(&self, document: &Value, native: &str) -> Answer {
        self.import(
            document,
            native,
            &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
        )
        .await
    }

    pub async fn start_upload(&self, manifest: &Value) -> Answer {
        let body = json!({"manifest": manifest}).to_string();
        self.send(
            "POST",
            &format!("{API}/artifacts/uploads"),
            &[("Idempotency-Key", &key())],
            body,
        )
        .await
    }

    pub async fn put_blob(&self, upload: &str, digest: &str, bytes: &[u8]) -> Answer {
        self.send(
            "PUT",
            &format!("{API}/artifacts/uploads/{upload}/blobs/{digest}"),
            &[],
            bytes,
        )
        .await
    }

    pub async fn commit(&self, upload: &str) -> Answer {
        let target = format!("{API}/artifacts/uploads/{upload}/commit");
        self.send("POST", &target, &[("Idempotency-Key", &key())], "")
            .await
    }

    pub async fn abandon(&self, upload: &str) -> Answer {
        let target = format!("{API}/artifacts/uploads/{upload}");
        self.send("DELETE", &target, &[("Idempotency-Key", &key())], "")
            .await
    }

    /// Uploads and commits a manifest whose blobs are given; its digest.
    pub async fn upload(&self, manifest: &Value, blobs: &[&[u8]]) -> String {
        let started = self.start_upload(manifest).await.is(201).json();
        let upload = started["uploadId"].as_str().unwrap();
        for missing in started["missingBlobs"].as_array().unwrap() {
            let digest = missing.as_str().unwrap();
            let bytes = blobs
                .iter()
                .find(|bytes| wire::blob_digest(bytes) == digest)
                .unwrap();
            assert!([201, 204].contains(&self.put_blob(upload, digest, bytes).await.status));
        }
        let digest = self.commit(upload).await.json()["manifestDigest"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(digest, wire::digest(manifest));
        digest
    }

    pub async fn bundle(&self, name: &str, source: &str) {
        let manifest = module_manifest("index.js", source);
        let digest = self.upload(&manifest, &[source.as_bytes()]).await;
        self.create("WorkerBundle", name, json!({"manifestDigest": digest}))
            .await
            .created();
    }

    pub async fn kv(&self, name: &str) -> wire::Resource {
        self.create("EdgeKVNamespace", name, json!({}))
            .await
            .created()
    }

    pub async fn queue(&self, name: &str) -> wire::Resource {
        self.create("AtLeastOnceQueue", name, queue_spec(345_600))
            .await
            .created()
    }

    pub async fn worker(&self, name: &str) -> wire::Resource {
        self.create("ModuleWorker", name, json!({})).await.created()
    }

    /// A deployment of one version at full weight.
    pub async fn deploy(&self, worker: &str, version: &str) -> wire::Resource {
        let name = format!("{worker}-deployment");
        self.create(
            "WorkerDeployment",
            &name,
            deployment_spec(worker, &[(version, 10_000)]),
        )
        .await
        .created()
    }

    /// Worker, bundle, version `<name>-v1` and deployment `<name>-deployment`.
    pub async fn serving(&self, name: &str, handlers: &[&str]) {
        self.worker(name).await;
        let source = if handlers == ["fetch"] {
            FETCH_ONLY
        } else {
            ALL_HANDLERS
        };
        self.bundle(&format!("{name}-bundle"), source).await;
        let version = format!("{name}-v1");
        let spec = version_spec(name, &format!("{name}-bundle"), handlers);
        self.create("WorkerVersion", &version, spec).await.created();
        self.deploy(name, &version).await;
    }
}

pub fn module_manifest(name: &str, source: &str) -> Value {
    json!({
        "apiVersion": "artifacts.takoform.com/v1alpha1", "kind": "WorkerBundle", "mainModule": name,
        "modules": [{
            "name": name, "mediaType": "application/javascript+module",
            "size": source.len(), "digest": wire::blob_digest(source.as_bytes())
        }]
    })
}

pub fn files_manifest(kind: &str, media_type: &str, files: &[(&str, &str)]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, text)| {
            json!({"path": path, "mediaType": media_type, "size": text.len(), "digest": wire::blob_digest(text.as_bytes())})
        })
        .collect();
    json!({"apiVersion": "artifacts.takoform.com/v1alpha1", "kind": kind, "files": files})
}

pub fn queue_spec(retention: u64) -> Value {
    json!({"messageRetentionSeconds": retention, "deliveryDelaySeconds": 0})
}

pub fn version_spec(worker: &str, bundle: &str, handlers: &[&str]) -> Value {
    json!({
        "worker": to("ModuleWorker", worker), "bundle": to("WorkerBundle", bundle), "handlers": handlers,
        "vars": {}, "requiredSensitiveVars": [], "kvBindings": [], "bucketBindings": [],
        "sqliteBindings": [], "queueProducerBindings": [], "serviceBindings": []
    })
}

pub fn with(mut spec: Value, member: &str, value: Value) -> Value {
    spec[member] = value;
    spec
}

pub fn deployment_spec(worker: &str, versions: &[(&str, u64)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, weight)| json!({"workerVersion": to("WorkerVersion", version), "weight": weight}))
        .collect();
    json!({"worker": to("ModuleWorker", worker), "versions": versions})
}

pub fn consumer_spec(worker: &str, queue: &str, dead: Option<&str>) -> Value {
    let mut spec = json!({
        "worker": to("ModuleWorker", worker), "queue": to("AtLeastOnceQueue", queue),
        "maxBatchSize": 10, "maxBatchTimeoutSeconds": 5, "maxConcurrency": 1, "maxRetries": 3,
        "retryDelaySeconds": 0
    });
    if let Some(dead) = dead {
        spec["deadLetterQueue"] = to("AtLeastOnceQueue", dead);
    }
    spec
}

pub fn domain_spec(worker: &str, hostname: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker), "hostname": hostname})
}

pub fn endpoint_spec(worker: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker)})
}

pub fn cron_spec(worker: &str, cron: &str) -> Value {
    json!({"worker": to("ModuleWorker", worker), "cron": cron})
}
