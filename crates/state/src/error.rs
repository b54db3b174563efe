//! What can go wrong with state, and where.

use std::path::PathBuf;

use notation_model::DeploymentId;

use crate::{Fence, IllegalEvent};

/// Every failure of a state store. Messages name the place and carry no secret.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be opened.
    #[error("state at {} cannot be opened: {why}", place.display())]
    CannotOpen {
        /// The file (or its folder).
        place: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The store cannot be read.
    #[error("state at {} cannot be read: {why}", place.display())]
    CannotRead {
        /// The file.
        place: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A write did not become durable; state is as it was before.
    #[error("state at {} cannot be written: {why}", place.display())]
    CannotWrite {
        /// The file (or its folder).
        place: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The content is not what was written.
    #[error("state at {} is damaged: {why}", place.display())]
    Corrupt {
        /// The file.
        place: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Written by a newer version of the product; left untouched.
    #[error(
        "state at {} has format {found}, this version knows {known} and older",
        place.display()
    )]
    Newer {
        /// The file.
        place: PathBuf,
        /// Its format number.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// The hold of this run is over: another run took the deployment over, or somebody cleared
    /// the hold and nobody took it since. Nothing was written.
    #[error("{}", lost_hold(.deployment, *.ours, *.now))]
    Fenced {
        /// Which deployment.
        deployment: DeploymentId,
        /// The fence of this run.
        ours: Fence,
        /// The last fence that was given out: the same as `ours` when nobody came after.
        now: Fence,
    },
    /// An event that the journal does not allow here: our bug.
    #[error("step {step}: {illegal}")]
    Illegal {
        /// Which step.
        step: String,
        /// What was refused.
        illegal: IllegalEvent,
    },
    /// The key for sensitive values cannot be had.
    #[error("the key for sensitive values in {place} cannot be used: {why}")]
    Key {
        /// Where the key comes from: a file, or the passphrase.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// A value was encrypted with another key.
    #[error("a sensitive value cannot be decrypted with the key in {place}")]
    WrongKey {
        /// Where the key comes from: a file, or the passphrase.
        place: String,
    },
    /// A value that nests deeper than could be read back; nothing was written.
    #[error("{what} nests {levels} levels deep, and {most} are the most that is stored")]
    TooDeep {
        /// What it is: the name of a field, an output or an export.
        what: String,
        /// How deep it is.
        levels: usize,
        /// How deep it may be.
        most: usize,
    },
    /// A value that only a forecast may have was to be stored: our bug.
    #[error("an unknown value ({what}) was to be stored")]
    Unknown {
        /// How people see it.
        what: String,
    },
}

fn lost_hold(deployment: &DeploymentId, ours: Fence, now: Fence) -> String {
    if ours == now {
        return format!(
            "the hold of this run on {deployment} was cleared while it was going on; nobody has \
             taken it since"
        );
    }
    format!("another run took over {deployment} (fence {now}, this run has {ours})")
}

impl StoreError {
    /// Stable code; its page is in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::CannotOpen { .. } => "state::cannot_open",
            StoreError::CannotRead { .. } => "state::cannot_read",
            StoreError::CannotWrite { .. } => "state::cannot_write",
            StoreError::Corrupt { .. } => "state::damaged",
            StoreError::Newer { .. } => "state::newer_format",
            StoreError::Fenced { .. } => "state::taken_over",
            StoreError::Illegal { .. } | StoreError::Unknown { .. } => "state::bug",
            StoreError::TooDeep { .. } => "state::too_deep",
            StoreError::Key { .. } => "state::no_key",
            StoreError::WrongKey { .. } => "state::wrong_key",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            StoreError::CannotOpen { .. } | StoreError::CannotWrite { .. } => {
                "make the folder writable for this user and see that the disk (and the limit of \
                 `ulimit -f`) has room, then run the command again; nothing is lost"
                    .into()
            }
            StoreError::CannotRead { .. } => {
                "make the file readable for this user, then run the command again".into()
            }
            StoreError::Corrupt { .. } => {
                "put back a copy of the file, or move it away and deploy: objects that carry this \
                 deployment's tags are recorded again"
                    .into()
            }
            StoreError::Newer { .. } => "use the version that wrote it, or a newer one".into(),
            StoreError::Fenced { ours, now, .. } if ours == now => {
                "run the command again: it goes on from what is recorded".into()
            }
            StoreError::Fenced { .. } => {
                "wait for the other run to end, then run the command again".into()
            }
            StoreError::Illegal { .. } | StoreError::Unknown { .. } => {
                "this is a bug of notation; state is as it was before".into()
            }
            StoreError::TooDeep { .. } => {
                "give a part of the value, or a text of it, instead of wrapping all of it; state \
                 is as it was before"
                    .into()
            }
            StoreError::Key { .. } | StoreError::WrongKey { .. } => {
                "point NOTATION_KEY_FILE or NOTATION_PASSPHRASE to the key that the values were \
                 stored with"
                    .into()
            }
        }
    }
}
