//! Where requests from outside arrive: host name to worker, then to a version.

use std::convert::Infallible;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header;
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::address::{Addresses, Serve};
use crate::asset;
use crate::body::OutBody;
use crate::crowd::{Crowd, Place};
use crate::forward::{Caller, Unserved, forward, said};
use crate::plan::{AssetFile, AssetsOrder, Blobs, Handler, Uid};
use crate::router::{Router, canonical};
use crate::scheme::Scheme;
use crate::traffic::InFlight;
use crate::version::Version;

const MOST_HEADERS: usize = 256;
const MOST_HEAD_BYTES: usize = 2 << 20;
/// Answers where an endpoint can be reached with any HTTP client.
const ADDRESSES: &str = "/.well-known/notation/addresses/";

/// What decides which worker a listener's requests are for.
#[derive(Clone, Debug)]
pub(crate) enum Front {
    /// The `Host` header; clients use this scheme.
    AnyHost(Scheme),
    /// The listener itself: it belongs to the endpoint of this host name.
    Endpoint(String),
}

impl Front {
    /// What clients speak. An endpoint's own address is opened without any proxy.
    fn scheme(&self) -> Scheme {
        match self {
            Front::AnyHost(scheme) => *scheme,
            Front::Endpoint(_) => Scheme::Http,
        }
    }
}

/// What every listener shares.
pub(crate) struct Ingress {
    pub(crate) router: Arc<Router>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) crowd: Crowd,
    /// How long a client may take for the head of a request, also of the next one.
    pub(crate) patience: Duration,
}

/// How endpoints are served at addresses of their own, as long as somebody holds the ingress.
pub(crate) fn endpoints(ingress: &Arc<Ingress>) -> Arc<Serve> {
    let ingress = Arc::downgrade(ingress);
    Arc::new(move |hostname, listener, stop| {
        let ingress = ingress.clone();
        let served = async move {
            if let Some(ingress) = ingress.upgrade() {
                serve(ingress, listener, Front::Endpoint(hostname), stop).await;
            }
        };
        served.boxed()
    })
}

