//! The configuration of one worker process, encoded for `workerd serve --binary -`.
//!
//! It reaches the process over a pipe, so sensitive values touch neither disk, nor
//! environment, nor command line. Slot numbers are those of the configuration schema of
//! the pinned release; they never move between releases.

use std::path::Path;

use crate::plan::Capability;
use crate::wire::{Slot, Struct, message};

/// Latest runtime behaviour the entry modules were written for. Not part of any contract:
/// desired state has no member that selects it.
const COMPATIBILITY_DATE: &str = "2026-01-01";
const COMPATIBILITY_FLAGS: &[&str] = &["disallow_importable_env", "enable_request_signal"];

const PRELUDE: &str = include_str!("entry/prelude.js");
const BINDINGS: &str = include_str!("entry/bindings.js");
const ENTRY: &str = include_str!("entry/entry.js");

/// Header that tells the host which service binding a call came through. Injected by the
/// runtime outside the isolate, so tenant code cannot forge it.
pub(crate) const BINDING_HEADER: &str = "x-edge-binding";
/// Header with the scheme of the URL, both ways.
pub(crate) const PROTO_HEADER: &str = "x-edge-proto";

/// What an importer receives. Source: `worker.runtime@1.0.0`, module classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleClass {
    /// `application/javascript+module`.
    Script,
    /// `text/plain`: a string.
    Text,
    /// `application/octet-stream`: an `ArrayBuffer`.
    Data,
    /// `application/wasm`: a `WebAssembly.Module`.
    Wasm,
    /// `application/source-map+json`: carried, never imported.
    Auxiliary,
}

impl ModuleClass {
    /// The class of a media type; the set is closed.
    pub(crate) fn of(media_type: &str) -> Option<ModuleClass> {
        match media_type {
            "application/javascript+module" => Some(ModuleClass::Script),
            "text/plain" => Some(ModuleClass::Text),
            "application/octet-stream" => Some(ModuleClass::Data),
            "application/wasm" => Some(ModuleClass::Wasm),
            "application/source-map+json" => Some(ModuleClass::Auxiliary),
            _ => None,
        }
    }
}

/// A module with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct LoadedModule {
    pub(crate) name: String,
    pub(crate) class: ModuleClass,
    pub(crate) bytes: bytes::Bytes,
}

/// How far global `fetch` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Egress {
    /// Nothing: the load check.
    Closed,
    /// Public addresses only.
    Public,
}

/// Everything one process is told.
pub(crate) struct ProcessConfig<'a> {
    pub(crate) main_module: &'a str,
    pub(crate) modules: &'a [LoadedModule],
    pub(crate) environment: Vec<(&'a str, &'a Capability)>,
    /// Host socket for binding operations and service calls; none for the load check.
    pub(crate) data_socket: Option<&'a Path>,
    pub(crate) egress: Egress,
}

/// The encoded configuration.
pub(crate) fn encode(config: &ProcessConfig<'_>) -> Vec<u8> {
    let address = config
        .data_socket
        .map(|path| format!("unix:{}", path.display()));
    let texts = Texts::of(config);
    let worker = worker(config, &texts);
    let mut services = vec![service("worker", 1, worker)];
    services.push(service("internet", 2, network(config.egress)));
    if let Some(address) = &address {
        services.push(service("data", 3, external(address, None)));
        for (name, route) in &texts.routes {
            services.push(service(route, 3, external(address, Some(name))));
        }
    }
    let root = Struct::new(1, 7)
        .slot(0, Slot::Structs(services))
        .slot(
            1,
            Slot::Structs(vec![socket("http", None), socket("events", Some("events"))]),
        )
        .slot(5, Slot::Struct(Struct::new(1, 2).flag(0)));
    message(&root)
}

/// Names of the host's own modules in one process. What code cannot name it cannot import, so it
/// finds no module but its bundle's (edge runtime §2.1).
struct Hidden(String);

impl Hidden {
    fn new() -> Hidden {
        let mut random = [0; 16];
        getrandom::fill(&mut random).expect("the system has random numbers");
        Hidden(format!("~edge:{}:", hex::encode(random)))
    }

