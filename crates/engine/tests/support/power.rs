//! Cutting the power at a seam: from then on nothing is written and nobody answers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use notation_model::{
    DeploymentId, Owner, Params, ResourceType, SecretName, SecretValue, TypeName, Value,
};
use notation_provider::{Found, LookFor, Object, OpContext, OpError, Progress, Provider, Update};
use notation_state::{
    Acquired, Batch, Claim, DeploymentState, Hold, StateStore, StoreError, Summary,
};
use tokio::sync::watch;

use super::Cloud;

/// Counts seams; at the chosen one the power goes. Clones share the count.
#[derive(Clone)]
pub struct Power {
    seams: Arc<AtomicU32>,
    at: u32,
    off: Arc<watch::Sender<bool>>,
}

impl Power {
    /// Goes at the seam of this number, from 1; 0 never goes.
    pub fn cut_at(at: u32) -> Power {
        Power {
            seams: Arc::default(),
            at,
            off: Arc::new(watch::channel(false).0),
        }
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
        let appended = self.0.append(deployment, hold, batch).await;
        self.1.seam().await;
        appended
    }
    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError> {
        self.1.alive().await;
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
        let answer = self.0.delete(ctx, ty, key, outputs).await;
        self.1.seam().await;
        answer
    }
}
