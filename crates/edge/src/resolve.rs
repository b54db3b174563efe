//! Resolution: from names in a spec to pinned incarnations (host API §15.4, §16).

use crate::world::World;
use crate::{BindingRef, Contract, Form, Instance, Key, Pin, Refusal, Why, instances};
use serde_json::Value;

/// Resolves every relation of a spec in pointer order (host API §15.4, §16).
pub(crate) fn resolve(
    world: &World,
    form: &Form,
    key: &Key,
    spec: &Value,
) -> Result<Vec<Pin>, Refusal> {
    instances(&form.relations, spec)
        .into_iter()
        .map(|instance| resolve_one(world, form, key, instance))
        .collect()
}

fn resolve_one(
    world: &World,
    form: &Form,
    key: &Key,
    instance: Instance<'_>,
) -> Result<Pin, Refusal> {
    let Instance {
        pointer,
        relation,
        name,
    } = instance;
    let address = Key {
        space: key.space.clone(),
        api_version: relation.api_version.clone(),
        kind: relation.kind.clone(),
        name: name.as_str().into(),
    };
    let holder = world.at(&address).ok_or_else(|| {
        Refusal::new(
            Why::NotFound,
            format!("relation {pointer}: {address} does not exist"),
        )
    })?;
    let recorded = world.form_of(holder).ok_or_else(|| {
        Refusal::new(
            Why::InvalidArgument,
            format!("relation {pointer}: the form of {address} is not installed"),
        )
    })?;
    let mut binding = None;
    if let Some(wanted) = &relation.binding {
        binding = Some(verify_binding(world, form, recorded, &pointer, wanted)?);
    }
    let recorded_version = &holder.form_ref.definition_version;
    match &relation.contract {
        Contract::Forms(allowed) if !allowed.contains(&holder.form_ref) => {
            let wanted: Vec<String> = allowed
                .iter()
                .map(|form| format!("{} {}", form.definition_version, form.schema_digest))
                .collect();
            return Err(Refusal::new(
                Why::InvalidArgument,
                format!(
                    "relation {pointer}: {address} was created under version {recorded_version} ({}); \
                     required: {}",
                    holder.form_ref.schema_digest,
                    wanted.join(" or ")
                ),
            ));
        }
        Contract::Interface(interface) if !recorded.provided.contains(interface) => {
            return Err(Refusal::new(
                Why::InvalidArgument,
                format!(
                    "relation {pointer}: {address} was created under version {recorded_version}, \
                     which does not provide {} {} ({})",
                    interface.name, interface.version, interface.schema_digest
                ),
            ));
        }
        Contract::Forms(_) | Contract::Interface(_) => {}
    }
    Ok(Pin {
        pointer: pointer.into(),
        relation: relation.pointer.clone(),
        api_version: address.api_version,
        kind: address.kind,
        name: address.name,
        uid: holder.uid.clone(),
        form_ref: holder.form_ref.clone(),
        binding,
    })
}

/// Binding rules 1-5 (host API §16).
fn verify_binding(
    world: &World,
    source: &Form,
    target: &Form,
    pointer: &str,
    name: &str,
) -> Result<BindingRef, Refusal> {
    let invalid =
        |text: String| Refusal::new(Why::InvalidArgument, format!("relation {pointer}: {text}"));
    let accepted = source
        .accepted
        .iter()
        .find(|binding| &*binding.name == name)
        .ok_or_else(|| invalid(format!("the form does not accept binding {name}")))?;
    let installed = world
        .catalog()
        .binding(&accepted.name, &accepted.version)
        .filter(|binding| binding.binding_ref == *accepted)
        .ok_or_else(|| {
            Refusal::new(
                Why::UnsupportedCapability,
                format!(
                    "relation {pointer}: binding {name} {} is not installed",
                    accepted.version
                ),
            )
        })?;
    if installed.source_role != source.role.as_str() {
        return Err(invalid(format!(
            "binding {name} is for forms of role {}",
            installed.source_role
        )));
    }
    let form_ref = &target.form_ref;
    let allowed = installed
        .allowed
        .iter()
        .any(|(api_version, kind)| *api_version == form_ref.api_version && *kind == form_ref.kind);
    if !allowed {
        return Err(invalid(format!(
            "binding {name} does not reach {}",
            form_ref.kind
        )));
    }
    if !target.provided.contains(&installed.target_interface) {
        let interface = &installed.target_interface;
        return Err(invalid(format!(
            "the target does not provide {} {} ({})",
            interface.name, interface.version, interface.schema_digest
        )));
    }
    Ok(accepted.clone())
}
