//! Schemas of what the host answers. Every document is closed, as the contract has it (host API
//! §1.5): what is not named here does not occur.

use crate::http::RouteName;
use notation_edge_api::ErrorCode;
use serde_json::{Map, Value, json};

/// Success statuses of a route with the schema of their body, if they have one (host API
/// Appendix A).
pub fn successes(route: RouteName) -> &'static [(u16, Option<&'static str>)] {
    match route {
        RouteName::Apply | RouteName::Import => &[
            (200, Some("Resource")),
            (201, Some("Resource")),
            (202, Some("AcceptedOperation")),
        ],
        RouteName::Delete => &[(202, Some("AcceptedOperation")), (204, None)],
        RouteName::StartUpload => &[(201, Some("StartedUpload"))],
        RouteName::CommitUpload => &[
            (200, Some("CommittedManifest")),
            (201, Some("CommittedManifest")),
        ],
        RouteName::PutBlob | RouteName::AbandonUpload | RouteName::Seal | RouteName::Unseal => {
            &[(204, None)]
        }
        RouteName::Forms => &[(200, Some("Availability"))],
        RouteName::FormDefinition => &[(200, Some("FormDefinition"))],
        RouteName::Validate => &[(200, Some("Validity"))],
        RouteName::Prepare => &[(200, Some("Prepared"))],
        RouteName::Read => &[(200, Some("Resource"))],
        RouteName::Observe => &[(200, Some("ObservedResource"))],
        RouteName::Operation | RouteName::Cancel => &[(200, Some("Operation"))],
        RouteName::ReadManifest => &[(200, Some("Manifest"))],
        RouteName::HeadBlob => &[(200, None)],
        RouteName::SupportForms => &[(200, Some("FormSupportList"))],
        RouteName::SupportForm => &[(200, Some("FormSupport"))],
        RouteName::SupportInterface => &[(200, Some("InterfaceSupport"))],
        RouteName::SupportBinding => &[(200, Some("BindingSupport"))],
        RouteName::SealedNames => &[(200, Some("SealedNames"))],
    }
}

