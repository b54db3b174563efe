//! How the command line talks to a running host: one question and one answer, a line of JSON each,
//! over a socket in the host's folder that only its owner can open. There is no other way in.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

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
    /// Who is here.
    Tenants,
    /// A sealed value.
    SetSecret {
        /// For which worker.
        worker: WorkerAt,
        /// Under which name.
        name: String,
        /// The value.
        value: Hidden,
    },
    /// Names of sealed values.
    ListSecrets {
        /// Of which worker.
        worker: WorkerAt,
    },
    /// No more of this value.
    RemoveSecret {
        /// Of which worker.
        worker: WorkerAt,
        /// Which.
        name: String,
    },
    /// Remove what nobody holds.
    Collect,
}

/// A worker of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAt {
    /// Tenant.
    pub tenant: String,
    /// Space.
    pub space: String,
    /// Name.
    pub name: String,
}

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

/// Opens the socket at `path`. It is for its owner only from the moment it has that name.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let aside = path.with_extension("new");
    for old in [path, &aside] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let listener = UnixListener::bind(&aside)?;
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o600))?;
    fs::rename(&aside, path)?;
    Ok(listener)
}

/// Asks a running host and waits for its answer.
pub fn ask(socket: &Path, ask: &Ask) -> io::Result<Json> {
    let mut stream = UnixStream::connect(socket)?;
    // What a question starts, versions for example, is waited for.
    let patience = match ask {
        Ask::Status | Ask::Stop | Ask::ListTokens | Ask::Tenants | Ask::ListSecrets { .. } => 10,
        Ask::CreateToken { .. }
        | Ask::RevokeToken { .. }
        | Ask::SetSecret { .. }
        | Ask::RemoveSecret { .. }
        | Ask::Collect => 120,
    };
    stream.set_read_timeout(Some(Duration::from_secs(patience)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let line = serde_json::to_string(ask).map_err(io::Error::other)?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    serde_json::from_str(&answer).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_for_its_owner_only_and_takes_the_place_of_an_old_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("admin.sock");
        drop(listen(&path).unwrap());
        let listener = listen(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let answerer = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            writeln!(&stream, "{{\"heard\":{}}}", line.trim()).unwrap();
        });
        let answer = ask(&path, &Ask::Tenants).unwrap();
        answerer.join().unwrap();
        assert_eq!(answer["heard"], "tenants");
    }

    #[test]
    fn a_value_is_not_printed() {
        let worker = WorkerAt {
            tenant: "t".into(),
            space: "s".into(),
            name: "w".into(),
        };
        let ask = Ask::SetSecret {
            worker,
            name: "KEY".into(),
            value: Hidden("swordfish".into()),
        };
        assert!(!format!("{ask:?}").contains("swordfish"));
    }
}
