//! Programs as text: `a W fixed region=1 >b; b W =c @d; c T`.
//!
//! `W` Worker, `S` StrictWorker, `P` PinnedWorker, `G` GuardedWorker, `T` Thing, `F` Frozen,
//! `B` Blind. `>b` contributes a binding to b, `>b.versionId` one that reads an output as well,
//! `>note<b` its name to a
//! field, `=b` binds b in the config, `@b` depends on b, `fixed` writes the id as name, `x=1` sets a
//! field, `x<b.id` reads an output into it in the config.

use std::time::Duration;

use notation_model::{
    Charset, Collector, Contribution, DependOn, Desired, DesiredGraph, Expr, Field, FieldKind,
    Look, Map, Marks, NameKind, Naming, Origin, OutputRef, Presence, ResourceId, ResourceType,
    Role, Segment, TypeSet, Value,
};

pub fn id(text: &str) -> ResourceId {
    text.parse().expect("a good id")
}

fn output(text: &str, default: &str) -> Expr {
    let (resource, field) = text.split_once('.').unwrap_or((text, default));
    Expr::Output(OutputRef {
        resource: id(resource),
        path: [Segment::Key(field.into())].into(),
    })
}

fn binding(text: &str) -> Expr {
    let resource = text.split('.').next().expect("a name");
    let mut members = Map::from([("service".to_owned(), output(resource, "Name"))]);
    if let Some((_, field)) = text.split_once('.') {
        members.insert("version".to_owned(), output(text, field));
    }
    Expr::Map(members)
}

fn type_letter(letter: &str) -> &'static str {
    match letter {
        "W" => "sim/Worker",
        "S" => "sim/StrictWorker",
        "P" => "sim/PinnedWorker",
        "G" => "sim/GuardedWorker",
        "T" => "sim/Thing",
        "F" => "sim/Frozen",
        "B" => "sim/Blind",
        other => panic!("no type {other}"),
    }
}

/// Reads a program.
pub fn program(text: &str) -> DesiredGraph {
    let mut graph = DesiredGraph::default();
    let parts = text.split(';').map(str::trim);
    for (line, part) in (1..).zip(parts.filter(|part| !part.is_empty())) {
        let mut words = part.split_whitespace();
        let name = words.next().expect("an id");
        let origin = Origin {
            file: "infra/app.ts".into(),
            line,
            column: 1,
        };
        let mut desired = Desired {
            id: id(name),
            ty: type_letter(words.next().expect("a type"))
                .parse()
                .expect("a good type"),
            config: Map::new(),
            contributions: Vec::new(),
            depend_on: Vec::new(),
            marks: Marks::default(),
            formerly: Vec::new(),
            origin: origin.clone(),
        };
        for word in words {
            read_word(&mut desired, word, &origin);
        }
        graph.resources.insert(desired.id.clone(), desired);
    }
    graph
}

fn read_word(desired: &mut Desired, word: &str, origin: &Origin) {
    let own_name = desired.id.to_string();
    if word == "fixed" {
        desired
            .config
            .insert("Name".to_owned(), own_name.as_str().into());
    } else if word == "never" {
        desired.marks.never_bare = true;
    } else if word == "protect" {
        desired.marks.protect = true;
    } else if let Some(former) = word.strip_prefix("was:") {
        desired.formerly.push(id(former));
    } else if let Some(target) = word.strip_prefix('>') {
        let (field, value) = match target.split_once('<') {
            Some((field, source)) => (field, output(source, "Name")),
            None => ("bindings", binding(target)),
        };
        desired.contributions.push(Contribution {
            field: field.into(),
            value,
            origin: origin.clone(),
        });
    } else if let Some(target) = word.strip_prefix('=') {
        let entry = desired
            .config
            .entry("bindings".to_owned())
            .or_insert_with(|| Expr::List(Vec::new()));
        if let Expr::List(items) = entry {
            items.push(binding(target));
        }
    } else if let Some(target) = word.strip_prefix('@') {
        desired.depend_on.push(DependOn {
            target: id(target),
            origin: origin.clone(),
        });
    } else if let Some((field, source)) = word.split_once('<') {
        desired
            .config
            .insert(field.to_owned(), output(source, "Name"));
    } else if let Some((field, name)) = word.split_once("=$") {
        let name = name.parse().expect("a test names secrets well");
        desired.config.insert(field.to_owned(), Expr::Secret(name));
    } else if let Some((field, value)) = word.split_once('=') {
        desired.config.insert(field.to_owned(), value.into());
    } else {
        panic!("cannot read {word}");
    }
}

