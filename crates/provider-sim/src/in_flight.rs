//! How many calls run at the same time, over all processes that share the folder.
//!
//! Every opened account keeps one file in `running/` with its own count, and an exclusive lock
//! on it for as long as it lives; a file that can be locked belongs to nobody any more and is
//! removed. Within one process the number is exact. Between processes a call counts its own
//! process first and looks at the others then, so that of two calls that begin in the same
//! instant both may count the other: never too few.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The counter of one opened account.
#[derive(Debug)]
pub(crate) struct InFlight {
    dir: PathBuf,
    opened: String,
    mine: Mutex<Mine>,
}

#[derive(Debug, Default)]
struct Mine {
    count: u64,
    file: Option<File>,
}

/// A call that is running; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    counter: Arc<InFlight>,
    /// Calls running when this one began, itself included.
    pub in_flight: u64,
}

impl InFlight {
    /// `opened` names this account among all that were ever opened.
    pub fn new(folder: &Path, opened: &str) -> InFlight {
        InFlight {
            dir: folder.join("running"),
            opened: opened.to_owned(),
            mine: Mutex::default(),
        }
    }

    /// Begins a call.
    pub fn begin(self: &Arc<Self>) -> io::Result<Running> {
        let mut mine = self.mine.lock().unwrap_or_else(PoisonError::into_inner);
        if mine.file.is_none() {
            mine.file = Some(self.claim()?);
        }
        mine.count += 1;
        mine.publish()?;
        let running = mine.count;
        drop(mine);
        Ok(Running {
            counter: Arc::clone(self),
            in_flight: running + self.others()?,
        })
    }

    /// Makes the file of this account; locked before it can be seen under its name.
    fn claim(&self) -> io::Result<File> {
        fs::create_dir_all(&self.dir)?;
        let aside = self.dir.join(format!(".{}", self.opened));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&aside)?;
        file.lock()?;
        fs::rename(&aside, self.dir.join(&self.opened))?;
        Ok(file)
    }

    fn others(&self) -> io::Result<u64> {
        let mut running = 0;
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if name == self.opened || name.starts_with('.') {
                continue;
            }
            running += count_of(&self.dir.join(&*name))?;
        }
        Ok(running)
    }
}

/// The count another account published; 0 (and the file removed) when it is gone.
fn count_of(path: &Path) -> io::Result<u64> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    if file.try_lock().is_ok() {
        let _ = fs::remove_file(path);
        return Ok(0);
    }
    Ok(fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .parse()
        .unwrap_or(0))
}

impl Mine {
    /// Fixed width, one write: readers never see half a number.
    fn publish(&self) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        match &self.file {
            Some(file) => file.write_all_at(format!("{:8}\n", self.count).as_bytes(), 0),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut mine = self
            .counter
            .mine
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        mine.count -= 1;
        // A count that could not be written is too high for others until the next call.
        let _ = mine.publish();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.dir.join(&self.opened));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_other_accounts_count_and_those_of_dead_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let one = Arc::new(InFlight::new(dir.path(), "one"));
        let other = Arc::new(InFlight::new(dir.path(), "other"));
        let first = one.begin().unwrap();
        let second = other.begin().unwrap();
        let third = one.begin().unwrap();
        assert_eq!(
            (first.in_flight, second.in_flight, third.in_flight),
            (1, 2, 3)
        );
        drop((first, third));
        assert_eq!(other.begin().unwrap().in_flight, 2);
        fs::write(dir.path().join("running/left-by-a-dead-one"), "      99\n").unwrap();
        assert_eq!(other.begin().unwrap().in_flight, 2);
    }
}
