//! How records, journal lines and holds are written: types of their own, so that a refactor of
//! the domain cannot change the format by accident. JSON, field names short and fixed.

mod hold;
mod journal;
mod record;

use std::collections::BTreeMap;

use notation_model::{Asset, SecretValue, Value};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    StoreError,
    seal::{SALT_BYTES, Sealer},
};

pub(crate) use hold::{hold_back, hold_text};

/// Deepest value that is written: JSON is read back up to 127 levels, and a journal line has five
/// around a value and a mark below it. Nobody makes values as deep as that
/// ([`notation_model::DEEPEST_VALUE`]); state of earlier versions may have some.
const DEEPEST_STORED: usize = 120;

/// Turns domain types into text and back, sealing what is secret.
pub(crate) struct Format<'a> {
    pub sealer: &'a Sealer,
    pub salt: &'a [u8; SALT_BYTES],
    /// What sealed values are bound to: the deployment.
    pub bound_to: &'a str,
}

/// Why a text could not be read back.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is not what was written.
    Damaged(String),
    /// Something else: the key is missing or wrong.
    Store(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        ReadError::Store(error)
    }
}
impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        ReadError::Damaged(error.to_string())
    }
}
impl From<notation_model::NameError> for ReadError {
    fn from(error: notation_model::NameError) -> Self {
        ReadError::Damaged(error.to_string())
    }
}

impl Format<'_> {
    pub(crate) fn values(&self, values: &BTreeMap<String, Value>) -> Result<String, StoreError> {
        Ok(text(&self.map_text(values)?))
    }

    pub(crate) fn read_values(&self, text: &str) -> Result<BTreeMap<String, Value>, ReadError> {
        self.map_back(serde_json::from_str(text)?)
    }

    pub(crate) fn secret(&self, value: &Value) -> Result<String, StoreError> {
        self.seal(text(&self.value_text(value)?).as_bytes())
    }

    pub(crate) fn read_secret(&self, sealed: &str) -> Result<Value, ReadError> {
        self.value_back(serde_json::from_slice(&self.open(sealed)?)?)
    }

    fn seal(&self, clear: &[u8]) -> Result<String, StoreError> {
        self.sealer.seal(self.salt, self.bound_to, clear)
    }

    fn open(&self, sealed: &str) -> Result<zeroize::Zeroizing<Vec<u8>>, StoreError> {
        self.sealer.open(self.salt, self.bound_to, sealed)
    }

    fn map_text<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v (impl AsRef<str> + 'v), &'v Value)>,
    ) -> Result<BTreeMap<String, Json>, StoreError> {
        let values = values.into_iter();
        values
            .map(|(name, value)| {
                let name = name.as_ref();
                Ok((name.to_owned(), self.named_text(name, value)?))
            })
            .collect()
    }

    fn map_back<M: FromIterator<(String, Value)>>(
        &self,
        values: BTreeMap<String, Json>,
    ) -> Result<M, ReadError> {
        values
            .into_iter()
            .map(|(name, value)| Ok((name, self.value_back(value)?)))
            .collect()
    }

    /// A value as JSON, unless it is too deep to be read back.
    fn named_text(&self, name: &str, value: &Value) -> Result<Json, StoreError> {
        bounded(name, value.depth())?;
        self.value_text(value)
    }

    /// A value as JSON: a level of it is a level there. What JSON has no word for is a map with a
    /// key that starts with `$`; a key that itself does gets another `$`.
    fn value_text(&self, value: &Value) -> Result<Json, StoreError> {
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(int) => Json::from(*int),
            Value::Float(float) => Json::from(*float),
            Value::Text(text) => Json::String(text.to_string()),
            Value::Asset(asset) => {
                serde_json::json!({ "$asset": asset.digest, "bytes": asset.size_bytes })
            }
            Value::List(items) => Json::Array(
                items
                    .iter()
                    .map(|item| self.value_text(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Map(members) => Json::Object(
                members
                    .iter()
                    .map(|(key, member)| {
                        let escape = if key.starts_with('$') { "$" } else { "" };
                        Ok((format!("{escape}{key}"), self.value_text(member)?))
                    })
                    .collect::<Result<_, StoreError>>()?,
            ),
            Value::Secret(secret) => {
                let clear = zeroize::Zeroizing::new(text(&self.value_text(secret.reveal())?));
                serde_json::json!({ "$secret": self.seal(clear.as_bytes())? })
            }
            Value::Unknown(unknown) => {
                return Err(StoreError::Unknown {
                    what: unknown.text.to_string(),
                });
            }
        })
    }

    fn value_back(&self, json: Json) -> Result<Value, ReadError> {
        let strange = |what: &str| ReadError::Damaged(format!("{what} in a stored value"));
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(truth),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => Value::Float(number.as_f64().ok_or_else(|| strange("a huge number"))?),
            },
            Json::String(text) => Value::Text(text.into()),
            Json::Array(items) => Value::List(
                items
                    .into_iter()
                    .map(|item| self.value_back(item))
                    .collect::<Result<_, _>>()?,
            ),
            Json::Object(members) => {
                let marked = members
                    .keys()
                    .any(|key| key.starts_with('$') && !key.starts_with("$$"));
                if !marked {
                    return members
                        .into_iter()
                        .map(|(key, member)| {
                            let key = match key.strip_prefix("$$") {
                                Some(rest) => format!("${rest}"),
                                None => key,
                            };
                            Ok((key, self.value_back(member)?))
                        })
                        .collect::<Result<_, _>>()
                        .map(Value::Map);
                }
                if let Some(Json::String(digest)) = members.get("$asset") {
                    let size_bytes = members.get("bytes").and_then(Json::as_u64);
                    let asset = Asset {
                        digest: digest.clone(),
                        size_bytes: size_bytes.ok_or_else(|| strange("an asset without size"))?,
                    };
                    return Ok(asset.into());
                }
                if let Some(Json::String(sealed)) = members.get("$secret") {
                    let clear = self.open(sealed)?;
                    let value = self.value_back(serde_json::from_slice(&clear)?)?;
                    return Ok(Value::Secret(SecretValue::new(value)));
                }
                // Earlier versions wrote maps with such keys as pairs.
                if let Some(pairs) = members.get("$map") {
                    let pairs: Vec<(String, Json)> = serde_json::from_value(pairs.clone())?;
                    return pairs
                        .into_iter()
                        .map(|(key, member)| Ok((key, self.value_back(member)?)))
                        .collect::<Result<_, _>>()
                        .map(Value::Map);
                }
                return Err(strange("an unknown mark"));
            }
        })
    }
}

