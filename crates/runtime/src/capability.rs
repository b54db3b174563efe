//! The host's side of a version's bindings: one listener per version, so the connection
//! itself says which version is calling. The isolate proves nothing.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::asset;
use crate::body::OutBody;
use crate::config::BINDING_HEADER;
use crate::data::Data;
use crate::forward::{Caller, Unserved, forward, said};
use crate::ingress::connection;
use crate::plan::{Capability, Handler, Uid};
use crate::router::Router;
use crate::version::Version;

/// Tells the entry module of the caller that a call failed with this code and has no status.
const ERROR_HEADER: &str = "x-edge-error";

/// The runtime closes its idle connections itself, much earlier.
const PATIENCE: Duration = Duration::from_secs(90);

/// Path of settlements; no binding can have this name.
const SETTLE: &str = "/~settle/";

/// Serves `caller` until it has ended: draining code still uses its bindings.
pub(crate) async fn serve(
    router: Arc<Router>,
    data: Arc<Data>,
    caller: Arc<Version>,
    listener: UnixListener,
) {
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = caller.ended() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (router, data, caller) = (router.clone(), data.clone(), caller.clone());
        let service = move |request| {
            let (router, data, caller) = (router.clone(), data.clone(), caller.clone());
            async move { answer(&router, &data, &caller, request).await }
        };
        tokio::spawn(connection(stream, service, PATIENCE, stop.clone()));
    }
}

async fn answer(
    router: &Router,
    data: &Data,
    caller: &Version,
    request: Request<Incoming>,
) -> Response<OutBody> {
    let environment = &caller.spec.environment;
    // Service calls carry a header that the runtime sets outside the isolate; everything
    // else names the binding in its path.
    if let Some(binding) = request.headers().get(BINDING_HEADER) {
        let binding = binding.to_str().ok().and_then(|name| environment.get(name));
        return match binding {
            Some(Capability::Service { worker }) => call(router, caller, worker, request).await,
            Some(_) | None => refused("backend_unavailable"),
        };
    }
    if let Some(batch) = request.uri().path().strip_prefix(SETTLE) {
        let batch = batch.to_owned();
        return data.settle(batch, request).await;
    }
    let binding = request
        .uri()
        .path()
        .split('/')
        .nth(1)
        .and_then(asset::decoded);
    match binding.and_then(|name| environment.get(&name)) {
        Some(capability) => data.answer(capability, request).await,
        None => said(404, "there is no such binding"),
    }
}

/// A service call. Source: `worker.service@1.0.0`: dispatched by the target's active
/// deployment at call time, through the same draw as any request.
async fn call(
    router: &Router,
    caller: &Version,
    target: &Uid,
    request: Request<Incoming>,
) -> Response<OutBody> {
    let Ok(_permit) = caller.calls.clone().try_acquire_owned() else {
        tracing::warn!(caller = %caller.uid, %target, "too many service calls in flight");
        return refused("backend_unavailable");
    };
    let Some((version, in_flight)) = router.enter(target) else {
        return refused("backend_unavailable");
    };
    if !version.handles(Handler::Fetch) {
        return refused("backend_unavailable");
    }
    let (parts, body) = request.into_parts();
    match forward(&version, in_flight, Caller::Worker, parts, body).await {
        Ok(response) => response,
        Err(Unserved::Unavailable) => refused("backend_unavailable"),
        Err(Unserved::TooLarge) => refused("request_too_large"),
        Err(Unserved::NoResponse) => said(500, "Internal Server Error"),
    }
}

fn refused(code: &'static str) -> Response<OutBody> {
    let mut response = said(503, code);
    response
        .headers_mut()
        .insert(ERROR_HEADER, HeaderValue::from_static(code));
    response
}
