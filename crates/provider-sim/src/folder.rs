//! The folder: lock, durable files, call log.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value as Json;

use crate::{
    SimObject,
    account::Account,
    fault::Script,
    memory::{Memory, Stamp},
    table::Table,
};

const OBJECTS: &str = "objects.json";
const MEMORY: &str = "memory.json";
const CALLS: &str = "calls.ndjson";
const FAULTS: &str = "faults.json";
const LOCK: &str = "lock";

/// The folder cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A file cannot be read or written.
    #[error("the simulated cloud cannot use {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file, perhaps edited by hand, is not what it must be.
    #[error("{} is not understood: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Why, with the line.
        why: String,
    },
}

/// Prints what lives: JSON text in the shape of `objects.json`.
///
/// Errors: `SimError` when the folder cannot be read. A folder that is not there is empty.
pub fn dump(dir: &Path) -> Result<String, SimError> {
    if !dir.join(OBJECTS).exists() {
        return Ok("{}\n".into());
    }
    let mut folder = Folder::new(dir);
    let _lock = folder.lock()?;
    folder.load()?;
    Ok(folder.account.objects.text() + "\n")
}

/// Empties the account: objects, memory, call log and fault script.
///
/// Errors: `SimError` when a file cannot be removed. A folder that is not there is empty.
pub fn reset(dir: &Path) -> Result<(), SimError> {
    if !dir.exists() {
        return Ok(());
    }
    let folder = Folder::new(dir);
    let _lock = folder.lock()?;
    for name in [OBJECTS, MEMORY, CALLS, FAULTS] {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SimError::Io { path, source }),
        }
    }
    Ok(())
}

/// The folder with what was last seen in it.
#[derive(Debug)]
pub(crate) struct Folder {
    dir: PathBuf,
    pub account: Account,
    objects: Seen,
    memory: Seen,
    /// Length of the call log and the sequence number of its last line.
    log_end: Option<(u64, u64)>,
}

/// A file as it was last read or written.
#[derive(Debug, Default)]
struct Seen {
    bytes: Option<Vec<u8>>,
    /// Taken before the bytes were read: a change meanwhile shows as another stamp.
    stamp: Option<Stamp>,
    /// Whatever happens to the file from now on gives it another stamp.
    settled: bool,
}

/// The coarsest times that file systems give: two changes within it may bear the same.
const STAMP_GRAIN: Duration = Duration::from_secs(2);

impl Seen {
    /// `now_ns`: some moment before the bytes were read or written, by the folder's own clock.
    fn new(bytes: Option<Vec<u8>>, stamp: Option<Stamp>, now_ns: i64) -> Seen {
        let grain_ns = i64::try_from(STAMP_GRAIN.as_nanos()).unwrap_or(i64::MAX);
        Seen {
            bytes,
            stamp,
            settled: stamp.is_none_or(|stamp| stamp.modified_ns.saturating_add(grain_ns) < now_ns),
        }
    }
}

/// Exclusive over all processes until dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(#[expect(dead_code, reason = "dropping it unlocks")] File);

/// What of the account is newer than its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Changed {
    Nothing,
    Memory,
    Objects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Yes,
    No,
}

impl Folder {
    pub fn new(dir: &Path) -> Folder {
        Folder {
            dir: dir.to_owned(),
            account: Account::default(),
            objects: Seen::default(),
            memory: Seen::default(),
            log_end: None,
        }
    }

