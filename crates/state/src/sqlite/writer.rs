//! The thread that owns the file.

use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
};

use notation_model::DeploymentId;
use tokio::sync::oneshot;

use super::{file::File, traffic::Counters};
use crate::{Batch, Hold, Sealer, StoreError};

/// At most so many batches share a commit.
const GROUP: usize = 256;

/// Something to do with the file.
pub(super) enum Job {
    /// Reads, or writes something rare in a transaction of its own.
    Alone(Box<dyn FnOnce(&mut File) + Send>),
    /// Appends; shares a commit with whatever else waits.
    Append {
        append: Box<Append>,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// A batch, and under which hold it is written.
pub(super) struct Append {
    pub deployment: DeploymentId,
    pub hold: Hold,
    pub batch: Batch,
}

/// Runs jobs one after the other.
pub(super) struct Writer {
    file: File,
}

impl Writer {
    pub(super) fn new(path: PathBuf, sealer: Sealer, traffic: Arc<Counters>) -> Writer {
        Writer {
            file: File::new(path, sealer, traffic),
        }
    }

    /// Until nobody can ask any more.
    pub(super) fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        let mut next = None;
        while let Some(job) = next.take().or_else(|| inbox.recv().ok()) {
            match job {
                Job::Alone(work) => work(&mut self.file),
                Job::Append { append, reply } => {
                    let mut group = vec![append];
                    let mut replies = vec![reply];
                    while group.len() < GROUP {
                        match inbox.try_recv() {
                            Ok(Job::Append { append, reply }) => {
                                group.push(append);
                                replies.push(reply);
                            }
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    let results = self.file.append(&group);
                    for (reply, result) in replies.into_iter().zip(results) {
                        // Whoever asked may have stopped waiting.
                        drop(reply.send(result));
                    }
                }
            }
        }
    }
}
