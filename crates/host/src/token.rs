//! Bearer tokens: who a request is. Only hashes are stored.

use crate::secret::fill;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use subtle::ConstantTimeEq;

/// What a token may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The host API.
    Api,
    /// Sealed values.
    Sealed,
}

impl Scope {
    /// The scope as stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Api => "api",
            Scope::Sealed => "sealed",
        }
    }

    /// Reads what [`Scope::as_str`] wrote.
    pub fn read(text: &str) -> Option<Scope> {
        [Scope::Api, Scope::Sealed]
            .into_iter()
            .find(|scope| scope.as_str() == text)
    }
}

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Outermost part of every resource address.
    pub tenant: String,
    /// Owner of idempotency records, operations and upload sessions.
    pub principal: String,
    /// What it may be used for.
    pub scopes: BTreeSet<Scope>,
    /// A remark for people.
    pub label: String,
}

/// Most characters of a tenant's or a principal's name, or of a label.
const LONGEST: usize = 128;

impl Grant {
    /// Says what is wrong with the names: they stand in lists, paths and logs, each on one line.
    pub fn judge(&self) -> Result<(), String> {
        let named = [("tenant", &self.tenant), ("principal", &self.principal)];
        for (what, text) in named {
            if text.trim().is_empty() {
                return Err(format!("the {what} needs a name"));
            }
            if text.chars().any(|c| c.is_whitespace() || c == '/') || matches!(&**text, "." | "..")
            {
                return Err(format!(
                    "{what} {text:?} has blanks or slashes, or is a path of dots"
                ));
            }
        }
        for (what, text) in named.into_iter().chain([("label", &self.label)]) {
            if text.chars().any(char::is_control) {
                return Err(format!("{what} {text:?} has characters that do not print"));
            }
            if text.chars().count() > LONGEST {
                return Err(format!("the {what} has more than {LONGEST} characters"));
            }
        }
        Ok(())
    }
}

/// A stored token, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Names the token in lists; not secret.
    pub id: String,
    /// Whom it stands for.
    pub grant: Grant,
    /// RFC 3339 in UTC.
    pub created: String,
}

/// A caller that was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Tenant.
    pub tenant: Arc<str>,
    /// Principal.
    pub principal: Arc<str>,
    /// What the token may be used for.
    pub scopes: BTreeSet<Scope>,
}

/// Hash of a token's text.
pub type TokenHash = [u8; 32];

/// A fresh token text: `ntn_` and 256 bits.
pub fn fresh_token() -> String {
    let mut bytes = [0u8; 32];
    fill(&mut bytes);
    format!("ntn_{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// Hash of a token's text. Tokens are random, so a plain hash keeps them safe at rest.
pub fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// The tokens in memory.
#[derive(Default)]
pub struct Tokens {
    by_hash: RwLock<BTreeMap<TokenHash, Arc<TokenRecord>>>,
}

impl Tokens {
    /// Adds a token.
    pub fn insert(&self, hash: TokenHash, record: TokenRecord) {
        self.write().insert(hash, Arc::new(record));
    }

    /// Removes a token by id; whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        let mut tokens = self.write();
        let before = tokens.len();
        tokens.retain(|_, record| record.id != id);
        tokens.len() < before
    }

    /// Every token, by id.
    pub fn list(&self) -> Vec<TokenRecord> {
        let mut records: Vec<TokenRecord> = self
            .read()
            .values()
            .map(|record| TokenRecord::clone(record))
            .collect();
        records.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
        records
    }

    /// Whom a presented token stands for. The comparison takes the same time wherever the hashes
    /// differ.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        let presented = hash(token);
        let tokens = self.read();
        let mut found = None;
        for (stored, record) in tokens.iter() {
            if bool::from(stored.ct_eq(&presented)) {
                found = Some(record);
            }
        }
        found.map(|record| Caller {
            tenant: record.grant.tenant.as_str().into(),
            principal: record.grant.principal.as_str().into(),
            scopes: record.grant.scopes.clone(),
        })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<TokenHash, Arc<TokenRecord>>> {
        self.by_hash
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<TokenHash, Arc<TokenRecord>>> {
        self.by_hash
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
