//! Cutting the power at a seam: from then on nothing is written and nobody answers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use notation_model::{
    DeploymentId, Owner, Params, ResourceType, SecretName, SecretValue, TypeName, Value,
};
use notation_provider::{
    Found, LookFor, Object, OpContext, OpError, Progress, Provider, Registry, Update,
};
use notation_state::{
    Acquired, Batch, Claim, DeploymentState, Event, Hold, Outcome, StateStore, StoreError, Summary,
};
use tokio::sync::watch;

use super::{Bench, Cloud};
use notation_engine::Session;

/// Counts seams; at the chosen one the power goes. Clones share the count.
#[derive(Clone)]
pub struct Power {
    seams: Arc<AtomicU32>,
    at: u32,
    off: Arc<watch::Sender<bool>>,
    appends: Arc<AtomicU32>,
    full_from: u32,
    diary: Arc<Mutex<Vec<Line>>>,
}

/// What happened at a border, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// An intent is durable.
    Intent { step: String, token: String },
    /// What became of a step is durable.
    Outcome { step: String, outcome: Outcome },
    /// The provider was called.
    Call {
        op: &'static str,
        owner: Owner,
        token: String,
    },
}

impl Power {
    /// Goes at the seam of this number, from 1; 0 never goes.
    pub fn cut_at(at: u32) -> Power {
        Power {
            seams: Arc::default(),
            at,
            off: Arc::new(watch::channel(false).0),
            appends: Arc::default(),
            full_from: 0,
            diary: Arc::default(),
        }
    }

    /// Stays on, but the disk is full from the append of this number on, from 1.
    pub fn disk_full_from(append: u32) -> Power {
        Power {
            full_from: append,
            ..Power::cut_at(0)
        }
    }

    fn room(&self, appends: u32) -> Result<(), StoreError> {
        if self.full_from > 0 && appends >= self.full_from {
            return Err(StoreError::CannotWrite {
                place: "state.db".into(),
                why: "the disk is full".into(),
            });
        }
        Ok(())
    }

    /// Everything that happened so far.
    pub fn diary(&self) -> Vec<Line> {
        self.diary.lock().unwrap().clone()
    }

    fn write(&self, line: Line) {
        self.diary.lock().unwrap().push(line);
    }

    fn called(&self, op: &'static str, ctx: &OpContext<'_>) {
        self.write(Line::Call {
            op,
            owner: ctx.owner.clone(),
            token: ctx.token.to_string(),
        });
    }

    /// How many seams were passed.
    pub fn seams(&self) -> u32 {
        self.seams.load(Ordering::Relaxed)
    }

    /// Passes a seam, or never returns.
    async fn seam(&self) {
        let number = self.seams.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.at {
            self.off.send_replace(true);
        }
        self.alive().await;
    }

    async fn alive(&self) {
        if *self.off.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the power is off.
    pub async fn went(&self) {
        let mut receiver = self.off.subscribe();
        drop(receiver.wait_for(|off| *off).await);
    }
}

/// The same deployment, cloud and state, with this switch in between.
pub fn powered(bench: &Bench, power: &Power) -> Session {
    let cloud = PoweredCloud(bench.cloud.clone(), power.clone());
    Session {
        store: Arc::new(PoweredStore(bench.store.clone(), power.clone())),
        registry: Registry::new(vec![Arc::new(cloud)]).unwrap(),
        ..bench.session.clone()
    }
}

/// A store with seams before and after every append.
pub struct PoweredStore(pub Arc<dyn StateStore>, pub Power);

#[async_trait]
impl StateStore for PoweredStore {
    async fn load(&self, deployment: &DeploymentId) -> Result<DeploymentState, StoreError> {
        self.0.load(deployment).await
    }
    async fn acquire(
        &self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError> {
        self.0.acquire(deployment, claim).await
    }
    async fn renew(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        self.0.renew(deployment, hold, now_ms).await
    }
    async fn append(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        batch: Batch,
    ) -> Result<(), StoreError> {
        self.1.seam().await;
        self.1
            .room(self.1.appends.fetch_add(1, Ordering::Relaxed) + 1)?;
        let entries = batch.entries.clone();
        let appended = self.0.append(deployment, hold, batch).await;
        for entry in entries.into_iter().filter(|_| appended.is_ok()) {
            let step = entry.step;
            match entry.event {
                Event::Intent(intent) => self.1.write(Line::Intent {
                    step,
                    token: intent.token,
                }),
                Event::Outcome(outcome) => self.1.write(Line::Outcome { step, outcome }),
                Event::Waiting { .. } | Event::Failed { .. } => {}
            }
        }
        self.1.seam().await;
        appended
    }
    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError> {
        self.1.alive().await;
        self.1.room(self.1.appends.load(Ordering::Relaxed))?;
        self.0.release(deployment, hold).await
    }
    async fn hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        self.0.hold(deployment).await
    }
    async fn clear_hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        self.0.clear_hold(deployment).await
    }
    async fn deployments(&self) -> Result<Vec<Summary>, StoreError> {
        self.0.deployments().await
    }
    async fn secrets(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError> {
        self.0.secrets(deployment).await
    }
    async fn secret_marks(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError> {
        self.0.secret_marks(deployment).await
    }

    async fn secret_names(&self, deployment: &DeploymentId) -> Result<Vec<SecretName>, StoreError> {
        self.0.secret_names(deployment).await
    }
    async fn set_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError> {
        self.0.set_secret(deployment, name, value).await
    }
    async fn remove_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError> {
        self.0.remove_secret(deployment, name).await
    }
}

/// A provider with seams before and after every mutating call.
pub struct PoweredCloud(pub Cloud, pub Power);

#[async_trait]
impl Provider for PoweredCloud {
    fn name(&self) -> &str {
        "sim"
    }
    fn types(&self) -> Vec<ResourceType> {
        self.0.types()
    }
    async fn create(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        self.1.seam().await;
        self.1.called("create", ctx);
        let answer = self.0.create(ctx, ty, params).await;
        self.1.seam().await;
        answer
    }
    async fn read(
        &self,
        owner: &Owner,
        ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        self.1.alive().await;
        self.0.read(owner, ty, look).await
    }
    async fn update(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        self.1.seam().await;
        self.1.called("update", ctx);
        let answer = self.0.update(ctx, ty, key, update).await;
        self.1.seam().await;
        answer
    }
    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        outputs: &Params,
    ) -> Result<Progress<()>, OpError> {
        self.1.seam().await;
        self.1.called("delete", ctx);
        let answer = self.0.delete(ctx, ty, key, outputs).await;
        self.1.seam().await;
        answer
    }
}
