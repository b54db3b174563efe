//! `docs/reference/config.md`: the project file, made from the types that the editor checks it with.

use std::fmt::Write as _;

const TYPES: &str = include_str!("../../../../sdk/core/src/config.ts");

/// The whole document.
pub fn document() -> String {
    let mut text = String::from(
        "# The project file\n\nMade from the types of `@notation/core`. `notation.config.ts` stands at the root of a project and exports `defineConfig({ ... })` as its default.\n\n| field | needed | type | meaning |\n|---|---|---|---|\n",
    );
    for field in fields() {
        let needed = if field.optional { "no" } else { "yes" };
        let _ = writeln!(
            text,
            "| `{}` | {needed} | `{}` | {} |",
            field.name,
            field.ty.replace('|', "\\|"),
            field.doc
        );
    }
    text.push_str(
        "\nAn unknown field is refused with the nearest known one, and every problem of the file is told at once.\n",
    );
    text
}

struct Field {
    name: String,
    optional: bool,
    ty: String,
    doc: String,
}

/// Fields of what `defineConfig` takes; each has its comment on the line above.
fn fields() -> Vec<Field> {
    let (_, taken) = TYPES
        .split_once("(config: {")
        .expect("defineConfig takes an object");
    let (taken, _) = taken.split_once("\n}): ").expect("and ends somewhere");
    let mut doc = String::new();
    let mut fields = Vec::new();
    for line in taken.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("/** ") {
            doc = comment.trim_end_matches(" */").to_owned();
        } else if let Some(field) = line.strip_prefix("readonly ") {
            let (name, ty) = field.split_once(": ").expect("a field has a type");
            fields.push(Field {
                name: name.trim_end_matches('?').to_owned(),
                optional: name.ends_with('?'),
                ty: ty.trim_end_matches(';').to_owned(),
                doc: std::mem::take(&mut doc),
            });
        }
    }
    fields
}
