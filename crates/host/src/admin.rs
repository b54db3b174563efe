//! Tokens over a socket that only the owner of the host can open.

use crate::host::{Host, HostError};
use crate::token::{Grant, Scope, TokenRecord};
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use serde::{Deserialize, Serialize};

/// Body of a token's creation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    tenant: String,
    principal: String,
    scopes: Vec<String>,
    #[serde(default)]
    label: String,
}

/// A token in lists.
#[derive(Debug, Serialize)]
struct TokenView {
    id: String,
    tenant: String,
    principal: String,
    scopes: Vec<&'static str>,
    label: String,
    created: String,
    /// Only in the answer that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl TokenView {
    fn of(record: TokenRecord, token: Option<String>) -> TokenView {
        TokenView {
            id: record.id,
            tenant: record.grant.tenant,
            principal: record.grant.principal,
            scopes: record.grant.scopes.into_iter().map(Scope::as_str).collect(),
            label: record.grant.label,
            created: record.created,
            token,
        }
    }
}

type Refused = (StatusCode, String);

pub fn router(host: Host) -> Router {
    Router::new()
        .route("/tokens", get(list).post(create))
        .route("/tokens/{id}", delete(revoke))
        .with_state(host)
}

fn failed(error: HostError) -> Refused {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

async fn list(State(host): State<Host>) -> Json<Vec<TokenView>> {
    Json(
        host.tokens()
            .into_iter()
            .map(|record| TokenView::of(record, None))
            .collect(),
    )
}

async fn create(
    State(host): State<Host>,
    Json(wanted): Json<NewToken>,
) -> Result<(StatusCode, Json<TokenView>), Refused> {
    let refused = |text: &str| (StatusCode::BAD_REQUEST, text.to_owned());
    let scopes: Option<_> = wanted.scopes.iter().map(|text| Scope::read(text)).collect();
    let scopes = scopes.ok_or_else(|| refused("a scope is api or sealed"))?;
    if wanted.tenant.is_empty() || wanted.principal.is_empty() {
        return Err(refused("tenant and principal are needed"));
    }
    let grant = Grant {
        tenant: wanted.tenant,
        principal: wanted.principal,
        scopes,
        label: wanted.label,
    };
    let (record, text) = host.create_token(grant).await.map_err(failed)?;
    Ok((StatusCode::CREATED, Json(TokenView::of(record, Some(text)))))
}

async fn revoke(State(host): State<Host>, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    let found = host.revoke_token(&id).await.map_err(failed)?;
    Ok(if found {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    })
}
