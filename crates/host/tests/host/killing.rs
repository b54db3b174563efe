//! kill -9 under load: nothing acknowledged is missing, nothing is applied twice, records answer
//! as before. `NOTATION_KILLS` sets how often.

use crate::bench::*;
use notation_edge_api as wire;
use notation_host::{Grant, Host, NoDataPlane, Scope};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DIR: &str = "NOTATION_KILL_DIR";

/// The process that is killed: this very test binary, serving when it is told where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_to_kill() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let dir = Path::new(&dir);
    let host = Host::open(config(&dir.join("data")), Arc::new(NoDataPlane))
        .await
        .unwrap();
    let grant = Grant {
        tenant: "t1".into(),
        principal: "p1".into(),
        scopes: [Scope::Api].into(),
        label: String::new(),
    };
    host.install_token("t1p1", grant).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::fs::write(dir.join("address.new"), address).unwrap();
    std::fs::rename(dir.join("address.new"), dir.join("address")).unwrap();
    host.serve(listener, std::future::pending()).await.unwrap();
}

fn launch(dir: &Path) -> Child {
    let _ = std::fs::remove_file(dir.join("address"));
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killing::a_host_to_kill", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn client(dir: &Path, child: &mut Child) -> Raw {
    for _ in 0..3000 {
        if let Ok(address) = std::fs::read_to_string(dir.join("address")) {
            return Raw {
                base: format!("http://{address}"),
                http: reqwest::Client::builder().no_proxy().build().unwrap(),
            };
        }
        assert!(child.try_wait().unwrap().is_none(), "the host ended");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the host does not answer");
}

#[derive(Clone)]
struct Raw {
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

impl Raw {
    /// Status and body, or nothing when the connection broke.
    async fn send(&self, sent: &Sent) -> Option<(u16, Vec<u8>)> {
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

struct Forms {
    queue: wire::FormRef,
}

fn document(forms: &Forms, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": EDGE, "kind": "AtLeastOnceQueue", "form": {"formRef": forms.queue},
        "metadata": {"name": name, "space": SPACE}, "spec": spec,
    })
}

async fn put(
    raw: &Raw,
    forms: &Forms,
    name: &str,
    spec: &Value,
    generation: Option<&str>,
) -> Option<Sent> {
    let mut document = document(forms, name, spec);
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
    headers.push((
        "Idempotency-Key",
        format!("{name}-{}", generation.unwrap_or("new")),
    ));
    let target = format!("{API}/resources/{EDGE}/AtLeastOnceQueue/{name}");
    Some(Sent {
        method: "PUT",
        target,
        headers,
        body: document.to_string(),
    })
}

/// What a client of the load knows when the host died.
#[derive(Default)]
struct Known {
    /// Answered requests with their answers.
    answered: Vec<(Sent, u16, Vec<u8>)>,
    /// The one request without an answer.
    open: Option<Sent>,
}

async fn load(raw: Raw, forms: Arc<Forms>, prefix: String, stop: Arc<AtomicBool>) -> Known {
    let mut known = Known::default();
    for number in 0.. {
        let name = format!("{prefix}-{number}");
        for generation in [None, Some("1")] {
            if stop.load(Ordering::Relaxed) {
                return known;
            }
            let spec = queue_spec(if generation.is_none() { 600 } else { 700 });
            let Some(sent) = put(&raw, &forms, &name, &spec, generation).await else {
                return known;
            };
            match raw.send(&sent).await {
                Some((status, body)) => {
                    assert!(
                        status == 200 || status == 201,
                        "{status}: {}",
                        String::from_utf8_lossy(&body)
                    );
                    known.answered.push((sent, status, body));
                }
                None => {
                    known.open = Some(sent);
                    return known;
                }
            }
        }
    }
    known
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_applied_twice() {
    let kills: u64 = std::env::var("NOTATION_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let temp = tempfile::tempdir().unwrap();
    let catalog = notation_host::Contracts::load(published().as_deref(), None)
        .unwrap()
        .catalog;
    let queue = &catalog
        .family(notation_edge::EdgeKind::AtLeastOnceQueue)
        .unwrap()
        .form_ref;
    let forms = Arc::new(Forms {
        queue: wire::FormRef {
            api_version: queue.api_version.to_string(),
            kind: queue.kind.to_string(),
            definition_version: queue.definition_version.to_string(),
            schema_digest: queue.schema_digest.to_string(),
        },
    });
    let mut all = Vec::new();
    let mut child = launch(temp.path());
    for round in 0..kills {
        let raw = client(temp.path(), &mut child).await;
        let stop = Arc::new(AtomicBool::new(false));
        let tasks: Vec<_> = (0..20)
            .map(|at| {
                tokio::spawn(load(
                    raw.clone(),
                    forms.clone(),
                    format!("r{round}c{at}"),
                    stop.clone(),
                ))
            })
            .collect();
        // Any instant will do; it differs from round to round.
        tokio::time::sleep(Duration::from_millis(150 + round * 37 % 400)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        stop.store(true, Ordering::Relaxed);
        child = launch(temp.path());
        let raw = client(temp.path(), &mut child).await;
        for task in tasks {
            let known = task.await.unwrap();
            if let Some(open) = known.open {
                let (status, body) = raw.send(&open).await.unwrap();
                assert!(
                    status == 200 || status == 201,
                    "{status}: {}",
                    String::from_utf8_lossy(&body)
                );
                all.push((open, status, body));
            }
            all.extend(known.answered);
        }
    }
    let raw = client(temp.path(), &mut child).await;
    for (sent, status, body) in &all {
        let again = raw.send(sent).await.unwrap();
        assert_eq!(
            (again.0, String::from_utf8_lossy(&again.1)),
            (*status, String::from_utf8_lossy(body)),
            "{}",
            sent.target
        );
    }
    assert!(all.len() > 20, "the load did nothing");
    child.kill().unwrap();
    child.wait().unwrap();
}
