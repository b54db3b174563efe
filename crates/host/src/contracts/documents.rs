//! The documents of a contract set, each held to the digest that an index says.

use super::ContractError;
use include_dir::{Dir, include_dir};
use notation_edge::{Binding, Form, FormRef, Interface, InterfaceRef};
use notation_edge_api::{digest, parse};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The set written by this project.
pub(super) static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/contracts");

const FORMS: &str = "forms/candidates/edge/v1beta1/candidate-set.json";
const INTERFACES: &str = "interfaces/candidates/v1alpha1";
const BINDINGS: &str = "bindings/candidates/v1alpha1";

/// Where the documents are.
pub(super) enum Files {
    /// In the binary.
    Embedded,
    /// In a folder.
    Directory(PathBuf),
}

impl Files {
    fn json(&self, path: &str) -> Result<Value, ContractError> {
        let bytes = match self {
            Files::Embedded => EMBEDDED
                .get_file(path)
                .map(|file| file.contents().to_vec())
                .ok_or_else(|| {
                    std::io::Error::new(
                        std::io::ErrorKind::NotFound,
                        "not part of the embedded set",
                    )
                }),
            Files::Directory(root) => std::fs::read(root.join(path)),
        };
        let bytes = bytes.map_err(|source| ContractError::Read {
            path: path.to_owned(),
            source,
        })?;
        parse(&bytes).map_err(|source| ContractError::Json {
            path: path.to_owned(),
            source,
        })
    }

    /// A document whose canonical digest must be `expected`.
    fn pinned(&self, path: &str, expected: &str) -> Result<Value, ContractError> {
        let document = self.json(path)?;
        let found = digest(&document);
        if found == expected {
            Ok(document)
        } else {
            Err(ContractError::Digest {
                path: path.to_owned(),
                found,
                expected: expected.to_owned(),
            })
        }
    }
}

fn text<'a>(
    entry: &'a Value,
    pointer: &str,
    member: &'static str,
    path: &str,
) -> Result<&'a str, ContractError> {
    entry
        .pointer(pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| ContractError::Entry {
            path: path.to_owned(),
            member,
        })
}

fn entries(files: &Files, path: &str, list: &str, errors: &mut Vec<ContractError>) -> Vec<Value> {
    match files.json(path) {
        Ok(index) => index
            .get(list)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_else(|| {
                errors.push(ContractError::Entry {
                    path: path.to_owned(),
                    member: "list",
                });
                Vec::new()
            }),
        Err(error) => {
            errors.push(error);
            Vec::new()
        }
    }
}

pub(super) fn load_forms(files: &Files, errors: &mut Vec<ContractError>) -> Vec<(String, Form)> {
    let mut forms = Vec::new();
    for entry in entries(files, FORMS, "forms", errors) {
        match load_form(files, &entry) {
            Ok(form) => forms.push(form),
            Err(found) => errors.extend(found),
        }
    }
    forms
}

fn load_form(files: &Files, entry: &Value) -> Result<(String, Form), Vec<ContractError>> {
    let one = |error| vec![error];
    let folder = text(entry, "/path", "path", FORMS).map_err(one)?;
    let schema_digest = text(entry, "/formRef/schemaDigest", "schemaDigest", FORMS).map_err(one)?;
    let package_digest = text(entry, "/packageDigest", "packageDigest", FORMS).map_err(one)?;
    let path = format!("{folder}/definition.json");
    let definition = files.pinned(&path, schema_digest).map_err(one)?;
    files
        .pinned(&format!("{folder}/package-index.json"), package_digest)
        .map_err(one)?;
    let form = Form::read(&definition, schema_digest, Some(package_digest)).map_err(|errors| {
        errors
            .into_iter()
            .map(|source| ContractError::Form {
                path: path.clone(),
                source,
            })
            .collect::<Vec<_>>()
    })?;
    if entry.get("formRef").and_then(FormRef::read).as_ref() != Some(&form.form_ref) {
        return Err(vec![ContractError::Identity { path }]);
    }
    Ok((path, form))
}

