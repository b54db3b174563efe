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
            .map(|(name, value)| Ok((name.as_ref().to_owned(), self.value_text(value)?)))
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

    /// A value as JSON. What JSON has no word for is a map with one key that starts with `$`;
    /// a map that itself has such a key is written as a list of pairs.
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
            Value::Map(members) if members.keys().any(|key| key.starts_with('$')) => {
                let pairs = members
                    .iter()
                    .map(|(key, member)| {
                        Ok(serde_json::json!([key.as_str(), self.value_text(member)?]))
                    })
                    .collect::<Result<Vec<Json>, StoreError>>()?;
                serde_json::json!({ "$map": pairs })
            }
            Value::Map(members) => Json::Object(
                members
                    .iter()
                    .map(|(key, member)| Ok((key.to_string(), self.value_text(member)?)))
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
                    .next()
                    .is_some_and(|key| key.starts_with('$'));
                if !marked {
                    return members
                        .into_iter()
                        .map(|(key, member)| Ok((key, self.value_back(member)?)))
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

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data with text keys is JSON")
}