/// Accepts until `stop`; open connections then finish the request they are serving.
pub(crate) async fn serve(
    ingress: Arc<Ingress>,
    listener: TcpListener,
    front: Front,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let Some(place) = ingress.crowd.enter() else {
                    continue;
                };
                let _ = stream.set_nodelay(true);
                let (ingress, front, stop) = (ingress.clone(), front.clone(), stop.clone());
                tokio::spawn(host(ingress, front, place, stream, stop));
            }
            Err(error) => {
                // Out of file descriptors, most likely: let some close.
                if ingress.crowd.unaccepted.is_due() {
                    tracing::warn!(%error, "a connection could not be accepted");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves a client's connection, which has its place until it ends.
async fn host(
    ingress: Arc<Ingress>,
    front: Front,
    place: Place,
    stream: TcpStream,
    stop: CancellationToken,
) {
    let patience = ingress.patience;
    match place {
        Place::Served(_permit) => {
            let service = move |request| {
                let (ingress, front) = (ingress.clone(), front.clone());
                async move { answer(&ingress, &front, request).await }
            };
            connection(stream, service, patience, stop).await;
        }
        Place::TurnedAway(_permit) => {
            let service = |_: Request<Incoming>| future::ready(crowded());
            connection(stream, service, patience, stop).await;
        }
    }
}

/// Serves one connection until its end, or until `stop` and the end of its current request. It also
/// ends when the head of a request, or of the next one, does not arrive within `patience`.
pub(crate) async fn connection<S, F>(
    stream: S,
    service: impl Fn(Request<Incoming>) -> F,
    patience: Duration,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Response<OutBody>>,
{
    let service = service_fn(move |request| {
        let answer = service(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(ingress: &Ingress, front: &Front, request: Request<Incoming>) -> Response<OutBody> {
    let (parts, body) = request.into_parts();
    if parts.headers.get_all(header::HOST).iter().nth(1).is_some() {
        return said(400, "a request has one Host header");
    }
    // No path of any worker (RFC 9110 §9.3.7): a `request.url` cannot be made of it.
    match (parts.uri.path(), &parts.method) {
        ("*", &Method::OPTIONS) => {
            return said(200, "requests are for workers; ask one for a path");
        }
        ("*", _) => return said(400, "only OPTIONS can be asked of the host as a whole"),
        _ => {}
    }
    let hostname = match front {
        Front::Endpoint(hostname) => Some(hostname.clone()),
        Front::AnyHost(_) => asked(&parts),
    };
    let Some(hostname) = hostname else {
        return said(400, "a request needs a Host header");
    };
    let Some(worker) = ingress.router.endpoint(&hostname) else {
        return unrouted(ingress, &hostname, &parts);
    };
    if !known(&parts.method) {
        return said(501, "workers do not take requests with this method");
    }
    let Some((version, in_flight)) = ingress.router.enter(&worker) else {
        return unavailable(&worker);
    };
    let caller = Caller::Client(front.scheme());
    staged(ingress, &version, in_flight, caller, parts, body).await
}

/// The version's code and its static files, in the order it asks for. The version was drawn
/// first, so its code is never mixed with another version's files.
async fn staged(
    ingress: &Ingress,
    version: &Version,
    in_flight: InFlight,
    caller: Caller,
    parts: Parts,
    body: Incoming,
) -> Response<OutBody> {
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let assets = version.spec.assets.as_ref();
    let file = assets.and_then(|assets| asset::stage(assets, &parts.method, target));
    let order = assets.map_or(AssetsOrder::WorkerFirst, |assets| assets.order);
    match (file, order) {
        (Some(file), AssetsOrder::AssetsFirst) => served(ingress, file, &parts).await,
        (None, AssetsOrder::AssetsFirst | AssetsOrder::WorkerFirst) => {
            handled(version, in_flight, caller, parts, body).await
        }
        (Some(file), AssetsOrder::WorkerFirst) => {
            let asked = parts.clone();
            let response = handled(version, in_flight, caller, parts, body).await;
            if response.status() != StatusCode::NOT_FOUND {
                return response;
            }
            drop(response); // cancelled, not drained
            served(ingress, file, &asked).await
        }
    }
}

async fn served(ingress: &Ingress, file: &AssetFile, parts: &Parts) -> Response<OutBody> {
    let answer = asset::answer(&*ingress.blobs, file, &parts.method, &parts.headers).await;
    answer.unwrap_or_else(|error| {
        tracing::error!(%error, digest = file.digest, "a static file could not be read");
        said(503, "the file is not available at the moment")
    })
}

async fn handled(
    version: &Version,
    in_flight: InFlight,
    caller: Caller,
    parts: Parts,
    body: Incoming,
) -> Response<OutBody> {
    if !version.handles(Handler::Fetch) {
        return said(404, "nothing answers at this path");
    }
    match forward(version, in_flight, caller, parts, body).await {
        Ok(response) => response,
        Err(Unserved::Unavailable) => unavailable(&version.spec.worker),
        Err(Unserved::NoResponse) => said(500, "Internal Server Error"),
        Err(Unserved::TooLarge) => said(413, "the request body is too large"),
    }
}

fn asked(parts: &Parts) -> Option<String> {
    let named = parts
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    parts
        .uri
        .authority()
        .map(|authority| authority.as_str())
        .or(named)
        .map(canonical)
}

fn known(method: &Method) -> bool {
    const METHODS: [Method; 7] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    METHODS.contains(method)
}

/// No endpoint has this host name: an address may be asked for, nothing else.
fn unrouted(ingress: &Ingress, hostname: &str, parts: &Parts) -> Response<OutBody> {
    let wanted = parts
        .uri
        .path()
        .strip_prefix(ADDRESSES)
        .filter(|_| parts.method == Method::GET);
    match wanted.map(canonical) {
        None => said(404, &format!("no worker answers at {hostname}")),
        Some(wanted) => match ingress.addresses.url(&wanted) {
            None => said(404, &format!("no endpoint has the host name {wanted}")),
            Some(url) => {
                let mut response = said(200, &serde_json::json!({ "url": url }).to_string());
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
        },
    }
}

/// The answer on a connection that has no place.
fn crowded() -> Response<OutBody> {
    let mut response = said(503, "the host has as many connections as it takes");
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    headers.insert(
        header::CONNECTION,
        header::HeaderValue::from_static("close"),
    );
    response
}

fn unavailable(worker: &Uid) -> Response<OutBody> {
    tracing::debug!(%worker, "no version could take a request");
    let mut response = said(503, "the worker is not available at the moment");
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    response
}
