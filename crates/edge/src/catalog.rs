//! The installed contract set: Forms, Interfaces and Bindings by their exact identity.

use crate::form::Form;
use crate::identity::{BindingRef, FormRef, InterfaceRef};
use crate::{Contract, EdgeKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One installed Interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Exact identity.
    pub interface_ref: InterfaceRef,
    /// The whole definition.
    pub definition: Value,
}

/// One installed Binding.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Exact identity.
    pub binding_ref: BindingRef,
    /// Role a source Form must have.
    pub source_role: String,
    /// Interface the target must provide.
    pub target_interface: InterfaceRef,
    /// Groups and kinds the target may have.
    pub allowed: Vec<(Arc<str>, Arc<str>)>,
}

impl Binding {
    /// Reads a definition whose canonical digest is `schema_digest`; `None` when a member is
    /// missing.
    pub fn read(definition: &Value, schema_digest: &str) -> Option<Binding> {
        let text = |member: &str| definition.get(member)?.as_str().map(Arc::<str>::from);
        let allowed = definition
            .get("allowedTargetForms")?
            .as_array()?
            .iter()
            .map(|target| {
                let part = |member: &str| target.get(member)?.as_str().map(Arc::<str>::from);
                Some((part("apiVersion")?, part("kind")?))
            });
        Some(Binding {
            binding_ref: BindingRef {
                api_version: text("apiVersion")?,
                name: text("name")?,
                version: text("version")?,
                schema_digest: schema_digest.into(),
            },
            source_role: text("sourceRole")?.to_string(),
            target_interface: InterfaceRef::read(definition.get("targetInterface")?)?,
            allowed: allowed.collect::<Option<_>>()?,
        })
    }
}

/// Why a set of definitions is not a usable whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Two definitions share group, kind and version.
    #[error("{kind} {version} is defined twice with different digests")]
    Twice {
        /// Kind.
        kind: String,
        /// Definition version.
        version: String,
    },
    /// A Form of the family is absent.
    #[error("no definition of {0}")]
    NoForm(&'static str),
    /// A definition names a contract that is not in the set.
    #[error("{from} names {name} at digest {digest}, which is not in the set")]
    Dangling {
        /// The naming definition.
        from: String,
        /// The named one.
        name: String,
        /// Its digest.
        digest: String,
    },
    /// The runtime contract states no handlers.
    #[error("worker.runtime 1.0.0 states no handler vocabulary")]
    NoHandlers,
}

/// The installed contract set. The key of a Form is its whole FormRef, never less.
#[derive(Debug, Clone)]
pub struct Catalog {
    forms: BTreeMap<FormRef, Arc<Form>>,
    interfaces: BTreeMap<(Arc<str>, Arc<str>), Interface>,
    bindings: BTreeMap<(Arc<str>, Arc<str>), Binding>,
    handlers: Vec<String>,
}

impl Catalog {
    /// A consistent set. Errors: every inconsistency. Source: host API §6.
    pub fn new(
        forms: Vec<Form>,
        interfaces: Vec<Interface>,
        bindings: Vec<Binding>,
    ) -> Result<Catalog, Vec<CatalogError>> {
        let handlers = interfaces
            .iter()
            .find(|interface| &*interface.interface_ref.name == "worker.runtime")
            .map(|interface| handlers_of(&interface.definition))
            .unwrap_or_default();
        let catalog = Catalog {
            forms: forms
                .iter()
                .map(|form| (form.form_ref.clone(), Arc::new(form.clone())))
                .collect(),
            interfaces: interfaces
                .into_iter()
                .map(|interface| {
                    let id = &interface.interface_ref;
                    ((id.name.clone(), id.version.clone()), interface)
                })
                .collect(),
            bindings: bindings
                .into_iter()
                .map(|binding| {
                    let id = &binding.binding_ref;
                    ((id.name.clone(), id.version.clone()), binding)
                })
                .collect(),
            handlers,
        };
        let errors = catalog.errors();
        if errors.is_empty() {
            Ok(catalog)
        } else {
            Err(errors)
        }
    }

