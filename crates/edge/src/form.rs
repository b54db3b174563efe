//! Forms as data, read from their definition documents (host API §6, §15.1).

use crate::identity::text;
use crate::{BindingRef, Contract, FormRef, InterfaceRef, Relation};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Closed role of a Form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Long-lived identity.
    Identity,
    /// Immutable snapshot.
    Revision,
    /// Selects revisions.
    Deployment,
    /// Activates something from outside.
    Attachment,
    /// Constrains something.
    Policy,
}

impl Role {
    /// The role as written in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Identity => "identity",
            Role::Revision => "revision",
            Role::Deployment => "deployment",
            Role::Attachment => "attachment",
            Role::Policy => "policy",
        }
    }

    fn read(text: &str) -> Option<Role> {
        [
            Role::Identity,
            Role::Revision,
            Role::Deployment,
            Role::Attachment,
            Role::Policy,
        ]
        .into_iter()
        .find(|role| role.as_str() == text)
    }
}

/// One installed Form.
#[derive(Debug, Clone)]
pub struct Form {
    /// Exact identity.
    pub form_ref: FormRef,
    /// Digest of the package index, when there is a package.
    pub package_digest: Option<Arc<str>>,
    /// Title for people.
    pub title: String,
    /// Description for people.
    pub description: Option<String>,
    /// Role.
    pub role: Role,
    /// Capabilities in the order of the definition.
    pub capabilities: Vec<String>,
    /// Schema of the desired spec, unchanged.
    pub desired_schema: Value,
    /// Schema of the outputs, for Forms that have any.
    pub output_schema: Option<Value>,
    /// Top-level members with a default.
    pub defaults: Vec<(String, Value)>,
    /// References to other resources.
    pub relations: Vec<Relation>,
    /// Top-level lists that grant bindings.
    pub binding_lists: Vec<String>,
    /// Interfaces that resources of this Form provide.
    pub provided: Vec<InterfaceRef>,
    /// Bindings that resources of this Form may hold.
    pub accepted: Vec<BindingRef>,
    /// Pointers of members that never change.
    pub immutable: Vec<String>,
}

/// Why a definition document cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A member is missing or of the wrong type.
    #[error("member {0} is missing or of the wrong type")]
    Member(&'static str),
    /// A reference has none or both of the two contracts.
    #[error(
        "the reference at {0} needs exactly one of a target Form list and a required Interface"
    )]
    Annotation(String),
    /// The schema nests deeper than 32 levels.
    #[error("the schema nests deeper than 32 levels at {0}")]
    Depth(String),
}

impl Form {
    /// Reads a definition document whose canonical digest is `schema_digest`.
    ///
    /// Errors: every problem of the document. Source: host API §6.2, §15.1.
    pub fn read(
        definition: &Value,
        schema_digest: &str,
        package_digest: Option<&str>,
    ) -> Result<Form, Vec<FormError>> {
        let mut errors = Vec::new();
        let mut member = |name: &'static str| {
            let found = text(definition, name);
            if found.is_none() {
                errors.push(FormError::Member(name));
            }
            found.unwrap_or_default()
        };
        let form_ref = FormRef {
            api_version: member("apiVersion"),
            kind: member("kind"),
            definition_version: member("definitionVersion"),
            schema_digest: schema_digest.into(),
        };
        let title = member("title").to_string();
        let role = Role::read(&member("role"));
        let capabilities = strings(definition, "lifecycleCapabilities");
        let desired_schema = definition
            .get("desiredSchema")
            .filter(|schema| schema.is_object());
        if role.is_none() && !errors.contains(&FormError::Member("role")) {
            errors.push(FormError::Member("role"));
        }
        if capabilities.is_none() {
            errors.push(FormError::Member("lifecycleCapabilities"));
        }
        if desired_schema.is_none() {
            errors.push(FormError::Member("desiredSchema"));
        }
        let mut relations = Vec::new();
        if let Some(schema) = desired_schema {
            walk(schema, String::new(), None, 0, &mut relations, &mut errors);
        }
        let provided = list(
            definition,
            "providedInterfaces",
            InterfaceRef::read,
            &mut errors,
        );
        let accepted = list(
            definition,
            "acceptedBindings",
            BindingRef::read,
            &mut errors,
        );
        let (Some(role), Some(capabilities), Some(schema)) = (role, capabilities, desired_schema)
        else {
            return Err(errors);
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let with = |annotation: &str| -> Vec<(String, Value)> {
            properties
                .into_iter()
                .flatten()
                .filter_map(|(name, schema)| Some((name.clone(), schema.get(annotation)?.clone())))
                .collect()
        };
        Ok(Form {
            form_ref,
            package_digest: package_digest.map(Arc::from),
            title,
            description: text(definition, "description").map(|text| text.to_string()),
            role,
            capabilities,
            output_schema: definition.get("outputSchema").cloned(),
            defaults: with("default"),
            binding_lists: with("x-takoform-binding")
                .into_iter()
                .map(|(name, _)| name)
                .collect(),
            desired_schema: schema.clone(),
            relations,
            provided,
            accepted,
            immutable: strings(definition, "immutableFields").unwrap_or_default(),
        })
    }

