//! Sealed values: set by an operator, encrypted at rest, never answered.

use crate::document::bytes;
use crate::error::ApiError;
use crate::failure::HostError;
use crate::host::Host;
use crate::plane::{State, Step};
use crate::reply::Reply;
use crate::secret::place;
use crate::snapshot::SecretBytes;
use crate::store::{Bound, Write};
use crate::token::{Caller, Scope};
use notation_edge::{Change, EdgeKind, FAMILY, Key, Seal, Uid, admit};
use notation_edge_api::{ErrorCode, SealedNames};
use std::sync::Arc;

/// Largest value, in bytes.
pub const MAX_VALUE_BYTES: usize = notation_edge_api::MAX_SEALED_BYTES;

fn is_value_name(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&text.len())
        && text.bytes().all(rest)
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_uppercase())
}

fn worker(state: &State, space: &str, name: &str) -> Result<Uid, ApiError> {
    let key = Key::new(space, FAMILY, EdgeKind::ModuleWorker.as_str(), name);
    state
        .world
        .at(&key)
        .map(|worker| worker.uid.clone())
        .ok_or_else(ApiError::no_resource)
}

/// The worker that a sealed value is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedAt {
    /// Its tenant.
    pub tenant: String,
    /// Its space.
    pub space: String,
    /// Its name.
    pub worker: String,
}

/// For whoever runs the host: the same road as over HTTP, without a token.
impl Host {
    /// Sets a value. Errors: `Refused` for a worker that is not there, a name or a value that
    /// cannot be.
    pub async fn set_sealed(
        &self,
        at: &SealedAt,
        name: &str,
        value: &[u8],
    ) -> Result<(), HostError> {
        let caller = self.operator(at).await?;
        let set = self.seal(&caller, &at.space, &at.worker, name, value).await;
        set.map(drop).map_err(|error| refused(&error, at))
    }

    /// Removes a value; whether there was one.
    pub async fn remove_sealed(&self, at: &SealedAt, name: &str) -> Result<bool, HostError> {
        let caller = self.operator(at).await?;
        let there = self.sealed_names_at(at).await?.iter().any(|it| it == name);
        let removed = self.unseal(&caller, &at.space, &at.worker, name).await;
        removed.map_err(|error| refused(&error, at))?;
        Ok(there)
    }

    /// Names of the values that are set, ascending.
    pub async fn sealed_names_at(&self, at: &SealedAt) -> Result<Vec<String>, HostError> {
        let plane = self.plane(&self.operator(at).await?);
        let state = plane.state.lock().await;
        let worker = worker(&state, &at.space, &at.worker).map_err(|error| refused(&error, at))?;
        let names = state.world.sealed_names(&worker);
        Ok(names.map(|name| name.to_string()).collect())
    }

    async fn operator(&self, at: &SealedAt) -> Result<Caller, HostError> {
        self.reread().await?;
        // A mistyped tenant must not come into being.
        if !self.planes().iter().any(|plane| *plane.tenant == at.tenant) {
            return Err(refused(&ApiError::no_resource(), at));
        }
        Ok(Caller {
            tenant: at.tenant.as_str().into(),
            principal: "operator".into(),
            scopes: [Scope::Sealed].into(),
        })
    }
}

fn refused(error: &ApiError, at: &SealedAt) -> HostError {
    match error.code {
        ErrorCode::ResourceNotFound => HostError::Refused(format!(
            "tenant {} has no worker {} in space {}",
            at.tenant, at.worker, at.space
        )),
        _ => HostError::Refused(error.message.clone()),
    }
}

impl Host {
    /// Sets one value. The answer says nothing but that it is set.
    pub(crate) async fn seal(
        &self,
        caller: &Caller,
        space: &str,
        name: &str,
        key: &str,
        value: &[u8],
    ) -> Result<Reply, ApiError> {
        if !is_value_name(key) {
            return Err(ApiError::invalid(
                "the name of a sealed value is like DATABASE_URL",
            ));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(ApiError::invalid("a sealed value has at most 65536 bytes"));
        }
        if std::str::from_utf8(value).is_err() {
            return Err(ApiError::invalid("a sealed value is UTF-8 text"));
        }
        let plane = self.plane(caller);
        let key: Arc<str> = key.into();
        self.mutate(&plane, None, |state| {
            let worker = worker(state, space, name)?;
            let current = state.sealed.get(&(worker.clone(), key.clone()));
            if current.is_some_and(|current| current.expose() == value) {
                // Setting what is set restarts nothing.
                return Ok(Step {
                    admitted: None,
                    writes: Vec::new(),
                    reply: Reply::empty(204),
                    bound: Bound::Nothing,
                    ended: None,
                });
            }
            let sealed = self
                .inner
                .keys
                .seal(&place(&plane.tenant, &worker, &key), value);
            let write = Write::Seal {
                tenant: plane.tenant.clone(),
                worker: worker.clone(),
                name: key.clone(),
                value: sealed,
            };
            state.sealed.insert(
                (worker.clone(), key.clone()),
                SecretBytes::new(value.to_vec()),
            );
            self.sealed_step(state, worker, key.clone(), true, write)
        })
        .await
    }

    /// Removes one value; an absent one is removed already.
    pub(crate) async fn unseal(
        &self,
        caller: &Caller,
        space: &str,
        name: &str,
        key: &str,
    ) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let key: Arc<str> = key.into();
        self.mutate(&plane, None, |state| {
            let worker = worker(state, space, name)?;
            let write = Write::Unseal(worker.clone(), key.clone());
            state.sealed.remove(&(worker.clone(), key.clone()));
            self.sealed_step(state, worker, key.clone(), false, write)
        })
        .await
    }

    fn sealed_step(
        &self,
        state: &State,
        worker: Uid,
        name: Arc<str>,
        present: bool,
        write: Write,
    ) -> Result<Step, ApiError> {
        let change = Change::Seal(Seal {
            worker,
            name,
            present,
        });
        let admitted = admit(&state.world, &change, &self.now())?;
        Ok(Step {
            admitted: Some(admitted),
            writes: vec![write],
            reply: Reply::empty(204),
            bound: Bound::Nothing,
            ended: None,
        })
    }

    /// Names of the values that are set.
    pub(crate) async fn sealed_names(
        &self,
        caller: &Caller,
        space: &str,
        name: &str,
    ) -> Result<Reply, ApiError> {
        let plane = self.plane(caller);
        let state = plane.state.lock().await;
        let worker = worker(&state, space, name)?;
        let names = state
            .world
            .sealed_names(&worker)
            .map(|name| name.to_string())
            .collect();
        Ok(Reply::json(200, bytes(&SealedNames { names })))
    }
}
