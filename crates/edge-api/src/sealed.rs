//! The operator's route for sealed values: the one thing about them that is ever answered.
//!
//! `PUT` and `DELETE /sealed/v1/spaces/{space}/workers/{name}/values/{key}` set (raw body) and
//! remove a value; `GET .../values` lists names.

use serde::{Deserialize, Serialize};

/// Longest sealed value, in bytes of UTF-8.
pub const MAX_SEALED_BYTES: usize = 65_536;

/// Names of the values that are set for one ModuleWorker, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedNames {
    /// The names; never a value.
    pub names: Vec<String>,
}
