//! What providers say, without the sensitive values they were given (`engine.md` §7).

use notation_model::{Params, Value};
use notation_provider::{HeldBy, OpError};

/// Stands where a sensitive value stood.
const HIDDEN: &str = "(secret)";

/// The sensitive texts and numbers of a call.
pub(crate) struct Mask(Vec<String>);

impl Mask {
    /// Those of the parameters of a call, before and after.
    pub(crate) fn of<'a>(params: impl IntoIterator<Item = &'a Params>) -> Mask {
        let values = params.into_iter().flat_map(Params::values);
        let sensitive = values.flat_map(Value::sensitive);
        let mut texts: Vec<String> = sensitive.filter_map(shown).collect();
        // A text that contains another one goes first.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        Mask(texts)
    }

    /// A text of the provider.
    pub(crate) fn text(&self, text: String) -> String {
        let hide = |text: String, secret: &String| text.replace(secret, HIDDEN);
        self.0.iter().fold(text, hide)
    }

    /// An answer of the provider.
    pub(crate) fn error(&self, error: OpError) -> OpError {
        match error {
            OpError::NotFound => OpError::NotFound,
            OpError::Exists { name, tags } => OpError::Exists {
                name: self.text(name),
                tags,
            },
            OpError::InUse { held_by } => OpError::InUse {
                held_by: HeldBy(held_by.0.into_iter().map(|by| self.text(by)).collect()),
            },
            OpError::Refused { message } => OpError::Refused {
                message: self.text(message),
            },
            OpError::Transient { message, after_ms } => OpError::Transient {
                message: self.text(message),
                after_ms,
            },
            OpError::Failed { message } => OpError::Failed {
                message: self.text(message),
            },
            OpError::Broke { message } => OpError::Broke {
                message: self.text(message),
            },
        }
    }
}

/// How a message would show it.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) if !text.is_empty() => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Null
        | Value::Bool(_)
        | Value::Text(_)
        | Value::Asset(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Secret(_)
        | Value::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use notation_model::SecretValue;

    use super::*;

    #[test]
    fn sensitive_values_are_hidden_wherever_the_provider_repeats_them() {
        let secret = |value: Value| Value::Secret(SecretValue::new(value));
        let params = Params::from([
            ("name".to_owned(), Value::text("orders")),
            (
                "bindings".to_owned(),
                Value::List(vec![Value::Map(
                    [("service".to_owned(), secret(Value::text("s3cr3t")))].into(),
                )]),
            ),
            ("long".to_owned(), secret(Value::text("s3cr3t-and-more"))),
            ("pin".to_owned(), secret(Value::Int(4711))),
        ]);
        let mask = Mask::of([&params]);
        assert_eq!(
            mask.text("orders refers to s3cr3t, s3cr3t-and-more and 4711".to_owned()),
            "orders refers to (secret), (secret) and (secret)"
        );
        let refused = OpError::Refused {
            message: "s3cr3t is too short".to_owned(),
        };
        assert_eq!(
            mask.error(refused).to_string(),
            "refused: (secret) is too short"
        );
    }
}
