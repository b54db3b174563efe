//! The exact-form query (host API §1.2).

use crate::error::ApiError;
use crate::head::decode;
use notation_edge::{Catalog, Form, FormRef, is_space};
use notation_edge_api::{ErrorCode, ResourcePath};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A decoded query: a space and an installed Form.
#[derive(Debug, Clone)]
pub struct ExactForm {
    /// Space.
    pub space: String,
    /// The Form.
    pub form: Arc<Form>,
}

const KEYS: [&str; 5] = [
    "space",
    "group",
    "kind",
    "definitionVersion",
    "schemaDigest",
];

impl ExactForm {
    /// Reads a query: keys first, then the space, then the exact Form.
    pub fn read(query: &str, catalog: &Catalog) -> Result<ExactForm, ApiError> {
        let mut values = pairs(query)?;
        if let Some(key) = values.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(ApiError::invalid(format!("query key {key:?} is unknown")));
        }
        let space = values.remove("space").filter(|space| is_space(space));
        let space =
            space.ok_or_else(|| ApiError::invalid("query: space is missing or no space"))?;
        let mut part = |key: &str| values.remove(key).unwrap_or_default().into();
        let form_ref = FormRef {
            api_version: part("group"),
            kind: part("kind"),
            definition_version: part("definitionVersion"),
            schema_digest: part("schemaDigest"),
        };
        let form = catalog
            .form(&form_ref)
            .ok_or_else(|| ApiError::new(ErrorCode::FormUnknown, "the form is not installed"))?;
        Ok(ExactForm {
            space,
            form: form.clone(),
        })
    }

    /// The space of a query, for the key of a record; whatever else is wrong with the query is
    /// told later.
    pub fn space_of(query: &str) -> Option<String> {
        pairs(query).ok()?.remove("space")
    }

    /// Path and query must name the same group and kind.
    pub fn agrees(&self, api_version: &str, kind: &str) -> Result<(), ApiError> {
        let form_ref = &self.form.form_ref;
        if &*form_ref.api_version == api_version && &*form_ref.kind == kind {
            Ok(())
        } else {
            Err(ApiError::invalid("path and query name different forms"))
        }
    }

    /// The same for a resource path.
    pub fn agrees_with(&self, path: &ResourcePath) -> Result<(), ApiError> {
        self.agrees(&path.api_version, &path.kind)
    }
}

/// Decoded pairs, each key once. Percent escapes must be whole and decode to UTF-8.
fn pairs(query: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let mut values = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = decode(&key.replace('+', " "))
            .ok_or_else(|| ApiError::invalid("query: malformed escape"))?;
        let value = decode(&value.replace('+', " "))
            .ok_or_else(|| ApiError::invalid("query: malformed escape"))?;
        if values.insert(key.clone(), value).is_some() {
            return Err(ApiError::invalid(format!("query key {key:?} is repeated")));
        }
    }
    Ok(values)
}
