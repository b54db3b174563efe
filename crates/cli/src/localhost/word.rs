//! The one line the background process writes to whoever started it.

use serde::{Deserialize, Serialize};

use super::folder::Info;
use crate::{
    exit::Exit,
    failure::{Failure, Problem},
    pages::PAGES,
};

/// What became of the start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It listens; `info.json` says where.
    Ready(Info),
    /// It ended, and why.
    Failed(Told),
}

/// A failure as one process tells it to another.
#[derive(Debug, Serialize, Deserialize)]
pub struct Told {
    /// Stable code.
    code: String,
    /// What happened.
    message: String,
    /// What to do.
    help: Option<String>,
}

impl From<&Failure> for Told {
    fn from(failure: &Failure) -> Told {
        match failure.problems.first() {
            Some(Problem::Plain(plain)) => Told {
                code: plain.code.into(),
                message: std::iter::once(plain.message.clone())
                    .chain(plain.related.iter().cloned())
                    .collect::<Vec<_>>()
                    .join("; "),
                help: plain.help.clone(),
            },
            Some(Problem::Project(problem)) => Told {
                code: problem.code.into(),
                message: problem.message.clone(),
                help: problem.help.clone(),
            },
            None => Told {
                code: CANNOT_START.into(),
                message: "the local host ended".into(),
                help: None,
            },
        }
    }
}

impl From<Told> for Failure {
    fn from(told: Told) -> Failure {
        let failure = Failure::new(Exit::Fixable, known_code(&told.code), told.message);
        match told.help {
            Some(help) => failure.help(help),
            None => failure,
        }
    }
}

const CANNOT_START: &str = "host::cannot_start";

/// The code as a constant; one that this build does not know is of a host that cannot start.
fn known_code(code: &str) -> &'static str {
    PAGES
        .iter()
        .map(|(known, _)| *known)
        .find(|known| *known == code)
        .unwrap_or(CANNOT_START)
}
