//! What the program makes of secrets: found anywhere, it is a secret too (`engine.md` §7).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{DesiredGraph, ResourceId, TypeSet};
use notation_planner::{Secrecy, hidden};
use notation_provider::Found;

/// Fields of resources that take a value made of a secret, earlier ids included. Fields that are
/// sensitive by their type are not listed: whoever reads them knows the type.
#[derive(Debug, Default)]
pub(crate) struct Sensitive(BTreeMap<ResourceId, BTreeSet<String>>);

impl Sensitive {
    /// Those of a program.
    pub(crate) fn of(desired: &DesiredGraph, types: &TypeSet) -> Sensitive {
        let secrecy = Secrecy::of(desired, types);
        let mut fields: BTreeMap<ResourceId, BTreeSet<String>> = BTreeMap::new();
        for resource in desired.resources.values() {
            let config = resource.config.iter();
            let given = config.chain(
                resource
                    .contributions
                    .iter()
                    .map(|one| (&one.field, &one.value)),
            );
            for (field, expr) in given {
                if secrecy.secret_in(expr).is_some() {
                    for id in resource.formerly.iter().chain([&resource.id]) {
                        let of = fields.entry(id.clone()).or_default();
                        of.insert(field.to_string());
                    }
                }
            }
        }
        Sensitive(fields)
    }

    /// What was found for a resource, with what nobody may see hidden.
    pub(crate) fn hide_in(&self, resource: &ResourceId, mut found: Found) -> Found {
        for field in self.0.get(resource).into_iter().flatten() {
            for values in [&mut found.params, &mut found.object.outputs] {
                if let Some(value) = values.remove(field) {
                    values.insert(field.clone(), hidden(value));
                }
            }
        }
        found
    }
}
