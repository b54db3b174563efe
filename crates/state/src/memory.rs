//! A store in memory: for tests, examples and dry programs. Gone with the process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use async_trait::async_trait;
use notation_model::{DeploymentId, Params, SecretName, SecretValue, Value};

use crate::{
    Acquired, Batch, Change, Claim, DeploymentState, Entry, Event, Fence, Hold, LEASE_MS,
    StateStore, StepStatus, StoreError, Summary, open_intents,
    store::{fenced, illegal},
};

/// Deployments in memory. Keeps the whole journal, so that tests can read it.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<BTreeMap<DeploymentId, Kept>>);

#[derive(Debug, Default, Clone)]
struct Kept {
    state: DeploymentState,
    journal: Vec<Entry>,
    statuses: BTreeMap<String, StepStatus>,
    secrets: BTreeMap<SecretName, Value>,
    /// Which of all settings each secret is from.
    marks: BTreeMap<SecretName, u64>,
    settings: u64,
    hold: Option<Hold>,
    fence: Fence,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Every journal line of a deployment, oldest first.
    pub fn journal(&self, deployment: &DeploymentId) -> Vec<Entry> {
        self.kept()
            .get(deployment)
            .map(|kept| kept.journal.clone())
            .unwrap_or_default()
    }

    fn take(&self, deployment: &DeploymentId, hold: &Hold, batch: Batch) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let kept = kept.entry(deployment.clone()).or_default();
        fenced(deployment, hold, kept.hold.as_ref(), kept.fence)?;
        known(values(&batch))?;
        let mut moved: BTreeMap<&str, StepStatus> = BTreeMap::new();
        for entry in &batch.entries {
            let step = entry.step.as_str();
            let before = moved.get(step).or_else(|| kept.statuses.get(step)).copied();
            let after = before
                .unwrap_or(StepStatus::Idle)
                .next(&entry.event)
                .map_err(|refused| illegal((entry.step.clone(), refused)))?;
            moved.insert(step, after);
        }
        let moved = moved
            .into_iter()
            .map(|(step, status)| (step.to_owned(), status));
        kept.statuses.extend(moved.collect::<Vec<_>>());
        kept.journal.extend(batch.entries.iter().cloned());
        for change in batch.changes {
            match change {
                Change::Put(record) => {
                    kept.state
                        .records
                        .insert(record.incarnation.clone(), *record);
                }
                Change::Remove(incarnation) => drop(kept.state.records.remove(&incarnation)),
                Change::Exports(exports) => kept.state.exports = exports,
            }
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<DeploymentId, Kept>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl StateStore for MemoryStore {
    async fn load(&self, deployment: &DeploymentId) -> Result<DeploymentState, StoreError> {
        let kept = self.kept();
        let Some(kept) = kept.get(deployment) else {
            return Ok(DeploymentState::default());
        };
        let mut state = kept.state.clone();
        state.open = open_intents(&kept.journal).map_err(illegal)?;
        Ok(state)
    }

    async fn acquire(
        &self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError> {
        let mut kept = self.kept();
        let kept = kept.entry(deployment.clone()).or_default();
        let judged = claim.judge(kept.hold.as_ref(), kept.fence);
        if let Acquired::Free(hold) | Acquired::TakenOver { hold, .. } = &judged {
            kept.fence = hold.fence;
            kept.state.last_run_ms = Some(claim.now_ms);
            kept.hold = Some(hold.clone());
        }
        Ok(judged)
    }

    async fn renew(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let kept = kept.entry(deployment.clone()).or_default();
        fenced(deployment, hold, kept.hold.as_ref(), kept.fence)?;
        if let Some(hold) = &mut kept.hold {
            hold.expires_ms = now_ms + LEASE_MS;
        }
        Ok(())
    }

    async fn append(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        batch: Batch,
    ) -> Result<(), StoreError> {
        self.take(deployment, hold, batch)?;
        // As with a store that waits for a disk, others go on before the caller hears of it.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let kept = kept.entry(deployment.clone()).or_default();
        if fenced(deployment, hold, kept.hold.as_ref(), kept.fence).is_ok() {
            kept.hold = None;
        }
        Ok(())
    }

    async fn hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        Ok(self
            .kept()
            .get(deployment)
            .and_then(|kept| kept.hold.clone()))
    }

    async fn clear_hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        Ok(self
            .kept()
            .get_mut(deployment)
            .and_then(|kept| kept.hold.take()))
    }

    async fn deployments(&self) -> Result<Vec<Summary>, StoreError> {
        let kept = self.kept();
        let known = kept.iter().filter(|(_, kept)| {
            !(kept.state.records.is_empty()
                && kept.secrets.is_empty()
                && kept.state.exports.is_empty())
        });
        Ok(known
            .map(|(deployment, kept)| Summary {
                deployment: deployment.clone(),
                records: kept.state.records.len() as u64,
                secrets: kept.secrets.len() as u64,
                last_run_ms: kept.state.last_run_ms,
                hold: kept.hold.clone(),
            })
            .collect())
    }

    async fn secrets(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError> {
        Ok(self
            .kept()
            .get(deployment)
            .map(|kept| kept.secrets.clone())
            .unwrap_or_default())
    }

    async fn secret_names(&self, deployment: &DeploymentId) -> Result<Vec<SecretName>, StoreError> {
        Ok(self.secrets(deployment).await?.into_keys().collect())
    }

    async fn secret_marks(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError> {
        let kept = self.kept();
        let marks = kept
            .get(deployment)
            .into_iter()
            .flat_map(|kept| &kept.marks);
        Ok(marks
            .map(|(name, mark)| (name.clone(), mark.to_string()))
            .collect())
    }

    async fn set_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError> {
        known([value.reveal()])?;
        let mut all = self.kept();
        let kept = all.entry(deployment.clone()).or_default();
        kept.settings += 1;
        kept.marks.insert(name.clone(), kept.settings);
        kept.secrets.insert(name.clone(), value.reveal().clone());
        Ok(())
    }

    async fn remove_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError> {
        Ok(self.kept().get_mut(deployment).is_some_and(|kept| {
            kept.marks.remove(name);
            kept.secrets.remove(name).is_some()
        }))
    }
}

/// Every value of a batch.
fn values(batch: &Batch) -> impl Iterator<Item = &Value> {
    let drafts = batch.entries.iter().filter_map(|entry| match &entry.event {
        Event::Intent(intent) => Some(&intent.draft),
        Event::Waiting { .. } | Event::Outcome(_) | Event::Failed { .. } => None,
    });
    let put = batch.changes.iter().filter_map(|change| match change {
        Change::Put(record) => Some(&**record),
        Change::Remove(_) | Change::Exports(_) => None,
    });
    let exports = batch.changes.iter().filter_map(|change| match change {
        Change::Exports(exports) => Some(exports.values()),
        Change::Put(_) | Change::Remove(_) => None,
    });
    let recorded = drafts.chain(put).flat_map(move |record| {
        let params = [&record.applied, &record.config, &record.outputs];
        let params = params.into_iter().flat_map(Params::values);
        params.chain(record.contributions.iter().map(|(_, value)| value))
    });
    recorded.chain(exports.flatten())
}

/// Refuses what only a forecast may have.
fn known<'v>(values: impl IntoIterator<Item = &'v Value>) -> Result<(), StoreError> {
    let unknown = values.into_iter().find(|value| !value.is_known());
    match unknown.and_then(|value| value.unknowns().first().copied()) {
        None => Ok(()),
        Some(unknown) => Err(StoreError::Unknown {
            what: unknown.text.to_string(),
        }),
    }
}
