//! The HTTP surface: one pipeline for every request, and handlers that only translate.

mod connection;
mod openapi;
mod route;
mod unread;

pub use connection::{Limits, serve};
pub use openapi::document as openapi;
pub use route::{API_ROUTES, OPEN_ROUTES, RouteName};

use crate::document::{
    BodyOf, availability, bytes, decode, definition, etag, identify, materialised,
    resource_document, valid_spec, wire_form_ref,
};
use crate::error::ApiError;
use crate::exact::ExactForm;
use crate::head::Head;
use crate::host::Host;
use crate::inflow::Inflow;
use crate::mutation::{Mutation, Probe, Verb};
use crate::origin::Origin;
use crate::reply::{self, Reply};
use crate::review;
use crate::sealed::MAX_VALUE_BYTES;
use crate::secret::random_text;
use crate::support::{binding_support, form_support, interface_support};
use crate::token::{Caller, Scope};
use axum::extract::{Request, State};
use axum::response::Response;
use notation_edge::{Generation, Key, is_space};
use notation_edge_api::{
    Discovery, EXPECTED_GENERATION, ErrorCode, FormSupportList, IDEMPOTENCY_KEY, PROBE,
    PreparedReply, PreparedResource, ReviewReply, ScopeMetadata, ValidateReply, digest,
};
use route::Route;
use std::time::Instant;

/// The router of a host: every path goes through the one pipeline.
pub fn router(host: Host) -> axum::Router {
    axum::Router::new().fallback(entry).with_state(host)
}

async fn entry(State(host): State<Host>, request: Request) -> Response {
    // A client that goes away must not stop a mutation half-way, so each request has its own task.
    let task = tokio::spawn(async move { answer(&host, request).await });
    match task.await {
        Ok(response) => response,
        Err(error) => {
            let id = request_id();
            tracing::error!(request = id, %error, "a request failed inside the host");
            reply::refusal(
                &ApiError::new(ErrorCode::InternalError, "the host failed"),
                &id,
            )
        }
    }
}

fn request_id() -> String {
    format!("req-{}", random_text(12))
}

async fn answer(host: &Host, request: Request) -> Response {
    let start = Instant::now();
    let id = request_id();
    let (parts, body) = request.into_parts();
    let head = Head::of(&parts);
    let config = &host.inner.config;
    let mut body = Inflow::new(body, config.read_timeout, config.body_timeout);
    let mut known = None;
    let result = if head.size_bytes() > config.max_head_bytes {
        Err(ApiError::invalid(format!(
            "the head of the request is larger than {} bytes",
            config.max_head_bytes
        )))
    } else {
        dispatch(host, &head, &mut body, &mut known).await
    };
    body.drain().await;
    // Its place among the requests is free from here on.
    let caller = known.map(|known| known.caller);
    let (response, code) = match result {
        Ok(reply) => (reply.into_response(), None),
        Err(error) => (reply::refusal(&error, &id), Some(error.code)),
    };
    let status = response.status().as_u16();
    let took = start.elapsed();
    host.inner.metrics.answered(&head.method, status, took);
    // Never the query nor a header: what is secret comes in bodies and headers only.
    let answered = Answered {
        id: &id,
        head: &head,
        caller: caller.as_ref(),
        status,
        code: code.map(ErrorCode::as_str),
        ms: took.as_millis(),
    };
    answered.tell();
    response
}

/// One line of the log.
struct Answered<'a> {
    id: &'a str,
    head: &'a Head,
    caller: Option<&'a Caller>,
    status: u16,
    code: Option<&'static str>,
    ms: u128,
}

impl Answered<'_> {
    /// Changes are worth a line, looks are not unless somebody asks for them.
    fn tell(&self) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    request = self.id,
                    tenant = self.caller.map(|caller| &*caller.tenant),
                    principal = self.caller.map(|caller| &*caller.principal),
                    method = self.head.method,
                    path = self.head.path,
                    status = self.status,
                    code = self.code,
                    ms = self.ms,
                    "answered"
                )
            };
        }
        match self.head.method.as_str() {
            _ if self.status >= 500 => line!(warn),
            "GET" | "HEAD" => line!(debug),
            _ => line!(info),
        }
    }
}

