//! What the cloud must remember beside the live objects: `memory.json`.
//!
//! `objects.json` may be edited by hand and alone says what lives. This file is written *before*
//! it; should the process end between the two, `Unsure` takes the memory of those changes back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::{SimObject, table::Table};

/// Everything remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub header: Header,
    pub names: Table<NameMemory>,
}

/// The small part of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Header {
    /// How many objects were ever made.
    #[serde(default)]
    pub made: u64,
    /// Calls that were answered with waiting, by token.
    #[serde(default)]
    pub waits: BTreeMap<String, Wait>,
    /// The last changes, while they may not have reached `objects.json`.
    #[serde(default)]
    pub unsure: Option<Unsure>,
}

/// What is remembered of a name, also when no object has it any more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NameMemory {
    /// How often an object of this name was made.
    pub created: u64,
    /// Which of all creations the last one was.
    pub number: u64,
    /// The token of the last creation, while its object was not deleted by a call.
    pub token: Option<String>,
    /// The object before the last write; `None` when there was none.
    pub before: Option<SimObject>,
}

/// A call that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wait {
    /// How often it was answered with waiting.
    pub answers: u64,
    /// Which opened account gave the last answer.
    pub opened: String,
}

/// How to forget changes that did not happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unsure {
    /// Stamp of `objects.json` before the changes: while it is the same file, nothing happened.
    pub stamp: Option<Stamp>,
    /// What was remembered of every changed name.
    pub before: BTreeMap<String, Option<NameMemory>>,
    pub made: u64,
}

/// Which file it is: every change puts a new one in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub inode: u64,
    pub modified_ns: i64,
    pub size_bytes: u64,
}

impl Memory {
    /// Notes what is remembered of a name before it changes. `stamp` is that of `objects.json`.
    pub fn unsure(&mut self, name: &str, stamp: Option<Stamp>) {
        let before = self.names.get(name).cloned();
        let made = self.header.made;
        let unsure = self.header.unsure.get_or_insert_with(|| Unsure {
            stamp,
            before: BTreeMap::new(),
            made,
        });
        unsure.before.entry(name.to_owned()).or_insert(before);
    }

    /// Takes back what did not reach `objects.json`, which has this stamp now.
    pub fn settle(&mut self, now: Option<Stamp>) {
        if let Some(unsure) = self.header.unsure.take()
            && unsure.stamp == now
        {
            self.header.made = unsure.made;
            for (name, before) in unsure.before {
                self.names.restore(&name, before);
            }
        }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let header = serde_json::to_string(&self.header).expect("a header has text keys only");
        format!(
            "{{\"header\": {header},\n\"names\": {}}}\n",
            self.names.text()
        )
    }

    /// Reads the file's text.
    pub fn parse(bytes: &[u8]) -> Result<Memory, serde_json::Error> {
        if bytes.is_empty() {
            // A power cut took it: it is written without waiting for the disk.
            return Ok(Memory::default());
        }
        #[derive(Deserialize)]
        struct File {
            header: Header,
            names: BTreeMap<String, NameMemory>,
        }
        let file: File = serde_json::from_slice(bytes)?;
        Ok(Memory {
            header: file.header,
            names: Table::new(file.names),
        })
    }
}

/// The data that must come back after the n-th answer of waiting.
pub(crate) fn ticket(token: &str, answer: u64) -> Json {
    json!({ "ticket": format!("{token}/{answer}") })
}

impl Wait {
    /// Whether a call may go on with this data.
    ///
    /// Whoever heard the last answer must bring its data. A new process may have lost the last
    /// answer on its way, so it may come with earlier data or none, and goes on from there.
    pub fn accepts(&self, token: &str, resume: Option<&Json>, opened: &str) -> bool {
        let given = |answer: u64| resume == Some(&ticket(token, answer));
        given(self.answers)
            || (self.opened != opened && (resume.is_none() || (1..self.answers).any(given)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory_of_a_creation(stamp: Option<Stamp>) -> Memory {
        let mut memory = Memory::default();
        memory.unsure("a", stamp);
        memory.header.made = 1;
        memory.names.set(
            "a",
            NameMemory {
                created: 1,
                ..NameMemory::default()
            },
        );
        Memory::parse(memory.text().as_bytes()).unwrap()
    }

    #[test]
    fn a_change_that_did_not_reach_the_objects_is_forgotten() {
        let stamp = Stamp {
            inode: 1,
            modified_ns: 2,
            size_bytes: 3,
        };
        let mut memory = memory_of_a_creation(Some(stamp));
        memory.settle(Some(stamp));
        assert_eq!((memory.header.made, memory.names.get("a")), (0, None));
    }

    #[test]
    fn a_change_that_did_reach_them_is_kept() {
        let mut memory = memory_of_a_creation(None);
        memory.settle(Some(Stamp {
            inode: 1,
            modified_ns: 2,
            size_bytes: 3,
        }));
        assert_eq!(memory.header.made, 1);
        assert!(memory.names.get("a").is_some());
    }

    #[test]
    fn only_a_new_process_may_come_without_the_data_of_a_wait() {
        let wait = Wait {
            answers: 2,
            opened: "one".into(),
        };
        assert!(wait.accepts("t", Some(&ticket("t", 2)), "one"));
        assert!(!wait.accepts("t", Some(&ticket("t", 1)), "one"));
        assert!(!wait.accepts("t", None, "one"));
        assert!(wait.accepts("t", None, "other"));
        assert!(wait.accepts("t", Some(&ticket("t", 1)), "other"));
        assert!(!wait.accepts("t", Some(&json!("made up")), "other"));
    }
}
