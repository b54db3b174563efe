//! Collectors: how a field takes many contributions (RFC 0004).

use crate::Value;

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
                    .flat_map(|value| match value {
                        Value::List(items) => items,
                        other => vec![other],
                    })
                    .collect(),
            )),
            Collector::Merge => {
                let mut merged = crate::Map::new();
                for value in values {
                    match value {
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
