//! What a worker shall be: parameters understood, and the specs that follow from them.

use std::collections::{BTreeMap, BTreeSet};

use notation_edge_api::{FAMILY, Manifest, ManifestModule};
use notation_model::{Asset, Owner, Params, Value};
use notation_provider::{OpContext, OpError};
use serde_json::{Value as Json, json};

use crate::{
    claim::{Claim, mark, note},
    parts::{Kind, Slot},
};

/// Name of the code's module in a bundle.
pub(crate) const MODULE: &str = "index.js";
/// Name of its source map.
pub(crate) const SOURCE_MAP: &str = "index.js.map";
/// Mark of the write that a bundle with secrets belongs to.
const WRITE_MARK: &str = "notation/write/";
const MODULE_TYPE: &str = "application/javascript+module";
const SOURCE_MAP_TYPE: &str = "application/source-map+json";

/// Everything one create or update asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub script: String,
    pub owner: Owner,
    pub claim: Claim,
    pub code: Code,
    pub vars: Json,
    pub bindings: Vec<Binding>,
    pub secrets: BTreeMap<String, Hidden>,
    pub endpoint: bool,
    /// [`mark`] of the call's token: a version with secrets is only known to have the newest
    /// ones when this very write made it.
    write: String,
}

/// Code and what it can do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub module: Asset,
    pub source_map: Option<Asset>,
    pub handlers: Vec<String>,
}

/// One service binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub name: String,
    pub service: String,
}

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl Wanted {
    /// Understands parameters.
    ///
    /// Errors: `Refused`, naming the field.
    pub fn read(ctx: &OpContext<'_>, script: &str, params: &Params) -> Result<Wanted, OpError> {
        let endpoint = match params.get("endpoint") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(endpoint)) => *endpoint,
            Some(_) => return Err(refused("`endpoint` is neither true nor false")),
        };
        let code = code(params.get("main"))?;
        if endpoint && !code.handlers.iter().any(|handler| handler == "fetch") {
            return Err(refused(
                "the module has no `fetch` handler, so it cannot have an address: export one, or set `endpoint: false`",
            ));
        }
        Ok(Wanted {
            script: script.to_owned(),
            owner: ctx.owner.clone(),
            claim: Claim::of(&ctx.owner, &ctx.token.0),
            code,
            vars: vars(params.get("vars"))?,
            bindings: bindings(params.get("bindings"))?,
            secrets: secrets(params.get("secrets"))?,
            endpoint,
            write: mark(&ctx.token.0),
        })
    }

    /// The manifest of its bundle.
    pub fn manifest(&self) -> Manifest {
        let module = |name: &str, media_type: &str, asset: &Asset| ManifestModule {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            size: asset.size_bytes,
            digest: asset.digest.clone(),
        };
        let code = module(MODULE, MODULE_TYPE, &self.code.module);
        let map = self.code.source_map.as_ref();
        let map = map.map(|asset| module(SOURCE_MAP, SOURCE_MAP_TYPE, asset));
        let written =
            (!self.secrets.is_empty()).then(|| note(format!("{WRITE_MARK}{}", self.write)));
        let modules = std::iter::once(code).chain(map).chain(written);
        Manifest::worker_bundle(MODULE, modules.collect())
    }

    /// The spec of its version in a slot.
    pub fn version_spec(&self, slot: Slot) -> Json {
        let services: Vec<Json> = self
            .bindings
            .iter()
            .map(|binding| {
                let resource = reference(Kind::Worker, &binding.service);
                json!({ "name": binding.name, "resource": resource })
            })
            .collect();
        let secrets: Vec<&String> = self.secrets.keys().collect();
        json!({
            "worker": reference(Kind::Worker, &self.script),
            "bundle": reference(Kind::Bundle, &slot.name(&self.script)),
            "handlers": self.code.handlers,
            "vars": self.vars,
            "requiredSensitiveVars": secrets,
            "serviceBindings": services,
        })
    }

    /// The spec of its WorkerDeployment when all traffic goes to a slot.
    pub fn deployment_spec(&self, slot: Slot) -> Json {
        let version = reference(Kind::Version, &slot.name(&self.script));
        json!({
            "worker": reference(Kind::Worker, &self.script),
            "versions": [{ "workerVersion": version, "weight": 10_000 }],
        })
    }

    /// The spec of its endpoint.
    pub fn endpoint_spec(&self) -> Json {
        json!({ "worker": reference(Kind::Worker, &self.script) })
    }

    /// Names of its secrets.
    pub fn secret_names(&self) -> BTreeSet<String> {
        self.secrets.keys().cloned().collect()
    }
}

fn reference(kind: Kind, name: &str) -> Json {
    json!({ "apiVersion": FAMILY, "kind": kind.as_str(), "name": name })
}

fn code(main: Option<&Value>) -> Result<Code, OpError> {
    let Some(Value::Map(members)) = main else {
        return Err(refused("`main` is not a bundled module"));
    };
    let asset = |name: &str| match members.get(name) {
        Some(Value::Asset(asset)) => Some(Asset::clone(asset)),
        _ => None,
    };
    let handlers = match members.get("handlers") {
        Some(Value::List(items)) => items
            .iter()
            .filter_map(Value::as_text)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    if handlers.is_empty() {
        return Err(refused(
            "the module of `main` exports no handler: give its default export a `fetch`, `scheduled` or `queue`",
        ));
    }
    Ok(Code {
        module: asset("module").ok_or_else(|| refused("`main` has no module"))?,
        source_map: asset("sourceMap"),
        handlers,
    })
}

fn vars(vars: Option<&Value>) -> Result<Json, OpError> {
    match vars {
        None | Some(Value::Null) => Ok(json!({})),
        Some(vars @ Value::Map(_)) => vars
            .to_plain_json()
            .ok_or_else(|| refused("`vars` is not known yet")),
        Some(_) => Err(refused("`vars` is not a map")),
    }
}

fn bindings(bindings: Option<&Value>) -> Result<Vec<Binding>, OpError> {
    let items = match bindings {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::List(items)) => items,
        Some(_) => return Err(refused("`bindings` is not a list")),
    };
    let binding = |(at, item): (usize, &Value)| {
        let members = match item {
            Value::Map(members) if members.len() == 2 => Some(members),
            _ => None,
        };
        let text = |name: &str| members?.get(name)?.as_text().map(str::to_owned);
        match (text("name"), text("service")) {
            (Some(name), Some(service)) => Ok(Binding { name, service }),
            _ => Err(refused(&format!(
                "`bindings[{at}]` is not `{{ name, service }}` with two texts"
            ))),
        }
    };
    items.iter().enumerate().map(binding).collect()
}

fn secrets(secrets: Option<&Value>) -> Result<BTreeMap<String, Hidden>, OpError> {
    let members = match secrets {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Secret(secret)) => secret.reveal(),
        Some(other) => other,
    };
    let Value::Map(members) = members else {
        return Err(refused("`secrets` is not a map"));
    };
    members
        .iter()
        .map(|(name, value)| match value.as_text() {
            Some(text) => Ok((name.to_string(), Hidden(text.to_owned()))),
            None => Err(refused(&format!("`secrets.{name}` is not a text"))),
        })
        .collect()
}

fn refused(message: &str) -> OpError {
    OpError::Refused {
        message: message.to_owned(),
    }
}
