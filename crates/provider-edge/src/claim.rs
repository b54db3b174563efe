//! To whom a worker belongs: a bundle of its own, made before the worker and removed after it.
//!
//! The host's documents have no place for tags. A bundle names an artifact manifest, and a
//! manifest names modules: the claim's manifest has the owner in the names of (equal, tiny)
//! modules that no worker ever loads. Source: ADR *A worker's owner is a bundle*.

use std::collections::BTreeMap;

use notation_edge_api::{Manifest, ManifestModule};
use notation_model::Owner;
use sha2::{Digest as _, Sha256};

/// The bytes of every module that is only there for its name.
pub(crate) const NOTE: &[u8] = b"notation\n";

const TEXT: &str = "text/plain";
const MAIN: &str = "owner";
const TAG: &str = "tag/";
const TOKEN: &str = "token/";

/// What a claim says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Owner tags; empty for a bundle that somebody else put there.
    pub tags: BTreeMap<String, String>,
    /// Mark of the creation that made it.
    pub token: Option<String>,
}

impl Claim {
    /// The claim of one creation.
    pub fn of(owner: &Owner, token: &str) -> Claim {
        Claim {
            tags: tags(owner),
            token: Some(mark(token)),
        }
    }

    /// As a manifest; [`NOTE`] is the one blob.
    pub fn manifest(&self) -> Manifest {
        let tags = self.tags.iter().map(|(key, value)| {
            let key = key.trim_start_matches("notation:");
            note(format!("{TAG}{key}/{value}"))
        });
        let token = self
            .token
            .iter()
            .map(|token| note(format!("{TOKEN}{token}")));
        let modules = std::iter::once(note(MAIN.into())).chain(tags).chain(token);
        Manifest::worker_bundle(MAIN, modules.collect())
    }

    /// Reads a manifest; one that is no claim has neither tags nor token.
    pub fn read(manifest: &Manifest) -> Claim {
        let modules = manifest.modules.iter().flatten();
        let mut claim = Claim {
            tags: BTreeMap::new(),
            token: None,
        };
        for module in modules {
            if let Some((key, value)) = module
                .name
                .strip_prefix(TAG)
                .and_then(|tag| tag.split_once('/'))
            {
                claim
                    .tags
                    .insert(format!("notation:{key}"), value.to_owned());
            } else if let Some(token) = module.name.strip_prefix(TOKEN) {
                claim.token = Some(token.to_owned());
            }
        }
        claim
    }

    /// Exactly this owner, generation included.
    pub fn is_of(&self, owner: &Owner) -> bool {
        self.tags == tags(owner)
    }

    /// Made by the creation with this token.
    pub fn made_by(&self, token: &str) -> bool {
        self.token.as_deref() == Some(mark(token).as_str())
    }
}

/// Owner tags as a map.
pub(crate) fn tags(owner: &Owner) -> BTreeMap<String, String> {
    let tags = owner.tags();
    tags.into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// A module that is only there for its name.
pub(crate) fn note(name: String) -> ManifestModule {
    ManifestModule::of(name, TEXT, NOTE)
}

/// What may be seen of a token: enough to know it again, not enough to use it.
pub(crate) fn mark(token: &str) -> String {
    let hash = Sha256::digest(format!("notation mark {token}").as_bytes());
    hex::encode(hash)[..24].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_reads_back_from_its_manifest() {
        let owner = Owner {
            deployment: "shop:dev:main".parse().unwrap(),
            resource: "A.b_c".parse().unwrap(),
            generation: 2,
        };
        let claim = Claim::of(&owner, "token");
        let read = Claim::read(&claim.manifest());
        assert_eq!(read, claim);
        assert!(read.is_of(&owner) && read.made_by("token") && !read.made_by("other"));
        let later = Owner {
            generation: 3,
            ..owner
        };
        assert!(!read.is_of(&later));
    }

    #[test]
    fn a_bundle_of_somebody_else_claims_nothing() {
        let manifest = Manifest::worker_bundle("index.js", vec![note("index.js".into())]);
        assert!(Claim::read(&manifest).tags.is_empty());
    }
}
