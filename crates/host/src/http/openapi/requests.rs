//! What a request of each route carries: parameters and bodies, with examples that are valid on
//! the very host that serves the document.

use crate::document::wire_form_ref;
use crate::http::RouteName;
use notation_edge::{Catalog, EdgeKind, FAMILY, Form};
use serde_json::{Map, Value, json};

/// A name in examples.
const NAME: &str = "example";

/// Headers and query keys of a route: name, place, whether it is required.
fn carried(route: RouteName) -> &'static [(&'static str, &'static str, bool)] {
    const QUERY: [(&str, &str, bool); 5] = [
        ("space", "query", true),
        ("group", "query", true),
        ("kind", "query", true),
        ("definitionVersion", "query", true),
        ("schemaDigest", "query", true),
    ];
    const KEY: (&str, &str, bool) = ("Idempotency-Key", "header", true);
    const FENCE: (&str, &str, bool) = ("Takoform-Expected-Generation", "header", true);
    match route {
        RouteName::Forms | RouteName::FormDefinition | RouteName::Read => &QUERY,
        RouteName::Prepare => &[("Takoform-Expected-Generation", "header", false)],
        RouteName::Apply | RouteName::Import => &[
            KEY,
            ("If-None-Match", "header", false),
            ("Takoform-Expected-Generation", "header", false),
        ],
        RouteName::Observe => &[QUERY[0], QUERY[1], QUERY[2], QUERY[3], QUERY[4], KEY, FENCE],
        RouteName::Delete => &[
            QUERY[0],
            QUERY[1],
            QUERY[2],
            QUERY[3],
            QUERY[4],
            KEY,
            FENCE,
            ("If-Match", "header", false),
        ],
        RouteName::Cancel
        | RouteName::StartUpload
        | RouteName::CommitUpload
        | RouteName::AbandonUpload => &[KEY],
        RouteName::Validate
        | RouteName::Operation
        | RouteName::PutBlob
        | RouteName::ReadManifest
        | RouteName::HeadBlob
        | RouteName::SupportForms
        | RouteName::SupportForm
        | RouteName::SupportInterface
        | RouteName::SupportBinding
        | RouteName::SealedNames
        | RouteName::Seal
        | RouteName::Unseal => &[],
    }
}

/// Every parameter of a route, those of its path first.
pub fn parameters(route: RouteName, path: &str, catalog: &Catalog) -> Vec<Value> {
    let in_path = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let form = catalog.family(EdgeKind::EdgeKVNamespace);
    in_path
        .map(|name| (name, "path", true))
        .chain(carried(route).iter().copied())
        .map(|(name, place, required)| {
            let (schema, example) = meaning(route, name, place, form.map(|form| &**form));
            let mut parameter =
                json!({ "name": name, "in": place, "required": required, "schema": schema });
            if let Some(example) = example {
                parameter["example"] = example.into();
            }
            parameter
        })
        .collect()
}

/// Grammar of a parameter (host API §3.3), and a value of it.
fn meaning(
    route: RouteName,
    name: &str,
    place: &str,
    form: Option<&Form>,
) -> (Value, Option<String>) {
    let grammar = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let text = || json!({ "type": "string", "minLength": 1 });
    let of = |member: fn(&Form) -> &str| form.map(|form| member(form).to_owned());
    let (group, version) = FAMILY.split_once('/').unwrap_or((FAMILY, ""));
    match (place, name) {
        ("path", "group") => (
            grammar("^[a-z0-9][a-z0-9.-]*[a-z0-9]$"),
            Some(group.to_owned()),
        ),
        ("path", "version") => match route {
            RouteName::SupportInterface | RouteName::SupportBinding => {
                (text(), Some("1.0.0".to_owned()))
            }
            _ => (
                grammar("^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$"),
                Some(version.to_owned()),
            ),
        },
        ("path", "name") => match route {
            RouteName::SupportInterface => (text(), Some("edge.kv".to_owned())),
            RouteName::SupportBinding => (text(), Some("module-worker.edge-kv".to_owned())),
            _ => (grammar("^[a-z][a-z0-9-]{0,62}$"), Some(NAME.to_owned())),
        },
        ("path", "worker") => (grammar("^[a-z][a-z0-9-]{0,62}$"), Some(NAME.to_owned())),
        ("path", "key") => (
            grammar("^[A-Z][A-Z0-9_]{0,63}$"),
            Some("API_KEY".to_owned()),
        ),
        ("path", "id") => (grammar("^op_[A-Za-z0-9][A-Za-z0-9._-]{0,124}$"), None),
        ("path", "upload") => (grammar("^up_[A-Za-z0-9][A-Za-z0-9._-]{0,124}$"), None),
        ("path", "digest") => (grammar("^sha256:[0-9a-f]{64}$"), None),
        ("query", "group") => (text(), of(|form| &form.form_ref.api_version)),
        (_, "kind") => (
            grammar("^[A-Z][A-Za-z0-9]{0,63}$"),
            of(|form| &form.form_ref.kind),
        ),
        (_, "definitionVersion") => (text(), of(|form| &form.form_ref.definition_version)),
        (_, "schemaDigest") => (
            grammar("^sha256:[0-9a-f]{64}$"),
            of(|form| &form.form_ref.schema_digest),
        ),
        (_, "space") => (
            json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
            Some(NAME.to_owned()),
        ),
        ("header", "Idempotency-Key") => (text(), Some(format!("{route:?}-1"))),
        ("header", "If-None-Match") => (json!({ "const": "*" }), Some("*".to_owned())),
        ("header", "Takoform-Expected-Generation") => (
            grammar("^[1-9][0-9]{0,18}$"),
            // A create takes none, and the example of an apply is a create.
            carried(route)
                .iter()
                .any(|(name, _, required)| *name == "Takoform-Expected-Generation" && *required)
                .then(|| "1".to_owned()),
        ),
        ("header", "If-Match") => (grammar("^\"[1-9][0-9]{0,18}\"$"), None),
        _ => (text(), None),
    }
}

