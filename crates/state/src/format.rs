//! How records, journal lines and holds are written: types of their own, so that a refactor of
//! the domain cannot change the format by accident. JSON, field names short and fixed.

use std::collections::BTreeMap;

use notation_model::{
    Asset, Incarnation, Marks, Params, Record, RecordedEdge, SecretValue, Shape, Standing, Text,
    Value, Via,
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    Call, Entry, Event, Fence, Hold, Intent, Machine, Outcome, RunId, StoreError,
    seal::{SALT_BYTES, Sealer},
};

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

#[derive(Serialize, Deserialize)]
struct RecordText {
    id: String,
    #[serde(rename = "gen")]
    generation: u32,
    ty: String,
    shape: ShapeText,
    standing: StandingText,
    key: String,
    applied: BTreeMap<String, Json>,
    /// Left out when equal to `applied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<BTreeMap<String, Json>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contributions: Vec<(String, Json)>,
    /// Outputs that are not parameters as applied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    outputs: BTreeMap<String, Json>,
    /// Applied parameters that are not outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mute: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<EdgeText>,
    #[serde(default, skip_serializing_if = "no")]
    protect: bool,
    #[serde(default, skip_serializing_if = "no")]
    never_bare: bool,
    #[serde(default, skip_serializing_if = "no")]
    can_be_bare: bool,
    #[serde(default, skip_serializing_if = "no")]
    gone: bool,
    #[serde(default, skip_serializing_if = "no")]
    in_doubt: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken_from: Option<Box<str>>,
    version: u64,
}

/// A key is mostly what some parameter says: then it is that very text.
fn key_of(key: &str, applied: &Params) -> Text {
    let said = applied.values().find_map(|value| match value {
        Value::Text(text) if *text == key => Some(text.clone()),
        _ => None,
    });
    said.unwrap_or_else(|| key.into())
}

