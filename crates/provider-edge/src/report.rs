//! What is there, as the engine sees it.

use notation_edge_api::Manifest;
use notation_model::{Asset, Map, Params, Value};
use notation_provider::{Object, OpError};
use serde_json::Value as Json;

use crate::{
    address,
    host::Host,
    parts::Slot,
    refusal::op_error,
    seen::{Part, Seen},
    wanted::{MODULE, SOURCE_MAP},
};

/// Key and outputs.
pub(crate) async fn object(host: &Host, script: &str, seen: &Seen) -> Result<Object, OpError> {
    let url = match &seen.endpoint {
        None => None,
        Some(endpoint) => address::url_of(endpoint, host.addresses.as_ref()).await?,
    };
    let version = serving(script, seen).map(|(_, version)| version.uid.clone());
    let text = |text: Option<String>| text.map_or(Value::Null, Value::from);
    Ok(Object {
        key: script.to_owned(),
        outputs: Map::from([
            ("ScriptName".to_owned(), Value::text(script)),
            ("url".to_owned(), text(url)),
            ("versionId".to_owned(), text(version)),
        ]),
    })
}

/// Parameters as the host has them; sensitive values cannot be read and are left out. A worker
/// that is not finished has no `main`, which differs from every program.
pub(crate) async fn params(host: &Host, script: &str, seen: &Seen) -> Result<Params, OpError> {
    let mut params = Map::from([
        ("ScriptName".to_owned(), Value::text(script)),
        ("endpoint".to_owned(), Value::Bool(seen.endpoint.is_some())),
    ]);
    let Some((slot, version)) = serving(script, seen) else {
        return Ok(params);
    };
    if let Some(bundle) = &seen.slot(slot).bundle {
        let manifest = host.manifest(bundle.manifest_digest()).await;
        let manifest = manifest.map_err(|error| op_error(script, error))?;
        if let Some(main) = manifest.and_then(|manifest| main(&manifest, version)) {
            params.insert("main".to_owned(), main);
        }
    }
    params.insert("vars".to_owned(), Value::from(version.spec["vars"].clone()));
    params.insert("bindings".to_owned(), bindings(version));
    Ok(params)
}

/// The one version that has all traffic.
fn serving<'a>(script: &str, seen: &'a Seen) -> Option<(Slot, &'a Part)> {
    let weighted = seen.weighted();
    let slot = Slot::BOTH
        .into_iter()
        .find(|slot| weighted == [slot.name(script)])?;
    Some((slot, seen.slot(slot).version.as_ref()?))
}

fn main(manifest: &Manifest, version: &Part) -> Option<Value> {
    let asset = |name: &str| {
        let module = manifest
            .modules
            .iter()
            .flatten()
            .find(|module| module.name == name)?;
        Some(Value::from(Asset {
            digest: module.digest.clone(),
            size_bytes: module.size,
        }))
    };
    let handlers = Value::from(version.spec["handlers"].clone());
    let mut members = Map::from([
        ("module".to_owned(), asset(MODULE)?),
        ("handlers".to_owned(), handlers),
    ]);
    if let Some(map) = asset(SOURCE_MAP) {
        members.insert("sourceMap".to_owned(), map);
    }
    Some(Value::Map(members))
}

/// Bindings to workers that were made anew lead nowhere, so a version with such has none.
fn bindings(version: &Part) -> Value {
    if version.broken {
        return Value::List(Vec::new());
    }
    let items = version.spec["serviceBindings"]
        .as_array()
        .into_iter()
        .flatten();
    let binding = |item: &Json| {
        let text = |json: &Json| Value::text(json.as_str().unwrap_or_default());
        Value::Map(Map::from([
            ("name".to_owned(), text(&item["name"])),
            ("service".to_owned(), text(&item["resource"]["name"])),
        ]))
    };
    Value::List(items.map(binding).collect())
}
