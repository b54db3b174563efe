//! One HTTP exchange with a version, whoever asks: a client through the ingress, or
//! another worker through a service binding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri, Version as HttpVersion};

use crate::body::{self, OutBody};
use crate::config::PROTO_HEADER;
use crate::scheme::Scheme;
use crate::served::{After, Served};
use crate::traffic::InFlight;
use crate::upstream::UpstreamError;
use crate::version::Version;

/// Marks whether a message of a service call has a body; "none" and "empty" look alike on
/// the wire.
pub(crate) const BODY_MARKER: &str = "x-edge-body";
const INTERNAL_PREFIX: &str = "x-edge-";
/// Longest request body. Source: `worker.runtime@1.0.0`, limits.
pub(crate) const MOST_BODY_BYTES: u64 = 104_857_600;
/// How long a response head waits for the first bytes of a body whose length it gives. A
/// process that ends in between is then a 503 and not a response cut short.
const FIRST_BYTES: Duration = Duration::from_millis(500);
/// How long a connection that broke waits to learn whether its process has ended.
const AFTERMATH: Duration = Duration::from_millis(250);

/// Who asks, which decides about the headers that carry more than HTTP can.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A client, with the scheme it used; only the host knows that.
    Client(Scheme),
    /// Another worker; the runtime tells the scheme, the entry modules mark bodies.
    Worker,
}

/// Why there is no response of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// No process could take the request, or the process ended while it had it.
    Unavailable,
    /// The worker's code gave no response head. Complete 500, never a cut connection.
    NoResponse,
    /// The body is longer than the host takes.
    TooLarge,
}

/// Sends the request on and gives the response head; bodies stream both ways.
pub(crate) async fn forward(
    version: &Version,
    in_flight: InFlight,
    caller: Caller,
    parts: Parts,
    body: Incoming,
) -> Result<Response<OutBody>, Unserved> {
    if body.size_hint().lower() > MOST_BODY_BYTES {
        return Err(Unserved::TooLarge);
    }
    version.ready().await.map_err(|_| Unserved::Unavailable)?;
    // The runtime closes a connection, unannounced, when a handler left a request body
    // unread; nobody can tell from here, so such a connection carries one request only.
    let reusable = body.is_end_stream();
    let exceeded = Arc::new(AtomicBool::new(false));
    let request = outgoing(caller, parts, body, exceeded.clone());
    let pid = version.phase.borrow().pid;
    let sent = tokio::select! {
        sent = version.http.send(request) => sent,
        () = version.lost() => return Err(Unserved::Unavailable),
    };
    match sent {
        Ok((response, connection)) => {
            let (mut head, mut incoming) = response.into_parts();
            let first = first_bytes(&mut incoming).await;
            if matches!(first, Some(Err(_))) && process_ended(version, pid).await {
                return Err(Unserved::Unavailable);
            }
            clean(&mut head.headers, caller);
            if first.is_none() && incoming.size_hint().exact().is_none() {
                head.headers.remove(header::CONTENT_LENGTH);
            }
            head.version = HttpVersion::HTTP_11;
            head.extensions.clear();
            let after = match reusable {
                true => After::Reuse(version.http.clone()),
                false => After::Close,
            };
            let body = Served::body(first, incoming, connection, after, in_flight);
            Ok(Response::from_parts(head, body))
        }
        Err(UpstreamError::Connect(_) | UpstreamError::Shortage(_)) => Err(Unserved::Unavailable),
        Err(UpstreamError::NoHead(_)) if exceeded.load(Ordering::SeqCst) => Err(Unserved::TooLarge),
        Err(UpstreamError::NoHead(_)) if process_ended(version, pid).await => {
            Err(Unserved::Unavailable)
        }
        Err(UpstreamError::NoHead(_)) => Err(Unserved::NoResponse),
    }
}

/// The first frame of a body of known length, if it comes soon; a body of unknown length is
/// a stream, whose head goes out at once.
async fn first_bytes(body: &mut Incoming) -> Option<hyper::Result<Frame<Bytes>>> {
    if body.is_end_stream() || body.size_hint().exact().is_none() {
        return None;
    }
    let first = tokio::time::timeout(FIRST_BYTES, body.frame()).await;
    first.ok().flatten()
}

/// Whether the process that had the request is gone: then it is the host that failed, not
/// the worker's code.
async fn process_ended(version: &Version, pid: Option<u32>) -> bool {
    let mut phase = version.phase.clone();
    tokio::time::timeout(AFTERMATH, phase.wait_for(|phase| phase.pid != pid))
        .await
        .is_ok()
}

fn outgoing(
    caller: Caller,
    mut parts: Parts,
    body: Incoming,
    exceeded: Arc<AtomicBool>,
) -> Request<OutBody> {
    clean(&mut parts.headers, caller);
    parts.headers.remove(header::EXPECT); // answered by the host's own server
    if let Caller::Client(scheme) = caller {
        let scheme = HeaderValue::from_static(scheme.as_str());
        parts.headers.insert(PROTO_HEADER, scheme);
    }
    if let Some(authority) = parts.uri.authority() {
        // An absolute target outranks the Host header (RFC 9112 §3.2.2).
        if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
            parts.headers.insert(header::HOST, host);
        }
    }
    let target = parts.uri.path_and_query().cloned();
    parts.uri = target.map_or_else(|| Uri::from_static("/"), Uri::from);
    if body.size_hint().exact().is_none() {
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    parts.version = HttpVersion::HTTP_11;
    parts.extensions.clear();
    Request::from_parts(parts, body::pumped(body, MOST_BODY_BYTES, exceeded))
}

/// Removes what concerns one connection only, and every header of the host's own; between
/// workers the body marker and the scheme stay.
fn clean(headers: &mut HeaderMap, caller: Caller) {
    const HOP_BY_HOP: [HeaderName; 7] = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::PROXY_AUTHENTICATE,
        HeaderName::from_static("keep-alive"),
    ];
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH)
        .collect();
    let own: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(INTERNAL_PREFIX))
        .filter(|name| {
            caller != Caller::Worker || !matches!(name.as_str(), BODY_MARKER | PROTO_HEADER)
        })
        .cloned()
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named).chain(&own) {
        headers.remove(name);
    }
}

/// An answer of the host itself.
pub(crate) fn said(status: u16, text: &str) -> Response<OutBody> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(header::CACHE_CONTROL, "no-store")
        .body(
            body::whole(format!("{text}\n"))
                .map_err(|never| never)
                .boxed_unsync(),
        )
        .expect("a status and two constant headers")
}
