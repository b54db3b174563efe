//! What the engine's tests share: a strict cloud in memory, programs in a few words, a clock that
//! does not wait, and a power switch.
#![allow(clippy::unwrap_used, reason = "it is test code outside test functions")]
#![allow(dead_code, reason = "every test file uses another part")]

pub mod account;
pub mod clock;
pub mod cloud;
pub mod power;
pub mod program;
pub mod random;

use std::sync::Arc;

use notation_engine::{EngineError, Report, RunOptions, Session, deploy, destroy};
use notation_model::{DeploymentId, DesiredGraph};
use notation_provider::Registry;
use notation_state::{
    Acquired, Batch, Change, Claim, DeploymentState, Machine, MemoryStore, RunId, StateStore,
};

pub use clock::TestClock;
#[allow(unused_imports, reason = "every test file uses another part")]
pub use cloud::{Cloud, Fault};
pub use program::Program;

/// `shop:dev:main`.
pub fn shop() -> DeploymentId {
    "shop:dev:main".parse().unwrap()
}

/// A process that is certainly dead: its hold is taken over at once.
pub fn dead_machine() -> Machine {
    Machine {
        pid: u32::MAX - 7,
        started: 1,
        ..Machine::here("test")
    }
}

/// One deployment on one cloud.
pub struct Bench {
    pub cloud: Cloud,
    pub store: Arc<dyn StateStore>,
    pub session: Session,
    pub options: RunOptions,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::on(Cloud::new(), shop())
    }

    pub fn on(cloud: Cloud, deployment: DeploymentId) -> Bench {
        Bench::with(cloud, deployment, Arc::new(MemoryStore::new()))
    }

    pub fn with(cloud: Cloud, deployment: DeploymentId, store: Arc<dyn StateStore>) -> Bench {
        let session = session(deployment, store.clone(), &cloud);
        Bench {
            cloud,
            store,
            session,
            options: RunOptions::default(),
        }
    }

    /// Puts the records of a backup in place.
    pub async fn put_back(&self, old: DeploymentState) {
        let deployment = &self.session.deployment;
        let claim = Claim {
            run: RunId::random(),
            machine: dead_machine(),
            now_ms: 0,
            over: None,
        };
        let acquired = self.store.acquire(deployment, &claim).await.unwrap();
        let Acquired::Free(hold) = acquired else {
            panic!("it is free")
        };
        let batch = Batch {
            entries: Vec::new(),
            changes: old.records.into_values().map(Change::put).collect(),
        };
        self.store.append(deployment, &hold, batch).await.unwrap();
        self.store.release(deployment, &hold).await.unwrap();
    }

    pub async fn deploy(&self, program: &Program) -> Result<Report, EngineError> {
        deploy(&self.session, Arc::new(program.graph()), &self.options).await
    }

    pub async fn destroy(&self) -> Result<Report, EngineError> {
        destroy(&self.session, &self.options).await
    }

    /// Deploys, expects success, returns the calls.
    pub async fn done(&self, program: &Program) -> Vec<String> {
        self.cloud.forget_calls();
        let report = self.deploy(program).await.unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        self.cloud.writes()
    }

    /// Deploys again and expects that there is nothing to do.
    pub async fn quiet(&self, program: &Program) {
        let graph = program.graph();
        self.quiet_graph(&graph).await;
    }

    async fn quiet_graph(&self, graph: &DesiredGraph) {
        self.cloud.forget_calls();
        let report = deploy(&self.session, Arc::new(graph.clone()), &self.options)
            .await
            .unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(self.cloud.writes(), Vec::<String>::new());
    }

    /// As many live objects as records, one per record, and nothing open.
    pub async fn consistent(&self) {
        let state = self.store.load(&self.session.deployment).await.unwrap();
        let mut keys: Vec<String> = state
            .records
            .values()
            .filter(|record| !record.gone)
            .map(|record| record.key.to_string())
            .collect();
        keys.sort();
        assert_eq!(keys, self.cloud.names());
        assert_eq!(state.open, Vec::new());
    }
}

pub fn session(deployment: DeploymentId, store: Arc<dyn StateStore>, cloud: &Cloud) -> Session {
    let registry = Registry::new(vec![Arc::new(cloud.clone())]).unwrap();
    Session {
        clock: Arc::new(TestClock::default()),
        machine: dead_machine(),
        ..Session::new(deployment, store, registry)
    }
}

/// The calls of two programs, one deployed after the other.
pub async fn then(first: &Program, second: &Program) -> (Bench, Vec<String>) {
    let bench = Bench::new();
    bench.done(first).await;
    let calls = bench.done(second).await;
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.consistent().await;
    bench.quiet(second).await;
    (bench, calls)
}

/// Calls that no rule orders.
pub fn sorted(mut calls: Vec<String>) -> Vec<String> {
    calls.sort();
    calls
}
