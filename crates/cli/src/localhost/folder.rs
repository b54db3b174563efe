//! The folder of one local host: who runs, where it listens, its secrets, its log.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Every system takes socket paths of this length, with an ending while it is being made.
const MAX_SOCKET_PATH: usize = 95;

/// Name of the file with the token for the control plane.
pub const TOKEN: &str = "token";
/// Name of the file with the key of the status page.
pub const STATUS_KEY: &str = "status-key";

/// `.notation/host/` of a project. Readable by its owner only.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// What a running host says of itself, in `info.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Process id.
    pub pid: u32,
    /// Which build of this binary it is.
    pub build: String,
    /// The project folder as it was when the host started.
    pub project: PathBuf,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Control plane.
    pub api: SocketAddr,
    /// Workers by host name.
    pub ingress: SocketAddr,
    /// Socket of whoever runs it.
    pub control: PathBuf,
    /// Status page and metrics; hosts of before have none.
    #[serde(default)]
    pub status: Option<SocketAddr>,
    /// Whether the control plane speaks TLS.
    #[serde(default)]
    pub tls: bool,
}

impl Info {
    /// Origin of the control plane.
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.api)
    }
}

/// Ports that the host keeps from start to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// Control plane.
    pub api: u16,
    /// Workers by host name.
    pub ingress: u16,
    /// Status page and metrics.
    #[serde(default)]
    pub status: u16,
}

/// Whether somebody lives here.
#[derive(Debug)]
pub enum Tenancy {
    /// Nobody: a process that is gone leaves no lock.
    Vacant,
    /// A living process that has said where it listens.
    Running(Info),
    /// A living process that has not said so yet, or cannot be understood.
    Unclear,
}

/// Something about the folder that does not work.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {verb}", path.display())]
pub struct FolderError {
    /// Which file.
    pub path: PathBuf,
    /// What was tried.
    pub verb: &'static str,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError { path, verb, source }
}

impl Folder {
    /// The folder of a project; nothing is made.
    pub fn of(project: &Path) -> Folder {
        Folder(project.join(".notation").join("host"))
    }

    /// A folder given by a flag.
    pub fn at(path: PathBuf) -> Folder {
        Folder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the host stores.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// What the runtime keeps.
    pub fn runtime(&self) -> PathBuf {
        self.0.join("runtime")
    }

    /// Where short-lived things go: paths of Unix sockets are short, those of projects are not.
    /// Another place for a folder that was removed and made again: whoever lived in the one before
    /// may still be ending.
    pub fn run_dir(&self) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        // As long as its file is open, no other file has the same number.
        let lock = fs::metadata(self.0.join("lock"));
        lock.map_or(0, |lock| lock.ino()).hash(&mut hasher);
        let user = rustix::process::getuid().as_raw();
        std::env::temp_dir().join(format!("notation-{user}-{:016x}", hasher.finish()))
    }

    /// Where the running host answers its owner: in the folder, unless its path is too long for a
    /// socket.
    pub fn socket(&self) -> PathBuf {
        let here = self.0.join("admin.sock");
        if here.as_os_str().len() <= MAX_SOCKET_PATH {
            here
        } else {
            self.run_dir().join("admin.sock")
        }
    }

    /// Where the background process writes.
    pub fn log(&self) -> PathBuf {
        self.0.join("host.log")
    }