    fn errors(&self) -> Vec<CatalogError> {
        let mut errors = Vec::new();
        let mut versions = BTreeMap::new();
        for form in self.forms.keys() {
            let id = (&form.api_version, &form.kind, &form.definition_version);
            if versions.insert(id, &form.schema_digest).is_some() {
                errors.push(CatalogError::Twice {
                    kind: form.kind.to_string(),
                    version: form.definition_version.to_string(),
                });
            }
        }
        for kind in EdgeKind::ALL {
            if !self
                .forms
                .keys()
                .any(|form| EdgeKind::of_parts(&form.api_version, &form.kind) == Some(*kind))
            {
                errors.push(CatalogError::NoForm(kind.as_str()));
            }
        }
        if self.handlers.is_empty() {
            errors.push(CatalogError::NoHandlers);
        }
        for form in self.forms.values() {
            errors.extend(self.dangling(form));
        }
        for binding in self.bindings.values() {
            if !self.has_interface(&binding.target_interface) {
                errors.push(missing(
                    &binding.binding_ref.name,
                    &binding.target_interface,
                ));
            }
        }
        errors
    }

    fn dangling(&self, form: &Form) -> Vec<CatalogError> {
        let from = &form.form_ref.kind;
        let mut errors = Vec::new();
        for interface in &form.provided {
            if !self.has_interface(interface) {
                errors.push(missing(from, interface));
            }
        }
        for binding in &form.accepted {
            if self
                .binding(&binding.name, &binding.version)
                .map(|found| &found.binding_ref)
                != Some(binding)
            {
                errors.push(CatalogError::Dangling {
                    from: from.to_string(),
                    name: binding.name.to_string(),
                    digest: binding.schema_digest.to_string(),
                });
            }
        }
        for relation in &form.relations {
            match &relation.contract {
                Contract::Interface(interface) if !self.has_interface(interface) => {
                    errors.push(missing(from, interface));
                }
                Contract::Interface(_) => {}
                Contract::Forms(targets) => {
                    for target in targets
                        .iter()
                        .filter(|target| !self.forms.contains_key(target))
                    {
                        errors.push(CatalogError::Dangling {
                            from: from.to_string(),
                            name: target.kind.to_string(),
                            digest: target.schema_digest.to_string(),
                        });
                    }
                }
            }
        }
        errors
    }

    fn has_interface(&self, wanted: &InterfaceRef) -> bool {
        self.interface(&wanted.name, &wanted.version)
            .map(|found| &found.interface_ref)
            == Some(wanted)
    }

    /// The Form with exactly this identity.
    pub fn form(&self, form_ref: &FormRef) -> Option<&Arc<Form>> {
        self.forms.get(form_ref)
    }

    /// Every installed Form.
    pub fn forms(&self) -> impl Iterator<Item = &Arc<Form>> {
        self.forms.values()
    }

    /// The Form of a kind of the family at its newest installed version; for callers that build
    /// specs, never for looking up what a request names.
    pub fn family(&self, kind: EdgeKind) -> Option<&Arc<Form>> {
        self.forms.values().find(|form| {
            EdgeKind::of_parts(&form.form_ref.api_version, &form.form_ref.kind) == Some(kind)
        })
    }

    /// An Interface by name and version.
    pub fn interface(&self, name: &str, version: &str) -> Option<&Interface> {
        self.interfaces.get(&(name.into(), version.into()))
    }

    /// A Binding by name and version.
    pub fn binding(&self, name: &str, version: &str) -> Option<&Binding> {
        self.bindings.get(&(name.into(), version.into()))
    }

    /// Handlers the runtime contract states, in its order.
    pub fn handlers(&self) -> &[String] {
        &self.handlers
    }
}

fn missing(from: &str, interface: &InterfaceRef) -> CatalogError {
    CatalogError::Dangling {
        from: from.to_owned(),
        name: interface.name.to_string(),
        digest: interface.schema_digest.to_string(),
    }
}

/// `loadModule`'s enum of declared handlers (host API §20.1).
fn handlers_of(definition: &Value) -> Vec<String> {
    let operations = definition.get("operations").and_then(Value::as_array);
    operations
        .into_iter()
        .flatten()
        .find(|operation| operation.get("name").and_then(Value::as_str) == Some("loadModule"))
        .and_then(|operation| {
            operation
                .pointer("/inputSchema/properties/declaredHandlers/items/enum")?
                .as_array()
        })
        .into_iter()
        .flatten()
        .filter_map(|handler| handler.as_str().map(str::to_owned))
        .collect()
}
