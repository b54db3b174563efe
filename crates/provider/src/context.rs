//! What comes along with every call.

use std::{collections::BTreeMap, fmt, sync::Arc};

use notation_model::{Asset, Earlier, Owner};

/// Makes one provider call repeatable: the same for every retry of one intent, also by a later
/// run, and never used for another intent (`engine.md` §7). 32 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of assets named in parameters.
pub trait Assets: Send + Sync {
    /// The bytes, when this run has them. A reverted or repeated write may name assets of an
    /// earlier program that are not at hand; a provider that stored them can go on without.
    fn bytes(&self, asset: &Asset) -> Option<Arc<[u8]>>;
}

/// No bytes at all: destroying needs none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAssets;

impl Assets for NoAssets {
    fn bytes(&self, _: &Asset) -> Option<Arc<[u8]>> {
        None
    }
}

/// Bytes kept in memory by digest.
#[derive(Debug, Clone, Default)]
pub struct MemoryAssets(BTreeMap<String, Arc<[u8]>>);

impl MemoryAssets {
    /// Adds bytes and names them.
    pub fn insert(&mut self, bytes: impl Into<Arc<[u8]>>) -> Asset {
        let bytes = bytes.into();
        let asset = Asset::of(&bytes);
        self.0.insert(asset.digest.clone(), bytes);
        asset
    }
}

impl Assets for MemoryAssets {
    fn bytes(&self, asset: &Asset) -> Option<Arc<[u8]>> {
        self.0.get(&asset.digest).cloned()
    }
}

/// Context of one mutating call.
#[derive(Clone)]
pub struct OpContext<'a> {
    /// Makes the call repeatable.
    pub token: Token,
    /// From 1.
    pub attempt: u32,
    /// Data of the last `Waiting` answer to this intent.
    pub resume: Option<serde_json::Value>,
    /// To whom the object belongs: a create and an update write its tags. An object that is
    /// there may have others still, see [`OpContext::is_anothers`].
    pub owner: Owner,
    /// What the tags of the object may say instead of its owner.
    pub earlier: Earlier<'a>,
    /// Bytes of assets.
    pub assets: &'a dyn Assets,
}

impl OpContext<'_> {
    /// Whether an object with these tags is somebody else's, who made it under the name after ours
    /// was gone. It is not when they are what an earlier write left: of an id that the resource
    /// had before, of whoever had the object when a person took it over, or none at all.
    pub fn is_anothers(&self, tags: &BTreeMap<String, String>) -> bool {
        self.owner.is_anothers(tags, self.earlier)
    }
}

impl fmt::Debug for OpContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpContext")
            .field("token", &self.token)
            .field("attempt", &self.attempt)
            .field("owner", &self.owner)
            .field("earlier", &self.earlier)
            .finish_non_exhaustive()
    }
}