/// A request of somebody who is known.
struct Known {
    caller: Caller,
    /// Its place among the requests that are answered at a time. Strangers take none, so that
    /// they can keep nobody out.
    _place: tokio::sync::OwnedSemaphorePermit,
}

async fn dispatch(
    host: &Host,
    head: &Head,
    body: &mut Inflow,
    known: &mut Option<Known>,
) -> Result<Reply, ApiError> {
    if let Some(reply) = open_routes(host, head).await {
        return reply;
    }
    let unknown = || ApiError::new(ErrorCode::Unauthenticated, "a valid bearer token is needed");
    let token = head.bearer().ok_or_else(unknown)?;
    let caller = host.inner.tokens.caller(token).ok_or_else(unknown)?;
    let place = host.inner.requests.clone().try_acquire_owned();
    *known = Some(Known {
        caller: caller.clone(),
        _place: place
            .map_err(|_| ApiError::new(ErrorCode::RateLimited, "too many requests at once"))?,
    });
    // A token may be revoked while a body is on its way.
    body.ends_if({
        let (host, token) = (host.clone(), token.to_owned());
        move || match host.inner.tokens.caller(&token) {
            Some(_) => Ok(()),
            None => Err(unknown()),
        }
    });
    host.ready_for(&head.method).await?;
    let probe = probe(host, head)?;
    let route = Route::of(&head.method, &head.path)?;
    let needed = if route.is_sealed() {
        Scope::Sealed
    } else {
        Scope::Api
    };
    if !caller.scopes.contains(&needed) {
        return Err(ApiError::new(
            ErrorCode::PermissionDenied,
            format!("the token does not have scope {}", needed.as_str()),
        ));
    }
    run(host, head, &caller, route, probe, body).await
}

/// Routes without a credential; they show nothing of any tenant.
async fn open_routes(host: &Host, head: &Head) -> Option<Result<Reply, ApiError>> {
    if head.method != "GET" {
        return None;
    }
    match route::plain(&head.path).ok()?.as_str() {
        notation_edge_api::DISCOVERY_PATH => {
            let config = &host.inner.config;
            let scheme = if config.tls.is_some() {
                "https"
            } else {
                "http"
            };
            let asked = || Origin::asked(scheme, &head.authority()?);
            let origin = config.public_origin.clone().or_else(asked);
            Some(match origin {
                Some(origin) => Ok(Reply::json(200, bytes(&Discovery::at(origin.as_str())))),
                None => Err(ApiError::invalid(
                    "the Host header must be a host with or without a port",
                )),
            })
        }
        "/openapi.json" => Some(Ok(Reply::json(200, bytes(&host.openapi())))),
        "/healthz" => Some(Ok(Reply::json(200, b"{\"status\":\"ok\"}".to_vec()))),
        "/readyz" => Some(if host.is_writable().await {
            Ok(Reply::json(200, b"{\"status\":\"ready\"}".to_vec()))
        } else {
            Err(ApiError::new(
                ErrorCode::BackendUnavailable,
                "the store is not available",
            ))
        }),
        _ => None,
    }
}

/// The conformance adapter's header; ignored by every other host (host API §25.1).
fn probe(host: &Host, head: &Head) -> Result<Probe, ApiError> {
    if host.inner.config.conformance.is_none() {
        return Ok(Probe::None);
    }
    match head.header(PROBE).as_deref() {
        None => Ok(Probe::None),
        Some("async") => Ok(Probe::Async),
        Some("touch-status") => Ok(Probe::TouchStatus),
        Some("external-change") => Ok(Probe::ExternalChange),
        Some(other) => match other.strip_prefix("error:").map(str::parse::<ErrorCode>) {
            Some(Ok(code)) => Err(ApiError::new(code, format!("{code} was asked for"))),
            Some(Err(_)) | None => Err(ApiError::invalid("the probe is unknown")),
        },
    }
}

