//! Data planes that do what the host's own does without one, but for what a test is about.

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use notation_edge::{Exports, LedgerEntry, Uid};
use notation_host::{BundleSource, ConvergeError, DataPlane, NoDataPlane, Snapshot};
use std::sync::Mutex;

/// The text of a main module, to what it exports; `None` is what [`NoDataPlane`] says.
type Reads = dyn Fn(Bytes) -> BoxFuture<'static, Option<Exports>> + Send + Sync;
/// The paths and bytes of the files of a migration; they all run.
type Runs = dyn Fn(Vec<(String, Bytes)>) -> BoxFuture<'static, ()> + Send + Sync;

#[derive(Default)]
pub struct Plane {
    reads: Option<Box<Reads>>,
    runs: Option<Box<Runs>>,
    /// What data is kept of.
    pub kept: Mutex<Vec<Uid>>,
}

impl Plane {
    pub fn that_reads(
        reads: impl Fn(Bytes) -> BoxFuture<'static, Option<Exports>> + Send + Sync + 'static,
    ) -> Plane {
        Plane {
            reads: Some(Box::new(reads)),
            ..Plane::default()
        }
    }

    pub fn that_runs(
        runs: impl Fn(Vec<(String, Bytes)>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Plane {
        Plane {
            runs: Some(Box::new(runs)),
            ..Plane::default()
        }
    }
}

#[async_trait]
impl DataPlane for Plane {
    async fn inspect(&self, bundle: &BundleSource) -> Exports {
        let read = match (&self.reads, bundle.main_module().await) {
            (Some(reads), Ok(text)) => reads(text).await,
            (None, _) | (_, Err(_)) => None,
        };
        match read {
            Some(exports) => exports,
            None => NoDataPlane.inspect(bundle).await,
        }
    }

    async fn converge(&self, snapshot: &Snapshot) -> Result<(), ConvergeError> {
        NoDataPlane.converge(snapshot).await
    }

    async fn migrate(
        &self,
        database: &Uid,
        files: &[(LedgerEntry, Bytes)],
    ) -> Result<(), (usize, String)> {
        if let Some(runs) = &self.runs {
            let file =
                |(entry, bytes): &(LedgerEntry, Bytes)| (entry.path.to_string(), bytes.clone());
            runs(files.iter().map(file).collect()).await;
        }
        NoDataPlane.migrate(database, files).await
    }

    async fn kept(&self) -> std::io::Result<Vec<Uid>> {
        Ok(self.kept.lock().unwrap().clone())
    }

    async fn forget(&self, uid: &Uid) -> std::io::Result<()> {
        self.kept.lock().unwrap().retain(|kept| kept != uid);
        Ok(())
    }
}
