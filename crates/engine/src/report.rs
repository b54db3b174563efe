//! What became of a run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use notation_model::{DEEPEST_VALUE, Incarnation, Params, ResourceId, TypeName, Value};
use notation_planner::{ParamsError, Recorded, StepKey, Transition, Unfit, Unsettled};
use notation_provider::OpError;
use notation_state::StoreError;

use crate::EngineError;

/// What became of a run. State is consistent whatever the status.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it ended.
    pub status: RunStatus,
    /// Steps that reached their goal, in the order in which they did. Steps that found nothing
    /// to do are left out.
    pub done: Vec<DoneStep>,
    /// Steps that did not.
    pub failed: Vec<FailedStep>,
    /// Steps that were not tried since one before them failed.
    pub blocked: Vec<BlockedStep>,
    /// Ids and marks that were recorded, with a call or without one.
    pub recorded: Vec<Recorded>,
    /// Why the end of the run could not be recorded, when no step failed of that.
    pub not_recorded: Option<Arc<StoreError>>,
    /// What the entry exports; what was exported before when the run did not finish.
    pub outputs: BTreeMap<String, Value>,
    /// How many exports the run changed.
    pub changed_outputs: usize,
    /// How long it took.
    pub took: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Everything is as the program asks.
    Done,
    /// Something failed.
    Failed,
    /// A person stopped it.
    Interrupted,
}

/// A step that reached its goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneStep {
    /// Which step; a write of a settle pass has a key of its own.
    pub key: StepKey,
    /// Whom it is about.
    pub resource: ResourceId,
    /// What was done.
    pub transition: Transition,
    /// How many calls it took.
    pub attempt: u32,
}

/// A step that did not reach its goal.
#[derive(Debug, Clone)]
pub struct FailedStep {
    /// Which step.
    pub key: StepKey,
    /// Whom it is about.
    pub resource: ResourceId,
    /// What was tried.
    pub transition: Transition,
    /// How many calls were made.
    pub attempt: u32,
    /// Why.
    pub error: StepError,
}

/// A step that was not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedStep {
    /// Which step.
    pub key: StepKey,
    /// Whom it is about.
    pub resource: ResourceId,
    /// The failed step that it waits for, directly or not, or that stopped the run.
    pub by: StepKey,
    /// Which of both.
    pub why: Blocked,
}

/// Why a step was not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// It waits for a step that failed.
    Waits,
    /// A step that it does not wait for stopped the run.
    Stopped,
}

impl std::fmt::Display for BlockedStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.why {
            Blocked::Waits => write!(f, "waits for {}", self.by),
            Blocked::Stopped => write!(f, "the run stopped at {}", self.by),
        }
    }
}

