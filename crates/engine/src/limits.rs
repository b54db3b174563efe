//! How many calls may run at a time.

use std::collections::BTreeMap;

use notation_model::{ResourceType, TypeName};
use notation_provider::Registry;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Limits over all calls, per provider and per type.
pub(crate) struct Limits {
    all: Semaphore,
    providers: BTreeMap<String, Semaphore>,
    types: BTreeMap<TypeName, Semaphore>,
}

/// The right to make one call; given back when dropped.
pub(crate) struct Slot<'a>(
    #[expect(dead_code, reason = "held for its drop")] [Option<SemaphorePermit<'a>>; 3],
);

impl Limits {
    pub(crate) fn new(registry: &Registry, parallelism: usize) -> Limits {
        let providers = registry.providers().filter_map(|provider| {
            let limit = provider.concurrency()?;
            Some((provider.name().to_owned(), Semaphore::new(limit.max(1))))
        });
        let types = registry.types().iter().filter_map(|ty| {
            let limit = ty.concurrency?;
            Some((ty.name.clone(), Semaphore::new(limit.max(1))))
        });
        Limits {
            all: Semaphore::new(parallelism.max(1)),
            providers: providers.collect(),
            types: types.collect(),
        }
    }

    /// Waits for the right to call. The narrow limit first, so that who waits for it takes
    /// nothing from others.
    pub(crate) async fn slot(&self, ty: &ResourceType) -> Slot<'_> {
        Slot([
            acquire(self.types.get(&ty.name)).await,
            acquire(self.providers.get(ty.name.provider())).await,
            acquire(Some(&self.all)).await,
        ])
    }
}

async fn acquire(semaphore: Option<&Semaphore>) -> Option<SemaphorePermit<'_>> {
    let permit = semaphore?.acquire().await;
    Some(permit.expect("limits are never closed"))
}
