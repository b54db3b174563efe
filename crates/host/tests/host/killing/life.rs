//! One client of the load: what it asked, what it was told, and what must therefore be true.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The Forms the load uses.
pub struct Forms(BTreeMap<&'static str, wire::FormRef>);

impl Forms {
    pub fn installed() -> Forms {
        let contracts = notation_host::Contracts::load(published().as_deref(), None).unwrap();
        let kinds = ["AtLeastOnceQueue", "EdgeKVNamespace", "WorkerBundle"];
        Forms(
            kinds
                .into_iter()
                .map(|kind| {
                    let form = contracts
                        .catalog
                        .forms()
                        .find(|form| {
                            &*form.form_ref.kind == kind && &*form.form_ref.api_version == EDGE
                        })
                        .unwrap();
                    let id = &form.form_ref;
                    let form = wire::FormRef {
                        api_version: id.api_version.to_string(),
                        kind: id.kind.to_string(),
                        definition_version: id.definition_version.to_string(),
                        schema_digest: id.schema_digest.to_string(),
                    };
                    (kind, form)
                })
                .collect(),
        )
    }
}

/// A connection to one incarnation of the host.
#[derive(Clone)]
pub struct Raw {
    base: String,
    http: reqwest::Client,
}

/// One request that can be sent again, byte for byte.
#[derive(Debug, Clone)]
struct Sent {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// Status and body.
type Told = (u16, Vec<u8>);

impl Raw {
    pub fn at(address: &str) -> Raw {
        Raw {
            base: format!("http://{address}"),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Nothing when the connection broke before the whole answer was there.
    async fn send(&self, sent: &Sent) -> Option<Told> {
        let method = reqwest::Method::from_bytes(sent.method.as_bytes()).unwrap();
        let mut request = self
            .http
            .request(method, format!("{}{}", self.base, sent.target))
            .bearer_auth("t1p1");
        for (name, value) in &sent.headers {
            request = request.header(*name, value);
        }
        let response = request.body(sent.body.clone()).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.bytes().await.ok()?.to_vec()))
    }
}

/// What a resource must be like.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    There {
        uid: String,
        generation: String,
        revision: String,
    },
    Gone,
}

