//! Random requests: valid ones, valid ones with something spoilt, and nonsense.

use super::mutations::{spoil, torn};
use crate::bench::*;
use crate::dice::{Dice, Digests, wanted};
use fastrand::Rng;
use notation_edge_api as wire;
use notation_host::API_ROUTES;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One request.
#[derive(Debug, Clone)]
pub struct Crafted {
    pub method: &'static str,
    pub target: String,
    pub headers: Vec<(&'static str, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// Makes requests and remembers a little of what came of them.
pub struct Workshop {
    dice: Rng,
    forms: BTreeMap<String, wire::FormRef>,
    digests: Digests,
    /// Reviews by path and spec, so that some applies are good ones.
    reviews: BTreeMap<String, String>,
    generations: BTreeMap<String, String>,
    uploads: Vec<String>,
}

const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"];

impl Workshop {
    pub fn new(dice: Rng) -> Workshop {
        let contracts = notation_host::Contracts::load(published().as_deref(), None).unwrap();
        let forms = contracts.catalog.forms().map(|form| {
            let id = &form.form_ref;
            let form = wire::FormRef {
                api_version: id.api_version.to_string(),
                kind: id.kind.to_string(),
                definition_version: id.definition_version.to_string(),
                schema_digest: id.schema_digest.to_string(),
            };
            (form.kind.clone(), form)
        });
        let module = |source: &str| wire::digest(&module_manifest("index.js", source));
        let list = |text: &str| {
            wire::digest(&files_manifest(
                "MigrationBundle",
                "application/sql",
                &[("1.sql", text)],
            ))
        };
        Workshop {
            dice,
            forms: forms.collect(),
            digests: Digests {
                modules: [module(ALL_HANDLERS), module(FETCH_ONLY)],
                migrations: ["a", "b", "c"].map(list),
            },
            reviews: BTreeMap::new(),
            generations: BTreeMap::new(),
            uploads: Vec::new(),
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.dice.usize(0..from.len())]
    }

    fn throw(&mut self) -> Dice {
        Dice(std::array::from_fn(|_| self.dice.u8(..)))
    }

    /// The next request.
    pub fn craft(&mut self) -> Crafted {
        let mut crafted = match self.dice.u8(0..10) {
            0..=5 => self.lifecycle(),
            6 => self.artifact(),
            _ => self.wild(),
        };
        match self.dice.u8(0..40) {
            0 => crafted.headers.retain(|(name, _)| *name != "Authorization"),
            1 => crafted
                .headers
                .push(("Authorization", b"Bearer \xff".to_vec())),
            2 => crafted.headers.push(("Content-Encoding", b"gzip".to_vec())),
            3 => crafted
                .headers
                .push(("Content-Type", b"text/html; charset=utf-16".to_vec())),
            4 => crafted.headers.push((
                "Takoform-Conformance-Probe",
                b"error:internal_error".to_vec(),
            )),
            5 => crafted.headers.push(("If-None-Match", b"*".to_vec())),
            6 => crafted.headers.push(("Expect", b"100-continue".to_vec())),
            7 => crafted
                .headers
                .push(("Idempotency-Key", vec![b'k'; self.dice.usize(1..8000)])),
            8 => crafted.headers.push(("If-Match", b"\"\xff\"".to_vec())),
            9 => {
                let at = self.dice.usize(1..crafted.target.len());
                if crafted.target.is_char_boundary(at) {
                    let piece = self.pick(&[
                        "%", "%2F", "%00", "//", "?", "&space=x", "%C3", "%FF", "/..", "#", "+",
                        "&space",
                    ]);
                    crafted.target.insert_str(at, piece);
                }
            }
            _ => {}
        }
        crafted
    }

    fn start(&mut self, method: &'static str, target: String) -> Crafted {
        let key = format!("k{}", self.dice.u8(0..64));
        Crafted {
            method,
            target,
            headers: vec![
                ("Authorization", b"Bearer t1p1".to_vec()),
                ("Idempotency-Key", key.into_bytes()),
            ],
            body: Vec::new(),
        }
    }

    /// A resource request that is meant, most of the time spoilt somewhere.
    fn lifecycle(&mut self) -> Crafted {
        let throw = self.throw();
        let (kind, name, spec) = wanted(throw, &self.digests);
        let form = self.forms[kind.as_str()].clone();
        let mut document = json!({
            "apiVersion": EDGE, "kind": kind.as_str(), "form": {"formRef": form},
            "metadata": {"name": name, "space": SPACE}, "spec": spec,
        });
        let path = format!("{API}/resources/{EDGE}/{}/{name}", kind.as_str());
        let known = self.generations.get(&path).cloned();
        let encode = |text: &str| text.replace('/', "%2F").replace(':', "%3A");
        let query = format!(
            "space={SPACE}&group={}&kind={}&definitionVersion={}&schemaDigest={}",
            encode(&form.api_version),
            form.kind,
            form.definition_version,
            encode(&form.schema_digest)
        );
        let review = self.reviews.get(&review_of(&document)).cloned();
        let (method, target) = match self.dice.u8(0..10) {
            0 => ("POST", format!("{API}/resources/validate")),
            1..=3 => ("POST", format!("{API}/resources/prepare")),
            4..=5 => {
                let review = review.unwrap_or_else(|| self.digests.modules[0].clone());
                document["review"] = json!({"prepareDigest": review});
                ("PUT", path)
            }
            6 => {
                document["nativeId"] = json!(self.pick(&["n1", "n2", " ", "n3"]));
                ("POST", format!("{path}/import"))
            }
            7 => ("GET", format!("{path}?{query}")),
            8 => ("POST", format!("{path}/observe?{query}")),
            _ => ("DELETE", format!("{path}?{query}")),
        };
        let mut crafted = self.start(method, target);
        let fence = match self.dice.u8(0..8) {
            0 => Some(
                self.pick(&["0", "01", "2", "99999999999999999999", "x", "", "-1", "1.0"])
                    .to_owned(),
            ),
            _ => known,
        };
        match fence {
            Some(fence) => crafted
                .headers
                .push(("Takoform-Expected-Generation", fence.into_bytes())),
            None => crafted.headers.push(("If-None-Match", b"*".to_vec())),
        }
        let bodied = method == "PUT" || (method == "POST" && !crafted.target.contains("/observe"));
        if bodied || self.dice.u8(0..20) == 0 {
            crafted.body = match self.dice.u8(0..10) {
                0..=1 => torn(&document.to_string(), &mut self.dice),
                2..=4 => {
                    for _ in 0..self.dice.u8(1..4) {
                        spoil(&mut document, &mut self.dice);
                    }
                    document.to_string().into_bytes()
                }
                _ => document.to_string().into_bytes(),
            };
        }
        crafted
    }

    /// Upload sessions, blobs and manifests.
    fn artifact(&mut self) -> Crafted {
        let source = self.pick(&[ALL_HANDLERS, FETCH_ONLY]);
        let mut manifest = module_manifest("index.js", source);
        let blob = wire::blob_digest(source.as_bytes());
        let upload = match self.uploads.len() {
            0 => "up_0".to_owned(),
            count => self.uploads[self.dice.usize(0..count)].clone(),
        };
        let session = format!("{API}/artifacts/uploads/{upload}");
        match self.dice.u8(0..8) {
            0..=1 => {
                if self.dice.bool() {
                    spoil(&mut manifest, &mut self.dice);
                }
                let mut crafted = self.start("POST", format!("{API}/artifacts/uploads"));
                crafted.body = json!({"manifest": manifest}).to_string().into_bytes();
                crafted
            }
            2..=3 => {
                let mut crafted = self.start("PUT", format!("{session}/blobs/{blob}"));
                crafted.body = match self.dice.u8(0..3) {
                    0 => torn(source, &mut self.dice),
                    _ => source.as_bytes().to_vec(),
                };
                crafted
            }
            4 => self.start("POST", format!("{session}/commit")),
            5 if self.dice.u8(0..4) == 0 => self.start("DELETE", session),
            6 => self.start("HEAD", format!("{API}/artifacts/blobs/{blob}")),
            _ => self.start(
                "GET",
                format!("{API}/artifacts/{}", wire::digest(&manifest)),
            ),
        }
    }

    /// Any method on any route with parameters that may be nonsense.
    fn wild(&mut self) -> Crafted {
        let (_, method, template) = API_ROUTES[self.dice.usize(0..API_ROUTES.len())];
        let target: Vec<String> = template
            .split('/')
            .map(|segment| match segment {
                "{api}" => API.trim_start_matches('/').to_owned(),
                _ if segment.starts_with('{') => self
                    .pick(&[
                        "w0",
                        "edge.forms.takoform.com",
                        "v1beta1",
                        "ModuleWorker",
                        "0.1.0",
                        "op_0",
                        SPACE,
                        "KEY",
                        "edge.kv",
                        "%F0%9F%98%80",
                        "%ED%A0%80",
                        "a%20b",
                        ".",
                        "",
                        "sha256:0",
                    ])
                    .to_owned(),
                literal => literal.to_owned(),
            })
            .collect();
        let target = format!("/{}", target.join("/").trim_start_matches('/'));
        let method = match self.dice.u8(0..4) {
            0 => self.pick(&METHODS),
            _ => method,
        };
        let method = METHODS.iter().find(|known| **known == method).unwrap();
        let mut crafted = self.start(method, target);
        crafted.body = match self.dice.u8(0..4) {
            0 => torn("{\"manifest\":{},\"spec\":{}}", &mut self.dice),
            1 => b"{}".to_vec(),
            _ => Vec::new(),
        };
        crafted
    }

    /// Remembers reviews, generations and sessions, so that later requests can be good ones.
    pub fn learn(&mut self, crafted: &Crafted, status: u16, body: &[u8]) {
        let path = crafted
            .target
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned();
        let path = path.trim_end_matches("/import").to_owned();
        if status == 204 && crafted.method == "DELETE" {
            self.generations.remove(&path);
        }
        if status == 404 && crafted.method == "GET" {
            self.generations.remove(&path);
        }
        let Ok(document) = serde_json::from_slice::<Value>(body) else {
            return;
        };
        if let Some(digest) = document["review"]["prepareDigest"].as_str() {
            self.reviews
                .insert(review_of(&document["resource"]), digest.to_owned());
        }
        if let Some(generation) = document["metadata"]["generation"].as_str() {
            self.generations.insert(path, generation.to_owned());
        }
        if let Some(upload) = document["uploadId"].as_str() {
            self.uploads.push(upload.to_owned());
        }
    }
}

/// What a review is remembered under.
fn review_of(document: &Value) -> String {
    format!("{} {}", document["kind"], document["metadata"]["name"])
}