    /// Name and text of a module. Stack traces show it under its plain name.
    fn module(&self, name: &str, text: &str) -> (String, String) {
        let text = text.replace("from \"~edge:", &format!("from \"{}", self.0));
        let shown = format!("{text}\n//# sourceURL=~edge:{name}\n");
        (format!("{}{name}", self.0), shown)
    }
}

/// Generated texts, owned here so that the tree can borrow them.
struct Texts {
    /// Name and text of the host's own modules, the entry first.
    own: Vec<(String, String)>,
    sources: Vec<String>,
    /// Raw binding name per environment entry.
    raw: Vec<String>,
    /// JSON text of vars that are not strings.
    json: Vec<Option<String>>,
    /// Binding name and service name of every service binding.
    routes: Vec<(String, String)>,
}

impl Texts {
    fn of(config: &ProcessConfig<'_>) -> Texts {
        let path = serde_json::to_string(&format!("./{}", config.main_module))
            .expect("a string is always JSON");
        let mut routes = Vec::new();
        let mut raw = Vec::new();
        let mut json = Vec::new();
        for (index, (name, capability)) in config.environment.iter().enumerate() {
            json.push(match capability {
                Capability::Var(value) if !value.is_string() => Some(value.to_string()),
                _ => None,
            });
            raw.push(match capability {
                Capability::Var(_) | Capability::Secret(_) => format!("v{index}"),
                Capability::Service { .. } => {
                    routes.push(((*name).to_owned(), format!("route-{index}")));
                    format!("r{index}")
                }
                Capability::Kv { .. }
                | Capability::Objects { .. }
                | Capability::Sql { .. }
                | Capability::QueueProducer { .. } => "d".to_owned(),
            });
        }
        let hidden = Hidden::new();
        let main = format!("import * as main from {path};\nexport default main.default;\n");
        let manifest = manifest(&config.environment, &raw);
        let own = [
            ("entry", ENTRY),
            ("prelude", PRELUDE),
            ("bindings", BINDINGS),
            ("manifest", &manifest),
            ("main", &main),
        ];
        Texts {
            own: own.map(|(name, text)| hidden.module(name, text)).into(),
            sources: config.modules.iter().map(source).collect(),
            raw,
            json,
            routes,
        }
    }
}

/// The generated module that tells the entry what `env` consists of, sorted by the UTF-8
/// bytes of the names.
fn manifest(environment: &[(&str, &Capability)], raw: &[String]) -> String {
    let mut entries: Vec<_> = environment
        .iter()
        .zip(raw)
        .map(|((name, capability), from)| serde_json::json!({"name": name, "from": from, "kind": kind(capability)}))
        .collect();
    entries.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    format!(
        "export const ENV = {};\n",
        serde_json::Value::Array(entries)
    )
}

fn kind(capability: &Capability) -> &'static str {
    match capability {
        Capability::Var(_) | Capability::Secret(_) => "value",
        Capability::Service { .. } => "worker.service",
        Capability::Kv { .. } => "edge.kv",
        Capability::Objects { .. } => "edge.objects",
        Capability::Sql { .. } => "edge.sql",
        Capability::QueueProducer { .. } => "edge.queue",
    }
}

/// Text of a module. An auxiliary module becomes one that throws when it is imported; text
/// that is not UTF-8 shows replacement characters.
fn source(module: &LoadedModule) -> String {
    match module.class {
        ModuleClass::Script | ModuleClass::Text => String::from_utf8_lossy(&module.bytes).into_owned(),
        ModuleClass::Auxiliary => {
            "throw Object.assign(new Error(\"a source map cannot be imported\"), { name: \"unsupported_media_type\" });"
                .to_owned()
        }
        ModuleClass::Data | ModuleClass::Wasm => String::new(),
    }
}

fn worker<'a>(config: &'a ProcessConfig<'_>, texts: &'a Texts) -> Struct<'a> {
    let script = |name: &'a str, text: &'a str| module(name, 0, Slot::Text(text));
    let own = texts.own.iter();
    let mut modules: Vec<_> = own.map(|(name, text)| script(name, text)).collect();
    for (loaded, text) in config.modules.iter().zip(&texts.sources) {
        modules.push(match loaded.class {
            ModuleClass::Script | ModuleClass::Auxiliary => script(&loaded.name, text),
            ModuleClass::Text => module(&loaded.name, 2, Slot::Text(text)),
            ModuleClass::Data => module(&loaded.name, 3, Slot::Data(&loaded.bytes)),
            ModuleClass::Wasm => module(&loaded.name, 4, Slot::Data(&loaded.bytes)),
        });
    }
    Struct::new(1, 16)
        .slot(0, Slot::Structs(modules))
        .slot(1, Slot::Text(COMPATIBILITY_DATE))
        .slot(2, Slot::Texts(COMPATIBILITY_FLAGS))
        .slot(3, Slot::Structs(bindings(config, texts)))
        .slot(4, Slot::Struct(designator("internet", None)))
}