type Address = (&'static str, String);

/// An answered request whose record must answer again as long as its resource lives.
struct Recorded {
    sent: Sent,
    told: Told,
    about: Option<Address>,
}

/// What an answer means for the world.
#[derive(Debug, Clone)]
enum Deed {
    /// A resource is as the answer shows.
    Puts(Address),
    /// A resource is gone.
    Deletes(Address),
    /// An operation was accepted that creates a resource.
    Accepts(Address),
    /// A manifest with one blob is held.
    Commits { manifest: String, text: String },
    /// The answer is recorded and means nothing else.
    Recorded,
    /// The request has no record.
    Plain,
}

/// One client.
pub struct Life {
    forms: Arc<Forms>,
    prefix: String,
    recorded: Vec<Recorded>,
    expected: BTreeMap<Address, Expected>,
    /// Accepted operations that were not seen to end.
    pending: Vec<(String, Address)>,
    /// Manifest digests with the text of their one blob.
    held: Vec<(String, String)>,
    /// The request that was not answered.
    open: Option<(Sent, Deed)>,
    answers: usize,
}

impl Life {
    pub fn begin(forms: &Arc<Forms>, prefix: String) -> Life {
        Life {
            forms: forms.clone(),
            prefix,
            recorded: Vec::new(),
            expected: BTreeMap::new(),
            pending: Vec::new(),
            held: Vec::new(),
            open: None,
            answers: 0,
        }
    }

    /// How many mutations were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.answers
    }

    /// Digests and texts of held blobs.
    pub fn artifacts(&self) -> impl Iterator<Item = (&String, &String)> {
        self.held.iter().map(|(digest, text)| (digest, text))
    }

    /// Sends requests until the host is gone.
    pub async fn live(mut self, raw: Raw, acknowledgements: Arc<Semaphore>) -> Life {
        for number in 0.. {
            if self
                .chapter(&raw, number, &acknowledgements)
                .await
                .is_none()
            {
                break;
            }
        }
        self
    }

    /// A queue that is changed, a namespace that is adopted and perhaps deleted, a bundle, an
    /// accepted operation.
    async fn chapter(&mut self, raw: &Raw, number: usize, told: &Semaphore) -> Option<()> {
        let name = format!("{}-{number}", self.prefix);
        let queue = ("AtLeastOnceQueue", name.clone());
        let kv = ("EdgeKVNamespace", name.clone());
        let create = self.apply(raw, &queue, &queue_spec(600), None).await?;
        self.tell(raw, create, Deed::Puts(queue.clone()), told)
            .await?;
        let update = self.apply(raw, &queue, &queue_spec(700), Some("1")).await?;
        self.tell(raw, update, Deed::Puts(queue), told).await?;
        let adopt = self.import(&kv);
        self.tell(raw, adopt, Deed::Puts(kv.clone()), told).await?;
        if number.is_multiple_of(2) {
            let delete = self.delete(&kv);
            self.tell(raw, delete, Deed::Deletes(kv), told).await?;
        }
        if number.is_multiple_of(3) {
            self.bundle(raw, &name, told).await?;
        }
        if number % 4 == 1 {
            let late = ("EdgeKVNamespace", format!("{name}-late"));
            let mut accept = self.apply(raw, &late, &json!({}), None).await?;
            accept
                .headers
                .push(("Takoform-Conformance-Probe", "async".to_owned()));
            self.tell(raw, accept, Deed::Accepts(late), told).await?;
            self.settle(raw).await?;
        }
        Some(())
    }

    async fn bundle(&mut self, raw: &Raw, name: &str, told: &Semaphore) -> Option<()> {
        let text =
            format!("export default {{ async fetch() {{ return new Response(\"{name}\"); }} }};");
        let manifest = module_manifest("index.js", &text);
        let (digest, blob) = (wire::digest(&manifest), wire::blob_digest(text.as_bytes()));
        let uploads = format!("{API}/artifacts/uploads");
        let post = |target: String, key: String, body: String| Sent {
            method: "POST",
            target,
            headers: vec![("Idempotency-Key", key)],
            body,
        };
        let start = post(
            uploads.clone(),
            format!("{name}-start"),
            json!({"manifest": manifest}).to_string(),
        );
        let started = self.tell(raw, start, Deed::Recorded, told).await?;
        let started: wire::StartedUpload = serde_json::from_slice(&started.1).unwrap();
        let upload = format!("{uploads}/{}", started.upload_id);
        let put = Sent {
            method: "PUT",
            target: format!("{upload}/blobs/{blob}"),
            headers: Vec::new(),
            body: text.clone(),
        };
        self.tell(raw, put, Deed::Plain, told).await?;
        let commit = post(
            format!("{upload}/commit"),
            format!("{name}-commit"),
            String::new(),
        );
        let manifest = digest.clone();
        self.tell(raw, commit, Deed::Commits { manifest, text }, told)
            .await?;
        let bundle = ("WorkerBundle", name.to_owned());
        let create = self
            .apply(raw, &bundle, &json!({"manifestDigest": digest}), None)
            .await?;
        self.tell(raw, create, Deed::Puts(bundle), told).await?;
        Some(())
    }

    /// Sends a mutation and takes its answer in; nothing when there was none.
    async fn tell(&mut self, raw: &Raw, sent: Sent, deed: Deed, told: &Semaphore) -> Option<Told> {
        let answer = raw.send(&sent).await;
        let Some(answer) = answer else {
            self.open = Some((sent, deed));
            return None;
        };
        self.take_in(sent, deed, &answer);
        told.add_permits(1);
        Some(answer)
    }

    fn take_in(&mut self, sent: Sent, deed: Deed, answer: &Told) {
        let (status, body) = answer;
        assert!(
            (200..300).contains(status),
            "{} {}: {}",
            sent.method,
            sent.target,
            String::from_utf8_lossy(body)
        );
        self.answers += 1;
        let json = || -> Value { serde_json::from_slice(body).unwrap() };
        let about = match deed {
            Deed::Puts(address) => {
                self.expected.insert(address.clone(), expected(&json()));
                Some(address)
            }
            Deed::Deletes(address) => {
                self.expected.insert(address, Expected::Gone);
                None
            }
            Deed::Accepts(address) => {
                let id = json()["operation"]["id"].as_str().unwrap().to_owned();
                self.pending.push((id, address));
                None
            }
            Deed::Commits { manifest, text } => {
                self.held.push((wire::blob_digest(text.as_bytes()), text));
                assert_eq!(json(), json!({"manifestDigest": manifest}));
                None
            }
            Deed::Recorded => None,
            Deed::Plain => return,
        };
        let told = answer.clone();
        self.recorded.push(Recorded { sent, told, about });
    }

    /// Looks at accepted operations until they ended.
    async fn settle(&mut self, raw: &Raw) -> Option<()> {
        while let Some((id, address)) = self.pending.last().cloned() {
            let poll = get(format!("{API}/operations/{id}"));
            let (status, body) = raw.send(&poll).await?;
            assert_eq!(status, 200, "operation {id} is missing");
            let operation: Value = serde_json::from_slice(&body).unwrap();
            if operation["done"] == true {
                let resource = &operation["result"]["resource"];
                assert!(resource.is_object(), "{operation}");
                self.expected.insert(address, expected(resource));
                self.pending.pop();
            }
        }
        Some(())
    }

    /// After the host is back: the open request is sent again, as a client does, and whatever was
    /// accepted goes on.
    pub async fn resume(mut self, raw: Raw) -> Life {
        if let Some((sent, deed)) = self.open.take() {
            let answer = raw.send(&sent).await.unwrap();
            self.take_in(sent, deed, &answer);
        }
        self.settle(&raw).await.unwrap();
        self
    }

    /// What was told is true.
    pub async fn verify(self, raw: Raw) -> Life {
        for Recorded { sent, told, about } in &self.recorded {
            let retired = about
                .as_ref()
                .is_some_and(|about| self.expected[about] == Expected::Gone);
            if retired {
                continue;
            }
            let again = raw.send(sent).await.unwrap();
            let text = |told: &Told| (told.0, String::from_utf8_lossy(&told.1).into_owned());
            assert_eq!(text(&again), text(told), "{} {}", sent.method, sent.target);
        }
        for (address, expected_one) in &self.expected {
            let (status, body) = raw.send(&get(self.target(address))).await.unwrap();
            let found = match status {
                200 => expected(&serde_json::from_slice(&body).unwrap()),
                404 => Expected::Gone,
                other => panic!("{other}: {}", String::from_utf8_lossy(&body)),
            };
            assert_eq!(&found, expected_one, "{address:?}");
        }
        for (digest, text) in &self.held {
            let manifest = wire::digest(&module_manifest("index.js", text));
            let (status, _) = raw
                .send(&get(format!("{API}/artifacts/{manifest}")))
                .await
                .unwrap();
            assert_eq!(status, 200, "manifest {manifest} is lost");
            let head = Sent {
                method: "HEAD",
                ..get(format!("{API}/artifacts/blobs/{digest}"))
            };
            assert_eq!(
                raw.send(&head).await.unwrap().0,
                200,
                "blob {digest} is lost"
            );
        }
        self
    }

    fn document(&self, (kind, name): &Address, spec: &Value) -> Value {
        json!({
            "apiVersion": EDGE, "kind": kind, "form": {"formRef": self.forms.0[kind]},
            "metadata": {"name": name, "space": SPACE}, "spec": spec,
        })
    }

    fn path(&self, (kind, name): &Address) -> String {
        format!("{API}/resources/{EDGE}/{kind}/{name}")
    }

    fn target(&self, address: &Address) -> String {
        let form = &self.forms.0[address.0];
        let encode = |text: &str| text.replace('/', "%2F").replace(':', "%3A");
        format!(
            "{}?space={SPACE}&group={}&kind={}&definitionVersion={}&schemaDigest={}",
            self.path(address),
            encode(&form.api_version),
            form.kind,
            form.definition_version,
            encode(&form.schema_digest)
        )
    }

    /// A prepared apply; nothing when the host is gone.
    async fn apply(
        &self,
        raw: &Raw,
        address: &Address,
        spec: &Value,
        generation: Option<&str>,
    ) -> Option<Sent> {
        let mut document = self.document(address, spec);
        let mut headers = Vec::new();
        if let Some(generation) = generation {
            headers.push(("Takoform-Expected-Generation", generation.to_owned()));
        }
        let prepare = Sent {
            method: "POST",
            target: format!("{API}/resources/prepare"),
            headers: headers.clone(),
            body: document.to_string(),
        };
        let (status, body) = raw.send(&prepare).await?;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let prepared: Value = serde_json::from_slice(&body).unwrap();
        document["review"] = json!({"prepareDigest": prepared["review"]["prepareDigest"]});
        if generation.is_none() {
            headers.push(("If-None-Match", "*".to_owned()));
        }
        let (kind, name) = address;
        let key = format!("{kind}-{name}-{}", generation.unwrap_or("new"));
        headers.push(("Idempotency-Key", key));
        Some(Sent {
            method: "PUT",
            target: self.path(address),
            headers,
            body: document.to_string(),
        })
    }

    fn import(&self, address: &Address) -> Sent {
        let mut document = self.document(address, &json!({}));
        document["nativeId"] = format!("native-{}", address.1).into();
        Sent {
            method: "POST",
            target: format!("{}/import", self.path(address)),
            headers: vec![
                ("Idempotency-Key", format!("{}-import", address.1)),
                ("If-None-Match", "*".to_owned()),
            ],
            body: document.to_string(),
        }
    }

    fn delete(&self, address: &Address) -> Sent {
        Sent {
            method: "DELETE",
            headers: vec![
                ("Idempotency-Key", format!("{}-delete", address.1)),
                ("Takoform-Expected-Generation", "1".to_owned()),
            ],
            ..get(self.target(address))
        }
    }
}

fn get(target: String) -> Sent {
    Sent {
        method: "GET",
        target,
        headers: Vec::new(),
        body: String::new(),
    }
}

fn expected(resource: &Value) -> Expected {
    let of = |member: &str| resource["metadata"][member].as_str().unwrap().to_owned();
    Expected::There {
        uid: of("uid"),
        generation: of("generation"),
        revision: of("revision"),
    }
}
