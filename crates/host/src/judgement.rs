//! What a mutation asks for, judged by its own text and then by the world as it would be.

use crate::document::{
    Identified, bytes, enveloped, etag, identify, resource_document, valid_spec,
};
use crate::error::ApiError;
use crate::exact::ExactForm;
use crate::host::Host;
use crate::mutation::{Mutation, Probe, Verb};
use crate::plane::{State, Step};
use crate::reply::Reply;
use crate::review::{self, fits};
use crate::store::Bound;
use notation_edge::{
    Admitted, Change, Delete, Effect, Fence, FormRef, Generation, Key, Observe, Origin, Put,
    Removal, Review, Touch, Uid, World, admit, is_digest,
};
use notation_edge_api::{ErrorCode, ResourceBody, digest};
use serde_json::Value;
use std::sync::Arc;

/// A mutation whose own text was judged: what is left needs the store.
pub enum Judged {
    /// Apply or import.
    Put {
        /// Checked identity.
        identified: Identified,
        /// Materialised, valid spec.
        spec: Arc<Value>,
        /// Its digest.
        spec_digest: Arc<str>,
        /// What must be true of the name.
        fence: Fence,
        /// The presented review of an apply, or the identity of an import.
        presented: Presented,
    },
    /// Observe or delete.
    Fenced {
        /// Address.
        key: Key,
        /// Exact Form.
        form_ref: FormRef,
    },
}

/// What an apply or import shows besides its document.
pub enum Presented {
    /// A review.
    Review(String),
    /// The identity of an object that exists.
    Native(Arc<str>),
}

impl Host {
    /// Decides a mutation now. `accepted` is the incarnation an operation is bound to.
    pub(crate) fn step(
        &self,
        tenant: &str,
        state: &State,
        mutation: &Mutation,
        accepted: Option<Uid>,
    ) -> Result<Step, ApiError> {
        let judged = self.judge(mutation)?;
        let change = self.change(tenant, &state.world, mutation, judged, accepted)?;
        let admitted = admit(&state.world, &change, &self.now())?;
        Ok(answer(mutation.verb, admitted))
    }

    /// Checks that need no stored resource (host API §11.1 rows 5 to 8, §13.1, §13.3).
    pub(crate) fn judge(&self, mutation: &Mutation) -> Result<Judged, ApiError> {
        let contracts = &self.inner.contracts;
        let path = mutation.path();
        match mutation.verb {
            Verb::Observe | Verb::Delete => {
                let exact = ExactForm::read(&mutation.query, &contracts.catalog)?;
                exact.agrees_with(&path)?;
                let key = Key::new(&exact.space, &path.api_version, &path.kind, &path.name);
                Ok(Judged::Fenced {
                    key,
                    form_ref: exact.form.form_ref.clone(),
                })
            }
            Verb::Apply | Verb::Import => {
                let body = mutation.body();
                let native = match mutation.verb {
                    Verb::Import => Some(native_id(body)?),
                    Verb::Apply | Verb::Observe | Verb::Delete => None,
                };
                let identified = identify(contracts, body, Some(&path))?;
                let spec = valid_spec(contracts, &identified.form, body)?;
                let presented = match native {
                    Some(native) => Presented::Native(native),
                    None => Presented::Review(presented_review(body)?),
                };
                let second = match mutation.verb {
                    Verb::Import => &body.metadata.generation,
                    Verb::Apply | Verb::Observe | Verb::Delete => &body.expected_generation,
                };
                let fence = fence(
                    mutation.if_none_match.as_deref(),
                    mutation.expected_generation.as_deref(),
                    second.as_deref(),
                    body.expected_uid.as_deref(),
                )?;
                let spec_digest = digest(&spec).into();
                Ok(Judged::Put {
                    identified,
                    spec: Arc::new(spec),
                    spec_digest,
                    fence,
                    presented,
                })
            }
        }
    }

