//! One connection to a host, in the words of this provider.

use std::{collections::BTreeMap, time::Duration};

use notation_edge_api::{
    FAMILY, FormRef, Manifest, OperationResult, Resource, ResourceBody, Review,
    client::{Client, ClientError, Fence, FormQuery, Outcome},
};
use serde_json::Value as Json;
use url::Url;

use crate::{EdgeConfig, parts::Kind};

/// A host that was reached, and the exact Forms it has.
pub(crate) struct Host {
    pub client: Client,
    pub space: String,
    pub addresses: Option<Url>,
    forms: BTreeMap<String, FormRef>,
}

/// An answer that may still be on its way.
#[derive(Debug)]
pub(crate) enum Sent<T> {
    Done(T),
    /// The host accepted the change and carries it out by itself.
    Pending {
        operation: String,
        after_ms: u64,
    },
}

/// How an accepted change ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Well,
    Badly {
        code: notation_edge_api::ErrorCode,
        message: String,
    },
    NotYet {
        after_ms: u64,
    },
}

/// Milliseconds between two looks at an operation when the host does not say.
const POLL_MS: u64 = 250;

impl Host {
    /// Asks the host for its Forms.
    pub async fn open(config: EdgeConfig) -> Result<Host, ClientError> {
        let client = Client::new(config.endpoint.as_str(), &config.token)?;
        let profiles = client.form_support().await?;
        let forms = profiles
            .into_iter()
            .filter(|profile| profile.form_ref.api_version == FAMILY)
            .map(|profile| (profile.form_ref.kind.clone(), profile.form_ref))
            .collect();
        Ok(Host {
            client,
            space: config.space,
            addresses: config.addresses,
            forms,
        })
    }

    /// Reads one resource; `None` when there is none.
    pub async fn get(&self, kind: Kind, name: &str) -> Result<Option<Resource>, ClientError> {
        match self.client.read(&self.query(kind)?, name).await {
            Ok(read) => Ok(Some(read.resource)),
            Err(error) if error.code() == Some(notation_edge_api::ErrorCode::ResourceNotFound) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Creates (`generation: None`) or updates one resource.
    pub async fn put(
        &self,
        kind: Kind,
        name: &str,
        spec: Json,
        generation: Option<&str>,
        key: &str,
    ) -> Result<Sent<Resource>, ClientError> {
        let fence = match generation {
            None => Fence::Create,
            Some(generation) => Fence::Generation(generation.to_owned()),
        };
        let mut body = self.body(kind, name, spec)?;
        let prepared = self.client.prepare(&body, &fence).await?;
        body.review = Some(Review {
            prepare_digest: prepared.review.prepare_digest,
        });
        Ok(match self.client.apply(&body, &fence, key).await? {
            Outcome::Done(applied) => Sent::Done(applied.resource),
            Outcome::Accepted {
                operation,
                retry_after,
            } => pending(operation.id, retry_after),
        })
    }

    /// Deletes one incarnation; one that is gone already is a success.
    pub async fn delete(
        &self,
        kind: Kind,
        name: &str,
        generation: &str,
        key: &str,
    ) -> Result<Sent<()>, ClientError> {
        let query = self.query(kind)?;
        match self
            .client
            .delete(&query, name, generation, None, key)
            .await
        {
            Ok(Outcome::Done(())) => Ok(Sent::Done(())),
            Ok(Outcome::Accepted {
                operation,
                retry_after,
            }) => Ok(pending(operation.id, retry_after)),
            Err(error) if error.code() == Some(notation_edge_api::ErrorCode::ResourceNotFound) => {
                Ok(Sent::Done(()))
            }
            Err(error) => Err(error),
        }
    }

    /// The manifest, when the host has it.
    pub async fn manifest(&self, digest: &str) -> Result<Option<Manifest>, ClientError> {
        match self.client.manifest(digest).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.code() == Some(notation_edge_api::ErrorCode::ArtifactMissing) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at an accepted change.
    pub async fn ended(&self, operation: &str) -> Result<Ended, ClientError> {
        let (operation, retry_after) = self.client.operation(operation).await?;
        if !operation.done {
            return Ok(Ended::NotYet {
                after_ms: wait_ms(retry_after),
            });
        }
        Ok(match (operation.result, operation.error) {
            (
                Some(
                    OperationResult::Resource { .. }
                    | OperationResult::Deleted { .. }
                    | OperationResult::Manifest { .. },
                ),
                _,
            ) => Ended::Well,
            (None, Some(error)) => Ended::Badly {
                code: error.code,
                message: error.message,
            },
            (None, None) => {
                return Err(ClientError::Protocol(
                    "an operation that is done has neither result nor error".into(),
                ));
            }
        })
    }

    fn query(&self, kind: Kind) -> Result<FormQuery<'_>, ClientError> {
        Ok(FormQuery {
            space: &self.space,
            form: self.form(kind)?,
        })
    }

    fn form(&self, kind: Kind) -> Result<&FormRef, ClientError> {
        self.forms.get(kind.as_str()).ok_or_else(|| {
            ClientError::Protocol(format!("the host has no {} of {FAMILY}", kind.as_str()))
        })
    }

    fn body(&self, kind: Kind, name: &str, spec: Json) -> Result<ResourceBody, ClientError> {
        let form = self.form(kind)?;
        Ok(ResourceBody::of(form, name, &self.space, Some(spec)))
    }
}

fn pending<T>(operation: String, retry_after: Option<Duration>) -> Sent<T> {
    Sent::Pending {
        operation,
        after_ms: wait_ms(retry_after),
    }
}

fn wait_ms(retry_after: Option<Duration>) -> u64 {
    retry_after.map_or(POLL_MS, |after| {
        u64::try_from(after.as_millis()).unwrap_or(POLL_MS)
    })
}