/// The body of a route, if it takes one.
pub fn body(route: RouteName, catalog: &Catalog) -> Option<Value> {
    let schema = match route {
        RouteName::Validate | RouteName::Prepare => documents(catalog, &[]),
        RouteName::Apply => documents(
            catalog,
            &[(
                "review",
                json!({
                    "type": "object", "additionalProperties": false,
                    "required": ["prepareDigest"],
                    "properties": { "prepareDigest": {
                        "type": "string", "pattern": "^sha256:[0-9a-f]{64}$"
                    } },
                }),
            )],
        ),
        RouteName::Import => documents(
            catalog,
            &[(
                "nativeId",
                json!({ "type": "string", "minLength": 1, "maxLength": 4096, "pattern": "\\S" }),
            )],
        ),
        RouteName::StartUpload => json!({
            "type": "object", "additionalProperties": false, "required": ["manifest"],
            "properties": { "manifest": { "type": "object" } },
        }),
        RouteName::PutBlob => return Some(bytes(json!({}))),
        RouteName::Seal => {
            return Some(bytes(json!({ "type": "string", "minLength": 1 })));
        }
        _ => return None,
    };
    let mut content = json!({ "schema": schema });
    if let Some(example) = example(route, catalog) {
        content["example"] = example;
    }
    Some(json!({ "required": true, "content": { "application/json": content } }))
}

fn bytes(schema: Value) -> Value {
    json!({ "required": true, "content": { "application/octet-stream": { "schema": schema } } })
}

/// The document that the parameters' examples speak of.
fn example(route: RouteName, catalog: &Catalog) -> Option<Value> {
    let form = catalog.family(EdgeKind::EdgeKVNamespace)?;
    let mut document = json!({
        "apiVersion": &*form.form_ref.api_version,
        "kind": &*form.form_ref.kind,
        "form": { "formRef": wire_form_ref(&form.form_ref) },
        "metadata": { "name": NAME, "space": NAME },
        "spec": {},
    });
    match route {
        RouteName::Validate => Some(document),
        // A review is minted by the host, so only one that was never minted can be written here.
        RouteName::Prepare | RouteName::Apply => None,
        RouteName::Import => {
            document["nativeId"] = NAME.into();
            Some(document)
        }
        RouteName::StartUpload => Some(json!({ "manifest": {
            "apiVersion": notation_edge_api::ARTIFACTS_API_VERSION,
            "kind": "MigrationBundle",
            "files": [{
                "path": "0001.sql", "mediaType": "application/sql", "size": 0,
                "digest": notation_edge_api::blob_digest(b""),
            }],
        } })),
        _ => None,
    }
}

/// A request document of any installed Form, with further required members.
fn documents(catalog: &Catalog, further: &[(&str, Value)]) -> Value {
    let alternatives: Vec<Value> = catalog
        .forms()
        .map(|form| {
            let mut required = vec!["apiVersion", "kind", "form", "metadata"];
            required.extend(further.iter().map(|(name, _)| *name));
            let mut properties = json!({
                "apiVersion": { "const": &*form.form_ref.api_version },
                "kind": { "const": &*form.form_ref.kind },
                "form": {
                    "type": "object", "additionalProperties": false, "required": ["formRef"],
                    "properties": { "formRef": { "const": wire_form_ref(&form.form_ref) } },
                },
                "metadata": {
                    "type": "object", "additionalProperties": false,
                    "required": ["name", "space"],
                    "properties": {
                        "name": { "type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$" },
                        "space": { "type": "string", "minLength": 1, "maxLength": 255 },
                    },
                },
                "spec": { "$ref": format!("#/components/schemas/{}", spec_name(form)) },
            });
            for (name, schema) in further {
                properties[*name] = schema.clone();
            }
            json!({
                "type": "object", "additionalProperties": false,
                "required": required, "properties": properties,
            })
        })
        .collect();
    json!({ "oneOf": alternatives })
}

fn spec_name(form: &Form) -> String {
    let id = &form.form_ref;
    let group = if &*id.api_version == FAMILY {
        String::new()
    } else {
        format!("{}.", id.api_version.replace('/', "."))
    };
    format!("{group}{}.{}.spec", id.kind, id.definition_version)
}

/// Schemas of the desired state of every installed Form, by name.
pub fn schemas(catalog: &Catalog) -> Map<String, Value> {
    catalog
        .forms()
        .map(|form| {
            let name = spec_name(form);
            let mut schema = form.desired_schema.clone();
            if let Some(members) = schema.as_object_mut() {
                members.remove("$schema");
            }
            rebase(&mut schema, &name);
            (name, schema)
        })
        .collect()
}

/// References into the definition become references into this document.
fn rebase(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(target) if member == "$ref" => {
                        *target = target.replacen('#', &format!("#/components/schemas/{name}"), 1);
                    }
                    other => rebase(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