/// Refuses what would be too deep to be read back.
fn bounded(what: &str, levels: usize) -> Result<(), StoreError> {
    if levels > DEEPEST_STORED {
        return Err(StoreError::TooDeep {
            what: format!("`{what}`"),
            levels,
            most: DEEPEST_STORED,
        });
    }
    Ok(())
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data with text keys is JSON")
}

#[cfg(test)]
mod tests {
    use notation_model::{DEEPEST_VALUE, Map};

    use super::*;
    use crate::{Call, Entry, Event, Intent, KeySource, RunId, contract::sample, seal::Sealer};

    fn with_format(check: impl FnOnce(&Format<'_>)) {
        let sealer = Sealer::new(KeySource::passphrase("correct horse"));
        let format = Format {
            sealer: &sealer,
            salt: &[7; SALT_BYTES],
            bound_to: "shop:dev:main",
        };
        check(&format);
    }

    /// Maps in each other, with a key that looks like a mark, around what JSON has no word for.
    fn nested(levels: usize) -> Value {
        let inside: Value = Asset::of(b"bytes").into();
        (0..levels).fold(inside, |inner, level| {
            let key = ["$secret", "$$x", "!", "k"][level % 4];
            Value::Map(Map::from([(key, inner), ("!beside", Value::Int(1))]))
        })
    }

    /// A journal line wraps most around a value.
    fn announced(value: Value) -> Entry {
        let mut draft = sample("a", 0);
        draft.applied.insert("deep", value.clone());
        draft.outputs.insert("deep", value);
        Entry {
            run: RunId("r".into()),
            step: "a:0:complete".into(),
            attempt: 1,
            at_ms: 1,
            event: Event::Intent(Box::new(Intent {
                call: Call::Create,
                token: "t".into(),
                draft,
            })),
        }
    }

    #[test]
    fn whatever_is_written_is_read_back_however_deep_it_is() {
        with_format(|format| {
            for levels in [1, DEEPEST_VALUE, DEEPEST_STORED] {
                let entry = announced(nested(levels));
                let text = format.entry(&entry).unwrap();
                assert_eq!(format.read_entry(&text).unwrap(), entry);
            }
            let refused = format.entry(&announced(nested(DEEPEST_STORED + 1)));
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), "state::too_deep");
            let text = "`deep` nests 121 levels deep, and 120 are the most that is stored";
            assert_eq!(refused.to_string(), text);
        });
    }

    #[test]
    fn maps_that_earlier_versions_wrote_as_pairs_are_read() {
        with_format(|format| {
            let text = r#"{"odd":{"$map":[["$secret","no"],["k",1]]}}"#;
            let odd = Map::from([("$secret", Value::text("no")), ("k", Value::Int(1))]);
            let read = format.read_values(text).unwrap();
            assert_eq!(read["odd"], Value::Map(odd));
            let now = format.values(&read).unwrap();
            assert_eq!(now, r#"{"odd":{"$$secret":"no","k":1}}"#);
        });
    }
}
