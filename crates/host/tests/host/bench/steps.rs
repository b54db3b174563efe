//! What many tests begin with, in one step each; every step insists on its success.

use super::{
    ALL_HANDLERS, Answer, Client, FETCH_ONLY, deployment_spec, module_manifest, queue_spec,
    version_spec,
};
use notation_edge_api as wire;
use serde_json::{Value, json};
use std::panic::Location;

impl Client {
    /// Creates a resource. Fails at the caller's line.
    #[track_caller]
    pub fn make(
        &self,
        kind: &str,
        name: &str,
        spec: Value,
    ) -> impl Future<Output = wire::Resource> {
        let (at, client) = (Location::caller(), self.clone());
        let document = self.document(kind, name, spec);
        async move {
            let answer = client.create_document(&document).await;
            assert_eq!(answer.status, 201, "{at}: {}", answer.text());
            answer.resource()
        }
    }

    /// Deletes a resource under its current generation. Fails at the caller's line.
    #[track_caller]
    pub fn remove(&self, kind: &str, name: &str) -> impl Future<Output = ()> {
        let (at, client) = (Location::caller(), self.clone());
        let (kind, name) = (kind.to_owned(), name.to_owned());
        async move {
            let answer = client.delete(&kind, &name).await;
            assert_eq!(answer.status, 204, "{at}: {}", answer.text());
        }
    }

    /// Validate says that a document is no valid one, and prepare refuses it.
    pub async fn invalid(&self, document: &Value) {
        let validated = self.validate(document).await.is(200).json();
        assert_eq!(validated["valid"], false, "{document}");
        let prepared = self.prepare(document, None).await;
        prepared.refused("invalid_argument");
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

    /// A version of a worker on its bundle `<worker>-bundle`.
    pub async fn version(&self, worker: &str, name: &str, handlers: &[&str]) -> wire::Resource {
        let spec = version_spec(worker, &format!("{worker}-bundle"), handlers);
        self.create("WorkerVersion", name, spec).await.created()
    }

    /// Gives a worker's deployment `<worker>-deployment` other weights.
    pub async fn weigh(&self, worker: &str, versions: &[(&str, u64)]) -> Answer {
        let name = format!("{worker}-deployment");
        self.update("WorkerDeployment", &name, deployment_spec(worker, versions))
            .await
    }

    /// Worker and bundle `<name>-bundle` that exports every handler.
    pub async fn bundled(&self, name: &str) {
        self.worker(name).await;
        self.bundle(&format!("{name}-bundle"), ALL_HANDLERS).await;
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
