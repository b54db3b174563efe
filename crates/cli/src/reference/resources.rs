//! `docs/reference/resources.md`: every resource type, made from what the providers declare.

use std::fmt::Write as _;

use notation_model::{Field, FieldKind, NameKind, Presence, ResourceType, Role};

use crate::session;

/// The whole document.
pub fn document() -> String {
    let mut text = String::from(
        "# Resource types\n\nMade from what the providers declare. Parameters stand in `config`; those that collect can be contributed to as well. Every parameter can be read as an output, too.\n",
    );
    for ty in session::types().iter() {
        section(&mut text, ty);
    }
    text
}

fn section(text: &mut String, ty: &ResourceType) {
    let name = ty.name.as_str();
    let (package, class) = name.split_once('/').unwrap_or(("", name));
    let _ = write!(
        text,
        "\n## {name}\n\n```ts\nimport {{ {class} }} from \"@notation/{package}\";\n```\n\n"
    );
    let _ = writeln!(text, "| field | | type | |\n|---|---|---|---|");
    for (name, field) in &ty.fields {
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} |",
            role(field),
            kind(&field.kind),
            remarks(field)
        );
    }
    text.push('\n');
    for line in traits(ty) {
        let _ = writeln!(text, "- {line}");
    }
}

fn role(field: &Field) -> String {
    match (field.role, &field.presence) {
        (Role::Computed, _) => "output".into(),
        (Role::Param, Presence::Required) => "required".into(),
        (Role::Param, Presence::Optional) => "optional".into(),
        (Role::Param, Presence::Default(value)) => {
            format!("default `{}`", value.to_display_json())
        }
    }
}

fn kind(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "text",
        FieldKind::Number => "number",
        FieldKind::Bool => "boolean",
        FieldKind::List => "list",
        FieldKind::Map => "map",
        FieldKind::Json => "any",
        FieldKind::Module => "module file",
    }
}

fn remarks(field: &Field) -> String {
    let marks = [
        (field.key, "identifies the object"),
        (field.immutable, "a change replaces"),
        (field.collect.is_some(), "collects contributions"),
        (field.holds, "holds what it names"),
        (field.unordered, "order means nothing"),
        (field.stable, "stays through updates"),
        (field.sensitive, "sensitive: never shown, encrypted at rest"),
        (field.volatile, "volatile: never a difference"),
    ];
    let marks: Vec<_> = marks
        .into_iter()
        .filter_map(|(holds, words)| holds.then_some(words))
        .collect();
    let doc = field.doc.trim_end_matches('.');
    match (doc, marks.is_empty()) {
        ("", _) => marks.join("; "),
        (doc, true) => doc.to_owned(),
        (doc, false) => format!("{doc}; {}", marks.join("; ")),
    }
}

fn traits(ty: &ResourceType) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(naming) = &ty.naming {
        let plain = format!("<app>-<stage>-<id>{}", naming.suffix);
        let end = naming.ending;
        let name = match naming.kind {
            NameKind::Scoped => {
                format!("`{plain}{end}`; later incarnations carry `-` and 4 hex characters more")
            }
            NameKind::Generated => format!("`{plain}-` and 4 hex characters{end}"),
        };
        let most = naming.max_length;
        lines.push(format!(
            "Its generated name is {name}. At most {most} characters."
        ));
    }
    if !ty.tags {
        lines.push("Its objects carry no tags: whose one is cannot be told.".into());
    }
    if !ty.updates {
        lines.push("It has no update: every change replaces it.".into());
    }
    if ty.never_bare {
        lines.push("It is never live without its contributions (`placeholder: \"never\"`).".into());
    }
    if let Some(most) = ty.concurrency {
        lines.push(format!("At most {most} calls at a time."));
    }
    lines
}
