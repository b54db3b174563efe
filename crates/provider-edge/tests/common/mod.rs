//! A real host on a free port whose answers can be lost, and short words for calls.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "words for tests; every test binary uses some of them"
)]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use notation_model::{Asset, Earlier, Map, Owner, Params, SecretValue, TypeName, Value};
use notation_provider::{
    Found, LookFor, MemoryAssets, NoAssets, Object, OpContext, OpError, Progress, Provider as _,
    Token, Update,
};
use notation_provider_edge::{EdgeConfig, EdgeProvider};
use serde_json::{Value as Json, json};

pub const TOKEN: &str = "a-token-for-tests";
pub const SPACE: &str = "default";

/// What happens to one request, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never arrives.
    Before(usize),
    /// It is carried out, and the answer is lost.
    After(usize),
}

#[derive(Default)]
struct Faults {
    /// Changes are accepted first and told of later.
    accepts: AtomicBool,
    /// How often each accepted change was asked about, and how it ended.
    accepted: Mutex<Vec<(usize, Json)>>,
    seen: AtomicUsize,
    before: AtomicUsize,
    after: AtomicUsize,
}

pub struct Lab {
    _dir: tempfile::TempDir,
    pub host: Host,
    pub edge: EdgeProvider,
    pub config: EdgeConfig,
    faults: Arc<Faults>,
}

pub type Answer = Result<Progress<Object>, OpError>;

impl Lab {
    pub async fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let config = HostConfig::new(dir.path().join("host"));
        let host = Host::open(config, Arc::new(NoDataPlane)).await.unwrap();
        let grant = Grant {
            tenant: "t1".into(),
            principal: "p1".into(),
            scopes: [Scope::Api, Scope::Sealed].into(),
            label: "tests".into(),
        };
        host.install_token(TOKEN, grant).await.unwrap();
        let faults = Arc::new(Faults::default());
        let layer = axum::middleware::from_fn_with_state(Arc::clone(&faults), lossy);
        let router = host.router().layer(layer);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = EdgeConfig {
            endpoint: format!("http://{address}").parse().unwrap(),
            space: SPACE.into(),
            token: TOKEN.into(),
            addresses: None,
        };
        Lab {
            _dir: dir,
            host,
            edge: EdgeProvider::new(config.clone()),
            config,
            faults,
        }
    }

    /// The next request that meets the fault is lost; counting starts now.
    pub fn lose(&self, fault: Fault) {
        self.faults.seen.store(0, Ordering::SeqCst);
        let (before, after) = match fault {
            Fault::Before(at) => (at, 0),
            Fault::After(at) => (0, at),
        };
        self.faults.before.store(before, Ordering::SeqCst);
        self.faults.after.store(after, Ordering::SeqCst);
    }

    /// From now on the host answers changes with 202.
    pub fn accept_first(&self) {
        self.faults.accepts.store(true, Ordering::SeqCst);
    }

    /// Whether the fault was met; it is taken away.
    pub fn lost(&self) -> bool {
        let at = self.faults.before.swap(0, Ordering::SeqCst)
            + self.faults.after.swap(0, Ordering::SeqCst);
        self.faults.seen.load(Ordering::SeqCst) >= at
    }

    /// `Kind name` of everything the host has.
    pub fn everything(&self) -> Vec<String> {
        let worlds = self.host.worlds();
        let snapshot = worlds.borrow();
        let tenants = snapshot.tenants.values();
        let mut names: Vec<String> = tenants
            .flat_map(|tenant| {
                tenant
                    .world
                    .resources()
                    .map(|resource| resource.key.to_string())
            })
            .collect();
        names.sort();
        names
    }

    pub async fn create(&self, worker: &Worker) -> Answer {
        self.create_with(worker, &fresh()).await
    }

    pub async fn create_with(&self, worker: &Worker, token: &str) -> Answer {
        let mut ctx = ctx(worker, token);
        // The first answer only announces that the worker may be half made from now on.
        match self.edge.create(&ctx, &ty(), &worker.params()).await {
            Ok(Progress::Waiting { resume, .. }) if resume["begun"].is_string() => {
                ctx.resume = Some(resume);
                self.edge.create(&ctx, &ty(), &worker.params()).await
            }
            other => other,
        }
    }

    pub async fn update(&self, worker: &Worker) -> Answer {
        self.update_with(worker, &fresh()).await
    }

    pub async fn update_with(&self, worker: &Worker, token: &str) -> Answer {
        let (params, none) = (worker.params(), Params::new());
        let update = Update {
            params: &params,
            prior: &none,
            outputs: &none,
        };
        self.edge
            .update(&ctx(worker, token), &ty(), &worker.script, update)
            .await
    }

    pub async fn delete(&self, worker: &Worker) -> Result<Progress<()>, OpError> {
        self.delete_with(worker, &fresh()).await
    }

    pub async fn delete_with(&self, worker: &Worker, token: &str) -> Result<Progress<()>, OpError> {
        self.edge
            .delete(&ctx(worker, token), &ty(), &worker.script, &Params::new())
            .await
    }

    pub async fn read(&self, worker: &Worker) -> Option<Found> {
        let look = LookFor::Key(&worker.script);
        self.edge.read(&worker.owner, &ty(), look).await.unwrap()
    }
}

