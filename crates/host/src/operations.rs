//! Accepted operations: what was accepted commits later through the same rules (host API §23).
//!
//! A production host finishes everything at once. The conformance adapter asks for this path;
//! its operations complete by the number of their owner's polls.

use crate::document::{bytes, enveloped};
use crate::error::ApiError;
use crate::host::Host;
use crate::judgement::Judged;
use crate::mutation::{Mutation, Probe, Verb};
use crate::plane::{Plane, State, Step};
use crate::reply::Reply;
use crate::secret::random_text;
use crate::store::{Bound, OperationRow, Write};
use crate::token::Caller;
use notation_edge::{Effect, Uid};
use notation_edge_api::{
    ErrorCode, OPERATIONS_API_VERSION, Operation, OperationError, OperationResult, parse,
};
use std::sync::Arc;

/// Owner polls that are answered as pending before the commit.
const PENDING_POLLS: u32 = 1;

/// Whether an operation deletes something.
pub fn is_delete(operation: &OperationRow) -> bool {
    accepted(operation).is_some_and(|mutation| mutation.verb == Verb::Delete)
}

/// What an operation does: verb, kind and name.
pub fn what(operation: &OperationRow) -> String {
    accepted(operation).map_or_else(String::new, |mutation| mutation.what())
}

/// Why an operation failed.
pub fn error_of(operation: &OperationRow) -> Option<String> {
    let document: Operation = serde_json::from_slice(operation.terminal.as_ref()?).ok()?;
    document.error.map(|error| error.message)
}

fn accepted(operation: &OperationRow) -> Option<Mutation> {
    serde_json::from_value(parse(operation.request.as_bytes()).ok()?).ok()
}

fn document(id: &str, done: bool) -> Operation {
    Operation {
        api_version: OPERATIONS_API_VERSION.to_owned(),
        kind: "Operation".to_owned(),
        id: id.to_owned(),
        done,
        target: None,
        metadata: None,
        result: None,
        error: None,
    }
}

fn failure(id: &str, error: &ApiError) -> Vec<u8> {
    let mut operation = document(id, true);
    operation.error = Some(OperationError {
        code: error.code,
        message: error.message.clone(),
        retryable: error.code.retryable(),
        host_code: None,
    });
    bytes(&operation)
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::OperationNotFound, "operation does not exist")
}

impl Host {
    /// Accepts a mutation: checks what needs no store, for a delete everything, and binds the
    /// incarnation that holds the name now.
    pub(crate) fn accept(
        &self,
        plane: &Arc<Plane>,
        state: &mut State,
        principal: &Arc<str>,
        mutation: &Mutation,
    ) -> Result<Step, ApiError> {
        let bound_uid = match self.judge(mutation)? {
            Judged::Put {
                identified, fence, ..
            } => match fence {
                notation_edge::Fence::Free => None,
                notation_edge::Fence::Current { .. } => state
                    .world
                    .current(&identified.key, &identified.form.form_ref)
                    .map(|current| current.uid.clone()),
            },
            Judged::Fenced { key, form_ref } => {
                self.step(&plane.tenant, state, mutation, None)?;
                state
                    .world
                    .current(&key, &form_ref)
                    .map(|current| current.uid.clone())
            }
        };
        if let (Verb::Delete, Some(uid)) = (mutation.verb, &bound_uid) {
            state.world.mark_leaving(uid.clone());
        }
        let mut request = mutation.clone();
        request.probe = Probe::None;
        let operation = OperationRow {
            id: format!("op_{}", random_text(16)),
            principal: principal.clone(),
            request: serde_json::to_string(&request).expect("requests serialise to JSON"),
            bound_uid,
            polls: 0,
            terminal: None,
            result_uid: None,
            failed: false,
            created: self.now(),
        };
        let id = operation.id.clone();
        let write = Write::Operation(plane.tenant.clone(), operation.clone());
        state.operations.insert(id.clone(), operation);
        let reply = Reply {
            status: 202,
            etag: None,
            retry_after: Some(0),
            body: Some(enveloped("operation", &document(&id, false))),
        };
        Ok(Step {
            admitted: None,
            writes: vec![write],
            reply,
            bound: Bound::Operation(id),
            ended: None,
        })
    }

