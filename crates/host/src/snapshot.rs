//! What the data plane gets to see: every tenant's world with its sealed values.

use imbl::OrdMap;
use notation_edge::{Uid, World};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A sealed value in the clear. It prints as `(secret)` and is wiped when dropped.
#[derive(Clone)]
pub struct SecretBytes(Arc<Zeroizing<Vec<u8>>>);

impl SecretBytes {
    /// Wraps a value.
    pub fn new(bytes: Vec<u8>) -> SecretBytes {
        SecretBytes(Arc::new(Zeroizing::new(bytes)))
    }

    /// The value; for whoever hands it to the worker, and nobody else.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// One tenant at one moment.
#[derive(Debug, Clone)]
pub struct TenantSnapshot {
    /// Its resources and what is known about them.
    pub world: World,
    /// Its sealed values by worker incarnation and name.
    pub sealed: OrdMap<(Uid, Arc<str>), SecretBytes>,
}

impl TenantSnapshot {
    /// The sealed value of a worker incarnation.
    pub fn sealed(&self, worker: &Uid, name: &str) -> Option<&SecretBytes> {
        self.sealed.get(&(worker.clone(), Arc::from(name)))
    }
}

/// All tenants at one moment. Cheap to clone and to change, however many there are.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Tenants by name.
    pub tenants: OrdMap<Arc<str>, TenantSnapshot>,
}
