//! A store that breaks one promise does not pass the contract.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use notation_model::{DeploymentId, SecretName, SecretValue, Value};
use notation_state::{
    Acquired, Batch, Change, Claim, DeploymentState, Hold, MemoryStore, StateStore, StoreError,
    Summary, contract,
};

/// What a store does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breach {
    /// Nothing.
    None,
    /// Exports of before stay beside new ones.
    MergesExports,
    /// Nobody learns when a run last took the hold.
    ForgetsRuns,
    /// A renewal lasts for a moment.
    RenewsTooLittle,
    /// The marks of secrets are the secrets.
    TellsSecrets,
    /// Values that are not known are stored as null.
    StoresUnknowns,
}

/// A store in memory that breaks one promise.
struct Broken(MemoryStore, Breach);

impl Broken {
    async fn append_wrongly(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        mut batch: Batch,
    ) -> Result<(), StoreError> {
        for change in &mut batch.changes {
            match change {
                Change::Exports(exports) if self.1 == Breach::MergesExports => {
                    let mut merged = self.0.load(deployment).await?.exports;
                    merged.append(exports);
                    *exports = merged;
                }
                Change::Put(record) if self.1 == Breach::StoresUnknowns => {
                    for value in record.outputs.values_mut().filter(|v| !v.is_known()) {
                        *value = Value::Null;
                    }
                }
                Change::Put(_) | Change::Remove(_) | Change::Exports(_) => {}
            }
        }
        self.0.append(deployment, hold, batch).await
    }
}

#[async_trait]
impl StateStore for Broken {
    async fn load(&self, deployment: &DeploymentId) -> Result<DeploymentState, StoreError> {
        let mut state = self.0.load(deployment).await?;
        if self.1 == Breach::ForgetsRuns {
            state.last_run_ms = None;
        }
        Ok(state)
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
        let now_ms = match self.1 {
            Breach::RenewsTooLittle => now_ms.saturating_sub(notation_state::LEASE_MS - 1),
            _ => now_ms,
        };
        self.0.renew(deployment, hold, now_ms).await
    }

    async fn append(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        batch: Batch,
    ) -> Result<(), StoreError> {
        self.append_wrongly(deployment, hold, batch).await
    }

    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError> {
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

    async fn secret_marks(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError> {
        let mut marks = self.0.secret_marks(deployment).await?;
        if self.1 == Breach::TellsSecrets {
            for (name, value) in self.0.secrets(deployment).await? {
                let mark = marks.get_mut(&name);
                let told = format!("{:?}", value.as_text());
                mark.into_iter().for_each(|mark| mark.push_str(&told));
            }
        }
        Ok(marks)
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

#[tokio::test]
async fn every_promise_that_is_broken_alone() {
    let told = [
        (Breach::MergesExports, "exports replace all of them"),
        (Breach::ForgetsRuns, "when a run last took the hold"),
        (Breach::RenewsTooLittle, "a renewal lasts for a whole lease"),
        (Breach::TellsSecrets, "a mark tells nothing of its secret"),
        (
            Breach::StoresUnknowns,
            "a value that is not known is refused",
        ),
    ];
    let store = |breach: Breach| Arc::new(Broken(MemoryStore::new(), breach));
    contract::run(store(Breach::None)).await;
    for (breach, why) in told {
        let checked = tokio::spawn(contract::run(store(breach))).await;
        let panic = checked.expect_err("the contract finds it").into_panic();
        let said = panic.downcast_ref::<String>().cloned().or_else(|| {
            let text = panic.downcast_ref::<&str>();
            text.map(|text| (*text).to_owned())
        });
        let said = said.expect("an assertion says why");
        assert!(said.contains(why), "{breach:?}: {said}");
    }
}
