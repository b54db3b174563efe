//! Invocations that are no requests: cron matches and queue batches.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::{Handler, Uid};
use crate::router::Router;
use crate::upstream::UpstreamError;
use crate::version::chain;

/// Why an event has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    /// No version took it; it had no effect.
    #[error("no version of {0} can take the event")]
    Undelivered(Uid),
    /// It was handed over, and nobody knows what became of it.
    #[error("the outcome is unknown: {0}")]
    Lost(String),
}

/// Invokes `handler` of a version of `worker`, drawn by weight, and gives its report.
pub(crate) async fn invoke<T: DeserializeOwned>(
    router: &Router,
    worker: &Uid,
    handler: Handler,
    document: &impl Serialize,
) -> Result<T, EventError> {
    let undelivered = || EventError::Undelivered(worker.clone());
    let (version, _in_flight) = router.enter(worker).ok_or_else(undelivered)?;
    if !version.handles(handler) {
        return Err(undelivered());
    }
    version.ready().await.map_err(|_| undelivered())?;
    let document = serde_json::to_vec(document).expect("our documents are JSON");
    let path = format!("/{}", handler.name());
    let answer = tokio::select! {
        answer = version.events.post(&path, document) => answer,
        () = version.lost() => return Err(EventError::Lost("the process ended".into())),
    };
    let answer = answer.map_err(|error| match error {
        UpstreamError::Connect(_) | UpstreamError::Shortage(_) => undelivered(),
        UpstreamError::NoHead(_) => EventError::Lost(chain(&error)),
    })?;
    serde_json::from_slice(&answer).map_err(|error| EventError::Lost(error.to_string()))
}
