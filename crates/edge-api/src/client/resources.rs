//! Forms, resources, operations, support profiles and sealed values.

use super::{Answer, Call, Client, ClientError, component};
use crate::{
    API_ROOT, EXPECTED_GENERATION, FormDefinition, FormRef, FormSupport, FormSupportList,
    FormsReply, IDEMPOTENCY_KEY, Operation, OperationEnvelope, PreparedReply, Resource,
    ResourceBody, ResourceEnvelope, ResourcePath, SEALED_ROOT, SealedNames, ValidateReply,
};
use bytes::Bytes;
use reqwest::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};
use std::time::Duration;

/// The exact-form query: a space and a FormRef.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormQuery<'a> {
    /// Space.
    pub space: &'a str,
    /// Exact Form.
    pub form: &'a FormRef,
}

impl FormQuery<'_> {
    fn text(&self) -> String {
        format!(
            "space={}&group={}&kind={}&definitionVersion={}&schemaDigest={}",
            component(self.space),
            component(&self.form.api_version),
            component(&self.form.kind),
            component(&self.form.definition_version),
            component(&self.form.schema_digest),
        )
    }

    fn resource(&self, name: &str) -> String {
        ResourcePath {
            api_version: self.form.api_version.clone(),
            kind: self.form.kind.clone(),
            name: name.to_owned(),
        }
        .path()
    }
}

/// What must be true of the name for an apply or import to go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fence {
    /// Nothing holds the name.
    Create,
    /// The current resource has this generation.
    Generation(String),
}

/// Either the finished answer or an accepted operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// It happened.
    Done(T),
    /// It was accepted; poll the operation.
    Accepted {
        /// The pending operation.
        operation: Box<Operation>,
        /// How long to wait before the first poll.
        retry_after: Option<Duration>,
    },
}

/// Answer of a finished apply or import.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// True for 201.
    pub created: bool,
    /// The resource.
    pub resource: Resource,
}

/// Answer of a read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadResource {
    /// The resource.
    pub resource: Resource,
    /// The quoted revision.
    pub etag: String,
}

impl Client {
    /// Whether the exact Form can be used. Errors: `form_unknown`.
    pub async fn form(&self, query: &FormQuery<'_>) -> Result<FormsReply, ClientError> {
        self.ask(Call::get(format!("{API_ROOT}/forms?{}", query.text())))
            .await?
            .document()
    }

    /// The definition of the exact Form. Errors: `form_unknown`.
    pub async fn form_definition(
        &self,
        query: &FormQuery<'_>,
    ) -> Result<FormDefinition, ClientError> {
        let target = format!(
            "{API_ROOT}/form-definitions/{}/{}?{}",
            query.form.api_version,
            query.form.kind,
            query.text()
        );
        self.ask(Call::get(target)).await?.document()
    }

    /// Profiles of every installed Form; the way to learn the host's exact FormRefs.
    pub async fn form_support(&self) -> Result<Vec<FormSupport>, ClientError> {
        let list: FormSupportList = self
            .ask(Call::get(format!("{API_ROOT}/support/forms")))
            .await?
            .document()?;
        Ok(list.profiles)
    }

    /// Judges a document without reading any stored resource.
    pub async fn validate(&self, body: &ResourceBody) -> Result<ValidateReply, ClientError> {
        let call = Call::new(Method::POST, format!("{API_ROOT}/resources/validate"));
        self.ask(call.json(body)).await?.document()
    }

    /// Mints the review an apply of this document needs. The fence must fit the name: `Create`
    /// for a free one, `Generation` for a held one.
    pub async fn prepare(
        &self,
        body: &ResourceBody,
        fence: &Fence,
    ) -> Result<PreparedReply, ClientError> {
        let mut call = Call::new(Method::POST, format!("{API_ROOT}/resources/prepare")).json(body);
        if let Fence::Generation(generation) = fence {
            call = call.header(EXPECTED_GENERATION, generation.clone());
        }
        self.ask(call).await?.document()
    }

    /// Creates or updates; `body.review` must be set from [`Client::prepare`].
    pub async fn apply(
        &self,
        body: &ResourceBody,
        fence: &Fence,
        idempotency_key: &str,
    ) -> Result<Outcome<Applied>, ClientError> {
        let call = Call::new(Method::PUT, path_of(body));
        applied(
            &self
                .ask(fenced(call, fence, idempotency_key).json(body))
                .await?,
        )
    }

    /// Adopts an object that exists already; `body.native_id` must be set.
    pub async fn import(
        &self,
        body: &ResourceBody,
        fence: &Fence,
        idempotency_key: &str,
    ) -> Result<Outcome<Applied>, ClientError> {
        let call = Call::new(Method::POST, format!("{}/import", path_of(body)));
        applied(
            &self
                .ask(fenced(call, fence, idempotency_key).json(body))
                .await?,
        )
    }

    /// Reads one resource. Errors: `resource_not_found`.
    pub async fn read(
        &self,
        query: &FormQuery<'_>,
        name: &str,
    ) -> Result<ReadResource, ClientError> {
        let target = format!("{}?{}", query.resource(name), query.text());
        let answer = self.ask(Call::get(target)).await?;
        let resource: Resource = answer.document()?;
        let etag = etag(&answer)?;
        Ok(ReadResource { resource, etag })
    }