impl Report {
    /// The run ended, and its end could not be written: as bad as a step that failed.
    pub(crate) fn unrecorded(&mut self, error: Arc<StoreError>) {
        let known = |step: &FailedStep| matches!(step.error, StepError::Store(_));
        if !self.failed.iter().any(known) {
            self.not_recorded.get_or_insert(error);
        }
        if self.status == RunStatus::Done {
            self.status = RunStatus::Failed;
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StepError {
    /// The provider said no.
    #[error("{0}")]
    Provider(OpError),
    /// The provider kept asking to wait or to repeat.
    #[error("gave up after {attempts} attempts: {last}")]
    Attempts {
        /// How many.
        attempts: u32,
        /// What was said last.
        last: String,
    },
    /// The name is taken by an object that is not ours.
    #[error("{name} exists already and belongs to {owner}")]
    Taken {
        /// The name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// The recorded object has other tags by now, or none: it is not written and not deleted.
    #[error("{key} is not ours any more: it belongs to {owner}")]
    NotOurs {
        /// Its key at the provider.
        key: String,
        /// Whose it is.
        owner: String,
    },
    /// The name is taken by an object that is not ours, and no update could make it ours and
    /// what is asked for.
    #[error("{name} belongs to {owner}, and cannot be taken over: {why}")]
    NotAdoptable {
        /// The name.
        name: String,
        /// Whose it is.
        owner: String,
        /// What is in the way.
        why: String,
    },
    /// The name is taken by an object of another type.
    #[error(
        "{name} exists already, as a {ty} that belongs to {owner}; it cannot become a {wanted}"
    )]
    OtherType {
        /// The name.
        name: String,
        /// What has it.
        ty: TypeName,
        /// What was to have it.
        wanted: TypeName,
        /// Whose it is.
        owner: String,
    },
    /// A create was cut off and nobody can tell whether it happened.
    #[error("the answer to a create was lost ({last}) and the type cannot be looked up")]
    Ambiguous {
        /// What was said last.
        last: String,
    },
    /// State could not be written; the run stops.
    #[error("{0}")]
    Store(Arc<StoreError>),
    /// A cycle that does not settle.
    #[error("{0}")]
    Unsettled(Box<Unsettled>),
    /// A value that became known while running asks for a replacement that was not announced or
    /// that cannot stand side by side (`engine.md` §6).
    #[error("{} of {resource} cannot be changed and turned out different{source_text}", fields.join(", "))]
    WouldReplace {
        /// Which resource.
        resource: ResourceId,
        /// Which fields.
        fields: Vec<String>,
        /// ` (read from b.id)`, or empty.
        source_text: String,
    },
    /// A resource would be replaced a second time in one deploy.
    #[error("{resource} was replaced in this deploy and would be replaced once more: {}", because.join(", "))]
    ReplacedTwice {
        /// Which resource.
        resource: ResourceId,
        /// Fields that changed again, or what else replaces it.
        because: Vec<String>,
    },
    /// What running asked to replace cannot be replaced.
    #[error("{wanted}, and it is not replaced: {error}")]
    NotReplaced {
        /// Why it was to be replaced.
        wanted: Box<StepError>,
        /// What is in the way.
        error: Arc<EngineError>,
    },
    /// An object of ours that no record knows is in the way, and nothing can be planned with it.
    #[error("{key} is ours and no record knows it, and going on is not possible: {error}")]
    NotTakenUp {
        /// Its key at the provider.
        key: String,
        /// What is in the way.
        error: Arc<EngineError>,
    },
    /// Objects that no record knew were found, and with them the plan is to delete one that the
    /// plan that was shown did not have.
    #[error(
        "the plan that was shown does not delete {what}: objects were found that no record knew, and it would be deleted now"
    )]
    Unannounced {
        /// Which incarnation.
        what: Incarnation,
    },
    /// A value that should be known by now is not: our bug.
    #[error("{what} is not known")]
    Unknown {
        /// How people see it.
        what: String,
    },
    /// A name that turned out to be a secret: it would be shown, and stored in clear.
    #[error("`{field}` names {resource} and is made of a secret")]
    SecretKey {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
    },
    /// A value that became known while running nests too deep, or one that was answered.
    #[error(
        "`{field}` of {resource} nests {levels} levels deep; {DEEPEST_VALUE} are the most{source_text}"
    )]
    TooDeep {
        /// Which resource.
        resource: ResourceId,
        /// Which field or output.
        field: String,
        /// How deep.
        levels: usize,
        /// ` (read from b.code)`, ` (answered by its provider)`, or empty.
        source_text: String,
    },
    /// A name that became known while running is no text.
    #[error("`{field}` of {resource} takes a text, not {found}{source_text}")]
    WrongKind {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// What it is, with its article: `a number`.
        found: &'static str,
        /// ` (read from b.code)`, or empty.
        source_text: String,
    },
    /// The object vanished while it was worked on. It is recorded as gone.
    #[error("the object is gone")]
    Vanished {
        /// The program wants it: it is made again.
        wanted: bool,
    },
    /// The provider's code panicked: its bug. What the call did is not known; the next run looks.
    #[error("the provider broke: {0}")]
    Panicked(String),
    /// The engine's own code panicked: our bug.
    #[error("the engine broke: {0}")]
    Bug(String),
}

impl From<OpError> for StepError {
    fn from(error: OpError) -> StepError {
        match error {
            OpError::Broke { message } => StepError::Panicked(message),
            error => StepError::Provider(error),
        }
    }
}

impl StepError {
    /// A value that its field cannot take.
    pub(crate) fn unfit(resource: &ResourceId, error: ParamsError) -> StepError {
        let resource = resource.clone();
        match error {
            ParamsError {
                field,
                source: Unfit::TooDeep { levels, read_from },
            } => StepError::TooDeep {
                resource,
                field,
                levels,
                source_text: read_from,
            },
            ParamsError {
                field,
                source: Unfit::NoText { found, read_from },
            } => StepError::WrongKind {
                resource,
                field,
                found,
                source_text: read_from,
            },
            ParamsError {
                source: Unfit::Collect(_),
                ..
            } => StepError::Provider(OpError::Refused {
                message: error.to_string(),
            }),
        }
    }

    /// Why an answer cannot be recorded, when it cannot.
    pub(crate) fn too_deep(resource: &ResourceId, answered: &Params) -> Option<StepError> {
        let (field, levels) = deepest(answered)?;
        Some(StepError::TooDeep {
            resource: resource.clone(),
            field,
            levels,
            source_text: " (answered by its provider)".into(),
        })
    }

