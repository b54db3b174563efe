//! What the program makes of secrets: found anywhere, it is a secret too (`engine.md` §7).

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{DesiredGraph, Expr, OutputRef, ResourceId, Segment, TypeSet};
use notation_planner::hidden;
use notation_provider::Found;

/// Fields of resources that take a value made of a secret, earlier ids included. Fields that are
/// sensitive by their type are not listed: whoever reads them knows the type.
#[derive(Debug, Default)]
pub(crate) struct Sensitive(BTreeMap<ResourceId, BTreeSet<String>>);

impl Sensitive {
    /// Those of a program.
    pub(crate) fn of(desired: &DesiredGraph, types: &TypeSet) -> Sensitive {
        let reading = Reading { desired, types };
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
                if reading.is_sensitive(expr, &mut BTreeSet::new()) {
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

/// Follows references to where a value comes from.
struct Reading<'a> {
    desired: &'a DesiredGraph,
    types: &'a TypeSet,
}

impl<'a> Reading<'a> {
    fn is_sensitive(&self, expr: &'a Expr, seen: &mut BTreeSet<&'a OutputRef>) -> bool {
        match expr {
            Expr::Secret(_) => true,
            Expr::Known(value) => !value.sensitive().is_empty(),
            Expr::Name => false,
            Expr::Join(items) | Expr::List(items) => {
                items.iter().any(|item| self.is_sensitive(item, seen))
            }
            Expr::Map(members) => members.values().any(|item| self.is_sensitive(item, seen)),
            Expr::Output(source) => self.reads_sensitive(source, seen),
        }
    }

    fn reads_sensitive(&self, source: &'a OutputRef, seen: &mut BTreeSet<&'a OutputRef>) -> bool {
        if !seen.insert(source) {
            return false;
        }
        let Some(target) = self.desired.resources.get(&source.resource) else {
            return false;
        };
        let Some(Segment::Key(field)) = source.path.first() else {
            return false;
        };
        let declared = self
            .types
            .get(&target.ty)
            .and_then(|ty| ty.fields.get(field.as_str()));
        if declared.is_some_and(|declared| declared.sensitive) {
            return true;
        }
        let contributed = target.contributions.iter();
        let contributed = contributed
            .filter(|one| one.field == *field)
            .map(|one| &one.value);
        let mut given = target.config.get(field).into_iter().chain(contributed);
        given.any(|expr| self.is_sensitive(expr, seen))
    }
}