/// A closed object: its required members, then those that may be absent.
fn closed<const R: usize, const O: usize>(
    required: [(&str, Value); R],
    optional: [(&str, Value); O],
) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = required
        .iter()
        .chain(&optional)
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": names,
        "properties": properties,
    })
}

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Schemas of all answers, by name.
pub fn schemas() -> Map<String, Value> {
    let text = || json!({ "type": "string", "minLength": 1 });
    let free = || json!({ "type": "object" });
    let flag = || json!({ "type": "boolean" });
    let digest = || json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" });
    let counter = || json!({ "type": "string", "pattern": "^[1-9][0-9]{0,18}$" });
    let contract_ref = || {
        closed(
            [
                ("apiVersion", text()),
                ("name", text()),
                ("version", text()),
                ("schemaDigest", digest()),
            ],
            [],
        )
    };
    let is = |word: &str| json!({ "const": word });
    let named = [
        ("Error", envelope()),
        (
            "FormRef",
            closed(
                [
                    ("apiVersion", text()),
                    ("kind", text()),
                    ("definitionVersion", text()),
                    ("schemaDigest", digest()),
                ],
                [],
            ),
        ),
        (
            "Form",
            closed([("formRef", to("FormRef"))], [("packageDigest", digest())]),
        ),
        (
            "Resource",
            closed(
                [
                    ("apiVersion", text()),
                    ("kind", text()),
                    ("form", to("Form")),
                    ("metadata", to("Metadata")),
                    ("spec", free()),
                    ("status", to("Status")),
                ],
                [],
            ),
        ),
        (
            "Metadata",
            closed(
                [
                    ("name", text()),
                    ("space", text()),
                    (
                        "uid",
                        json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" }),
                    ),
                    ("generation", counter()),
                    ("revision", counter()),
                ],
                [],
            ),
        ),
        (
            "Status",
            closed(
                [
                    ("observedGeneration", counter()),
                    ("conditions", list(to("Condition"))),
                ],
                [("observed", free()), ("outputs", free())],
            ),
        ),
        (
            "Condition",
            closed(
                [
                    ("type", is("Ready")),
                    ("status", json!({ "enum": ["True", "False"] })),
                    ("reason", reasons()),
                    ("lastTransitionTime", text()),
                ],
                [
                    (
                        "hostReason",
                        json!({ "type": "string", "minLength": 1, "maxLength": 256 }),
                    ),
                    (
                        "message",
                        json!({ "type": "string", "minLength": 1, "maxLength": 4096 }),
                    ),
                ],
            ),
        ),
        (
            "ObservedResource",
            closed([("resource", to("Resource"))], []),
        ),
        (
            "AcceptedOperation",
            closed([("operation", to("Operation"))], []),
        ),
        (
            "Operation",
            closed(
                [
                    ("apiVersion", is(notation_edge_api::OPERATIONS_API_VERSION)),
                    ("kind", is("Operation")),
                    (
                        "id",
                        json!({ "type": "string", "pattern": "^op_[A-Za-z0-9][A-Za-z0-9._-]{0,124}$" }),
                    ),
                    ("done", flag()),
                ],
                [
                    (
                        "result",
                        json!({ "oneOf": [
                            to("ObservedResource"),
                            closed([("deleted", json!({ "const": true }))], []),
                        ] }),
                    ),
                    (
                        "error",
                        closed(
                            [
                                ("code", codes()),
                                ("message", text()),
                                ("retryable", flag()),
                            ],
                            [],
                        ),
                    ),
                ],
            ),
        ),
        (
            "Availability",
            closed(
                [(
                    "forms",
                    list(closed(
                        [
                            ("identity", to("Form")),
                            ("definitionKnown", flag()),
                            ("installed", flag()),
                            ("executable", flag()),
                            ("activated", flag()),
                            ("availableToPrincipal", flag()),
                            ("operations", list(text())),
                        ],
                        [],
                    )),
                )],
                [],
            ),
        ),
        (
            "FormDefinition",
            closed(
                [
                    ("identity", to("Form")),
                    ("displayName", text()),
                    ("desiredSchema", free()),
                ],
                [("description", text())],
            ),
        ),
        (
            "Validity",
            closed(
                [
                    ("valid", flag()),
                    (
                        "diagnostics",
                        list(closed(
                            [
                                ("severity", json!({ "enum": ["error", "warning"] })),
                                (
                                    "message",
                                    json!({ "type": "string", "minLength": 1, "maxLength": 4096 }),
                                ),
                            ],
                            [("field", json!({ "type": "string", "maxLength": 512 }))],
                        )),
                    ),
                ],
                [],
            ),
        ),
        (
            "Prepared",
            closed(
                [
                    (
                        "resource",
                        closed(
                            [
                                ("apiVersion", text()),
                                ("kind", text()),
                                ("form", to("Form")),
                                (
                                    "metadata",
                                    closed([("name", text()), ("space", text())], []),
                                ),
                                ("spec", free()),
                            ],
                            [],
                        ),
                    ),
                    (
                        "review",
                        closed([("prepareDigest", digest()), ("specDigest", digest())], []),
                    ),
                ],
                [],
            ),
        ),
        (
            "StartedUpload",
            closed(
                [
                    (
                        "uploadId",
                        json!({ "type": "string", "pattern": "^up_[A-Za-z0-9][A-Za-z0-9._-]{0,124}$" }),
                    ),
                    ("missingBlobs", list(digest())),
                ],
                [],
            ),
        ),
        (
            "CommittedManifest",
            closed([("manifestDigest", digest())], []),
        ),
        ("Manifest", free()),
        (
            "FormSupport",
            closed(
                [
                    ("apiVersion", text()),
                    ("kind", is("FormSupport")),
                    ("formRef", to("FormRef")),
                    ("operations", list(text())),
                ],
                [("supportedEnums", free()), ("limits", free())],
            ),
        ),
        (
            "FormSupportList",
            closed([("profiles", list(to("FormSupport")))], []),
        ),
        (
            "InterfaceSupport",
            closed(
                [
                    ("apiVersion", text()),
                    ("kind", is("InterfaceSupport")),
                    ("interfaceRef", contract_ref()),
                ],
                [],
            ),
        ),
        (
            "BindingSupport",
            closed(
                [
                    ("apiVersion", text()),
                    ("kind", is("BindingSupport")),
                    ("bindingRef", contract_ref()),
                ],
                [],
            ),
        ),
        ("SealedNames", closed([("names", list(text()))], [])),
    ];
    named
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

fn reasons() -> Value {
    let words: Vec<&str> = notation_edge::Reason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .collect();
    json!({ "enum": words })
}

fn codes() -> Value {
    let words: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({ "enum": words })
}

/// The envelope of every answer that is no success (host API §5.1).
fn envelope() -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    closed(
        [(
            "error",
            closed(
                [
                    ("code", codes()),
                    ("message", text()),
                    ("requestId", text()),
                    ("retryable", json!({ "type": "boolean" })),
                ],
                [],
            ),
        )],
        [],
    )
}