    /// The fields that turned out different, when that is the reason.
    pub(crate) fn fields(&self) -> &[String] {
        match self {
            StepError::WouldReplace { fields, .. }
            | StepError::ReplacedTwice {
                because: fields, ..
            } => fields,
            _ => &[],
        }
    }

    /// Stable code; its page is in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            StepError::Provider(OpError::InUse { .. }) => "run::still_in_use",
            StepError::Provider(_) => "run::provider_refused",
            StepError::Attempts { .. } => "run::out_of_attempts",
            StepError::Taken { .. }
            | StepError::NotAdoptable { .. }
            | StepError::NotOurs { .. } => "run::not_ours",
            StepError::OtherType { .. } => "run::other_type",
            StepError::Ambiguous { .. } => "run::ambiguous_create",
            StepError::Store(error) => error.code(),
            StepError::Unsettled(_) => "run::unsettled",
            StepError::WouldReplace { .. } => "run::would_replace",
            StepError::ReplacedTwice { .. } => "run::replaced_twice",
            StepError::NotReplaced { error, .. } | StepError::NotTakenUp { error, .. } => {
                error.code()
            }
            StepError::Unannounced { .. } => "run::unannounced",
            StepError::Unknown { .. } | StepError::Panicked(_) | StepError::Bug(_) => "run::bug",
            StepError::SecretKey { .. } => "plan::secret_key",
            StepError::TooDeep { .. } => "run::too_deep",
            StepError::WrongKind { .. } => "run::wrong_kind",
            StepError::Vanished { .. } => "run::vanished",
        }
    }

    /// What to do about it.
    pub fn help(&self, resource: &ResourceId) -> String {
        match self {
            StepError::Provider(OpError::InUse { .. }) => {
                "remove what still refers to it, then run the command again".into()
            }
            StepError::Provider(_) => {
                "repair what the provider names, then run the command again: it goes on from here"
                    .into()
            }
            StepError::Attempts { .. } => {
                "run the command again: it goes on from here; --max-attempts waits longer".into()
            }
            StepError::Taken { .. } => format!(
                "use another name, or take the object over with --adopt {resource} when you are \
                 sure that its owner does not need it"
            ),
            StepError::NotOurs { .. } => {
                "run again without --no-refresh: the plan says what becomes of its record".into()
            }
            StepError::NotAdoptable { .. } => {
                "use another name, ask for what that object is, or delete it at its provider first"
                    .into()
            }
            StepError::OtherType { name, ty, .. } => {
                format!("give {resource} another name, or delete the {ty} {name} yourself")
            }
            StepError::Ambiguous { .. } => format!(
                "look whether it exists, then `notation resolve ENTRY {resource} --created KEY` or \
                 `--absent`"
            ),
            StepError::Store(error) => error.help(),
            StepError::Unsettled(unsettled) => unsettled.help(),
            StepError::WouldReplace { resource, .. } => {
                format!("if it may be replaced, deploy again with --replace {resource}")
            }
            StepError::ReplacedTwice { .. } => {
                "refer to an output that stays the same, such as a name or an ARN".into()
            }
            StepError::NotReplaced { error, .. } | StepError::NotTakenUp { error, .. } => {
                error.help()
            }
            StepError::Unannounced { .. } => {
                "deploy again: what was found is recorded, and the plan shows all of it".into()
            }
            StepError::Panicked(_) => {
                "this is a bug of the provider; state is consistent, and the next run looks what \
                 became of the call"
                    .into()
            }
            StepError::Unknown { .. } | StepError::Bug(_) => {
                "this is a bug of the engine; state is consistent".into()
            }
            StepError::SecretKey { field, .. } => {
                format!("give `{field}` in clear, or leave it out to have a name generated")
            }
            StepError::TooDeep { .. } => {
                "read a part of what is named, or a text of it, instead of wrapping all of it"
                    .into()
            }
            StepError::WrongKind { field, .. } => {
                format!("read what is a text, or write `{field}` yourself")
            }
            StepError::Vanished { wanted: true } => {
                "run the command again: it will be made again".into()
            }
            StepError::Vanished { wanted: false } => {
                "run the command again: nothing of it is left to remove".into()
            }
        }
    }
}

/// The first of the values that nest deeper than a value may, and how deep.
pub(crate) fn deepest(values: &Params) -> Option<(String, usize)> {
    let depths = values.iter().map(|(name, value)| (name, value.depth()));
    let (name, levels) = depths
        .into_iter()
        .find(|(_, levels)| *levels > DEEPEST_VALUE)?;
    Some((name.to_string(), levels))
}
