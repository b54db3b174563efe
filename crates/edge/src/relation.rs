//! Relations: derived from a schema, found in a spec, pinned to an incarnation (host API §15).

use crate::{BindingRef, FormRef, InterfaceRef, Uid};
use serde_json::Value;
use std::sync::Arc;

/// One place of a Form that refers to another resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Path into the spec, `*` for array elements, e.g. `/kvBindings/*/resource`.
    pub pointer: Arc<str>,
    /// Group of the target.
    pub api_version: Arc<str>,
    /// Kind of the target.
    pub kind: Arc<str>,
    /// What the target must be.
    pub contract: Contract,
    /// Name of the Binding that the reference grants, if any.
    pub binding: Option<Arc<str>>,
}

/// What a relation demands of its target.
#[derive(Debug, Clone, PartialEq)]
pub enum Contract {
    /// Recorded under one of these exact Forms.
    Forms(Vec<FormRef>),
    /// Its recorded Form provides this exact Interface.
    Interface(InterfaceRef),
}

/// A relation found in a concrete spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance<'a> {
    /// Concrete path, e.g. `/kvBindings/0/resource`.
    pub pointer: String,
    /// The relation it is an instance of.
    pub relation: &'a Relation,
    /// Name of the target.
    pub name: String,
}

/// A resolved relation as stored: fixed to one incarnation of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Concrete path.
    pub pointer: Arc<str>,
    /// Path with `*`.
    pub relation: Arc<str>,
    /// Group of the target.
    pub api_version: Arc<str>,
    /// Kind of the target.
    pub kind: Arc<str>,
    /// Name of the target.
    pub name: Arc<str>,
    /// Incarnation of the target.
    pub uid: Uid,
    /// Form the target was recorded under.
    pub form_ref: FormRef,
    /// The Binding that is granted, if any.
    pub binding: Option<BindingRef>,
}

/// Every relation of `relations` that `spec` has, in ascending pointer order.
pub fn instances<'a>(relations: &'a [Relation], spec: &Value) -> Vec<Instance<'a>> {
    let mut found = Vec::new();
    for relation in relations {
        let path: Vec<&str> = relation.pointer.split('/').skip(1).collect();
        collect(relation, spec, &path, String::new(), &mut found);
    }
    found.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    found
}

fn collect<'a>(
    relation: &'a Relation,
    at: &Value,
    path: &[&str],
    pointer: String,
    found: &mut Vec<Instance<'a>>,
) {
    match path.split_first() {
        None => {
            if let Some(name) = at.get("name").and_then(Value::as_str) {
                found.push(Instance {
                    pointer,
                    relation,
                    name: name.to_owned(),
                });
            }
        }
        Some((&"*", rest)) => {
            for (index, item) in at.as_array().into_iter().flatten().enumerate() {
                collect(relation, item, rest, format!("{pointer}/{index}"), found);
            }
        }
        Some((member, rest)) => {
            // Schema member names with `~` or `/` are escaped in pointers.
            let name = member.replace("~1", "/").replace("~0", "~");
            if let Some(inner) = at.get(&name) {
                collect(relation, inner, rest, format!("{pointer}/{member}"), found);
            }
        }
    }
}