    /// One look of the owner; the look after the pending ones commits.
    pub(crate) async fn poll(&self, caller: &Caller, id: &str) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let mut due = false;
        let pending = self
            .mutate(&plane, None, |state| {
                let operation = owned(state, caller, id)?;
                if let Some(terminal) = &operation.terminal {
                    return Ok(unchanged(Reply::json(200, terminal.clone())));
                }
                operation.polls += 1;
                due = operation.polls > PENDING_POLLS;
                let write = Write::Operation(plane.tenant.clone(), operation.clone());
                let mut reply = Reply::json(200, bytes(&document(id, false)));
                reply.retry_after = Some(0);
                Ok(Step {
                    writes: vec![write],
                    ..unchanged(reply)
                })
            })
            .await?;
        if due {
            self.complete(&plane, caller, id).await
        } else {
            Ok(pending)
        }
    }

    /// Re-runs the accepted request against the store as it is now and stores how it ended.
    async fn complete(
        &self,
        plane: &Arc<Plane>,
        caller: &Caller,
        id: &str,
    ) -> Result<Reply, ApiError> {
        let mutation = {
            let mut state = plane.state.lock().await;
            accepted(owned(&mut state, caller, id)?).ok_or_else(not_found)?
        };
        self.inspect_for(plane, &mutation).await?;
        let committed = self
            .mutate(plane, None, |state| {
                let operation = owned(state, caller, id)?.clone();
                if let Some(terminal) = operation.terminal {
                    return Ok(unchanged(Reply::json(200, terminal)));
                }
                let bound = self.bound(&mutation, operation.bound_uid.clone())?;
                let mut step = self.step(&plane.tenant, state, &mutation, bound)?;
                let (result, result_uid) = outcome(&step);
                let mut done = document(id, true);
                done.result = Some(result);
                let terminal = bytes(&done);
                step.ended = Some(OperationRow {
                    terminal: Some(terminal.clone()),
                    result_uid,
                    ..operation
                });
                step.reply = Reply::json(200, terminal);
                Ok(step)
            })
            .await;
        match committed {
            Ok(reply) => Ok(reply),
            Err(error) if error.code == ErrorCode::OperationNotFound => Err(error),
            Err(error) => self.end(plane, caller, id, &error).await,
        }
    }

    /// The incarnation an operation is bound to. A fenced one that had none when it was accepted
    /// can never commit.
    fn bound(&self, mutation: &Mutation, uid: Option<Uid>) -> Result<Option<Uid>, ApiError> {
        let fenced = match self.judge(mutation)? {
            Judged::Put { fence, .. } => fence != notation_edge::Fence::Free,
            Judged::Fenced { .. } => true,
        };
        match uid {
            Some(uid) => Ok(Some(uid)),
            None if fenced => Err(ApiError::no_resource()),
            None => Ok(None),
        }
    }

    /// Ends a pending operation with an error; an ended one stays as it is.
    async fn end(
        &self,
        plane: &Arc<Plane>,
        caller: &Caller,
        id: &str,
        error: &ApiError,
    ) -> Result<Reply, ApiError> {
        self.mutate(plane, None, |state| {
            let operation = owned(state, caller, id)?;
            if let Some(terminal) = &operation.terminal {
                return Ok(unchanged(Reply::json(200, terminal.clone())));
            }
            let terminal = failure(id, error);
            operation.terminal = Some(terminal.clone());
            operation.failed = true;
            let operation = operation.clone();
            if let Some(uid) = &operation.bound_uid {
                state.world.unmark_leaving(uid);
            }
            let write = Write::Operation(plane.tenant.clone(), operation);
            Ok(Step {
                writes: vec![write],
                ..unchanged(Reply::json(200, terminal))
            })
        })
        .await
    }

    /// Ends a pending operation as cancelled (host API §23.5).
    pub(crate) async fn cancel(&self, caller: &Caller, id: &str) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let error = ApiError::new(ErrorCode::OperationCancelled, "the operation was cancelled");
        self.end(&plane, caller, id, &error).await
    }
}

/// An operation of exactly this tenant and principal; anybody else's does not exist.
fn owned<'a>(
    state: &'a mut State,
    caller: &Caller,
    id: &str,
) -> Result<&'a mut OperationRow, ApiError> {
    state
        .operations
        .get_mut(id)
        .filter(|operation| operation.principal == caller.principal)
        .ok_or_else(not_found)
}

fn unchanged(reply: Reply) -> Step {
    Step {
        admitted: None,
        writes: Vec::new(),
        reply,
        bound: Bound::Nothing,
        ended: None,
    }
}

fn outcome(step: &Step) -> (OperationResult, Option<Uid>) {
    match step
        .admitted
        .as_ref()
        .map(|admitted| (admitted.effect(), admitted.after()))
    {
        Some((Effect::Created(resource) | Effect::Kept(resource), world)) => {
            let resource_document = crate::document::resource_document(world, resource);
            let result = OperationResult::Resource {
                resource: Box::new(resource_document),
            };
            (result, Some(resource.uid.clone()))
        }
        Some((Effect::Removed(_) | Effect::Sealed(_), _)) | None => {
            (OperationResult::Deleted { deleted: true }, None)
        }
    }
}