async fn run(
    host: &Host,
    head: &Head,
    caller: &Caller,
    route: Route,
    probe: Probe,
    body: &mut Inflow,
) -> Result<Reply, ApiError> {
    match route {
        Route::Forms => {
            let exact = ExactForm::read(&head.query, &host.inner.contracts.catalog)?;
            Ok(Reply::json(200, bytes(&availability(&exact.form))))
        }
        Route::FormDefinition { api_version, kind } => {
            let exact = ExactForm::read(&head.query, &host.inner.contracts.catalog)?;
            exact.agrees(&api_version, &kind)?;
            Ok(Reply::json(200, bytes(&definition(&exact.form))))
        }
        Route::Validate => validate(host, &body.read(host.inner.config.max_body_bytes).await?),
        Route::Prepare => prepare(
            host,
            head,
            caller,
            &body.read(host.inner.config.max_body_bytes).await?,
        ),
        Route::Apply(path) => mutate(host, head, caller, Verb::Apply, &path, probe, body).await,
        Route::Import(path) => mutate(host, head, caller, Verb::Import, &path, probe, body).await,
        Route::Observe(path) => mutate(host, head, caller, Verb::Observe, &path, probe, body).await,
        Route::Delete(path) => mutate(host, head, caller, Verb::Delete, &path, probe, body).await,
        Route::Read(path) => {
            let exact = ExactForm::read(&head.query, &host.inner.contracts.catalog)?;
            exact.agrees_with(&path)?;
            let key = Key::new(&exact.space, &path.api_version, &path.kind, &path.name);
            let world = host.plane(caller).world();
            let resource = world
                .current(&key, &exact.form.form_ref)
                .ok_or_else(ApiError::no_resource)?;
            let document = bytes(&resource_document(&world, resource));
            Ok(Reply {
                etag: Some(etag(resource)),
                ..Reply::json(200, document)
            })
        }
        Route::Operation(id) => host.poll(caller, &id).await,
        Route::Cancel(id) => {
            let body = body.read(host.inner.config.max_body_bytes).await?;
            keyed(head)?;
            if !body.is_empty() {
                return Err(ApiError::invalid("the body must be empty"));
            }
            host.cancel(caller, &id).await
        }
        Route::StartUpload => {
            let body = body.read(host.inner.config.max_body_bytes).await?;
            host.start_upload(caller, head, &body).await
        }
        Route::PutBlob { upload, digest } => host.put_blob(caller, &upload, &digest, body).await,
        Route::CommitUpload(upload) => {
            let body = body.read(host.inner.config.max_body_bytes).await?;
            host.commit_upload(caller, head, &upload, &body).await
        }
        Route::AbandonUpload(upload) => {
            keyed(head)?;
            host.abandon_upload(caller, &upload).await
        }
        Route::ReadManifest(digest) => host.read_manifest(caller, &digest).await,
        Route::HeadBlob(digest) => {
            let held = host.holds_blob(caller, &digest).await;
            Ok(Reply::empty(if held { 200 } else { 404 }))
        }
        Route::SupportForms
        | Route::SupportForm { .. }
        | Route::SupportInterface { .. }
        | Route::SupportBinding { .. } => support(host, &route),
        Route::SealedNames { space, worker } => {
            space_fits(&space)?;
            host.sealed_names(caller, &space, &worker).await
        }
        Route::Seal { space, worker, key } => {
            space_fits(&space)?;
            let value = zeroize::Zeroizing::new(body.read(MAX_VALUE_BYTES + 1).await?);
            host.seal(caller, &space, &worker, &key, &value).await
        }
        Route::Unseal { space, worker, key } => {
            space_fits(&space)?;
            host.unseal(caller, &space, &worker, &key).await
        }
    }
}

fn space_fits(space: &str) -> Result<(), ApiError> {
    if is_space(space) {
        Ok(())
    } else {
        Err(ApiError::invalid("space is no space"))
    }
}

fn keyed(head: &Head) -> Result<(), ApiError> {
    match head.header(IDEMPOTENCY_KEY) {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid("Idempotency-Key is missing")),
    }
}

async fn mutate(
    host: &Host,
    head: &Head,
    caller: &Caller,
    verb: Verb,
    path: &notation_edge_api::ResourcePath,
    probe: Probe,
    body: &mut Inflow,
) -> Result<Reply, ApiError> {
    let body = body.read(host.inner.config.max_body_bytes).await?;
    let mutation = Mutation::read(verb, path, head, &body, probe)?;
    host.run(caller, head, mutation, &body).await
}

