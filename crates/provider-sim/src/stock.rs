//! What this cloud offers: its seven types, as data.

use std::time::Duration;

use indexmap::IndexMap;
use notation_model::{
    Charset, Collector, Field, FieldKind, Look, NameKind, Naming, Presence, ResourceType,
};

/// Name of the provider, first part of its type names.
pub(crate) const PROVIDER: &str = "sim";

/// Longest name, in characters.
pub(crate) const NAME_LIMIT: usize = 63;

/// For how long a read may miss what was written.
const READ_LAG: Duration = Duration::from_millis(300);

/// Characters of a name.
pub(crate) const NAME_CHARSET: Charset = Charset::Dotted;

/// The seven types: `sim/Worker`, `sim/StrictWorker`, `sim/PinnedWorker`, `sim/GuardedWorker`,
/// `sim/Thing`, `sim/Frozen`, `sim/Blind`.
pub fn types() -> Vec<ResourceType> {
    let mut strict = worker("StrictWorker");
    strict.fields["bindings"].presence = Presence::Required;
    let mut pinned = worker("PinnedWorker");
    pinned.fields["bindings"].immutable = true;
    let mut guarded = worker("GuardedWorker");
    guarded.never_bare = true;
    vec![
        worker("Worker"),
        strict,
        pinned,
        guarded,
        thing(),
        frozen(),
        blind(),
    ]
}

fn worker(name: &str) -> ResourceType {
    let fields = [
        ("Name", name_field()),
        (
            "region",
            Field {
                immutable: true,
                ..Field::param(FieldKind::Text, "where it runs; cannot be changed")
            },
        ),
        (
            "code",
            Field::param(FieldKind::Json, "what it runs; stored, never run"),
        ),
        (
            "secret",
            Field {
                sensitive: true,
                ..Field::param(FieldKind::Json, "a value that is never shown")
            },
        ),
        (
            "bindings",
            Field {
                holds: true,
                unordered: true,
                collect: Some(Collector::Flatten),
                ..Field::param(
                    FieldKind::List,
                    "objects with text values; `service` names a live object",
                )
            },
        ),
        (
            "arn",
            Field {
                stable: true,
                ..Field::computed(FieldKind::Text, "made from the name and its creation count")
            },
        ),
        (
            "versionId",
            Field::computed(FieldKind::Text, "`v1`, `v2`: one more on every write"),
        ),
    ];
    named(name, NameKind::Scoped, fields)
}

fn thing() -> ResourceType {
    let fields = [
        ("Name", name_field()),
        ("value", Field::param(FieldKind::Json, "any JSON")),
        (
            "parent",
            Field {
                holds: true,
                ..Field::param(FieldKind::Text, "name of a live object")
            },
        ),
        (
            "note",
            Field {
                volatile: true,
                ..Field::param(FieldKind::Json, "reads answer something else every time")
            },
        ),
        ("id", id_field()),
    ];
    named("Thing", NameKind::Generated, fields)
}

fn frozen() -> ResourceType {
    let fields = [
        ("Name", name_field()),
        ("value", Field::param(FieldKind::Json, "any JSON")),
        ("id", id_field()),
    ];
    ResourceType {
        updates: false,
        concurrency: Some(2),
        ..named("Frozen", NameKind::Generated, fields)
    }
}

/// Cannot be read: `Look::Never` says so to the engine, and a read is refused.
fn blind() -> ResourceType {
    let key = Field {
        key: true,
        ..id_field()
    };
    let fields = [
        ("value", Field::param(FieldKind::Json, "any JSON")),
        ("id", key),
    ];
    ResourceType {
        naming: None,
        identity_space: format!("{PROVIDER}/Blind"),
        tags: false,
        look: Look::Never,
        ..named("Blind", NameKind::Generated, fields)
    }
}

fn named<const N: usize>(
    name: &str,
    kind: NameKind,
    fields: [(&'static str, Field); N],
) -> ResourceType {
    ResourceType {
        name: format!("{PROVIDER}/{name}")
            .parse()
            .expect("a provider, a slash and a type name"),
        fields: fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect::<IndexMap<_, _>>(),
        naming: Some(Naming {
            kind,
            suffix: "",
            ending: "",
            max_length: NAME_LIMIT,
            charset: NAME_CHARSET,
        }),
        // One namespace for all types.
        identity_space: format!("{PROVIDER}/name"),
        tags: true,
        never_bare: false,
        updates: true,
        look: Look::Key,
        // Scripted reads may be behind (`stale_read`), so an absence is looked at again.
        read_lag: READ_LAG,
        concurrency: None,
    }
}

fn name_field() -> Field {
    Field {
        key: true,
        ..Field::param(FieldKind::Text, "its name; generated when left out")
    }
}

fn id_field() -> Field {
    Field {
        stable: true,
        ..Field::computed(FieldKind::Text, "made by the cloud")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_belongs_to_the_provider_and_has_one_key() {
        let types = types();
        assert_eq!(types.len(), 7);
        for ty in &types {
            assert_eq!(ty.name.provider(), PROVIDER);
            assert_eq!(ty.fields.values().filter(|field| field.key).count(), 1);
            assert_eq!(ty.faults(), Vec::<String>::new(), "{}", ty.name);
        }
    }
}
