//! The border to whatever keeps state.

use std::collections::BTreeMap;

use async_trait::async_trait;
use notation_model::{DeploymentId, Incarnation, Record, SecretName, SecretValue, Value};

use crate::{Acquired, Claim, Entry, Fence, Hold, OpenIntent, StoreError};

/// What a store knows of one deployment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeploymentState {
    /// All records, superseded ones and those found gone included.
    pub records: BTreeMap<Incarnation, Record>,
    /// Intents without outcome, by step key.
    pub open: Vec<OpenIntent>,
    /// What the entry exported at its last deploy, resolved.
    pub exports: BTreeMap<String, Value>,
    /// When a run last took the hold, in milliseconds since 1970; `None` when none ever did.
    pub last_run_ms: Option<u64>,
}

/// One line of the list of deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Which.
    pub deployment: DeploymentId,
    /// How many records it has.
    pub records: u64,
    /// How many secrets are set.
    pub secrets: u64,
    /// When a run last took the hold, in milliseconds since 1970.
    pub last_run_ms: Option<u64>,
    /// Who holds it.
    pub hold: Option<Hold>,
}

/// One change of what is recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// This is what is known of an incarnation now.
    Put(Box<Record>),
    /// The incarnation is gone.
    Remove(Incarnation),
    /// The resolved exports of the entry; replaces all of them.
    Exports(BTreeMap<String, Value>),
}

impl Change {
    /// A record as it is now.
    pub fn put(record: Record) -> Change {
        Change::Put(Box::new(record))
    }
}

/// Journal lines and changes that become durable together or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Journal lines, in order.
    pub entries: Vec<Entry>,
    /// Changes, in order.
    pub changes: Vec<Change>,
}

/// A store of state.
///
/// Owes the engine: `append` is atomic and durable when it returns, and refuses a hold that is
/// not the present one (`Fenced`); batches that wait together may share a commit, none of them
/// sees another's failure; bytes written per append do not grow with the number of records;
/// values that are secret are encrypted with a key that is not in the store; a store that was
/// never written reads as empty, and reading makes no file.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Everything known of a deployment; empty when nothing is.
    async fn load(&self, deployment: &DeploymentId) -> Result<DeploymentState, StoreError>;

    /// Asks for the hold, as [`Claim::judge`] says.
    async fn acquire(
        &self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError>;

    /// Extends the hold to `now_ms` + [`crate::LEASE_MS`]. Also a lease that ended can be
    /// renewed as long as nobody took it.
    async fn renew(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError>;

    /// Makes a batch durable.
    async fn append(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        batch: Batch,
    ) -> Result<(), StoreError>;

    /// Gives the hold back. Without effect when it was lost.
    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError>;

    /// Who holds a deployment.
    async fn hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError>;

    /// Takes an abandoned hold away from whoever has it and says from whom. Its holder is fenced
    /// out from then on.
    async fn clear_hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError>;

    /// Deployments that have records, secrets or exports, by id.
    async fn deployments(&self) -> Result<Vec<Summary>, StoreError>;

    /// Secrets of a deployment, in clear.
    async fn secrets(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError>;

    /// Names of the secrets that are set. Needs no key.
    async fn secret_names(&self, deployment: &DeploymentId) -> Result<Vec<SecretName>, StoreError>;

    /// A text per secret that changes whenever it is set, also to the same value, and tells nothing
    /// of the value. Needs no key.
    async fn secret_marks(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError>;

    /// Sets a secret.
    async fn set_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError>;

    /// Removes a secret; says whether there was one.
    async fn remove_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError>;
}

/// A journal that breaks its own law.
pub(crate) fn illegal((step, illegal): (String, crate::IllegalEvent)) -> StoreError {
    StoreError::Illegal { step, illegal }
}

/// Refuses a hold that is not the present one. A hold that was released or cleared is older than
/// none at all.
pub(crate) fn fenced(
    deployment: &DeploymentId,
    hold: &Hold,
    present: Option<&Hold>,
    fence: Fence,
) -> Result<(), StoreError> {
    match present {
        Some(present) if present.fence == hold.fence && present.run == hold.run => Ok(()),
        _ => Err(StoreError::Fenced {
            deployment: deployment.clone(),
            ours: hold.fence,
            now: present.map_or(fence, |present| present.fence),
        }),
    }
}