fn named(kind: NameKind) -> Option<Naming> {
    Some(Naming {
        kind,
        suffix: "",
        ending: "",
        max_length: 63,
        charset: Charset::Alphanumeric,
    })
}

fn a_type(name: &str, naming: Option<Naming>, fields: &[(&str, Field)]) -> ResourceType {
    ResourceType {
        name: name.parse().expect("a good type"),
        fields: fields
            .iter()
            .map(|(name, field)| ((*name).to_owned(), field.clone()))
            .collect(),
        naming,
        identity_space: "sim".to_owned(),
        tags: true,
        never_bare: false,
        updates: true,
        look: Look::Key,
        read_lag: Duration::ZERO,
        concurrency: None,
    }
}

/// The types of the simulated cloud, as the planner sees them.
pub fn types() -> TypeSet {
    let text = || Field::param(FieldKind::Text, "");
    let key = || Field {
        key: true,
        ..text()
    };
    let made = || Field::computed(FieldKind::Text, "");
    let stable = || Field {
        stable: true,
        ..made()
    };
    let bindings = || Field {
        holds: true,
        unordered: true,
        collect: Some(Collector::Flatten),
        ..Field::param(FieldKind::List, "")
    };
    let worker = |name: &str, bindings: Field| {
        a_type(
            name,
            named(NameKind::Scoped),
            &[
                ("Name", key()),
                (
                    "region",
                    Field {
                        immutable: true,
                        ..text()
                    },
                ),
                ("code", text()),
                (
                    "secret",
                    Field {
                        sensitive: true,
                        ..text()
                    },
                ),
                ("bindings", bindings),
                ("arn", stable()),
                ("versionId", made()),
            ],
        )
    };
    let thing = a_type(
        "sim/Thing",
        named(NameKind::Generated),
        &[
            ("Name", key()),
            ("value", Field::param(FieldKind::Json, "")),
            (
                "parent",
                Field {
                    holds: true,
                    ..text()
                },
            ),
            (
                "note",
                Field {
                    volatile: true,
                    ..text()
                },
            ),
            ("id", stable()),
        ],
    );
    let frozen = a_type(
        "sim/Frozen",
        named(NameKind::Generated),
        &[
            ("Name", key()),
            ("value", Field::param(FieldKind::Json, "")),
            ("id", stable()),
        ],
    );
    let blind = a_type(
        "sim/Blind",
        None,
        &[
            ("value", Field::param(FieldKind::Json, "")),
            (
                "id",
                Field {
                    key: true,
                    ..stable()
                },
            ),
        ],
    );
    TypeSet::new([
        worker("sim/Worker", bindings()),
        worker(
            "sim/StrictWorker",
            Field {
                presence: Presence::Required,
                ..bindings()
            },
        ),
        worker(
            "sim/PinnedWorker",
            Field {
                immutable: true,
                ..bindings()
            },
        ),
        ResourceType {
            never_bare: true,
            ..worker("sim/GuardedWorker", bindings())
        },
        thing,
        ResourceType {
            updates: false,
            ..frozen
        },
        ResourceType {
            tags: false,
            look: Look::Never,
            ..blind
        },
    ])
}

/// Names of live objects that these parameters refer to.
pub fn referred(params: &notation_model::Params) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(Value::Text(parent)) = params.get("parent") {
        found.push(parent.to_string());
    }
    if let Some(Value::List(items)) = params.get("bindings") {
        for item in items {
            if let Value::Map(members) = item
                && let Some(Value::Text(service)) = members.get("service")
            {
                found.push(service.to_string());
            }
        }
    }
    found
}

/// Whether the field is set by programs.
pub fn is_param(field: &Field) -> bool {
    field.role == Role::Param
}
