//! The data interfaces: what happens when tenant code uses a binding.
//!
//! Protocol with the entry modules: `POST /<binding>/<operation>`. The operation document is
//! the JSON body or, when the operation carries bytes, base64 JSON in `x-edge-doc` with the
//! bytes as body. 200 answers the same way, anything else is `{code, message}`. Everything
//! is checked here again: what a tenant's code could forge is no evidence.

mod cursor;
mod departed;
mod file;
mod kv;
mod migration;
mod objects;
mod operation;
mod policy;
pub(crate) mod queue;
mod sql;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::sync::Notify;

use crate::body::OutBody;
use crate::plan::{Capability, QueueSpec, Uid, WorkerPlan};

use file::{Family, Files};
pub use migration::{MigrationError, MigrationFile};
use operation::{Call, Refusal};

/// Everything bindings store, of all versions.
pub(crate) struct Data {
    files: Arc<Files>,
    cursors: cursor::Cursors,
    buckets: objects::Buckets,
    plan: Mutex<Arc<WorkerPlan>>,
    /// Messages were stored.
    pub(crate) arrived: Notify,
}

impl Data {
    /// Uses `directory`, which survives restarts.
    ///
    /// Errors: the directory cannot be used.
    pub(crate) fn open(directory: &Path) -> io::Result<Data> {
        Ok(Data {
            files: Arc::new(Files::open(directory)?),
            cursors: cursor::Cursors::open(directory)?,
            buckets: objects::Buckets::default(),
            plan: Mutex::default(),
            arrived: Notify::new(),
        })
    }

    /// Settings of queues are those of `plan` from now on.
    pub(crate) fn follow(&self, plan: Arc<WorkerPlan>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    fn queue(&self, uid: &Uid) -> Option<QueueSpec> {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .queues
            .get(uid)
            .cloned()
    }

    /// Applies the migrations that come next to a database.
    ///
    /// Errors: [`MigrationError`]; files before the failing one stay applied.
    pub(crate) async fn migrate(
        &self,
        database: &Uid,
        files: Vec<MigrationFile>,
    ) -> Result<(), MigrationError> {
        let database = self.files.database(Family::Sql, database);
        let database = database.map_err(|refusal| MigrationError::Unavailable(refusal.message))?;
        migration::migrate(&database, files).await
    }

    /// Carries out one operation on what the binding leads to.
    pub(crate) async fn answer(
        &self,
        capability: &Capability,
        request: Request<Incoming>,
    ) -> Response<OutBody> {
        let answer = match Call::read(request).await {
            Ok(call) => self.operate(capability, call).await,
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(answer) => answer.into_response(),
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Records settlements of the batch with this identity.
    pub(crate) async fn settle(
        &self,
        batch: String,
        request: Request<Incoming>,
    ) -> Response<OutBody> {
        let answer = match Call::read(request).await {
            Ok(call) => queue::record(self, batch, call).await,
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(answer) => answer.into_response(),
            Err(refusal) => refusal.into_response(),
        }
    }

    async fn operate(
        &self,
        capability: &Capability,
        call: Call,
    ) -> Result<operation::Answer, Refusal> {
        match capability {
            Capability::Kv { namespace } => kv::operate(self, namespace, call).await,
            Capability::Sql { database } => sql::operate(self, database, call).await,
            Capability::QueueProducer { queue } => queue::operate(self, queue, call).await,
            Capability::Objects { bucket } => objects::operate(self, bucket, call).await,
            Capability::Var(_) | Capability::Secret(_) | Capability::Service { .. } => {
                Err(Refusal::unavailable("this binding has no operations"))
            }
        }
    }
}
