//! The OpenAPI document, generated from the route table, the error taxonomy and the installed
//! contract set.

mod answers;
mod requests;

use super::route::{API_ROUTES, OPEN_ROUTES, RouteName};
use answers::successes;
use notation_edge::Catalog;
use notation_edge_api::{API_ROOT, ErrorCode};
use serde_json::{Map, Value, json};

/// The document. Error answers are the same on every route: one envelope per status.
pub fn document(catalog: &Catalog) -> Value {
    let mut paths = Map::new();
    for (route, method, template) in API_ROUTES {
        let path = template.replace("{api}", API_ROOT);
        let operations = paths.entry(path.clone()).or_insert_with(|| json!({}));
        operations[method.to_lowercase()] = operation(*route, method, &path, catalog);
    }
    for (path, name) in OPEN_ROUTES {
        paths.insert((*path).to_owned(), json!({ "get": open(name) }));
    }
    let mut schemas = answers::schemas();
    schemas.extend(requests::schemas(catalog));
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Notation host", "version": notation_edge_api::LANE },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    })
}

fn operation(route: RouteName, method: &str, path: &str, catalog: &Catalog) -> Value {
    let mut responses = Map::new();
    for (status, schema) in successes(route) {
        responses.insert(status.to_string(), answer("done", *schema));
    }
    refusals(&mut responses, (method != "HEAD").then_some("Error"));
    for (status, next, parameter, value) in links(route) {
        responses[*status]["links"][*next] =
            json!({ "operationId": next, "parameters": { *parameter: value } });
    }
    let mut operation = json!({
        "operationId": format!("{route:?}"),
        "parameters": requests::parameters(route, path, catalog),
        "responses": responses,
    });
    if let Some(body) = requests::body(route, catalog) {
        operation["requestBody"] = body;
    }
    operation
}

/// A route that needs no credential.
fn open(name: &str) -> Value {
    let document = json!({
        "description": "done",
        "content": { "application/json": { "schema": { "type": "object" } } },
    });
    let mut responses = Map::from_iter([("200".to_owned(), document)]);
    refusals(&mut responses, Some("Error"));
    json!({ "operationId": name, "security": [], "responses": responses })
}

fn refusals(responses: &mut Map<String, Value>, schema: Option<&str>) {
    for code in ErrorCode::ALL {
        responses
            .entry(code.status().to_string())
            .or_insert_with(|| answer(code.as_str(), schema));
    }
}

/// Where an answer leads: status, operation, its parameter, and where the value is found.
fn links(route: RouteName) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
    const UPLOAD: &str = "$response.body#/uploadId";
    match route {
        RouteName::StartUpload => &[
            ("201", "PutBlob", "upload", UPLOAD),
            ("201", "CommitUpload", "upload", UPLOAD),
            ("201", "AbandonUpload", "upload", UPLOAD),
        ],
        RouteName::CommitUpload => &[(
            "201",
            "ReadManifest",
            "digest",
            "$response.body#/manifestDigest",
        )],
        _ => &[],
    }
}

fn answer(description: &str, schema: Option<&str>) -> Value {
    match schema {
        None => json!({ "description": description }),
        Some(name) => json!({
            "description": description,
            "content": { "application/json": {
                "schema": { "$ref": format!("#/components/schemas/{name}") }
            } },
        }),
    }
}
