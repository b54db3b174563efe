//! A provider that costs nothing: it answers at once, or after a fixed while, and remembers
//! nothing but how much was asked of it.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use async_trait::async_trait;
use notation_model::{Owner, Params, ResourceType, TypeName, Value};
use notation_provider::{Found, LookFor, Object, OpContext, OpError, Progress, Provider, Update};

/// The provider.
#[derive(Debug, Default)]
pub struct Free {
    latency: Duration,
    calls: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Free {
    /// Every call takes this long.
    pub fn with_latency(latency: Duration) -> Free {
        Free {
            latency,
            ..Free::default()
        }
    }

    /// Mutating calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }

    /// The most that ran at the same time.
    pub fn most_running(&self) -> usize {
        self.most_running.load(SeqCst)
    }

    async fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.most_running.fetch_max(running, SeqCst);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.running.fetch_sub(1, SeqCst);
    }
}

#[async_trait]
impl Provider for Free {
    fn name(&self) -> &str {
        "sim"
    }

    fn types(&self) -> Vec<ResourceType> {
        notation_provider_sim::types()
    }

    async fn create(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        self.call().await;
        let key = params.get("Name").and_then(Value::as_text);
        let key = key.unwrap_or("none").to_owned();
        let outputs = [
            ("Name", key.clone()),
            ("arn", format!("arn:sim:{key}:1")),
            ("versionId", "v1".to_owned()),
        ];
        let outputs = outputs.map(|(name, text)| (name.to_owned(), Value::from(text)));
        Ok(Progress::Done(Object {
            key,
            outputs: Params::from(outputs),
        }))
    }

    async fn read(
        &self,
        _: &Owner,
        _: &TypeName,
        _: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        Ok(None)
    }

    async fn update(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        self.call().await;
        Ok(Progress::Done(Object {
            key: key.to_owned(),
            outputs: update.outputs.clone(),
        }))
    }

    async fn delete(
        &self,
        _: &OpContext<'_>,
        _: &TypeName,
        _: &str,
        _: &Params,
    ) -> Result<Progress<()>, OpError> {
        self.call().await;
        Ok(Progress::Done(()))
    }
}
