//! The one type of this provider, as data.

use std::time::Duration;

use indexmap::IndexMap;
use notation_model::{
    Charset, Collector, Field, FieldKind, Look, NameKind, Names, Naming, Presence, ResourceType,
    Value,
};

/// Name of the provider, first part of its type names.
pub(crate) const PROVIDER: &str = "edge";

/// `edge/Worker`.
pub fn types() -> Vec<ResourceType> {
    vec![worker()]
}

/// How workers are called: what the host takes as a resource name (host API §3.3), with room
/// for the names of its parts.
pub(crate) fn naming() -> Naming {
    Naming {
        kind: NameKind::Scoped,
        suffix: "",
        ending: "",
        max_length: 60,
        charset: Charset::Label,
    }
}

fn worker() -> ResourceType {
    let fields: [(&str, Field); 8] = [
        (
            "ScriptName",
            Field {
                key: true,
                ..Field::param(
                    FieldKind::Text,
                    "its name at the host; generated when left out",
                )
            },
        ),
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
                holds: true,
                unordered: true,
                collect: Some(Collector::Flatten),
                names: Some(Names::Items {
                    name: "name",
                    refers: "service",
                    output: "ScriptName",
                }),
                ..Field::param(
                    FieldKind::List,
                    "other workers its code calls: `{ name, service }`",
                )
            },
        ),
        (
            "vars",
            Field {
                names: Some(Names::Members),
                ..Field::param(FieldKind::Map, "plain values for its code")
            },
        ),
        (
            "secrets",
            Field {
                sensitive: true,
                names: Some(Names::Members),
                ..Field::param(FieldKind::Map, "secret values for its code")
            },
        ),
        (
            "endpoint",
            Field {
                presence: Presence::Default(Value::Bool(true)),
                ..Field::param(FieldKind::Bool, "whether it gets an address of its own")
            },
        ),
        (
            "url",
            Field {
                only_with: Some(("endpoint", Value::Bool(true))),
                ..Field::computed(FieldKind::Text, "its address; nothing without an endpoint")
            },
        ),
        (
            "versionId",
            Field::computed(FieldKind::Text, "the version of its code that answers"),
        ),
    ];
    ResourceType {
        name: format!("{PROVIDER}/Worker")
            .parse()
            .expect("a provider, a slash and a type name"),
        fields: fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect::<IndexMap<_, _>>(),
        naming: Some(naming()),
        identity_space: format!("{PROVIDER}/Worker"),
        tags: true,
        never_bare: false,
        updates: true,
        look: Look::Key,
        read_lag: Duration::ZERO,
        concurrency: None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_type_keeps_the_rules_of_types() {
        for ty in super::types() {
            assert_eq!(ty.faults(), Vec::<String>::new(), "{}", ty.name);
        }
    }
}
