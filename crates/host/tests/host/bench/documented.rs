//! Every answer that any test sees is one the host's own OpenAPI document announces.

use super::{API, Answer};
use jsonschema::Validator;
use notation_host::{API_ROUTES, Host, RouteName};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The document, with the validators of the answers seen so far.
pub struct Documented {
    document: Value,
    validators: Mutex<BTreeMap<String, Arc<Validator>>>,
}

/// The route of a request, if it is one of the table's.
fn route(method: &str, target: &str) -> Option<(RouteName, String)> {
    let path = target.split('?').next().unwrap_or_default();
    let found: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        wanted.len() == found.len()
            && wanted.iter().zip(&found).all(|(wanted, found)| {
                wanted == found || (wanted.starts_with('{') && !found.is_empty())
            })
    };
    API_ROUTES.iter().find_map(|(route, its_method, template)| {
        let template = template.replace("{api}", API);
        (*its_method == method && fits(&template)).then_some((*route, template))
    })
}

impl Documented {
    pub fn of(host: &Host) -> Documented {
        Documented {
            document: host.openapi(),
            validators: Mutex::default(),
        }
    }

    /// Fails on an answer that the document does not have.
    #[track_caller]
    pub fn judge(&self, method: &str, target: &str, answer: &Answer) {
        let Some((route, template)) = route(method, target) else {
            return;
        };
        let operation = &self.document["paths"][&template][method.to_lowercase()];
        let announced = &operation["responses"][answer.status.to_string()];
        assert!(
            announced.is_object(),
            "{route:?} announces no {}",
            answer.status
        );
        let schema = &announced["content"]["application/json"]["schema"]["$ref"];
        let Some(schema) = schema.as_str() else {
            assert!(
                answer.body.is_empty(),
                "{route:?} announces no body with {}",
                answer.status
            );
            return;
        };
        let validator = self.validator(schema);
        let document = answer.json();
        if let Err(error) = validator.validate(&document) {
            panic!(
                "{route:?} {}: {error} at {} in {document}",
                answer.status,
                error.instance_path()
            );
        }
    }

    fn validator(&self, schema: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap();
        validators
            .entry(schema.to_owned())
            .or_insert_with(|| {
                let whole = json!({
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "$ref": schema,
                    "components": self.document["components"],
                });
                Arc::new(jsonschema::validator_for(&whole).unwrap())
            })
            .clone()
    }
}
