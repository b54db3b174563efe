//! Which provider makes which type.

use std::{collections::BTreeMap, sync::Arc};

use notation_model::{TypeName, TypeSet};

use crate::Provider;

/// Providers by name, and the types of all of them.
#[derive(Clone, Default)]
pub struct Registry {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    types: TypeSet,
}

/// A registry that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two providers claim one name.
    #[error("two providers are called {0}")]
    Twice(String),
    /// A provider declares a type outside its name.
    #[error("provider {provider} declares type {ty}, which is not its own")]
    Foreign {
        /// The provider.
        provider: String,
        /// The type.
        ty: TypeName,
    },
}

impl Registry {
    /// Registers providers.
    pub fn new(providers: Vec<Arc<dyn Provider>>) -> Result<Registry, RegistryError> {
        let mut by_name = BTreeMap::new();
        let mut types = Vec::new();
        for provider in providers {
            let name = provider.name().to_owned();
            for ty in provider.types() {
                if ty.name.provider() != name {
                    return Err(RegistryError::Foreign {
                        provider: name,
                        ty: ty.name,
                    });
                }
                types.push(ty);
            }
            if by_name.insert(name.clone(), provider).is_some() {
                return Err(RegistryError::Twice(name));
            }
        }
        Ok(Registry {
            providers: by_name,
            types: TypeSet::new(types),
        })
    }

    /// Every registered type.
    pub fn types(&self) -> &TypeSet {
        &self.types
    }

    /// The provider that makes a type; `None` when the type is not registered.
    pub fn provider(&self, ty: &TypeName) -> Option<&Arc<dyn Provider>> {
        self.types.get(ty)?;
        self.providers.get(ty.provider())
    }

    /// Every provider.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.providers.values()
    }
}
