//! A caller: one request per method.

use super::{API, Answer, EDGE};
use notation_edge_api as wire;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static KEYS: AtomicU64 = AtomicU64::new(0);

/// A key no request used before.
pub fn key() -> String {
    format!("key-{}", KEYS.fetch_add(1, Ordering::Relaxed))
}

#[derive(Clone)]
pub struct Client {
    pub base: String,
    pub(super) http: reqwest::Client,
    pub token: Option<&'static str>,
    pub space: &'static str,
    pub(super) documented: Arc<super::documented::Documented>,
    pub(super) catalog: Arc<notation_edge::Catalog>,
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
        let mut request = self
            .http
            .request(method.clone(), format!("{}{target}", self.base));
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
        let answer = Answer {
            status,
            etag,
            retry_after,
            body,
        };
        self.documented.judge(method.as_str(), target, &answer);
        answer
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
}
