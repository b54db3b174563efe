//! Types for the fixtures: those of the edge and of the simulated cloud, as far as programs see them.

#![expect(clippy::unwrap_used, reason = "the names are written here")]

use std::time::Duration;

use notation_model::{
    Charset, Collector, Field, FieldKind, Look, NameKind, Names, Naming, Presence, ResourceType,
    TypeSet, Value,
};

fn optional(kind: FieldKind) -> Field {
    Field::param(kind, "a parameter")
}

fn ty(name: &str, key: Option<&str>, fields: Vec<(&str, Field)>) -> ResourceType {
    ResourceType {
        name: name.parse().unwrap(),
        fields: fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect(),
        naming: key.map(|_| Naming {
            kind: NameKind::Scoped,
            suffix: "",
            ending: "",
            max_length: 63,
            charset: Charset::Alphanumeric,
        }),
        identity_space: name.split('/').next().unwrap().to_owned(),
        tags: true,
        never_bare: false,
        updates: true,
        look: Look::Key,
        read_lag: Duration::ZERO,
        concurrency: None,
    }
}

fn key() -> Field {
    Field {
        key: true,
        ..optional(FieldKind::Text)
    }
}

fn bindings(presence: Presence) -> Field {
    Field {
        presence,
        holds: true,
        unordered: true,
        collect: Some(Collector::Flatten),
        ..optional(FieldKind::List)
    }
}

fn sim_worker(name: &str, presence: Presence) -> ResourceType {
    ty(
        name,
        Some("Name"),
        vec![
            ("Name", key()),
            (
                "region",
                Field {
                    immutable: true,
                    ..optional(FieldKind::Text)
                },
            ),
            ("code", optional(FieldKind::Text)),
            (
                "secret",
                Field {
                    sensitive: true,
                    ..optional(FieldKind::Text)
                },
            ),
            ("bindings", bindings(presence)),
            ("arn", Field::computed(FieldKind::Text, "its address")),
            ("versionId", Field::computed(FieldKind::Text, "its version")),
        ],
    )
}

/// Everything that the fixtures use.
pub fn types() -> TypeSet {
    TypeSet::new([
        ty(
            "edge/Worker",
            Some("ScriptName"),
            vec![
                ("ScriptName", key()),
                (
                    "main",
                    Field {
                        presence: Presence::Required,
                        ..Field::param(FieldKind::Module, "the module with its handlers")
                    },
                ),
                (
                    "bindings",
                    Field {
                        names: Some(Names::Items {
                            name: "name",
                            refers: "service",
                            output: "ScriptName",
                        }),
                        ..bindings(Presence::Optional)
                    },
                ),
                (
                    "vars",
                    Field {
                        names: Some(Names::Members),
                        ..optional(FieldKind::Map)
                    },
                ),
                (
                    "secrets",
                    Field {
                        sensitive: true,
                        names: Some(Names::Members),
                        ..optional(FieldKind::Map)
                    },
                ),
                (
                    "endpoint",
                    Field {
                        presence: Presence::Default(Value::Bool(true)),
                        ..optional(FieldKind::Bool)
                    },
                ),
                (
                    "url",
                    Field {
                        only_with: Some(("endpoint", Value::Bool(true))),
                        ..Field::computed(FieldKind::Text, "its address")
                    },
                ),
                ("versionId", Field::computed(FieldKind::Text, "its version")),
            ],
        ),
        sim_worker("sim/Worker", Presence::Optional),
        sim_worker("sim/StrictWorker", Presence::Required),
        ty(
            "sim/Thing",
            Some("Name"),
            vec![
                ("Name", key()),
                ("value", optional(FieldKind::Json)),
                (
                    "parent",
                    Field {
                        holds: true,
                        ..optional(FieldKind::Text)
                    },
                ),
                ("note", optional(FieldKind::Text)),
                ("id", Field::computed(FieldKind::Text, "made by the cloud")),
            ],
        ),
    ])
}
