//! Values as people see them: secrets hidden, unknowns with their source, long ones folded.

use notation_model::Value;

use crate::render::cell;

/// A value on one line, in the program's own notation. Unknown parts name where they come from.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => float.to_string(),
        Value::Text(text) => quoted(text),
        Value::Asset(asset) => {
            let digest = asset.digest.trim_start_matches("sha256:");
            let short = digest.get(..12).unwrap_or(digest);
            format!("{} {short}", cell::bytes(asset.size_bytes))
        }
        Value::List(items) if items.is_empty() => "[]".into(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(members) if members.is_empty() => "{}".into(),
        Value::Map(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{}: {}", name(key), inline(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Secret(_) => "(secret)".into(),
        Value::Unknown(unknown) => format!("(known after deploy: {})", unknown.text),
    }
}

/// A value on one line of at most `width` columns; what is left out is counted.
pub fn folded(value: &Value, width: usize) -> String {
    let whole = inline(value);
    let columns = cell::columns(&whole);
    if columns <= width {
        return whole;
    }
    let tail = format!(" ({columns} characters)");
    let room = width.saturating_sub(cell::columns(&tail)).max(12);
    format!("{}{tail}", cell::cut(&whole, room))
}

/// Two long texts from shortly before the place where they begin to differ, each in at most
/// `width` columns.
pub fn from_difference(before: &str, after: &str, width: usize) -> (String, String) {
    const CONTEXT: usize = 12;
    let same = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let skipped = same.saturating_sub(CONTEXT);
    let part = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        let start = if skipped > 0 { "…" } else { "" };
        cell::cut(&format!("{start}{}", quoted(&rest)), width)
    };
    (part(before), part(after))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn name(key: &str) -> String {
    let plain = key
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty();
    if plain { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use notation_model::{OutputRef, SecretValue, Segment, Unknown};

    use super::*;

    #[test]
    fn a_secret_is_hidden_and_an_unknown_names_its_source() {
        let secret = Value::Secret(SecretValue::new(Value::text("hunter2")));
        let unknown = Value::from(Unknown::output(OutputRef {
            resource: "b".parse().unwrap(),
            path: [Segment::Key("ScriptName".into())].into(),
        }));
        let value = Value::Map(
            [
                ("key".to_owned(), secret),
                ("peer-name".to_owned(), unknown),
            ]
            .into(),
        );
        insta::assert_snapshot!(
            inline(&value),
            @r#"{ key: (secret), "peer-name": (known after deploy: b.ScriptName) }"#
        );
    }

    #[test]
    fn long_texts_are_shown_where_they_differ() {
        let (before, after) =
            from_difference("the same start, then one", "the same start, then two", 18);
        assert_eq!(before, "…\"start, then one\"".to_owned());
        assert_eq!(after, "…\"start, then two\"".to_owned());
    }

    #[test]
    fn a_long_value_is_folded_and_counted() {
        let value = Value::text("x".repeat(300));
        let text = folded(&value, 50);
        assert!(cell::columns(&text) <= 50, "{text}");
        assert!(text.ends_with("(302 characters)"), "{text}");
    }
}
