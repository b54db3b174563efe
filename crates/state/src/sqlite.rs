//! A store in one SQLite file: all deployments of a project.
//!
//! One thread owns the connection. Batches that wait while a commit is on its way share the next
//! one. Every deployment has a table of records and one of journal lines. New rows append; nothing
//! is indexed by what it says, so that a commit touches the last page of two tables and no more.

mod alone;
mod append;
mod failure;
mod file;
mod hold;
mod read;
mod rows;
mod schema;
mod secret;
mod traffic;
mod writer;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread::JoinHandle,
};

use async_trait::async_trait;
use notation_model::{DeploymentId, SecretName, SecretValue, Value};
use tokio::sync::oneshot;

use crate::{
    Acquired, Batch, Claim, DeploymentState, Hold, KeySource, Sealer, StateStore, StoreError,
    Summary,
};

use file::File;
use traffic::Counters;
pub use traffic::Traffic;
use writer::{Append, Job, Writer};

/// State in one SQLite file.
///
/// Opened when first used: reading a file that does not exist reads as empty and makes nothing,
/// the first write makes folder and file. A process that may hit `ulimit -f` must ignore
/// `SIGXFSZ`, so that the limit is an error and not its end.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    worker: Mutex<Option<Worker>>,
    key: Mutex<Option<KeySource>>,
    traffic: Arc<Counters>,
}

#[derive(Debug)]
struct Worker {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl SqliteStore {
    /// State in this file, sensitive values under this key. Touches neither before it is used.
    pub fn open(path: impl Into<PathBuf>, key: KeySource) -> SqliteStore {
        SqliteStore {
            path: path.into(),
            worker: Mutex::new(None),
            key: Mutex::new(Some(key)),
            traffic: Arc::default(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was appended through this store so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.now()
    }

    /// Does something with the file that shares no commit with anything.
    async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut File) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Job::Alone(Box::new(move |file| drop(reply.send(work(file))))))
            .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.jobs().and_then(|jobs| jobs.send(job(reply)).ok());
        let stopped = || StoreError::CannotOpen {
            place: self.path.clone(),
            why: "its thread has stopped".into(),
        };
        sent.ok_or_else(stopped)?;
        answer.await.map_err(|_| stopped())?
    }

    /// The way to the thread, which is started when first asked for.
    fn jobs(&self) -> Option<mpsc::Sender<Job>> {
        let mut worker = lock(&self.worker);
        if worker.is_none() {
            let key = lock(&self.key).take()?;
            let (jobs, inbox) = mpsc::channel();
            let writer = Writer::new(self.path.clone(), Sealer::new(key), self.traffic.clone());
            let thread = std::thread::Builder::new()
                .name("state".into())
                .spawn(move || writer.run(&inbox))
                .ok()?;
            *worker = Some(Worker { jobs, thread });
        }
        worker.as_ref().map(|worker| worker.jobs.clone())
    }
}

impl Drop for SqliteStore {
    /// Waits for the thread, so that the file is closed and whole when the store is gone.
    fn drop(&mut self) {
        if let Some(Worker { jobs, thread }) = lock(&self.worker).take() {
            drop(jobs);
            // A panic of the thread was already an answer to whoever asked.
            drop(thread.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[async_trait]
impl StateStore for SqliteStore {
    async fn load(&self, deployment: &DeploymentId) -> Result<DeploymentState, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.load(&deployment)).await
    }

    async fn acquire(
        &self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError> {
        let (deployment, claim) = (deployment.clone(), claim.clone());
        self.alone(move |file| file.acquire(&deployment, &claim))
            .await
    }

    async fn renew(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let (deployment, hold) = (deployment.clone(), hold.clone());
        self.alone(move |file| file.renew(&deployment, &hold, now_ms))
            .await
    }

    async fn append(
        &self,
        deployment: &DeploymentId,
        hold: &Hold,
        batch: Batch,
    ) -> Result<(), StoreError> {
        let (deployment, hold) = (deployment.clone(), hold.clone());
        let append = Box::new(Append {
            deployment,
            hold,
            batch,
        });
        self.ask(|reply| Job::Append { append, reply }).await
    }

    async fn release(&self, deployment: &DeploymentId, hold: &Hold) -> Result<(), StoreError> {
        let (deployment, hold) = (deployment.clone(), hold.clone());
        self.alone(move |file| file.release(&deployment, &hold))
            .await
    }

    async fn hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.hold(&deployment)).await
    }

    async fn clear_hold(&self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.clear_hold(&deployment)).await
    }

    async fn deployments(&self) -> Result<Vec<Summary>, StoreError> {
        self.alone(move |file| file.deployments()).await
    }

    async fn secrets(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.secrets(&deployment)).await
    }

    async fn secret_names(&self, deployment: &DeploymentId) -> Result<Vec<SecretName>, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.secret_names(&deployment)).await
    }

    async fn secret_marks(
        &self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError> {
        let deployment = deployment.clone();
        self.alone(move |file| file.secret_marks(&deployment)).await
    }

    async fn set_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError> {
        let (deployment, name, value) = (deployment.clone(), name.clone(), value.clone());
        self.alone(move |file| file.set_secret(&deployment, &name, &value))
            .await
    }

    async fn remove_secret(
        &self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError> {
        let (deployment, name) = (deployment.clone(), name.clone());
        self.alone(move |file| file.remove_secret(&deployment, &name))
            .await
    }
}