async fn lossy(State(faults): State<Arc<Faults>>, request: Request, next: Next) -> Response {
    let at = faults.seen.fetch_add(1, Ordering::SeqCst) + 1;
    let gone = || {
        Response::builder()
            .status(502)
            .body(Body::from("lost"))
            .unwrap()
    };
    if at == faults.before.load(Ordering::SeqCst) {
        return gone();
    }
    let accepts = faults.accepts.load(Ordering::SeqCst);
    if let Some(id) = request.uri().path().rsplit_once("/operations/op_") {
        return operation(&faults, id.1);
    }
    let path = request.uri().path();
    let changes =
        matches!(*request.method(), Method::PUT | Method::DELETE) && path.contains("/resources/");
    let response = next.run(request).await;
    if accepts && changes && response.status().is_success() {
        return accepted(&faults, response).await;
    }
    if at == faults.after.load(Ordering::SeqCst) {
        return gone();
    }
    response
}

async fn accepted(faults: &Faults, response: Response) -> Response {
    let body = axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap();
    let result = match body.is_empty() {
        true => json!({ "deleted": true }),
        false => json!({ "resource": serde_json::from_slice::<Json>(&body).unwrap() }),
    };
    let mut all = faults.accepted.lock().unwrap();
    all.push((0, result));
    answer(202, json!({ "operation": document(all.len() - 1, None) }))
}

/// Pending when asked for the first time.
fn operation(faults: &Faults, id: &str) -> Response {
    let at: usize = id.parse().unwrap();
    let (asked, result) = &mut faults.accepted.lock().unwrap()[at];
    *asked += 1;
    answer(200, document(at, (*asked > 1).then_some(result)))
}

fn document(at: usize, result: Option<&mut Json>) -> Json {
    let mut document = json!({
        "apiVersion": notation_edge_api::OPERATIONS_API_VERSION,
        "kind": "Operation",
        "id": format!("op_{at}"),
        "done": result.is_some(),
    });
    if let Some(result) = result {
        document["result"] = result.clone();
    }
    document
}

fn answer(status: u16, document: Json) -> Response {
    let builder = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    builder.body(Body::from(document.to_string())).unwrap()
}

/// A worker as a program has it.
#[derive(Clone)]
pub struct Worker {
    pub script: String,
    pub owner: Owner,
    pub code: String,
    pub peers: Vec<String>,
    pub vars: BTreeMap<String, Value>,
    pub secrets: BTreeMap<String, String>,
    pub endpoint: bool,
    pub has_bytes: bool,
}

