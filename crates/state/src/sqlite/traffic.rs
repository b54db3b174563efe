//! What a store has written, counted: for figures and for tests of what an append costs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a store appended since it was opened, as the texts it was given to keep: what the file
/// adds of its own (pages, log, index) is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Commits that appended batches; each waits for the disk once.
    pub commits: u64,
    /// Journal lines and records.
    pub lines: u64,
    /// Bytes of journal lines.
    pub journal_bytes: u64,
    /// Bytes of records.
    pub record_bytes: u64,
}

/// Shared by the thread that writes and whoever asks.
#[derive(Debug, Default)]
pub(super) struct Counters {
    commits: AtomicU64,
    lines: AtomicU64,
    journal_bytes: AtomicU64,
    record_bytes: AtomicU64,
}

impl Counters {
    /// One more commit, with what it appended.
    pub(super) fn add(&self, traffic: Traffic) {
        self.commits.fetch_add(traffic.commits, Relaxed);
        self.lines.fetch_add(traffic.lines, Relaxed);
        self.journal_bytes.fetch_add(traffic.journal_bytes, Relaxed);
        self.record_bytes.fetch_add(traffic.record_bytes, Relaxed);
    }

    pub(super) fn now(&self) -> Traffic {
        Traffic {
            commits: self.commits.load(Relaxed),
            lines: self.lines.load(Relaxed),
            journal_bytes: self.journal_bytes.load(Relaxed),
            record_bytes: self.record_bytes.load(Relaxed),
        }
    }
}