fn bindings<'a>(config: &'a ProcessConfig<'_>, texts: &'a Texts) -> Vec<Struct<'a>> {
    let binding = |name: &'a str, tag: u16, slot: Slot<'a>| {
        Struct::new(1, 6)
            .tag(0, tag)
            .slot(0, Slot::Text(name))
            .slot(1, slot)
    };
    let mut routes = texts.routes.iter();
    let mut bindings = Vec::new();
    for (index, (_, capability)) in config.environment.iter().enumerate() {
        let raw = texts.raw[index].as_str();
        match capability {
            Capability::Var(value) => bindings.push(match (value.as_str(), &texts.json[index]) {
                (Some(text), _) => binding(raw, 2, Slot::Text(text)),
                (None, json) => binding(raw, 4, Slot::Text(json.as_deref().unwrap_or("null"))),
            }),
            Capability::Secret(secret) => {
                bindings.push(binding(raw, 2, Slot::Text(secret.reveal())))
            }
            Capability::Service { .. } => {
                let (_, route) = routes.next().expect("every service binding has its route");
                bindings.push(binding(raw, 7, Slot::Struct(designator(route, None))));
            }
            Capability::Kv { .. }
            | Capability::Objects { .. }
            | Capability::Sql { .. }
            | Capability::QueueProducer { .. } => {}
        }
    }
    if config.data_socket.is_some() {
        bindings.push(binding("d", 7, Slot::Struct(designator("data", None))));
    }
    bindings
}

fn module<'a>(name: &'a str, tag: u16, content: Slot<'a>) -> Struct<'a> {
    Struct::new(1, 3)
        .tag(0, tag)
        .slot(0, Slot::Text(name))
        .slot(1, content)
}

fn service<'a>(name: &'a str, tag: u16, content: Struct<'a>) -> Struct<'a> {
    Struct::new(1, 2)
        .tag(0, tag)
        .slot(0, Slot::Text(name))
        .slot(1, Slot::Struct(content))
}

fn designator<'a>(name: &'a str, entry_point: Option<&'a str>) -> Struct<'a> {
    let designator = Struct::new(1, 3).slot(0, Slot::Text(name));
    match entry_point {
        Some(entry_point) => designator.slot(1, Slot::Text(entry_point)),
        None => designator,
    }
}

fn network<'a>(egress: Egress) -> Struct<'a> {
    let allow: &[&str] = match egress {
        Egress::Closed => &[],
        Egress::Public => &["public"],
    };
    Struct::new(0, 3)
        .slot(0, Slot::Texts(allow))
        .slot(2, Slot::Struct(Struct::new(1, 3).flag(1)))
}

fn external<'a>(address: &'a str, binding: Option<&'a str>) -> Struct<'a> {
    let options = match binding {
        None => Struct::new(1, 5),
        Some(name) => {
            let header = Struct::new(0, 2)
                .slot(0, Slot::Text(BINDING_HEADER))
                .slot(1, Slot::Text(name));
            Struct::new(1, 5)
                .slot(0, Slot::Text(PROTO_HEADER))
                .slot(2, Slot::Structs(vec![header]))
        }
    };
    Struct::new(1, 4)
        .slot(0, Slot::Text(address))
        .slot(1, Slot::Struct(options))
}

fn socket<'a>(name: &'a str, entry_point: Option<&'a str>) -> Struct<'a> {
    let options = match entry_point {
        None => Struct::new(1, 5).slot(0, Slot::Text(PROTO_HEADER)),
        Some(_) => Struct::new(1, 5),
    };
    Struct::new(2, 5)
        .slot(0, Slot::Text(name))
        .slot(2, Slot::Struct(options))
        .slot(4, Slot::Struct(designator("worker", entry_point)))
}
