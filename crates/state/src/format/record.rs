//! How a record is written: what is said twice in it is left out.

use std::collections::BTreeMap;

use notation_model::{
    Incarnation, Marks, Params, Record, RecordedEdge, Shape, Standing, Text, Value, Via,
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Format, ReadError, text};
use crate::StoreError;

#[derive(Serialize, Deserialize)]
pub(super) struct RecordText {
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

impl Format<'_> {
    pub(crate) fn record(&self, record: &Record) -> Result<String, StoreError> {
        Ok(text(&self.record_text(record)?))
    }

    pub(crate) fn read_record(&self, text: &str) -> Result<Record, ReadError> {
        self.record_back(serde_json::from_str(text)?)
    }

    pub(super) fn record_text(&self, record: &Record) -> Result<RecordText, StoreError> {
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
                .map(|(field, value)| Ok((field.to_string(), self.named_text(field, value)?)))
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

    pub(super) fn record_back(&self, record: RecordText) -> Result<Record, ReadError> {
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
}

/// A key is mostly what some parameter says: then it is that very text.
fn key_of(key: &str, applied: &Params) -> Text {
    let said = applied.values().find_map(|value| match value {
        Value::Text(text) if *text == key => Some(text.clone()),
        _ => None,
    });
    said.unwrap_or_else(|| key.into())
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
