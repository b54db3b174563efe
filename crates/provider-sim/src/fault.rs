//! The fault script: `faults.json`, read at every call; it keeps its own counts.

use globset::Glob;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::calls::Op;

/// The script as it lies in the folder. Members nobody knows are kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script(Json);

/// What one entry asks for, once it applies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Fault {
    #[serde(rename = "do")]
    pub act: FaultAct,
    #[serde(default)]
    pub delay_ms: Option<u64>,
    #[serde(default)]
    pub holder: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultAct {
    Fail,
    Transient,
    LoseReply,
    KillBefore,
    KillAfter,
    Wait,
    Refuse,
    StaleRead,
    Throttle,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(default = "any_op")]
    op: String,
    #[serde(default = "any_name")]
    name: String,
    #[serde(default = "one")]
    nth: u64,
    #[serde(default = "one")]
    times: u64,
    #[serde(default)]
    seen: u64,
    #[serde(default)]
    used: u64,
    #[serde(flatten)]
    fault: Fault,
}

fn any_op() -> String {
    "any".into()
}
fn any_name() -> String {
    "*".into()
}
fn one() -> u64 {
    1
}

/// Why a script cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("is neither a list of faults nor an object with `faults`")]
    Shape,
    #[error("fault {at} is not understood: {why}")]
    Entry { at: usize, why: String },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Script {
    pub fn parse(bytes: &[u8]) -> Result<Script, ScriptError> {
        Ok(Script(serde_json::from_slice(bytes)?))
    }

    /// Milliseconds every call takes.
    pub fn latency_ms(&self) -> u64 {
        self.0.get("latency_ms").and_then(Json::as_u64).unwrap_or(0)
    }

    /// Counts the call in every entry that matches and uses up the first that applies.
    /// `changed` in the answer: the counts must be written back.
    pub fn take(&mut self, op: Op, name: &str) -> Result<Taken, ScriptError> {
        let mut taken = Taken {
            fault: None,
            changed: false,
        };
        for (at, json) in self.entries()?.iter_mut().enumerate() {
            let refuse = |why: String| ScriptError::Entry { at: at + 1, why };
            let entry: Entry =
                serde_json::from_value(json.clone()).map_err(|error| refuse(error.to_string()))?;
            if !entry.matches(op, name).map_err(refuse)? {
                continue;
            }
            taken.changed = true;
            let seen = entry.seen + 1;
            json["seen"] = seen.into();
            let left = entry.times == 0 || entry.used < entry.times;
            if taken.fault.is_none() && seen >= entry.nth && left {
                json["used"] = (entry.used + 1).into();
                taken.fault = Some(entry.fault);
            }
        }
        Ok(taken)
    }

    pub fn text(&self) -> String {
        format!("{:#}\n", self.0)
    }

    fn entries(&mut self) -> Result<&mut Vec<Json>, ScriptError> {
        match &mut self.0 {
            Json::Array(entries) => Ok(entries),
            Json::Object(members) => members
                .entry("faults")
                .or_insert_with(|| Json::Array(Vec::new()))
                .as_array_mut()
                .ok_or(ScriptError::Shape),
            _ => Err(ScriptError::Shape),
        }
    }
}

/// What a script had for one call.
#[derive(Debug, PartialEq)]
pub(crate) struct Taken {
    pub fault: Option<Fault>,
    pub changed: bool,
}

impl Entry {
    fn matches(&self, op: Op, name: &str) -> Result<bool, String> {
        let wanted = match self.op.as_str() {
            "any" => true,
            "create" => op == Op::Create,
            "read" => op == Op::Read,
            "update" => op == Op::Update,
            "delete" => op == Op::Delete,
            other => return Err(format!("`{other}` is no call")),
        };
        let glob = Glob::new(&self.name).map_err(|error| error.to_string())?;
        Ok(wanted && self.fault.act.concerns(op) && glob.compile_matcher().is_match(name))
    }
}

impl FaultAct {
    /// A read has nothing to wait for, and only a read can be stale.
    fn concerns(self, op: Op) -> bool {
        match self {
            FaultAct::Wait => op != Op::Read,
            FaultAct::StaleRead => op == Op::Read,
            FaultAct::Fail
            | FaultAct::Transient
            | FaultAct::LoseReply
            | FaultAct::KillBefore
            | FaultAct::KillAfter
            | FaultAct::Refuse
            | FaultAct::Throttle => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn acts(script: &mut Script, calls: &[(Op, &str)]) -> Vec<Option<FaultAct>> {
        let mut take = |(op, name): &(Op, &str)| {
            let taken = script.take(*op, name).unwrap();
            taken.fault.map(|fault| fault.act)
        };
        calls.iter().map(&mut take).collect()
    }

    #[test]
    fn an_entry_is_used_once_and_counts_matching_calls_only() {
        let mut script = Script(json!([{ "op": "create", "name": "a*", "nth": 2, "do": "fail" }]));
        let found = acts(
            &mut script,
            &[
                (Op::Create, "a1"),
                (Op::Update, "a1"),
                (Op::Create, "b"),
                (Op::Create, "a2"),
                (Op::Create, "a3"),
            ],
        );
        assert_eq!(found, [None, None, None, Some(FaultAct::Fail), None]);
        assert_eq!(
            (&script.0[0]["seen"], &script.0[0]["used"]),
            (&json!(3), &json!(1))
        );
    }

    #[test]
    fn times_zero_is_forever_and_the_first_entry_wins() {
        let mut script = Script(json!({ "latency_ms": 7, "faults": [
            { "op": "delete", "do": "refuse", "times": 2 },
            { "op": "any", "do": "transient", "times": 0 },
        ] }));
        let found = acts(
            &mut script,
            &[
                (Op::Delete, "a"),
                (Op::Delete, "a"),
                (Op::Delete, "a"),
                (Op::Read, "a"),
            ],
        );
        let refuse = Some(FaultAct::Refuse);
        let transient = Some(FaultAct::Transient);
        assert_eq!(found, [refuse, refuse, transient, transient]);
        assert_eq!(script.latency_ms(), 7);
    }

    #[test]
    fn a_script_that_is_not_understood_says_which_entry() {
        let mut script = Script(json!([{ "do": "fail" }, { "do": "explode" }]));
        let error = script.take(Op::Read, "a").unwrap_err().to_string();
        assert!(error.contains("fault 2"), "{error}");
    }
}