pub(super) fn load_interfaces(files: &Files, errors: &mut Vec<ContractError>) -> Vec<Interface> {
    let mut interfaces = Vec::new();
    for (path, definition, schema_digest) in load_named(files, INTERFACES, "interfaces", errors) {
        let with_digest = with_digest(&definition, &schema_digest);
        match InterfaceRef::read(&with_digest) {
            Some(interface_ref) => interfaces.push(Interface {
                interface_ref,
                definition,
            }),
            None => errors.push(ContractError::Definition { path }),
        }
    }
    interfaces
}

pub(super) fn load_bindings(files: &Files, errors: &mut Vec<ContractError>) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for (path, definition, schema_digest) in load_named(files, BINDINGS, "bindings", errors) {
        match Binding::read(&definition, &schema_digest) {
            Some(binding) => bindings.push(binding),
            None => errors.push(ContractError::Definition { path }),
        }
    }
    bindings
}

/// Documents of an index that lists name, version and digest.
fn load_named(
    files: &Files,
    folder: &str,
    list: &str,
    errors: &mut Vec<ContractError>,
) -> Vec<(String, Value, String)> {
    let index = format!("{folder}/candidate-set.json");
    let mut found = Vec::new();
    for entry in entries(files, &index, list, errors) {
        let loaded = (|| {
            let name = text(&entry, "/name", "name", &index)?;
            let version = text(&entry, "/version", "version", &index)?;
            let expected = text(&entry, "/schemaDigest", "schemaDigest", &index)?;
            let path = format!("{folder}/{name}/definition.json");
            let definition = files.pinned(&path, expected)?;
            let stated = |member: &str| definition.get(member).and_then(Value::as_str);
            if stated("name") != Some(name) || stated("version") != Some(version) {
                return Err(ContractError::Identity { path });
            }
            Ok((path, definition, expected.to_owned()))
        })();
        match loaded {
            Ok(document) => found.push(document),
            Err(error) => errors.push(error),
        }
    }
    found
}

fn with_digest(definition: &Value, schema_digest: &str) -> Value {
    let mut with = definition.clone();
    if let Some(object) = with.as_object_mut() {
        object.insert("schemaDigest".to_owned(), schema_digest.into());
    }
    with
}

/// The two definitions that only the conformance adapter installs. One of them has a digest and
/// no document.
pub(super) fn load_extra(directory: &Path, errors: &mut Vec<ContractError>) -> Vec<(String, Form)> {
    let files = Files::Directory(directory.to_owned());
    let mut forms = Vec::new();
    let second = "fixtures/synthetic-module-worker-second-definition.json";
    match files.json(second) {
        Ok(definition) => match Form::read(&definition, &digest(&definition), None) {
            Ok(form) => forms.push((second.to_owned(), form)),
            Err(found) => errors.extend(found.into_iter().map(|source| ContractError::Form {
                path: second.to_owned(),
                source,
            })),
        },
        Err(error) => errors.push(error),
    }
    let contract = "contract.json";
    match files.json(contract) {
        Ok(document) => {
            let id = document
                .pointer("/runnerInput/syntheticSecondGroup")
                .and_then(FormRef::read);
            match id.and_then(|id| bare_form(&id)) {
                Some(form) => forms.push((contract.to_owned(), form)),
                None => errors.push(ContractError::Definition {
                    path: contract.to_owned(),
                }),
            }
        }
        Err(error) => errors.push(error),
    }
    forms
}

/// A Form without a document: identity role, base capabilities, empty closed schema.
fn bare_form(id: &FormRef) -> Option<Form> {
    let definition = serde_json::json!({
        "apiVersion": &*id.api_version,
        "kind": &*id.kind,
        "definitionVersion": &*id.definition_version,
        "title": &*id.kind,
        "role": "identity",
        "desiredSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "properties": {}
        },
        "lifecycleCapabilities": ["create", "read", "delete", "import", "observe"]
    });
    Form::read(&definition, &id.schema_digest, None).ok()
}
