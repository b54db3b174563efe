//! The four verbs.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use notation_edge_api::client::ClientError;
use notation_model::{Owner, Params, ResourceType, TypeName, Value};
use notation_provider::{Found, LookFor, Object, OpContext, OpError, Progress, Provider, Update};
use serde_json::json;
use tokio::sync::Mutex;

use crate::{
    Connect,
    carry::{Carrier, Stop, look},
    host::{Ended, Host},
    moves::{self, Move},
    refusal::{of_code, op_error},
    report,
    seen::Seen,
    wanted::Wanted,
    worker_type,
};

/// Edge resources at a host that is reached when the first call needs it.
pub struct EdgeProvider {
    connect: Arc<dyn Connect>,
    host: Mutex<Option<Arc<Host>>>,
}

/// More moves than any worker needs: a host that never shows what was done must not be asked
/// for ever.
const MOST_MOVES: usize = 40;

impl EdgeProvider {
    /// A provider that asks `connect` for the host; an [`crate::EdgeConfig`] is one already.
    pub fn new(connect: impl Connect + 'static) -> EdgeProvider {
        EdgeProvider {
            connect: Arc::new(connect),
            host: Mutex::new(None),
        }
    }

    async fn host(&self) -> Result<Arc<Host>, OpError> {
        let mut host = self.host.lock().await;
        if let Some(host) = &*host {
            return Ok(Arc::clone(host));
        }
        let config = self
            .connect
            .connect()
            .await
            .map_err(|error| OpError::Failed {
                message: error.to_string(),
            })?;
        let opened = Host::open(config)
            .await
            .map_err(|error| op_error("", error))?;
        let opened = Arc::new(opened);
        *host = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Looks; a host that cannot be connected to any more is asked for anew next time.
    async fn look(&self, host: &Host, script: &str) -> Result<Seen, OpError> {
        match look(host, script).await {
            Ok(seen) => Ok(seen),
            Err(error) => Err(self.lost(script, error).await),
        }
    }

    async fn lost(&self, script: &str, error: ClientError) -> OpError {
        if error.is_connect() {
            *self.host.lock().await = None;
        }
        op_error(script, error)
    }

    /// Moves until what is wanted is there.
    async fn make_so(
        &self,
        carrier: &Carrier<'_>,
        mut seen: Seen,
        wanted: &Wanted,
    ) -> Result<Progress<Object>, OpError> {
        if seen.is_deployed_by_others() {
            return Err(OpError::Refused {
                message: format!(
                    "ModuleWorker {} has a WorkerDeployment that was not made by Notation: delete that first",
                    carrier.script
                ),
            });
        }
        for _ in 0..MOST_MOVES {
            let Some(next) = moves::towards(&seen, wanted) else {
                let object = report::object(carrier.host, carrier.script, &seen).await?;
                return Ok(Progress::Done(object));
            };
            match carrier.carry(&mut seen, wanted, &next).await {
                Ok(()) => {}
                Err(stop) => return stopped(stop, &next),
            }
        }
        Err(unending())
    }
}

impl EdgeProvider {
    /// Removes what a create that failed for good has begun; what others made stays.
    ///
    /// Errors: `Transient` when the host cannot be asked, so that the create is repeated.
    async fn take_back(&self, carrier: &Carrier<'_>) -> Result<(), OpError> {
        let mut seen = self.look(carrier.host, carrier.script).await?;
        let ours = |seen: &Seen| {
            seen.claim
                .as_ref()
                .is_some_and(|(_, claim)| claim.is_of(&carrier.ctx.owner))
        };
        if !ours(&seen) || seen.is_deployed_by_others() {
            return Ok(());
        }
        for _ in 0..MOST_MOVES {
            let Some(next) = moves::apart(&seen) else {
                break;
            };
            match carrier.remove(&mut seen, &next).await {
                Ok(()) => {}
                Err(Stop::Error(transient @ OpError::Transient { .. })) => return Err(transient),
                // What cannot be removed is named by the refusal that follows.
                Err(Stop::Error(_) | Stop::Pending { .. }) => break,
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for EdgeProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdgeProvider").finish_non_exhaustive()
    }
}

fn stopped<T>(stop: Stop, at: &Move) -> Result<Progress<T>, OpError> {
    match stop {
        Stop::Error(error) => Err(error),
        Stop::Pending {
            operation,
            after_ms,
        } => Ok(Progress::Waiting {
            after_ms,
            resume: json!({ "operation": operation }),
            reason: format!("the host is not finished with {at:?}"),
        }),
    }
}

fn unending() -> OpError {
    OpError::Failed {
        message: "the host does not show what was done, so the call does not end".into(),
    }
}

/// Waits for the change of an earlier answer. `Ok(None)`: it is over.
async fn resumed<T>(
    host: &Host,
    script: &str,
    ctx: &OpContext<'_>,
) -> Result<Option<Progress<T>>, OpError> {
    let operation = ctx
        .resume
        .as_ref()
        .and_then(|resume| resume["operation"].as_str());
    let Some(operation) = operation else {
        return Ok(None);
    };
    match host.ended(operation).await {
        Ok(Ended::Well) => Ok(None),
        // A forgotten operation is over; looking tells how.
        Err(error) if error.code() == Some(notation_edge_api::ErrorCode::OperationNotFound) => {
            Ok(None)
        }
        Ok(Ended::NotYet { after_ms }) => Ok(Some(Progress::Waiting {
            after_ms,
            resume: json!({ "operation": operation }),
            reason: format!("the host is not finished with {operation}"),
        })),
        Ok(Ended::Badly { code, message }) => Err(of_code(script, code, &message, None)),
        Err(error) => Err(op_error(script, error)),
    }
}

/// Whether a create may go on, given what is there.
///
/// Errors: `Exists`, with the tags of whoever has the name. What this very creation began, and
/// what an earlier one of the same owner left unfinished, is no obstacle.
fn may_create(ctx: &OpContext<'_>, script: &str, seen: &Seen) -> Result<(), OpError> {
    let exists = |tags: BTreeMap<String, String>| {
        Err(OpError::Exists {
            name: script.to_owned(),
            tags,
        })
    };
    match &seen.claim {
        None if seen.is_begun() => exists(BTreeMap::new()),
        None => Ok(()),
        Some((_, claim)) if claim.made_by(&ctx.token.0) => Ok(()),
        Some((_, claim)) if claim.is_of(&ctx.owner) && seen.deployment.is_none() => Ok(()),
        Some((_, claim)) => exists(claim.tags.clone()),
    }
}

#[async_trait]
impl Provider for EdgeProvider {
    fn name(&self) -> &str {
        worker_type::PROVIDER
    }

    fn types(&self) -> Vec<ResourceType> {
        worker_type::types()
    }

    async fn create(
        &self,
        ctx: &OpContext<'_>,
        _ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        let script = match params.get("ScriptName").and_then(Value::as_text) {
            Some(name) => name.to_owned(),
            None => worker_type::naming().generate(&ctx.owner).name,
        };
        let wanted = Wanted::read(ctx, &script, params)?;
        let host = self.host().await?;
        if let Some(waiting) = resumed(&host, &script, ctx).await? {
            return Ok(waiting);
        }
        let seen = self.look(&host, &script).await?;
        may_create(ctx, &script, &seen)?;
        // A worker that a cut-off run left half made serves nobody, and must be finished before
        // others bind it. The journal learns from this answer that it may be half made.
        if ctx.resume.is_none() {
            return Ok(Progress::Waiting {
                after_ms: 0,
                resume: json!({ "begun": script }),
                reason: String::new(),
            });
        }
        let carrier = Carrier {
            host: &host,
            ctx,
            script: &script,
        };
        let made = self.make_so(&carrier, seen, &wanted).await;
        if let Err(OpError::Refused { .. } | OpError::Failed { .. } | OpError::InUse { .. }) = made
        {
            // No record will tell of it, so nothing may be left.
            self.take_back(&carrier).await?;
        }
        made
    }

    async fn read(
        &self,
        owner: &Owner,
        _ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let script = match look {
            LookFor::Key(key) => key.to_owned(),
            LookFor::Mine(owner) => worker_type::naming().generate(owner).name,
        };
        let host = self.host().await?;
        let seen = self.look(&host, &script).await?;
        let mine = |seen: &Seen| {
            seen.claim
                .as_ref()
                .is_some_and(|(_, claim)| claim.is_of(owner))
        };
        if seen.is_empty() || (matches!(look, LookFor::Mine(_)) && !mine(&seen)) {
            return Ok(None);
        }
        let tags = seen.claim.as_ref().map(|(_, claim)| claim.tags.clone());
        Ok(Some(Found {
            object: report::object(&host, &script, &seen).await?,
            params: report::params(&host, &script, &seen).await?,
            tags: tags.unwrap_or_default(),
        }))
    }

    async fn update(
        &self,
        ctx: &OpContext<'_>,
        _ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        let wanted = Wanted::read(ctx, key, update.params)?;
        let host = self.host().await?;
        if let Some(waiting) = resumed(&host, key, ctx).await? {
            return Ok(waiting);
        }
        let seen = self.look(&host, key).await?;
        if seen.is_empty() {
            return Err(OpError::NotFound);
        }
        let carrier = Carrier {
            host: &host,
            ctx,
            script: key,
        };
        self.make_so(&carrier, seen, &wanted).await
    }

    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        _ty: &TypeName,
        key: &str,
        _outputs: &Params,
    ) -> Result<Progress<()>, OpError> {
        let host = self.host().await?;
        if let Some(waiting) = resumed(&host, key, ctx).await? {
            return Ok(waiting);
        }
        let mut seen = self.look(&host, key).await?;
        if seen.is_empty() {
            // After a wait it was there: this call removed it.
            return match ctx.resume {
                Some(_) => Ok(Progress::Done(())),
                None => Err(OpError::NotFound),
            };
        }
        belongs(ctx, key, &seen)?;
        let carrier = Carrier {
            host: &host,
            ctx,
            script: key,
        };
        for _ in 0..MOST_MOVES {
            let Some(next) = moves::apart(&seen) else {
                return Ok(Progress::Done(()));
            };
            match carrier.remove(&mut seen, &next).await {
                Ok(()) => {}
                Err(stop) => return stopped(stop, &next),
            }
        }
        Err(unending())
    }
}

/// What somebody else made under the name since we recorded it is not ours to remove.
fn belongs(ctx: &OpContext<'_>, script: &str, seen: &Seen) -> Result<(), OpError> {
    match &seen.claim {
        Some((_, claim)) if ctx.is_anothers(&claim.tags) => {
            let tag = |key: &str| claim.tags.get(key).map_or("?", String::as_str);
            Err(OpError::Refused {
                message: format!(
                    "{script} belongs to {} of {}:{}:{}",
                    tag("notation:resource"),
                    tag("notation:app"),
                    tag("notation:stage"),
                    tag("notation:entry")
                ),
            })
        }
        Some(_) | None => Ok(()),
    }
}