    /// Makes the folder, for its owner only.
    pub fn make(&self) -> Result<(), FolderError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(failed(&self.0, "made"))
    }

    /// Who lives here. Certain: the lock falls with the process.
    pub fn tenancy(&self) -> Result<Tenancy, FolderError> {
        let path = self.0.join("lock");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Tenancy::Vacant);
            }
            Err(error) => return Err(failed(&path, "opened")(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Tenancy::Vacant),
            Err(TryLockError::WouldBlock) => {
                Ok(self.info().map_or(Tenancy::Unclear, Tenancy::Running))
            }
            Err(TryLockError::Error(error)) => Err(failed(&path, "locked")(error)),
        }
    }

    /// Moves in: the lock is held as long as it lives. `None` when somebody lives here.
    pub fn move_in(&self) -> Result<Option<Lock>, FolderError> {
        let path = self.0.join("lock");
        let file = self.open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => {
                // What the one before said of itself is no longer true.
                let _ = fs::remove_file(self.0.join("info.json"));
                self.clear_asides();
                Ok(Some(Lock { file, path }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(&path, "locked")(error)),
        }
    }

    /// Waits until nobody lives here. Blocks: call it in a thread of its own.
    pub fn wait_until_vacant(&self) -> Result<(), FolderError> {
        let path = self.0.join("lock");
        self.open_lock(&path)?
            .lock_shared()
            .map_err(failed(&path, "locked"))
    }

    /// One starter at a time: the lock is held as long as the file lives.
    pub fn starting(&self) -> Result<File, FolderError> {
        let path = self.0.join("starting");
        let file = self.open_lock(&path)?;
        file.lock().map_err(failed(&path, "locked"))?;
        Ok(file)
    }

    fn open_lock(&self, path: &Path) -> Result<File, FolderError> {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .mode(0o600)
            .open(path)
            .map_err(failed(path, "opened"))
    }

    fn info(&self) -> Option<Info> {
        let mut info: Info =
            serde_json::from_slice(&fs::read(self.0.join("info.json")).ok()?).ok()?;
        if info.control.starts_with(&info.project) {
            // A folder that was moved has its socket along; the path where that was may be another
            // host's by now.
            info.control = self.0.join("admin.sock");
        }
        Some(info)
    }

    /// Says where the host listens.
    pub fn say(&self, info: &Info) -> Result<(), FolderError> {
        let text = serde_json::to_string_pretty(info).expect("it is plain data");
        self.write("info.json", &text)
    }

    /// Ports of an earlier start.
    pub fn ports(&self) -> Option<Ports> {
        serde_json::from_slice(&fs::read(self.0.join("ports.json")).ok()?).ok()
    }

    /// Keeps the ports for the next start.
    pub fn keep_ports(&self, ports: Ports) -> Result<(), FolderError> {
        let text = serde_json::to_string(&ports).expect("it is plain data");
        self.write("ports.json", &text)
    }

    /// A secret of that name, when there is one.
    pub fn secret(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Keeps a secret, readable by its owner only.
    pub fn keep_secret(&self, name: &str, secret: &str) -> Result<(), FolderError> {
        self.write(name, secret)
    }

    /// Writes a file whole or not at all, readable by its owner only.
    fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let path = self.0.join(name);
        let aside = self
            .0
            .join(format!("{}{}", aside_of(name), std::process::id()));
        let written = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&aside)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())
                    .and_then(|()| file.sync_all())
            })
            .and_then(|()| fs::rename(&aside, &path));
        if written.is_err() {
            // Nobody would come for it, and it may have half a secret.
            let _ = fs::remove_file(&aside);
        }
        written.map_err(failed(&path, "written"))
    }

    /// Removes what whoever was killed while writing left behind. Only who lives here writes.
    fn clear_asides(&self) {
        let asides = ["info.json", "ports.json", TOKEN, STATUS_KEY].map(aside_of);
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let left = name
                .to_str()
                .is_some_and(|name| asides.iter().any(|aside| name.starts_with(aside)));
            if left {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// How the name begins under which a file is written before it takes its own.
fn aside_of(name: &str) -> String {
    format!(".{name}.")
}

/// The right to live in a folder.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Whether the folder is still where its host moved in. When it was removed or moved, nobody
    /// can find who lives in it by its name, and the next folder of that name is somebody else's.
    pub fn is_in_place(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
            (Ok(_), Err(error)) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
            // The system cannot tell at the moment.
            (Err(_), _) => true,
        }
    }
}

