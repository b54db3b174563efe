//! Reviews: a keyed digest of exactly what prepare saw (host API §10.4).
//!
//! Nothing is stored. A create review is a function of the document, so that a client whose
//! create answer was lost derives the same body again. An update review carries a salt of the
//! pins and the revision, so that two repairs of a drift at one generation differ; the salt is
//! not compared, what it was made of may move.

use crate::secret::Keys;
use notation_edge::{FormRef, Key, Resource};
use notation_edge_api::canonical_bytes;
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const SALT: usize = 8;

/// What a review binds.
pub struct Bound<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Address.
    pub key: &'a Key,
    /// Exact Form.
    pub form_ref: &'a FormRef,
    /// Digest of the materialised spec.
    pub spec_digest: &'a str,
    /// The incarnation that holds the name under this Form.
    pub current: Option<&'a Resource>,
}

/// Mints the review of a document.
pub fn mint(keys: &Keys, bound: &Bound<'_>) -> String {
    let salt: [u8; SALT] = match bound.current {
        None => [0; SALT],
        Some(current) => {
            let mut hash = Sha256::new();
            hash.update(current.revision.to_string());
            for pin in current.pins.iter() {
                hash.update(pin.uid.as_str());
            }
            let hash: [u8; 32] = hash.finalize().into();
            let mut salt = [0; SALT];
            salt.copy_from_slice(&hash[..SALT]);
            salt
        }
    };
    write(keys, bound, salt)
}

/// Whether a presented review binds exactly this.
pub fn fits(keys: &Keys, bound: &Bound<'_>, presented: &str) -> bool {
    let Some(bytes) = presented
        .strip_prefix("sha256:")
        .and_then(|hex| hex::decode(hex).ok())
    else {
        return false;
    };
    let Some(salt) = bytes.first_chunk::<SALT>() else {
        return false;
    };
    write(keys, bound, *salt)
        .as_bytes()
        .ct_eq(presented.as_bytes())
        .into()
}

fn write(keys: &Keys, bound: &Bound<'_>, salt: [u8; SALT]) -> String {
    let document = canonical_bytes(&json!({
        "tenant": bound.tenant,
        "space": &*bound.key.space,
        "group": &*bound.key.api_version,
        "kind": &*bound.key.kind,
        "name": &*bound.key.name,
        "definitionVersion": &*bound.form_ref.definition_version,
        "schemaDigest": &*bound.form_ref.schema_digest,
        "specDigest": bound.spec_digest,
        "uid": bound.current.map_or("", |current| current.uid.as_str()),
        "generation": bound.current.map_or_else(|| "0".to_owned(), |it| it.generation.to_string()),
    }));
    let signature = keys.sign(&[b"review", &salt, &document]);
    format!(
        "sha256:{}{}",
        hex::encode(salt),
        hex::encode(&signature[..32 - SALT])
    )
}
