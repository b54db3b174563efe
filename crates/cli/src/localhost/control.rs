//! How the command line talks to its background host: one question and one answer, a line of JSON
//! each, over loopback, with a secret that only the owner of the folder can read.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Name of the secret's file in the folder.
pub const SECRET: &str = "control";

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What runs.
    Status,
    /// End, and the workers with it.
    Stop,
    /// A new token.
    CreateToken {
        /// Whose resources it reaches.
        tenant: String,
        /// Who uses it.
        principal: String,
        /// `api`, `sealed`.
        scopes: Vec<String>,
        /// A remark.
        label: String,
    },
    /// Every token, without its text.
    ListTokens,
    /// No more of this token.
    RevokeToken {
        /// Which.
        id: String,
    },
}

/// A question as it is sent.
#[derive(Serialize, Deserialize)]
pub struct Question {
    /// Proof that the asker may read the folder.
    pub secret: String,
    /// What is asked.
    pub ask: Ask,
}

/// Asks a running host and waits for its answer.
pub fn ask(address: SocketAddr, secret: &str, ask: Ask) -> io::Result<Json> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let question = Question {
        secret: secret.into(),
        ask,
    };
    let line = serde_json::to_string(&question).expect("it is plain data");
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    serde_json::from_str(&answer).map_err(io::Error::other)
}
