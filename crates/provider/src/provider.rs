//! The four verbs, and what they take and answer.

use async_trait::async_trait;
use notation_model::{Owner, Params, ResourceType, TypeName};

use crate::{OpContext, OpError};

/// An answer to a mutating call.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<T> {
    /// Finished.
    Done(T),
    /// Not finished yet: call again after so many milliseconds with this data as
    /// `OpContext::resume`. The data holds everything needed to go on in a new process.
    Waiting {
        /// Milliseconds to wait.
        after_ms: u64,
        /// Opaque to the engine.
        resume: serde_json::Value,
        /// What is being waited for, for people.
        reason: String,
    },
}

impl<T> Progress<T> {
    /// The same progress with something else made of what is done.
    pub fn map<U>(self, made: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Done(done) => Progress::Done(made(done)),
            Progress::Waiting {
                after_ms,
                resume,
                reason,
            } => Progress::Waiting {
                after_ms,
                resume,
                reason,
            },
        }
    }
}

/// A created or found object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its key at the provider.
    pub key: String,
    /// Every output that the object has: what is left out stays unknown to whatever refers to it.
    /// Parameters are added by the engine where the provider leaves them out.
    pub outputs: Params,
}

/// What a read answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Key and outputs.
    pub object: Object,
    /// Parameters as the provider has them, also ones nobody set.
    pub params: Params,
    /// Tags; empty where the type has none.
    pub tags: std::collections::BTreeMap<String, String>,
}

/// How to look for an object.
#[derive(Debug, Clone, PartialEq)]
pub enum LookFor<'a> {
    /// The object with this key.
    Key(&'a str),
    /// The object whose tags name exactly this owner, generation included. Ids that the resource
    /// had before are looked for one by one.
    Mine(&'a Owner),
}

/// What an update changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Update<'a> {
    /// All parameters as they shall be: one that is left out is unset, or gets its default. It is
    /// how a binding is taken off again.
    pub params: &'a Params,
    /// Parameters last applied.
    pub prior: &'a Params,
    /// Outputs last seen.
    pub outputs: &'a Params,
}

/// A provider.
///
/// Owes the engine: no call retries by itself; every error is one of [`OpError`]; a call with a
/// token that was already carried out answers as the first one did, where the type says that
/// creation is idempotent; secrets never enter an error or a log.
///
/// *Whose an object is*, where its type has tags: they are those of the last write. `owner` of a
/// call is whose the object shall be from now on. The two differ after a resource was renamed,
/// which writes nothing, and after a person took over somebody else's object. It is the engine
/// that decides whose an object is, before it calls. A provider that looks once more asks
/// [`OpContext::is_anothers`], and never compares tags with `owner` itself.
#[async_trait]
pub trait Provider: Send + Sync {
    /// First part of its type names, e.g. `edge`.
    fn name(&self) -> &str;

    /// The types it makes.
    fn types(&self) -> Vec<ResourceType>;

    /// At most so many calls at a time over all its types.
    fn concurrency(&self) -> Option<usize> {
        None
    }

    /// Creates the object and returns its key and outputs.
    ///
    /// Owes: never overwrites an object that exists (`Exists`, with its tags); writes the tags of
    /// the owner.
    async fn create(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError>;

    /// Looks. `None` when there is no such object.
    async fn read(
        &self,
        owner: &Owner,
        ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError>;

    /// Brings an object to these parameters and returns its outputs, all of them, as a read would
    /// show them.
    ///
    /// Owes: unsets what the parameters leave out; writes the tags of the owner, also when nothing
    /// else changes; the key stays.
    async fn update(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError>;

    /// Removes an object. `NotFound` counts as success for the engine.
    ///
    /// May refuse what [`OpContext::is_anothers`] says is somebody else's, and nothing else for its
    /// tags' sake.
    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        outputs: &Params,
    ) -> Result<Progress<()>, OpError>;
}
