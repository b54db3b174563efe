//! Changes as an apply makes them, without a server.

use notation_edge::{EdgeKind, FAMILY, Fence, Key, Origin, Put, Review, Uid, World};
use notation_host::Contracts;
use serde_json::Value;
use std::sync::Arc;

/// A put with defaults filled in, under a review and a fence that fit. `number` makes its uid.
pub fn put(
    contracts: &Contracts,
    world: &World,
    space: &str,
    (kind, name, spec): (EdgeKind, &str, Value),
    number: usize,
) -> Put {
    let form = contracts.catalog.family(kind).unwrap();
    let Value::Object(spec) = spec else {
        panic!("specs are objects")
    };
    let spec = contracts.materialise(form, spec);
    let key = Key::new(space, FAMILY, kind.as_str(), name);
    let fence = match world.at(&key) {
        Some(current) => Fence::Current {
            generation: current.generation,
            uid: None,
        },
        None => Fence::Free,
    };
    Put {
        key,
        form_ref: form.form_ref.clone(),
        spec_digest: notation_edge_api::digest(&spec).into(),
        spec: Arc::new(spec),
        fence,
        origin: Origin::Apply(Review::Fits),
        accepted: None,
        fresh: Uid::new(format!("u{number}")),
        made: number as u64,
    }
}
