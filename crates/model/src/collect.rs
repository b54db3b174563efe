//! Collectors: how a field takes many contributions (RFC 0004).

use crate::{Map, SecretValue, Value};

/// A closed set of ways to make one value of the config's value and contributions in call order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// A list; each value adds its items if it is a list, itself if not.
    Flatten,
    /// A map; later members replace earlier ones of the same key.
    Merge,
}

/// A value that a collector cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a value that is not a map cannot be merged into this field")]
pub struct CollectError;

impl Collector {
    /// `collect([config value, if any, ...contributions])` (`engine.md` §1).
    ///
    /// Errors: `Merge` refuses what is not a map. An unknown part makes a merged field unknown.
    pub fn collect(self, values: Vec<Value>) -> Result<Value, CollectError> {
        match self {
            Collector::Flatten => Ok(Value::List(
                values
                    .into_iter()
                    .flat_map(|value| match opened(value) {
                        Value::List(items) => items,
                        other => vec![other],
                    })
                    .collect(),
            )),
            Collector::Merge => {
                let mut merged = Map::new();
                for value in values {
                    match opened(value) {
                        Value::Map(members) => merged.extend(members),
                        unknown @ Value::Unknown(_) => return Ok(unknown),
                        _ => return Err(CollectError),
                    }
                }
                Ok(Value::Map(merged))
            }
        }
    }
}

/// A secret list or map as a list or map of secrets: it is collected like one that is not secret,
/// and its items stay hidden.
fn opened(value: Value) -> Value {
    let Value::Secret(secret) = &value else {
        return value;
    };
    let hidden = |item: &Value| Value::Secret(SecretValue::new(item.clone()));
    match secret.reveal() {
        Value::List(items) => Value::List(items.iter().map(hidden).collect()),
        Value::Map(members) => Value::Map(
            members
                .iter()
                .map(|(key, member)| (key.clone(), hidden(member)))
                .collect(),
        ),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: Value) -> Value {
        Value::Secret(SecretValue::new(value))
    }

    #[test]
    fn a_secret_list_or_map_is_collected_as_secrets() {
        let items = vec![Value::from("A"), Value::Int(1)];
        let collected = Collector::Flatten.collect(vec![
            Value::List(vec![Value::from("b")]),
            secret(Value::List(items)),
            secret(Value::from("C")),
        ]);
        let expected = vec![
            Value::from("b"),
            secret(Value::from("A")),
            secret(Value::Int(1)),
            secret(Value::from("C")),
        ];
        assert_eq!(collected, Ok(Value::List(expected)));

        let members = |value: Value| Value::Map([("k".to_owned(), value)].into());
        let merged = Collector::Merge.collect(vec![secret(members(Value::from("A")))]);
        assert_eq!(merged, Ok(members(secret(Value::from("A")))));
        let text = Collector::Merge.collect(vec![secret(Value::from("A"))]);
        assert_eq!(text, Err(CollectError));
    }
}