    /// Lets the host look at the backend again; never moves the generation.
    pub async fn observe(
        &self,
        query: &FormQuery<'_>,
        name: &str,
        generation: &str,
        idempotency_key: &str,
    ) -> Result<Resource, ClientError> {
        let target = format!("{}/observe?{}", query.resource(name), query.text());
        let call = Call::new(Method::POST, target)
            .header(IDEMPOTENCY_KEY, idempotency_key)
            .header(EXPECTED_GENERATION, generation);
        let envelope: ResourceEnvelope = self.ask(call).await?.document()?;
        Ok(envelope.resource)
    }

    /// Deletes one incarnation's resource. Errors: `resource_not_found`, `generation_conflict`,
    /// `dependency_in_use` with the dependents in the message.
    pub async fn delete(
        &self,
        query: &FormQuery<'_>,
        name: &str,
        generation: &str,
        if_match: Option<&str>,
        idempotency_key: &str,
    ) -> Result<Outcome<()>, ClientError> {
        let target = format!("{}?{}", query.resource(name), query.text());
        let mut call = Call::new(Method::DELETE, target)
            .header(IDEMPOTENCY_KEY, idempotency_key)
            .header(EXPECTED_GENERATION, generation);
        if let Some(etag) = if_match {
            call = call.header(IF_MATCH.as_str(), etag);
        }
        let answer = self.ask(call).await?;
        match answer.status {
            StatusCode::NO_CONTENT => Ok(Outcome::Done(())),
            StatusCode::ACCEPTED => accepted(&answer),
            status => Err(unexpected(status)),
        }
    }

    /// One look at an operation, and how long to wait before the next. Errors:
    /// `operation_not_found`.
    pub async fn operation(&self, id: &str) -> Result<(Operation, Option<Duration>), ClientError> {
        let answer = self
            .ask(Call::get(format!(
                "{API_ROOT}/operations/{}",
                component(id)
            )))
            .await?;
        Ok((answer.document()?, answer.retry_after()))
    }

    /// Ends a pending operation; a finished one is answered as it ended.
    pub async fn cancel(&self, id: &str, idempotency_key: &str) -> Result<Operation, ClientError> {
        let target = format!("{API_ROOT}/operations/{}/cancel", component(id));
        let call = Call::new(Method::POST, target).header(IDEMPOTENCY_KEY, idempotency_key);
        self.ask(call).await?.document()
    }

    /// Sets one sealed value of a ModuleWorker. Needs a token with the `sealed` scope.
    pub async fn seal(
        &self,
        space: &str,
        worker: &str,
        key: &str,
        value: Bytes,
    ) -> Result<(), ClientError> {
        self.ask(Call::new(Method::PUT, sealed(space, worker, Some(key))).raw(value))
            .await?;
        Ok(())
    }

    /// Removes one sealed value; removing an absent one succeeds.
    pub async fn unseal(&self, space: &str, worker: &str, key: &str) -> Result<(), ClientError> {
        self.ask(Call::new(Method::DELETE, sealed(space, worker, Some(key))))
            .await?;
        Ok(())
    }

    /// Names of the values that are set for a ModuleWorker.
    pub async fn sealed_names(
        &self,
        space: &str,
        worker: &str,
    ) -> Result<SealedNames, ClientError> {
        self.ask(Call::get(sealed(space, worker, None)))
            .await?
            .document()
    }
}

fn sealed(space: &str, worker: &str, key: Option<&str>) -> String {
    let values = format!(
        "{SEALED_ROOT}/spaces/{}/workers/{}/values",
        component(space),
        component(worker)
    );
    match key {
        Some(key) => format!("{values}/{}", component(key)),
        None => values,
    }
}

fn path_of(body: &ResourceBody) -> String {
    ResourcePath {
        api_version: body.api_version.clone(),
        kind: body.kind.clone(),
        name: body.metadata.name.clone(),
    }
    .path()
}

fn fenced(call: Call, fence: &Fence, idempotency_key: &str) -> Call {
    let call = call.header(IDEMPOTENCY_KEY, idempotency_key);
    match fence {
        Fence::Create => call.header(IF_NONE_MATCH.as_str(), "*"),
        Fence::Generation(generation) => call.header(EXPECTED_GENERATION, generation.clone()),
    }
}

fn applied(answer: &Answer) -> Result<Outcome<Applied>, ClientError> {
    let created = match answer.status {
        StatusCode::CREATED => true,
        StatusCode::OK => false,
        StatusCode::ACCEPTED => return accepted(answer),
        status => return Err(unexpected(status)),
    };
    let resource: Resource = answer.document()?;
    if etag(answer)? != format!("\"{}\"", resource.metadata.revision) {
        return Err(ClientError::Protocol(
            "the ETag is not the quoted revision".to_owned(),
        ));
    }
    Ok(Outcome::Done(Applied { created, resource }))
}

fn accepted<T>(answer: &Answer) -> Result<Outcome<T>, ClientError> {
    let envelope: OperationEnvelope = answer.document()?;
    Ok(Outcome::Accepted {
        operation: Box::new(envelope.operation),
        retry_after: answer.retry_after(),
    })
}

fn etag(answer: &Answer) -> Result<String, ClientError> {
    answer
        .headers
        .get(ETAG)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
        .ok_or_else(|| ClientError::Protocol("the answer has no ETag".to_owned()))
}

fn unexpected(status: StatusCode) -> ClientError {
    ClientError::Protocol(format!("status {status} is none of this route's"))
}
