//! Conversions between domain and wire, and the checks of a request document (host API §7, §9).

use crate::contracts::Contracts;
use crate::error::ApiError;
use notation_edge::{
    Form, FormRef, Key, Resource, World, is_digest, is_resource_name, is_space, outputs,
};
use notation_edge_api as wire;
use notation_edge_api::{ErrorCode, ResourceBody, ResourcePath};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Exact Form as the wire writes it.
pub fn wire_form_ref(form_ref: &FormRef) -> wire::FormRef {
    wire::FormRef {
        api_version: form_ref.api_version.to_string(),
        kind: form_ref.kind.to_string(),
        definition_version: form_ref.definition_version.to_string(),
        schema_digest: form_ref.schema_digest.to_string(),
    }
}

/// Exact Form as the domain knows it.
pub fn form_ref(wire: &wire::FormRef) -> FormRef {
    FormRef {
        api_version: wire.api_version.as_str().into(),
        kind: wire.kind.as_str().into(),
        definition_version: wire.definition_version.as_str().into(),
        schema_digest: wire.schema_digest.as_str().into(),
    }
}

/// Identity of an installed Form with its own package; a caller's package is never echoed.
pub fn identity(form: &Form) -> wire::FormIdentity {
    wire::Form {
        form_ref: wire_form_ref(&form.form_ref),
        package_digest: form.package_digest.as_deref().map(str::to_owned),
    }
}

/// The quoted revision.
pub fn etag(resource: &Resource) -> String {
    format!("\"{}\"", resource.revision)
}

/// A resource as every route shows it.
pub fn resource_document(world: &World, resource: &Resource) -> wire::Resource {
    let condition = &resource.condition;
    let observed = (resource.touches > 0).then(|| {
        let mut observed = Map::new();
        observed.insert("statusTouches".to_owned(), resource.touches.into());
        observed
    });
    wire::Resource {
        api_version: resource.key.api_version.to_string(),
        kind: resource.key.kind.to_string(),
        form: wire::Form {
            form_ref: wire_form_ref(&resource.form_ref),
            package_digest: world
                .form_of(resource)
                .and_then(|form| form.package_digest.as_deref())
                .map(str::to_owned),
        },
        metadata: wire::Metadata {
            name: resource.key.name.to_string(),
            space: resource.key.space.to_string(),
            uid: resource.uid.to_string(),
            generation: resource.generation.to_string(),
            revision: resource.revision.to_string(),
        },
        spec: Value::clone(&resource.spec),
        status: wire::Status {
            observed_generation: resource.generation.to_string(),
            conditions: vec![wire::Condition {
                condition_type: "Ready".to_owned(),
                status: if condition.is_ready() {
                    "True"
                } else {
                    "False"
                }
                .to_owned(),
                reason: condition.reason.as_str().to_owned(),
                host_reason: condition.host_reason.as_deref().map(str::to_owned),
                message: condition.message.as_deref().map(str::to_owned),
                last_transition_time: condition.since.to_string(),
            }],
            observed,
            outputs: outputs(world, resource),
        },
    }
}

/// Which optional members a route's body may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyOf {
    /// Validate and prepare.
    Document,
    /// Apply.
    Apply,
    /// Import.
    Import,
}

/// Decodes a request document strictly (host API §4).
pub fn decode(bytes: &[u8], of: BodyOf) -> Result<ResourceBody, ApiError> {
    let value = wire::parse(bytes).map_err(|error| ApiError::invalid(format!("body: {error}")))?;
    let object = value
        .as_object()
        .ok_or_else(|| ApiError::invalid("body: no object"))?;
    let extra: &[&str] = match of {
        BodyOf::Document => &[],
        BodyOf::Apply => &["review", "expectedUid", "expectedGeneration"],
        BodyOf::Import => &["nativeId"],
    };
    for name in object.keys() {
        let known = ["apiVersion", "kind", "form", "metadata", "spec"].contains(&name.as_str());
        if !known && !extra.contains(&name.as_str()) {
            return Err(ApiError::invalid(format!("body: unknown member {name:?}")));
        }
    }
    // The typed decoder would also take a list for an object.
    for pointer in ["/form", "/form/formRef", "/metadata", "/review", "/spec"] {
        if value
            .pointer(pointer)
            .is_some_and(|member| !member.is_object() && !member.is_null())
        {
            return Err(ApiError::invalid(format!("body: {pointer} is no object")));
        }
    }
    serde_json::from_value(value).map_err(|error| ApiError::invalid(format!("body: {error}")))
}

