//! What an object that no plan made falls back to: what the program's config gives it.

use std::collections::BTreeMap;

use notation_model::{
    Desired, Incarnation, OutputRef, Record, ResourceType, Scope, SecretName, Value,
};
use notation_planner::placeholder_of;

use crate::world::{Exported, World};

/// The records that tell what references in a config mean.
pub(crate) fn known(records: &BTreeMap<Incarnation, Record>) -> World {
    let there = records.iter().filter(|(_, record)| !record.gone);
    let live = there.map(|(incarnation, record)| (incarnation.clone(), record.clone()));
    World::new(live.collect(), BTreeMap::new(), Vec::new())
}

/// Gives the record the placeholder that the program says: in the fields that it contributes to,
/// what its config gives them, and nothing where it gives nothing. When the records do not tell
/// what that is, the object counts as one that cannot be bare.
pub(crate) fn give_placeholder(
    ty: &ResourceType,
    wanted: &Desired,
    world: &World,
    secrets: &BTreeMap<SecretName, Value>,
    record: &mut Record,
) {
    let scope = Imported {
        key: &record.key,
        others: Exported { world, secrets },
    };
    // A contribution that cannot be collected is told of by the next plan.
    let given = placeholder_of(ty, wanted, &scope).unwrap_or_default();
    let mut is_known = true;
    for contribution in &wanted.contributions {
        record.config.remove(&contribution.field);
        match given.get(&contribution.field) {
            Some(value) if value.is_known() => {
                let field = contribution.field.clone();
                record.config.insert(field, value.clone());
            }
            Some(_) => is_known = false,
            None => {}
        }
    }
    record.can_be_bare &= is_known;
}

/// What the config of an imported resource sees: what is recorded, and its own key.
struct Imported<'a> {
    key: &'a str,
    others: Exported<'a>,
}

impl Scope for Imported<'_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        self.others.output(source)
    }

    fn name(&self) -> Option<Value> {
        Some(Value::text(self.key))
    }

    fn secret(&self, name: &SecretName) -> Option<Value> {
        self.others.secret(name)
    }
}
