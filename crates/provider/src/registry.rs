//! Which provider makes which type.

use std::{collections::BTreeMap, sync::Arc};

use notation_model::{ResourceType, TypeName, TypeSet};

use crate::Provider;

/// Providers by name, and the types of all of them.
#[derive(Clone, Default)]
pub struct Registry {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    types: TypeSet,
}

/// One reason why a registry cannot be made.
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
    /// A type is declared twice, or breaks a rule of [`notation_model::ResourceType`].
    #[error("type {ty} cannot be used: {why}")]
    BadType {
        /// The type.
        ty: TypeName,
        /// Which rule, for whoever wrote the provider.
        why: String,
    },
    /// A provider takes no call at a time, so that none would ever be made.
    #[error("provider {provider} takes 0 calls at a time")]
    NoCalls {
        /// The provider.
        provider: String,
    },
}

/// Everything that is wrong with the providers of a registry, in their order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct RegistryErrors(pub Vec<RegistryError>);

impl Registry {
    /// Registers providers.
    ///
    /// Errors: every name that two of them claim, and every type that is not its provider's, is
    /// declared twice or breaks a rule of [`notation_model::ResourceType`].
    pub fn new(providers: Vec<Arc<dyn Provider>>) -> Result<Registry, RegistryErrors> {
        let mut by_name = BTreeMap::new();
        let mut types: Vec<ResourceType> = Vec::new();
        let mut errors = Vec::new();
        for provider in providers {
            let name = provider.name().to_owned();
            if by_name.contains_key(&name) {
                errors.push(RegistryError::Twice(name));
                continue;
            }
            if provider.concurrency() == Some(0) {
                errors.push(RegistryError::NoCalls {
                    provider: name.clone(),
                });
            }
            for ty in provider.types() {
                if ty.name.provider() != name {
                    errors.push(RegistryError::Foreign {
                        provider: name.clone(),
                        ty: ty.name.clone(),
                    });
                }
                let twice = types.iter().any(|other| other.name == ty.name);
                let twice = twice.then(|| "it is declared twice".to_owned());
                let faults = ty.faults().into_iter().chain(twice);
                errors.extend(faults.map(|why| RegistryError::BadType {
                    ty: ty.name.clone(),
                    why,
                }));
                types.push(ty);
            }
            by_name.insert(name, provider);
        }
        if !errors.is_empty() {
            return Err(RegistryErrors(errors));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use notation_model::{Charset, Field, FieldKind, Look, NameKind, Naming, Owner, Params};

    use super::*;
    use crate::{Found, LookFor, Object, OpContext, OpError, Progress, Update};

    /// A provider that only declares.
    struct Declares(&'static str, Vec<ResourceType>, Option<usize>);

    #[async_trait]
    impl Provider for Declares {
        fn name(&self) -> &str {
            self.0
        }

        fn types(&self) -> Vec<ResourceType> {
            self.1.clone()
        }

        fn concurrency(&self) -> Option<usize> {
            self.2
        }

        async fn create(
            &self,
            _: &OpContext<'_>,
            _: &TypeName,
            _: &Params,
        ) -> Result<Progress<Object>, OpError> {
            Err(OpError::NotFound)
        }

        async fn read(
            &self,
            _: &Owner,
            _: &TypeName,
            _: LookFor<'_>,
        ) -> Result<Option<Found>, OpError> {
            Ok(None)
        }

        async fn update(
            &self,
            _: &OpContext<'_>,
            _: &TypeName,
            _: &str,
            _: Update<'_>,
        ) -> Result<Progress<Object>, OpError> {
            Err(OpError::NotFound)
        }

        async fn delete(
            &self,
            _: &OpContext<'_>,
            _: &TypeName,
            _: &str,
            _: &Params,
        ) -> Result<Progress<()>, OpError> {
            Ok(Progress::Done(()))
        }
    }

    fn thing(name: &str, max_length: usize) -> ResourceType {
        let key = Field {
            key: true,
            ..Field::param(FieldKind::Text, "its name")
        };
        ResourceType {
            name: name.parse().unwrap(),
            fields: [("Name".to_owned(), key)].into(),
            naming: Some(Naming {
                kind: NameKind::Scoped,
                suffix: "",
                ending: "",
                max_length,
                charset: Charset::Word,
            }),
            identity_space: name.to_owned(),
            tags: true,
            never_bare: false,
            updates: true,
            look: Look::Key,
            read_lag: Duration::ZERO,
            concurrency: None,
        }
    }

    fn registry(providers: Vec<Declares>) -> Result<Registry, RegistryErrors> {
        let providers = providers.into_iter();
        Registry::new(
            providers
                .map(|it| Arc::new(it) as Arc<dyn Provider>)
                .collect(),
        )
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let sensitive = {
            let mut ty = thing("own/Hidden", 63);
            ty.fields["Name"].sensitive = true;
            ty
        };
        let types = vec![
            thing("own/Thing", 63),
            thing("own/Short", 3),
            thing("own/Thing", 63),
            sensitive,
            thing("other/Thing", 63),
        ];
        let refused = registry(vec![
            Declares("own", types, Some(0)),
            Declares("own", Vec::new(), None),
        ]);
        let told = refused.err().unwrap().to_string();
        assert_eq!(
            told.lines().collect::<Vec<_>>(),
            [
                "provider own takes 0 calls at a time",
                "type own/Short cannot be used: its names may have 3 characters: with the ending \
                 \"\" at least 20 are needed",
                "type own/Thing cannot be used: it is declared twice",
                "type own/Hidden cannot be used: `Name` is its key and sensitive: keys are shown \
                 and stored in clear",
                "provider own declares type other/Thing, which is not its own",
                "two providers are called own",
            ]
        );
        let fine = registry(vec![Declares("own", vec![thing("own/Thing", 20)], Some(1))]);
        assert_eq!(fine.unwrap().types().iter().count(), 1);
    }
}