fn validate(host: &Host, body: &[u8]) -> Result<Reply, ApiError> {
    let contracts = &host.inner.contracts;
    let body = decode(body, BodyOf::Document)?;
    let identified = identify(contracts, &body, None)?;
    let spec = materialised(contracts, &identified.form, &body)?;
    let diagnostics = contracts.diagnose(&identified.form, &spec);
    Ok(Reply::json(
        200,
        bytes(&ValidateReply {
            valid: diagnostics.is_empty(),
            diagnostics,
        }),
    ))
}

/// Checks the document and the fence, and nothing else (host API §10).
fn prepare(host: &Host, head: &Head, caller: &Caller, body: &[u8]) -> Result<Reply, ApiError> {
    let contracts = &host.inner.contracts;
    let body = decode(body, BodyOf::Document)?;
    let identified = identify(contracts, &body, None)?;
    let spec = valid_spec(contracts, &identified.form, &body)?;
    let world = host.plane(caller).world();
    let current = world.current(&identified.key, &identified.form.form_ref);
    let fence = head.header(EXPECTED_GENERATION);
    match (current, fence.as_deref()) {
        (None, None) => {}
        (None, Some(_)) => return Err(ApiError::no_resource()),
        (Some(_), None) => {
            return Err(ApiError::invalid(
                "the resource exists; Takoform-Expected-Generation is missing",
            ));
        }
        (Some(current), Some(text)) => match Generation::parse(text) {
            None => {
                return Err(ApiError::invalid(
                    "the generation fence is no canonical number",
                ));
            }
            Some(generation) if generation != current.generation => {
                return Err(ApiError::new(
                    ErrorCode::GenerationConflict,
                    "the generation fence does not name the current generation",
                ));
            }
            Some(_) => {}
        },
    }
    let spec_digest = digest(&spec);
    let bound = review::Bound {
        tenant: &caller.tenant,
        key: &identified.key,
        form_ref: &identified.form.form_ref,
        spec_digest: &spec_digest,
        current: current.map(|current| &**current),
    };
    let prepare_digest = review::mint(&host.inner.keys, &bound);
    let form = body
        .form
        .ok_or_else(|| ApiError::invalid("form is missing"))?;
    let reply = PreparedReply {
        resource: PreparedResource {
            api_version: body.api_version,
            kind: body.kind,
            form,
            metadata: ScopeMetadata {
                name: body.metadata.name,
                space: body.metadata.space,
            },
            spec,
        },
        review: ReviewReply {
            prepare_digest,
            spec_digest,
        },
    };
    Ok(Reply::json(200, bytes(&reply)))
}

fn support(host: &Host, route: &Route) -> Result<Reply, ApiError> {
    let catalog = &host.inner.contracts.catalog;
    let body = match route {
        Route::SupportForms => {
            let profiles = catalog
                .forms()
                .map(|form| form_support(catalog, form))
                .collect();
            Some(bytes(&FormSupportList { profiles }))
        }
        Route::SupportForm {
            api_version,
            kind,
            definition_version,
        } => {
            let form = catalog.forms().find(|form| {
                let id = wire_form_ref(&form.form_ref);
                id.api_version == *api_version
                    && id.kind == *kind
                    && id.definition_version == *definition_version
            });
            let Some(form) = form else {
                return Err(ApiError::new(
                    ErrorCode::FormUnknown,
                    "the form is not installed",
                ));
            };
            Some(bytes(&form_support(catalog, form)))
        }
        Route::SupportInterface { name, version } => {
            interface_support(catalog, name, version).map(|profile| bytes(&profile))
        }
        Route::SupportBinding { name, version } => {
            binding_support(catalog, name, version).map(|profile| bytes(&profile))
        }
        _ => None,
    };
    match body {
        Some(body) => Ok(Reply::json(200, body)),
        None => Err(ApiError::new(
            ErrorCode::ResourceNotFound,
            "no such contract is supported",
        )),
    }
}