/// A worker `shop-dev-<id>` that answers, without anything else.
pub fn worker(id: &str) -> Worker {
    Worker {
        script: format!("shop-dev-{id}"),
        owner: owner("shop:dev:main", id, 0),
        code: code(id),
        peers: Vec::new(),
        vars: BTreeMap::new(),
        secrets: BTreeMap::new(),
        endpoint: true,
        has_bytes: true,
    }
}

pub fn code(text: &str) -> String {
    format!("export default {{ async fetch() {{ return new Response(\"{text}\"); }} }};\n")
}

pub fn owner(deployment: &str, resource: &str, generation: u32) -> Owner {
    Owner {
        deployment: deployment.parse().unwrap(),
        resource: resource.parse().unwrap(),
        generation,
    }
}

impl Worker {
    pub fn binding(mut self, peers: &[&Worker]) -> Worker {
        self.peers = peers.iter().map(|peer| peer.script.clone()).collect();
        self
    }

    pub fn saying(mut self, text: &str) -> Worker {
        self.code = code(text);
        self
    }

    pub fn with_secret(mut self, name: &str, value: &str) -> Worker {
        self.secrets.insert(name.into(), value.into());
        self
    }

    pub fn without_endpoint(mut self) -> Worker {
        self.endpoint = false;
        self
    }

    pub fn params(&self) -> Params {
        let text = |text: &str| Value::text(text);
        let main = Value::Map(Map::from([
            ("module", Asset::of(self.code.as_bytes()).into()),
            ("sourceMap", Asset::of(MAP.as_bytes()).into()),
            ("handlers", Value::List(vec![text("fetch")])),
        ]));
        let binding = |peer: &String| {
            let name = peer.trim_start_matches("shop-dev-").to_uppercase();
            Value::Map(Map::from([
                ("name", Value::text(name)),
                ("service", text(peer)),
            ]))
        };
        let mut params = Params::from([
            ("ScriptName", text(&self.script)),
            ("main", main),
            ("endpoint", Value::Bool(self.endpoint)),
            (
                "bindings",
                Value::List(self.peers.iter().map(binding).collect()),
            ),
            ("vars", Value::Map(self.vars.clone().into_iter().collect())),
        ]);
        if !self.secrets.is_empty() {
            let secrets = self
                .secrets
                .iter()
                .map(|(name, value)| (name.clone(), text(value)));
            let secrets = SecretValue::new(Value::Map(secrets.collect()));
            params.insert("secrets", Value::Secret(secrets));
        }
        params
    }
}

const MAP: &str =
    "{\"version\":3,\"file\":\"index.js\",\"sources\":[],\"names\":[],\"mappings\":\"\"}";

pub fn ctx(worker: &Worker, token: &str) -> OpContext<'static> {
    OpContext {
        token: Token(token.into()),
        attempt: 1,
        resume: None,
        owner: worker.owner.clone(),
        earlier: Earlier::default(),
        assets: if worker.has_bytes {
            assets(worker)
        } else {
            &NoAssets
        },
    }
}

/// Kept for the life of the process; a test has few.
fn assets(worker: &Worker) -> &'static MemoryAssets {
    Box::leak(Box::new(assets_of(&[worker])))
}

/// The bytes of all their code.
pub fn assets_of(workers: &[&Worker]) -> MemoryAssets {
    let mut assets = MemoryAssets::default();
    for worker in workers {
        assets.insert(worker.code.as_bytes());
    }
    assets.insert(MAP.as_bytes());
    assets
}

pub fn ty() -> TypeName {
    "edge/Worker".parse().unwrap()
}

/// A token nobody used before, the contract suite included: its tokens begin with zeros.
pub fn fresh() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("f{:031x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[track_caller]
pub fn done<T: std::fmt::Debug>(answer: Result<Progress<T>, OpError>) -> T {
    match answer {
        Ok(Progress::Done(object)) => object,
        other => panic!("not done: {other:?}"),
    }
}

pub fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.outputs[name].as_text().unwrap_or("nothing")
}