/// Which build this binary is: another one must not be mistaken for it.
pub fn build() -> String {
    let file = std::env::current_exe().and_then(fs::metadata);
    let changed = file.as_ref().ok().and_then(|file| file.modified().ok());
    let changed = changed
        .and_then(|changed| changed.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_millis());
    let size = file.map_or(0, |file| file.len());
    format!("{} {size:x}-{changed:x}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_one_lives_in_a_folder_and_its_end_is_seen_at_once() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path().join("host"));
        assert!(matches!(folder.tenancy().unwrap(), Tenancy::Vacant));
        folder.make().unwrap();
        let held = folder.move_in().unwrap().unwrap();
        assert!(folder.move_in().unwrap().is_none());
        assert!(matches!(folder.tenancy().unwrap(), Tenancy::Unclear));
        drop(held);
        assert!(matches!(folder.tenancy().unwrap(), Tenancy::Vacant));
    }

    #[test]
    fn a_folder_that_is_removed_or_moved_is_no_longer_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path().join("host"));
        folder.make().unwrap();
        let held = folder.move_in().unwrap().unwrap();
        let run_dir = folder.run_dir();
        assert!(held.is_in_place());
        let moved = place.path().join("moved");
        fs::rename(folder.path(), &moved).unwrap();
        assert!(!held.is_in_place());
        // Who comes after shares nothing with who is ending.
        folder.make().unwrap();
        let next = folder.move_in().unwrap().unwrap();
        assert!(!held.is_in_place());
        assert!(next.is_in_place());
        assert_ne!(folder.run_dir(), run_dir);
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(!next.is_in_place());
        // Back in time: it is found again.
        fs::rename(&moved, folder.path()).unwrap();
        assert!(held.is_in_place());
    }

    #[test]
    fn whoever_lives_in_a_folder_that_was_moved_is_asked_there() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path().join("host"));
        folder.make().unwrap();
        let _held = folder.move_in().unwrap().unwrap();
        let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let info = Info {
            pid: 1,
            build: build(),
            project: folder.path().to_owned(),
            started_at: String::new(),
            api: nowhere,
            ingress: nowhere,
            control: folder.path().join("admin.sock"),
            status: None,
            tls: false,
        };
        folder.say(&info).unwrap();
        let moved = Folder::at(place.path().join("moved"));
        fs::rename(folder.path(), moved.path()).unwrap();
        let Tenancy::Running(found) = moved.tenancy().unwrap() else {
            panic!("it runs")
        };
        // At the old path another host may be by now.
        assert_eq!(found.control, moved.path().join("admin.sock"));
        // One outside of the folder is in a place of its own, and stays.
        let control = place.path().join("run/admin.sock");
        moved
            .say(&Info {
                control: control.clone(),
                ..info
            })
            .unwrap();
        let Tenancy::Running(found) = moved.tenancy().unwrap() else {
            panic!("it runs")
        };
        assert_eq!(found.control, control);
    }

    #[test]
    fn what_could_not_be_written_leaves_nothing_behind() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path().join("host"));
        folder.make().unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        // A folder in its place keeps it from taking its name.
        fs::create_dir(folder.path().join(TOKEN)).unwrap();
        assert!(folder.keep_secret(TOKEN, "abc").is_err());
        assert_eq!(names(), [TOKEN]);
        // Somebody was killed in the middle.
        fs::write(folder.path().join(".token.29152"), "").unwrap();
        fs::write(folder.path().join(".own"), "").unwrap();
        let _lock = folder.move_in().unwrap().unwrap();
        assert_eq!(names(), [".own", "lock", TOKEN]);
    }

    #[test]
    fn a_secret_is_readable_by_its_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path().join("host"));
        folder.make().unwrap();
        folder.keep_secret("token", "abc").unwrap();
        assert_eq!(folder.secret("token").as_deref(), Some("abc"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("token")), 0o600);
        assert_eq!(mode(folder.path()), 0o700);
    }
}