    /// Whether resources of this Form can be changed.
    pub fn can_update(&self) -> bool {
        self.capabilities
            .iter()
            .any(|capability| capability == "update")
    }
}

fn strings(document: &Value, member: &str) -> Option<Vec<String>> {
    document
        .get(member)?
        .as_array()?
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn list<T>(
    document: &Value,
    member: &'static str,
    read: fn(&Value) -> Option<T>,
    errors: &mut Vec<FormError>,
) -> Vec<T> {
    let Some(value) = document.get(member) else {
        return Vec::new();
    };
    let items: Option<Vec<T>> = value
        .as_array()
        .and_then(|items| items.iter().map(read).collect());
    items.unwrap_or_else(|| {
        errors.push(FormError::Member(member));
        Vec::new()
    })
}

fn walk(
    schema: &Value,
    pointer: String,
    binding: Option<&str>,
    depth: usize,
    relations: &mut Vec<Relation>,
    errors: &mut Vec<FormError>,
) {
    if depth > 32 {
        errors.push(FormError::Depth(pointer));
        return;
    }
    let binding = schema
        .get("x-takoform-binding")
        .and_then(Value::as_str)
        .or(binding);
    if let Some((api_version, kind)) = reference(schema) {
        match contract(schema) {
            Some(contract) => relations.push(Relation {
                pointer: pointer.into(),
                api_version,
                kind,
                contract,
                binding: binding.map(Arc::from),
            }),
            None => errors.push(FormError::Annotation(pointer)),
        }
        return;
    }
    for (name, inner) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        walk(
            inner,
            format!("{pointer}/{escaped}"),
            binding,
            depth + 1,
            relations,
            errors,
        );
    }
    if let Some(items) = schema.get("items") {
        walk(
            items,
            format!("{pointer}/*"),
            binding,
            depth + 1,
            relations,
            errors,
        );
    }
}

/// Group and kind of a closed reference object.
fn reference(schema: &Value) -> Option<(Arc<str>, Arc<str>)> {
    let properties: &Map<String, Value> = schema.get("properties")?.as_object()?;
    let mut required: Vec<&str> = schema
        .get("required")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    required.sort_unstable();
    let closed = schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.len() == 3
        && required == ["apiVersion", "kind", "name"];
    let constant = |member: &str| text(properties.get(member)?, "const");
    closed.then(|| Some((constant("apiVersion")?, constant("kind")?)))?
}

fn contract(schema: &Value) -> Option<Contract> {
    match (
        schema.get("x-takoform-target-formrefs"),
        schema.get("x-takoform-required-interface"),
    ) {
        (Some(forms), None) => {
            let forms: Vec<FormRef> = forms
                .as_array()?
                .iter()
                .map(FormRef::read)
                .collect::<Option<_>>()?;
            (!forms.is_empty()).then_some(Contract::Forms(forms))
        }
        (None, Some(interface)) => InterfaceRef::read(interface).map(Contract::Interface),
        (None, None) | (Some(_), Some(_)) => None,
    }
}