    fn change(
        &self,
        tenant: &str,
        world: &World,
        mutation: &Mutation,
        judged: Judged,
        accepted: Option<Uid>,
    ) -> Result<Change, ApiError> {
        match judged {
            Judged::Put {
                identified,
                spec,
                spec_digest,
                fence,
                presented,
            } => {
                let Identified { form, key } = identified;
                let origin = match presented {
                    Presented::Native(native_id) => Origin::Import { native_id },
                    Presented::Review(digest) => {
                        let bound = review::Bound {
                            tenant,
                            key: &key,
                            form_ref: &form.form_ref,
                            spec_digest: &spec_digest,
                            current: world.current(&key, &form.form_ref).map(|it| &**it),
                        };
                        let fits = fits(&self.inner.keys, &bound, &digest);
                        Origin::Apply(if fits { Review::Fits } else { Review::Stale })
                    }
                };
                let form_ref = form.form_ref.clone();
                let (fresh, made) = (self.mint(), self.next_made());
                Ok(Change::Put(Put {
                    key,
                    form_ref,
                    spec,
                    spec_digest,
                    fence,
                    origin,
                    accepted,
                    fresh,
                    made,
                }))
            }
            Judged::Fenced { key, form_ref } => {
                // An absent resource is told before an absent fence (host API §12.2, §13.3).
                if accepted.is_none() && world.current(&key, &form_ref).is_none() {
                    return Err(ApiError::no_resource());
                }
                let generation = mutation
                    .expected_generation
                    .clone()
                    .ok_or_else(|| ApiError::invalid("Takoform-Expected-Generation is missing"))?;
                Ok(match mutation.verb {
                    Verb::Observe => {
                        let touch = match mutation.probe {
                            Probe::TouchStatus => Touch::Count,
                            Probe::None | Probe::Async | Probe::ExternalChange => Touch::Leave,
                        };
                        Change::Observe(Observe {
                            key,
                            form_ref,
                            generation,
                            touch,
                        })
                    }
                    Verb::Apply | Verb::Import | Verb::Delete => {
                        let removal = match mutation.probe {
                            Probe::ExternalChange => Removal::Vanished,
                            Probe::None | Probe::Async | Probe::TouchStatus => Removal::Asked,
                        };
                        let if_match = mutation.if_match.clone();
                        Change::Delete(Delete {
                            key,
                            form_ref,
                            generation,
                            if_match,
                            accepted,
                            removal,
                        })
                    }
                })
            }
        }
    }
}

/// The answer of an accepted change (host API §11.3, §12.2, §13).
fn answer(verb: Verb, admitted: Admitted) -> Step {
    let (reply, bound) = match admitted.effect() {
        Effect::Created(resource) | Effect::Kept(resource) => {
            let document = resource_document(admitted.after(), resource);
            let created = matches!(admitted.effect(), Effect::Created(_));
            let body = match verb {
                Verb::Observe => enveloped("resource", &document),
                Verb::Apply | Verb::Import | Verb::Delete => bytes(&document),
            };
            let reply = Reply {
                status: if created { 201 } else { 200 },
                etag: Some(etag(resource)),
                retry_after: None,
                body: Some(body),
            };
            (reply, Bound::Uid(resource.uid.clone()))
        }
        Effect::Removed(_) | Effect::Sealed(_) => (Reply::empty(204), Bound::Nothing),
    };
    Step {
        admitted: Some(admitted),
        writes: Vec::new(),
        reply,
        bound,
        ended: None,
    }
}

fn native_id(body: &ResourceBody) -> Result<Arc<str>, ApiError> {
    let id = body.native_id.as_deref().unwrap_or_default();
    let trimmed = id.trim();
    if trimmed.is_empty() || id.chars().count() > 4096 {
        return Err(ApiError::invalid(
            "nativeId must be 1 to 4096 characters and not blank",
        ));
    }
    Ok(trimmed.into())
}

fn presented_review(body: &ResourceBody) -> Result<String, ApiError> {
    body.review
        .as_ref()
        .map(|review| review.prepare_digest.clone())
        .filter(|digest| is_digest(digest))
        .ok_or_else(|| ApiError::invalid("review.prepareDigest is missing or no digest"))
}

/// The syntactic rows of host API §11.2.
fn fence(
    if_none_match: Option<&str>,
    header: Option<&str>,
    body: Option<&str>,
    expected_uid: Option<&str>,
) -> Result<Fence, ApiError> {
    match if_none_match {
        Some("*") if header.is_some() || body.is_some() => {
            Err(ApiError::invalid("a create takes no generation fence"))
        }
        Some("*") if expected_uid.is_some() => Err(ApiError::new(
            ErrorCode::UidMismatch,
            "a create has no current incarnation",
        )),
        Some("*") => Ok(Fence::Free),
        Some(_) => Err(ApiError::invalid("If-None-Match must be *")),
        None => {
            let text = match (header, body) {
                (Some(header), Some(body)) if header != body => {
                    return Err(ApiError::invalid("the two generation fences differ"));
                }
                (Some(text), _) | (None, Some(text)) => text,
                (None, None) => {
                    return Err(ApiError::invalid(
                        "neither If-None-Match nor a generation fence is given",
                    ));
                }
            };
            let generation = Generation::parse(text)
                .ok_or_else(|| ApiError::invalid("the generation fence is no canonical number"))?;
            Ok(Fence::Current {
                generation,
                uid: expected_uid.map(str::to_owned),
            })
        }
    }
}