    /// Waits for the folder. Creates it when it is not there.
    pub fn lock(&self) -> Result<FolderLock, SimError> {
        let path = self.dir.join(LOCK);
        fs::create_dir_all(&self.dir).map_err(|source| SimError::Io {
            path: self.dir.clone(),
            source,
        })?;
        let open = || {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map(FolderLock).map_err(|source| SimError::Io {
            path: path.clone(),
            source,
        })
    }

    /// Takes in what changed since the last look, by whoever. Only while locked.
    pub fn load(&mut self) -> Result<(), SimError> {
        if let Some(now) = self.newer(OBJECTS, &self.objects)? {
            if now.bytes != self.objects.bytes {
                self.account.objects = match &now.bytes {
                    None => Table::default(),
                    Some(bytes) => {
                        Table::new(parse_objects(bytes).map_err(|why| self.content(OBJECTS, why))?)
                    }
                };
            }
            self.objects = now;
        }
        if let Some(now) = self.newer(MEMORY, &self.memory)? {
            if now.bytes != self.memory.bytes {
                self.account.memory = match &now.bytes {
                    None => Memory::default(),
                    Some(bytes) => Memory::parse(bytes).map_err(|why| self.content(MEMORY, why))?,
                };
            }
            self.memory = now;
        }
        self.account.memory.settle(self.objects.stamp);
        Ok(())
    }

    /// The file as it is, unless it is certainly the one that was seen.
    fn newer(&self, name: &str, seen: &Seen) -> Result<Option<Seen>, SimError> {
        let now_ns = self.now_ns();
        let stamp = self.stamp_of(name)?;
        if seen.settled && seen.stamp == stamp {
            return Ok(None);
        }
        let bytes = self.read(name)?;
        Ok(Some(Seen::new(bytes, stamp, now_ns)))
    }

    /// Makes the account durable: memory first, `objects.json` is the point of no return.
    ///
    /// Only `objects.json` is waited for: a process that ends loses nothing of either, and a
    /// power cut may lose memory, which costs no object. After an error nothing read before
    /// counts any more.
    pub fn save(&mut self, changed: Changed) -> Result<(), SimError> {
        let saved = self.try_save(changed);
        if saved.is_err() {
            self.account = Account::default();
            (self.objects, self.memory) = (Seen::default(), Seen::default());
        }
        saved
    }

    fn try_save(&mut self, changed: Changed) -> Result<(), SimError> {
        if changed == Changed::Nothing {
            return Ok(());
        }
        let now_ns = self.now_ns();
        let memory = self.account.memory.text().into_bytes();
        self.replace(MEMORY, &memory, Sync::No)?;
        self.memory = Seen::new(Some(memory), self.stamp_of(MEMORY)?, now_ns);
        if changed == Changed::Objects {
            let objects = (self.account.objects.text() + "\n").into_bytes();
            self.replace(OBJECTS, &objects, Sync::Yes)?;
            self.account.memory.header.unsure = None;
            self.objects = Seen::new(Some(objects), self.stamp_of(OBJECTS)?, now_ns);
        }
        Ok(())
    }

    /// Stamp of `objects.json` when it was last read or written.
    pub fn stamp(&self) -> Option<Stamp> {
        self.objects.stamp
    }

    /// The time at which something is written to the folder now, as its file system gives it; the
    /// beginning of time when nothing can be written.
    fn now_ns(&self) -> i64 {
        match fs::write(self.dir.join(LOCK), "\n") {
            Ok(()) => self.stamp_of(LOCK).ok().flatten(),
            Err(_) => None,
        }
        .map_or(0, |stamp| stamp.modified_ns)
    }

    fn stamp_of(&self, name: &str) -> Result<Option<Stamp>, SimError> {
        match fs::metadata(self.dir.join(name)) {
            Ok(meta) => Ok(Some(Stamp {
                inode: meta.ino(),
                modified_ns: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
                size_bytes: meta.len(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.io(name, source)),
        }
    }

    pub fn script(&self) -> Result<Option<Script>, SimError> {
        match self.read(FAULTS)? {
            None => Ok(None),
            Some(bytes) => Script::parse(&bytes)
                .map(Some)
                .map_err(|why| self.content(FAULTS, why)),
        }
    }

    pub fn save_script(&self, script: &Script) -> Result<(), SimError> {
        self.replace(FAULTS, script.text().as_bytes(), Sync::No)
    }

    pub fn bad_script(&self, why: impl ToString) -> SimError {
        self.content(FAULTS, why)
    }

    /// The sequence number of the next line.
    pub fn next_seq(&mut self) -> Result<u64, SimError> {
        let length = match fs::metadata(self.dir.join(CALLS)) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(source) => return Err(self.io(CALLS, source)),
        };
        match self.log_end {
            Some((end, seq)) if end == length => Ok(seq + 1),
            _ if length == 0 => Ok(1),
            _ => Ok(last_seq(&self.dir.join(CALLS)).map_err(|source| self.io(CALLS, source))? + 1),
        }
    }

    /// Appends whole lines, the last of which has this sequence number. One write, so that no
    /// line is torn; one that was (the disk was full) is ended first.
    pub fn append(&mut self, lines: &str, seq: u64) -> Result<(), SimError> {
        let path = self.dir.join(CALLS);
        let append = || {
            let mut file = OpenOptions::new()
                .append(true)
                .read(true)
                .create(true)
                .open(&path)?;
            let length = file.metadata()?.len();
            let known = self.log_end.is_some_and(|(end, _)| end == length);
            if !known && length > 0 && last_byte(&mut file)? != b'\n' {
                file.write_all(b"\n")?;
            }
            file.write_all(lines.as_bytes())?;
            Ok(file.metadata()?.len())
        };
        let end = append().map_err(|source| self.io(CALLS, source))?;
        self.log_end = Some((end, seq));
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SimError> {
        match fs::read(self.dir.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.io(name, source)),
        }
    }

    /// Written aside, synced when it matters, renamed.
    fn replace(&self, name: &str, bytes: &[u8], sync: Sync) -> Result<(), SimError> {
        let aside = self.dir.join(format!("{name}.new"));
        let replace = || {
            let mut file = File::create(&aside)?;
            file.write_all(bytes)?;
            if sync == Sync::Yes {
                file.sync_data()?;
            }
            fs::rename(&aside, self.dir.join(name))
        };
        replace().map_err(|source| self.io(name, source))
    }

    fn io(&self, name: &str, source: io::Error) -> SimError {
        SimError::Io {
            path: self.dir.join(name),
            source,
        }
    }

    fn content(&self, name: &str, why: impl ToString) -> SimError {
        SimError::Content {
            path: self.dir.join(name),
            why: why.to_string(),
        }
    }
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// An object without a key is known by its name.
fn parse_objects(
    bytes: &[u8],
) -> Result<std::collections::BTreeMap<String, SimObject>, serde_json::Error> {
    let mut objects: std::collections::BTreeMap<String, SimObject> =
        if bytes.trim_ascii().is_empty() {
            Default::default()
        } else {
            serde_json::from_slice(bytes)?
        };
    for (name, object) in &mut objects {
        if object.key.is_empty() {
            object.key.clone_from(name);
        }
    }
    Ok(objects)
}

/// Sequence number of the last line that has one; 0 when there is none.
fn last_seq(path: &Path) -> io::Result<u64> {
    const CHUNK_BYTES: u64 = 64 * 1024;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut take = CHUNK_BYTES;
    loop {
        let from = length.saturating_sub(take);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        let seq = |line: &[u8]| {
            serde_json::from_slice::<Json>(line)
                .ok()?
                .get("seq")?
                .as_u64()
        };
        if let Some(seq) = tail.split(|byte| *byte == b'\n').rev().find_map(seq) {
            return Ok(seq);
        }
        if from == 0 {
            return Ok(0);
        }
        take *= 8;
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn object(code: &str) -> String {
        format!(r#"{{"a": {{"type": "Worker", "params": {{"code": "{code}"}}}}}}"#)
    }

    fn written(dir: &Path, code: &str, modified: SystemTime) {
        let path = dir.join(OBJECTS);
        fs::write(&path, object(code)).unwrap();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(modified).unwrap();
    }

    fn code_of_a(folder: &mut Folder) -> Json {
        folder.load().unwrap();
        folder.account.objects.get("a").unwrap().params["code"].clone()
    }

    #[test]
    fn an_old_file_is_read_once_and_one_of_this_moment_every_time() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(OBJECTS), "{}").unwrap();
        let written_at = fs::metadata(dir.path().join(OBJECTS)).unwrap().modified();
        let now = written_at.unwrap();
        let old = now - 2 * STAMP_GRAIN;
        let mut folder = Folder::new(dir.path());
        written(dir.path(), "one", now);
        assert_eq!(code_of_a(&mut folder), "one");
        // As large, and of the same time.
        written(dir.path(), "two", now);
        assert_eq!(code_of_a(&mut folder), "two");
        written(dir.path(), "six", old);
        assert_eq!(code_of_a(&mut folder), "six");
        written(dir.path(), "ten", old);
        assert_eq!(code_of_a(&mut folder), "six", "the file was read again");
        written(dir.path(), "ten", old + Duration::from_nanos(1_000));
        assert_eq!(code_of_a(&mut folder), "ten");
    }
}