/// A document whose identity was checked.
#[derive(Debug, Clone)]
pub struct Identified {
    /// Installed Form.
    pub form: Arc<Form>,
    /// Address.
    pub key: Key,
}

/// Identity checks of host API §11.1 rows 5 and 6.
pub fn identify(
    contracts: &Contracts,
    body: &ResourceBody,
    path: Option<&ResourcePath>,
) -> Result<Identified, ApiError> {
    if let Some(path) = path {
        let same = body.metadata.name == path.name
            && body.kind == path.kind
            && body.api_version == path.api_version;
        if !same {
            return Err(ApiError::invalid(
                "the body names another resource than the path",
            ));
        }
    }
    let form = body
        .form
        .as_ref()
        .ok_or_else(|| ApiError::invalid("form is missing"))?;
    let installed = contracts
        .catalog
        .form(&form_ref(&form.form_ref))
        .ok_or_else(|| ApiError::new(ErrorCode::FormUnknown, "the form is not installed"))?;
    if body.api_version != form.form_ref.api_version || body.kind != form.form_ref.kind {
        return Err(ApiError::invalid(
            "apiVersion and kind are not those of the form",
        ));
    }
    if form
        .package_digest
        .as_deref()
        .is_some_and(|digest| !is_digest(digest))
    {
        return Err(ApiError::invalid("packageDigest is no digest"));
    }
    if !is_resource_name(&body.metadata.name) {
        return Err(ApiError::invalid("metadata.name is no resource name"));
    }
    if !is_space(&body.metadata.space) {
        return Err(ApiError::invalid("metadata.space is no space"));
    }
    Ok(Identified {
        form: installed.clone(),
        key: Key::new(
            &body.metadata.space,
            &body.api_version,
            &body.kind,
            &body.metadata.name,
        ),
    })
}

/// Longest spec as JSON: a client takes answers of up to 8388608 bytes (host API §0.4), and those
/// of a resource have its metadata and status too.
const MAX_SPEC_BYTES: usize = 8_388_608 - 65_536;

/// The materialised spec of a body; a missing or null one is empty.
pub fn materialised(
    contracts: &Contracts,
    form: &Form,
    body: &ResourceBody,
) -> Result<Value, ApiError> {
    let spec = match &body.spec {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(spec)) => spec.clone(),
        Some(_) => return Err(ApiError::invalid("spec is no object")),
    };
    let spec = contracts.materialise(form, spec);
    if bytes(&spec).len() > MAX_SPEC_BYTES {
        return Err(ApiError::invalid(format!(
            "spec is larger than {MAX_SPEC_BYTES} bytes, and no client could read it back"
        )));
    }
    Ok(spec)
}

/// The materialised spec of a body that must also be valid (host API §9.3).
pub fn valid_spec(
    contracts: &Contracts,
    form: &Form,
    body: &ResourceBody,
) -> Result<Value, ApiError> {
    let spec = materialised(contracts, form, body)?;
    let problems = contracts.diagnose(form, &spec);
    if problems.is_empty() {
        return Ok(spec);
    }
    let sentences: Vec<String> = problems
        .iter()
        .take(8)
        .map(|problem| match &problem.field {
            Some(field) => format!("{field}: {}", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    Err(ApiError::invalid(format!("spec: {}", sentences.join("; "))))
}

/// Availability of a Form.
pub fn availability(form: &Form) -> wire::FormsReply {
    wire::FormsReply {
        forms: vec![wire::FormAvailability {
            identity: identity(form),
            definition_known: true,
            installed: true,
            executable: true,
            activated: true,
            available_to_principal: true,
            operations: form.capabilities.clone(),
            deprecated: None,
        }],
    }
}

/// Definition view of a Form.
pub fn definition(form: &Form) -> wire::FormDefinition {
    wire::FormDefinition {
        identity: identity(form),
        display_name: form.title.clone(),
        description: form.description.clone(),
        desired_schema: form.desired_schema.clone(),
    }
}

/// Bytes of a wire document.
pub fn bytes<T: serde::Serialize>(document: &T) -> Vec<u8> {
    serde_json::to_vec(document).expect("wire documents serialise to JSON")
}

/// `{"operation": ...}` and its siblings, written without a type of their own.
pub fn enveloped(name: &str, document: &impl serde::Serialize) -> Vec<u8> {
    bytes(&json!({ name: document }))
}
