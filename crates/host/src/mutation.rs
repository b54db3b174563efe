//! Fenced mutations of resources. A request that is answered at once and one that was accepted
//! for later run through the same function, so they cannot differ.

use crate::document::{BodyOf, decode};
use crate::error::ApiError;
use crate::exact::ExactForm;
use crate::head::Head;
use crate::host::Host;
use crate::plane::Plane;
use crate::reply::Reply;
use crate::store::ReplayKey;
use crate::token::Caller;
use notation_edge::{EdgeKind, Key};
use notation_edge_api::{ResourceBody, ResourcePath};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Which mutation a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// `PUT`.
    Apply,
    /// `POST .../import`.
    Import,
    /// `POST .../observe`.
    Observe,
    /// `DELETE`.
    Delete,
}

/// What the conformance adapter adds to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Nothing.
    #[default]
    None,
    /// Take the 202 path.
    Async,
    /// Change the status host-side.
    TouchStatus,
    /// The object behind the resource vanished.
    ExternalChange,
}

/// One mutating request, decoded as far as its own text allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mutation {
    /// Which one.
    pub verb: Verb,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    /// Query of observe and delete.
    pub query: String,
    pub if_none_match: Option<String>,
    pub if_match: Option<String>,
    pub expected_generation: Option<String>,
    /// Body of apply and import.
    pub body: Option<ResourceBody>,
    /// What the conformance adapter adds.
    pub probe: Probe,
}

impl Mutation {
    /// What it does, in words: verb, kind and name.
    pub fn what(&self) -> String {
        let verb = match self.verb {
            Verb::Apply => "apply",
            Verb::Import => "import",
            Verb::Observe => "observe",
            Verb::Delete => "delete",
        };
        format!("{verb} {} {}", self.kind, self.name)
    }

    /// Decodes a request's body strictly, or demands an empty one.
    pub fn read(
        verb: Verb,
        path: &ResourcePath,
        head: &Head,
        body: &[u8],
        probe: Probe,
    ) -> Result<Mutation, ApiError> {
        let body = match verb {
            Verb::Apply => Some(decode(body, BodyOf::Apply)?),
            Verb::Import => Some(decode(body, BodyOf::Import)?),
            Verb::Observe | Verb::Delete if body.is_empty() => None,
            Verb::Observe | Verb::Delete => {
                return Err(ApiError::invalid("the body must be empty"));
            }
        };
        Ok(Mutation {
            verb,
            api_version: path.api_version.clone(),
            kind: path.kind.clone(),
            name: path.name.clone(),
            query: head.query.clone(),
            if_none_match: head.header("if-none-match"),
            if_match: head.header("if-match"),
            expected_generation: head.header(notation_edge_api::EXPECTED_GENERATION),
            body,
            probe,
        })
    }

    pub fn path(&self) -> ResourcePath {
        ResourcePath {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }

    /// Space of the idempotency record: of the body, or of the query (host API §14.1).
    fn record_space(&self) -> String {
        match &self.body {
            Some(body) => body.metadata.space.clone(),
            None => ExactForm::space_of(&self.query).unwrap_or_default(),
        }
    }

    pub fn body(&self) -> &ResourceBody {
        self.body
            .as_ref()
            .expect("apply and import were decoded with a body")
    }
}

/// Key and fingerprint of the record of a request. Errors: `invalid_argument` without a key.
pub fn record(
    caller: &Caller,
    head: &Head,
    space: String,
    body: &[u8],
) -> Result<(ReplayKey, [u8; 32]), ApiError> {
    let key = head
        .header(notation_edge_api::IDEMPOTENCY_KEY)
        .ok_or_else(|| ApiError::invalid("Idempotency-Key is missing"))?;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(head.method.as_bytes());
    part(head.target.as_bytes());
    for name in [
        "if-match",
        "if-none-match",
        notation_edge_api::EXPECTED_GENERATION,
    ] {
        part(head.header(name).unwrap_or_default().as_bytes());
    }
    part(body);
    let record = ReplayKey {
        tenant: caller.tenant.clone(),
        principal: caller.principal.clone(),
        space,
        key,
    };
    Ok((record, hash.finalize().into()))
}

impl Host {
    /// Answers one mutating request.
    pub(crate) async fn run(
        &self,
        caller: &Caller,
        head: &Head,
        mutation: Mutation,
        body: &[u8],
    ) -> Result<Reply, ApiError> {
        let record = record(caller, head, mutation.record_space(), body)?;
        let plane = self.plane(caller);
        self.inspect_for(&plane, &mutation).await?;
        let principal = caller.principal.clone();
        let tenant = plane.clone();
        self.mutate(&plane, Some(record), |state| {
            if mutation.probe == Probe::Async && matches!(mutation.verb, Verb::Apply | Verb::Delete)
            {
                self.accept(&tenant, state, &principal, &mutation)
            } else {
                self.step(&tenant.tenant, state, &mutation, None)
            }
        })
        .await
    }

    /// A version's handlers are compared with what its bundle exports; finding that out may take
    /// a process, so it happens before anything is locked.
    ///
    /// Errors: `backend_unavailable` when the tenant has too much to check already.
    pub(crate) async fn inspect_for(
        &self,
        plane: &Plane,
        mutation: &Mutation,
    ) -> Result<(), ApiError> {
        let Some(body) = &mutation.body else {
            return Ok(());
        };
        if EdgeKind::of_parts(&body.api_version, &body.kind) != Some(EdgeKind::WorkerVersion) {
            return Ok(());
        }
        let name = body
            .spec
            .as_ref()
            .and_then(|spec| spec.pointer("/bundle/name")?.as_str());
        let Some(name) = name else { return Ok(()) };
        let bundle = Key::new(
            &body.metadata.space,
            &body.api_version,
            EdgeKind::WorkerBundle.as_str(),
            name,
        );
        let digest = plane.world().at(&bundle).and_then(|bundle| {
            bundle
                .spec
                .get("manifestDigest")?
                .as_str()
                .map(str::to_owned)
        });
        match digest {
            Some(digest) => self.inspect(plane, &digest).await,
            None => Ok(()),
        }
    }
}
