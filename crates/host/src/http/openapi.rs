//! The OpenAPI document, generated from the route table and the error taxonomy.

use super::route::{API_ROUTES, RouteName};
use notation_edge_api::{API_ROOT, ErrorCode};
use serde_json::{Map, Value, json};

/// Success statuses of a route (host API Appendix A).
fn successes(route: RouteName) -> &'static [u16] {
    match route {
        RouteName::Apply | RouteName::Import => &[200, 201, 202],
        RouteName::Delete => &[202, 204],
        RouteName::StartUpload | RouteName::CommitUpload => &[200, 201],
        RouteName::PutBlob | RouteName::AbandonUpload | RouteName::Seal | RouteName::Unseal => {
            &[204]
        }
        RouteName::Forms
        | RouteName::FormDefinition
        | RouteName::Validate
        | RouteName::Prepare
        | RouteName::Read
        | RouteName::Observe
        | RouteName::Operation
        | RouteName::Cancel
        | RouteName::ReadManifest
        | RouteName::HeadBlob
        | RouteName::SupportForms
        | RouteName::SupportForm
        | RouteName::SupportInterface
        | RouteName::SupportBinding
        | RouteName::SealedNames => &[200],
    }
}

/// Headers and query keys of a route: name, place, whether it is required.
fn parameters(route: RouteName) -> &'static [(&'static str, &'static str, bool)] {
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

/// The document. Error answers are the same on every route: one envelope per status.
pub fn document() -> Value {
    let mut paths = Map::new();
    for (route, method, template) in API_ROUTES {
        let path = template.replace("{api}", API_ROOT);
        let operations = paths.entry(path.clone()).or_insert_with(|| json!({}));
        operations[method.to_lowercase()] = operation(*route, method, &path);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Notation host", "version": notation_edge_api::LANE },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Error": envelope() },
        },
    })
}

fn operation(route: RouteName, method: &str, path: &str) -> Value {
    let in_path = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str, place: &str, required: bool| json!({ "name": name, "in": place, "required": required, "schema": { "type": "string" } });
    let parameters: Vec<Value> = in_path
        .map(|name| parameter(name, "path", true))
        .chain(
            parameters(route)
                .iter()
                .map(|(name, place, required)| parameter(name, place, *required)),
        )
        .collect();
    let mut responses = Map::new();
    for status in successes(route) {
        let answer = if *status == 204 || route == RouteName::HeadBlob {
            json!({ "description": "done" })
        } else {
            json!({ "description": "done", "content": { "application/json": { "schema": { "type": "object" } } } })
        };
        responses.insert(status.to_string(), answer);
    }
    for code in ErrorCode::ALL {
        let status = code.status().to_string();
        let known = responses.contains_key(&status);
        if !known {
            let answer = if method == "HEAD" {
                json!({ "description": code.as_str() })
            } else {
                json!({
                    "description": code.as_str(),
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } }
                })
            };
            responses.insert(status, answer);
        }
    }
    let mut operation = json!({
        "operationId": format!("{route:?}"),
        "parameters": parameters,
        "responses": responses,
    });
    let body = match route {
        RouteName::Validate
        | RouteName::Prepare
        | RouteName::Apply
        | RouteName::Import
        | RouteName::StartUpload => Some("application/json"),
        RouteName::PutBlob | RouteName::Seal => Some("application/octet-stream"),
        _ => None,
    };
    if let Some(media_type) = body {
        let schema = if media_type == "application/json" {
            json!({ "type": "object" })
        } else {
            json!({})
        };
        operation["requestBody"] =
            json!({ "required": true, "content": { media_type: { "schema": schema } } });
    }
    operation
}

fn envelope() -> Value {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "additionalProperties": false,
            "required": ["code", "message", "requestId", "retryable"],
            "properties": {
                "code": { "enum": codes },
                "message": { "type": "string", "minLength": 1 },
                "requestId": { "type": "string", "minLength": 1 },
                "retryable": { "type": "boolean" },
                "hostCode": { "type": "string" },
                "details": {},
            },
        } },
    })
}