fn no(truth: &bool) -> bool {
    !truth
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShapeText {
    Placeholder,
    Complete,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StandingText {
    Current,
    Superseded,
}

#[derive(Serialize, Deserialize)]
struct EdgeText {
    to: String,
    #[serde(rename = "gen")]
    generation: u32,
    via: ViaText,
    #[serde(default, skip_serializing_if = "no")]
    holds: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ViaText {
    Config(String),
    Contribution(String),
    DependOn,
}

#[derive(Serialize, Deserialize)]
struct EntryText {
    run: String,
    step: String,
    attempt: u32,
    at: u64,
    event: EventText,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventText {
    Intent {
        call: CallText,
        token: String,
        draft: Box<RecordText>,
    },
    Waiting {
        /// Sealed: it is opaque and may hold anything.
        resume: String,
        due: u64,
        reason: String,
    },
    Done,
    Closed,
    Failed(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallText {
    Create,
    Update,
    Delete,
}

#[derive(Serialize, Deserialize)]
struct HoldText {
    run: String,
    fence: u64,
    since: u64,
    machine: String,
    user: String,
    boot: String,
    pid: u32,
    started: u64,
}

impl Format<'_> {
    pub(crate) fn record(&self, record: &Record) -> Result<String, StoreError> {
        Ok(text(&self.record_text(record)?))
    }

    pub(crate) fn read_record(&self, text: &str) -> Result<Record, ReadError> {
        self.record_back(serde_json::from_str(text)?)
    }

    pub(crate) fn entry(&self, entry: &Entry) -> Result<String, StoreError> {
        let event = match &entry.event {
            Event::Intent(intent) => EventText::Intent {
                call: match intent.call {
                    Call::Create => CallText::Create,
                    Call::Update => CallText::Update,
                    Call::Delete => CallText::Delete,
                },
                token: intent.token.clone(),
                draft: Box::new(self.record_text(&intent.draft)?),
            },
            Event::Waiting {
                resume,
                due_ms,
                reason,
            } => EventText::Waiting {
                resume: self.seal(text(resume).as_bytes())?,
                due: *due_ms,
                reason: reason.clone(),
            },
            Event::Outcome(Outcome::Done) => EventText::Done,
            Event::Outcome(Outcome::Closed) => EventText::Closed,
            Event::Failed { error } => EventText::Failed(error.clone()),
        };
        Ok(text(&EntryText {
            run: entry.run.0.clone(),
            step: entry.step.clone(),
            attempt: entry.attempt,
            at: entry.at_ms,
            event,
        }))
    }

    pub(crate) fn read_entry(&self, text: &str) -> Result<Entry, ReadError> {
        let entry: EntryText = serde_json::from_str(text)?;
        let event = match entry.event {
            EventText::Intent { call, token, draft } => Event::Intent(Box::new(Intent {
                call: match call {
                    CallText::Create => Call::Create,
                    CallText::Update => Call::Update,
                    CallText::Delete => Call::Delete,
                },
                token,
                draft: self.record_back(*draft)?,
            })),
            EventText::Waiting {
                resume,
                due,
                reason,
            } => Event::Waiting {
                resume: serde_json::from_slice(&self.open(&resume)?)?,
                due_ms: due,
                reason,
            },
            EventText::Done => Event::Outcome(Outcome::Done),
            EventText::Closed => Event::Outcome(Outcome::Closed),
            EventText::Failed(error) => Event::Failed { error },
        };
        Ok(Entry {
            run: RunId(entry.run),
            step: entry.step,
            attempt: entry.attempt,
            at_ms: entry.at,
            event,
        })
    }

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

    fn record_text(&self, record: &Record) -> Result<RecordText, StoreError> {
        let mut outputs = record.outputs.clone();
        let mut mute = Vec::new();
        for (name, value) in &record.applied {
            match outputs.get(name) {
                Some(output) if output == value => drop(outputs.remove(name)),
                Some(_) => {}
                None => mute.push(name.to_string()),
            }
        }
        Ok(RecordText {
            id: record.incarnation.resource.to_string(),
            generation: record.incarnation.generation,
            ty: record.ty.to_string(),
            shape: match record.shape {
                Shape::Placeholder => ShapeText::Placeholder,
                Shape::Complete => ShapeText::Complete,
            },
            standing: match record.standing {
                Standing::Current => StandingText::Current,
                Standing::Superseded => StandingText::Superseded,
            },
            key: record.key.to_string(),
            applied: self.map_text(&record.applied)?,
            config: match record.config == record.applied {
                true => None,
                false => Some(self.map_text(&record.config)?),
            },
            contributions: record
                .contributions
                .iter()
                .map(|(field, value)| Ok((field.to_string(), self.value_text(value)?)))
                .collect::<Result<_, StoreError>>()?,
            outputs: self.map_text(&outputs)?,
            mute,
            edges: record.edges.iter().map(edge_text).collect(),
            protect: record.marks.protect,
            never_bare: record.marks.never_bare,
            can_be_bare: record.can_be_bare,
            gone: record.gone,
            in_doubt: record.in_doubt,
            former: record.former.iter().map(ToString::to_string).collect(),
            taken_from: record.taken_from.clone(),
            version: record.version,
        })
    }

    fn record_back(&self, record: RecordText) -> Result<Record, ReadError> {
        let applied: Params = self.map_back(record.applied)?;
        let config = match record.config {
            Some(config) => self.map_back(config)?,
            None => applied.clone(),
        };
        let mut outputs: Params = self.map_back(record.outputs)?;
        for (name, value) in &applied {
            if !record.mute.iter().any(|mute| name == mute) {
                outputs.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        Ok(Record {
            incarnation: Incarnation {
                resource: record.id.parse()?,
                generation: record.generation,
            },
            ty: record.ty.parse()?,
            shape: match record.shape {
                ShapeText::Placeholder => Shape::Placeholder,
                ShapeText::Complete => Shape::Complete,
            },
            standing: match record.standing {
                StandingText::Current => Standing::Current,
                StandingText::Superseded => Standing::Superseded,
            },
            key: key_of(&record.key, &applied),
            applied,
            config,
            contributions: record
                .contributions
                .into_iter()
                .map(|(field, value)| Ok((field.into(), self.value_back(value)?)))
                .collect::<Result<_, ReadError>>()?,
            outputs,
            edges: record
                .edges
                .into_iter()
                .map(edge_back)
                .collect::<Result<Box<[_]>, _>>()?
                .into_vec(),
            marks: Marks {
                protect: record.protect,
                never_bare: record.never_bare,
            },
            can_be_bare: record.can_be_bare,
            gone: record.gone,
            in_doubt: record.in_doubt,
            former: record
                .former
                .iter()
                .map(|id| id.parse())
                .collect::<Result<_, _>>()?,
            taken_from: record.taken_from,
            version: record.version,
        })
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

/// A hold without its end, which moves with every renewal and has a column of its own.
pub(crate) fn hold_text(hold: &Hold) -> String {
    text(&HoldText {
        run: hold.run.0.clone(),
        fence: hold.fence.0,
        since: hold.since_ms,
        machine: hold.machine.name.clone(),
        user: hold.machine.user.clone(),
        boot: hold.machine.boot.clone(),
        pid: hold.machine.pid,
        started: hold.machine.started,
    })
}

pub(crate) fn hold_back(text: &str, expires_ms: u64) -> Result<Hold, serde_json::Error> {
    let hold: HoldText = serde_json::from_str(text)?;
    Ok(Hold {
        run: RunId(hold.run),
        fence: Fence(hold.fence),
        since_ms: hold.since,
        expires_ms,
        machine: Machine {
            name: hold.machine,
            user: hold.user,
            boot: hold.boot,
            pid: hold.pid,
            started: hold.started,
        },
    })
}

fn edge_text(edge: &RecordedEdge) -> EdgeText {
    EdgeText {
        to: edge.to.resource.to_string(),
        generation: edge.to.generation,
        via: match &edge.via {
            Via::Config(path) => ViaText::Config(path.to_string()),
            Via::Contribution(field) => ViaText::Contribution(field.to_string()),
            Via::DependOn => ViaText::DependOn,
        },
        holds: edge.holds,
    }
}

fn edge_back(edge: EdgeText) -> Result<RecordedEdge, ReadError> {
    Ok(RecordedEdge {
        to: Incarnation {
            resource: edge.to.parse()?,
            generation: edge.generation,
        },
        via: match edge.via {
            ViaText::Config(path) => Via::Config(path.into()),
            ViaText::Contribution(field) => Via::Contribution(field.into()),
            ViaText::DependOn => Via::DependOn,
        },
        holds: edge.holds,
    })
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data with text keys is JSON")
}
