//! What whoever runs the host can look at: a page in plain HTML without scripts, and metrics.
//!
//! Both show every tenant, so they answer to a key only. It is asked for as a password and not
//! kept in a cookie: cookies of an address go to all its ports, also to those of Workers.

mod counts;
mod page;
mod view;

use crate::host::Host;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The page of all tenants, one page per tenant, and the metrics.
pub fn router(host: Host, key: &str) -> Router {
    let key: Arc<str> = key.into();
    Router::new()
        .route("/", get(everything))
        .route("/tenants/{tenant}", get(one))
        .route("/metrics", get(metrics))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .layer(from_fn_with_state(key, only_with_key))
        .with_state(host)
}

async fn only_with_key(State(key): State<Arc<str>>, request: Request, next: Next) -> Response {
    let presented = presented(request.headers()).unwrap_or_default();
    if !bool::from(presented.as_bytes().ct_eq(key.as_bytes())) {
        let challenge = "Basic realm=\"status of the Notation host\", charset=\"UTF-8\"";
        return (
            StatusCode::UNAUTHORIZED,
            [(WWW_AUTHENTICATE, challenge)],
            "the key of the status page is needed as the password; the user may be anything\n",
        )
            .into_response();
    }
    let mut response = next.run(request).await;
    let headers: [(HeaderName, &'static str); 5] = [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}

/// The password of Basic, or the token of Bearer.
fn presented(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

async fn everything(State(host): State<Host>) -> Html<String> {
    let tenants = view::tenants(&host).await;
    Html(page::everything(&tenants))
}

async fn one(State(host): State<Host>, Path(tenant): Path<String>) -> Response {
    let tenants = view::tenants(&host).await;
    match tenants.iter().find(|it| *it.name == *tenant) {
        Some(tenant) => Html(page::one(tenant)).into_response(),
        None => (StatusCode::NOT_FOUND, "no such tenant\n").into_response(),
    }
}

async fn metrics(State(host): State<Host>) -> impl IntoResponse {
    let text = counts::text(&host).await;
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
}
