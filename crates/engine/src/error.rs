//! Why nothing was run.

use std::sync::Arc;

use notation_model::{Record, ResourceId, SecretName, TypeName};
use notation_planner::PlanError;
use notation_state::{Hold, StoreError};

/// Why a run did not start. Nothing of this run was written at a provider, but for creates of
/// earlier runs that it went on with.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another run holds the deployment.
    #[error(
        "another run ({run}) holds this deployment, from {machine}{user}",
        run = .0.run, machine = .0.machine.name, user = by(&.0.machine.user)
    )]
    Held(Box<Hold>),
    /// State cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// State could not be written before the first step.
    #[error("{0}")]
    NotRecorded(Arc<StoreError>),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The program names secrets that nobody set.
    #[error("{} not set", secrets(.0))]
    MissingSecrets(Vec<SecretName>),
    /// A create was cut off and nobody can tell whether it happened.
    #[error("it is not known whether {} created", ambiguous(.0))]
    Ambiguous(Vec<AmbiguousCreate>),
    /// Providers could not say what is there; the records can be believed instead.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Observe(Vec<ObserveFailure>),
    /// Providers could not say what is there, and nothing can be told without it.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Look(Vec<ObserveFailure>),
    /// A create that an earlier run began, and that this one went on with, did not come to its end.
    #[error("the create of {resource} that an earlier run began is not finished: {why}")]
    Unfinished {
        /// Which resource.
        resource: ResourceId,
        /// Code of what a step would have failed with.
        code: &'static str,
        /// What that says.
        why: String,
        /// What to do about it.
        help: String,
    },
    /// An object was to be adopted whose type cannot be read.
    #[error(
        "{resource} is a {ty}, and nothing of that type can be read: what is there cannot be adopted"
    )]
    NotReadable {
        /// The resource it was to become.
        resource: ResourceId,
        /// Its type.
        ty: TypeName,
    },
    /// Recorded objects have no tags any more: nothing says that they are still ours.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    LostTags(Vec<LostTags>),
    /// The person stopped it before the first step.
    #[error("interrupted before the first step")]
    Interrupted,
    /// The program or the state has no such resource.
    #[error("there is no resource {resource} in {place}")]
    NoSuchResource {
        /// The id that was given.
        resource: ResourceId,
        /// `the program` or `the state`.
        place: &'static str,
    },
    /// The resource has an object already.
    #[error("{resource} has an object already ({key})")]
    AlreadyRecorded {
        /// Which resource.
        resource: ResourceId,
        /// The key of its object.
        key: String,
    },
    /// There is nothing to adopt.
    #[error("there is no {ty} with the key {key:?}")]
    NoSuchObject {
        /// The type.
        ty: TypeName,
        /// The key that was given.
        key: String,
    },
    /// The object belongs to somebody else.
    #[error("{key} belongs to {owner}")]
    Foreign {
        /// The resource it was to become.
        resource: ResourceId,
        /// The object's key.
        key: String,
        /// Whose it is.
        owner: String,
    },
    /// There is no cut-off create to answer for.
    #[error("no create of {resource} is waiting for an answer")]
    NothingToResolve {
        /// The id that was given.
        resource: ResourceId,
    },
}

/// A create whose outcome nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousCreate {
    /// Which resource.
    pub resource: ResourceId,
    /// Its type, which cannot be looked up.
    pub ty: TypeName,
}

/// A read that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource} ({key}) cannot be read: {reason}")]
pub struct ObserveFailure {
    /// Which resource.
    pub resource: ResourceId,
    /// The key of its object.
    pub key: String,
    /// What the provider said.
    pub reason: String,
}

/// A recorded object without tags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key} is recorded as {resource}, but it has lost its tags: it may be somebody else's by now"
)]
pub struct LostTags {
    /// Which resource.
    pub resource: ResourceId,
    /// The key of its object.
    pub key: String,
}

impl EngineError {
    pub(crate) fn already_recorded(record: &Record) -> EngineError {
        EngineError::AlreadyRecorded {
            resource: record.incarnation.resource.clone(),
            key: record.key.to_string(),
        }
    }

    /// Stable code; its page is in `docs/errors/`. Of a plan error, the first problem's.
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::Held(_) => "run::held",
            EngineError::Store(error) => error.code(),
            EngineError::NotRecorded(error) => error.code(),
            EngineError::Plan(error) => error
                .problems
                .first()
                .map_or("run::no_plan", |problem| problem.code()),
            EngineError::MissingSecrets(_) => "run::missing_secrets",
            EngineError::Ambiguous(_) => "run::ambiguous_create",
            EngineError::Observe(_) | EngineError::Look(_) | EngineError::NotReadable { .. } => {
                "run::cannot_read"
            }
            EngineError::Unfinished { code, .. } => code,
            EngineError::LostTags(_) => "run::lost_tags",
            EngineError::Interrupted => "run::interrupted",
            EngineError::NoSuchResource { .. } => "run::no_such_resource",
            EngineError::AlreadyRecorded { .. } => "run::already_recorded",
            EngineError::NoSuchObject { .. } => "run::no_such_object",
            EngineError::Foreign { .. } => "run::not_ours",
            EngineError::NothingToResolve { .. } => "run::nothing_to_resolve",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            EngineError::Held(_) => {
                "wait for it to end (leave out --no-wait), or, when it is certainly dead, clear \
                 its hold with `notation hold clear`"
                    .into()
            }
            EngineError::Store(error) => error.help(),
            EngineError::NotRecorded(error) => error.help(),
            EngineError::Plan(error) => {
                let mut help: Vec<String> = error
                    .problems
                    .iter()
                    .map(|problem| problem.help())
                    .collect();
                help.dedup();
                help.join("\n")
            }
            EngineError::MissingSecrets(names) => names
                .iter()
                .map(|name| format!("notation secret set ENTRY {name}"))
                .collect::<Vec<_>>()
                .join("\n"),
            EngineError::Ambiguous(creates) => creates
                .iter()
                .map(|create| {
                    let id = &create.resource;
                    format!(
                        "look for the {} of {id}, then `notation resolve ENTRY {id} --created KEY` \
                         or `--absent`",
                        create.ty
                    )
                })
                .collect::<Vec<_>>()
                .join("\n"),
            EngineError::Observe(_) => {
                "run again when the provider answers, or with --no-refresh to believe the records"
                    .into()
            }
            EngineError::Look(_) => "run again when the provider answers".into(),
            EngineError::Unfinished { help, .. } => help.clone(),
            EngineError::NotReadable { ty, .. } => format!(
                "leave the object to whoever made it and write its key where others need it, or \
                 deploy to have a {ty} made"
            ),
            EngineError::LostTags(objects) => objects
                .iter()
                .map(|object| {
                    let id = &object.resource;
                    format!(
                        "take it back with --adopt {id}, or leave it alone with `notation state rm \
                         ENTRY {id}`"
                    )
                })
                .collect::<Vec<_>>()
                .join("\n"),
            EngineError::Interrupted => "nothing was changed".into(),
            EngineError::NoSuchResource { .. } => {
                "`notation state list ENTRY` lists what is recorded, `notation graph ENTRY` what \
                 the program declares"
                    .into()
            }
            EngineError::AlreadyRecorded { resource, .. } => {
                format!(
                    "give the key of another object, or forget {resource} first with `notation \
                     state rm ENTRY {resource}`"
                )
            }
            EngineError::NoSuchObject { .. } => "give the key as the provider shows it".into(),
            EngineError::Foreign { resource, .. } => format!(
                "use another name, or take the object over with --adopt {resource} when you are \
                 sure that its owner does not need it"
            ),
            EngineError::NothingToResolve { .. } => "deploy: there is nothing to answer".into(),
        }
    }
}

fn by(user: &str) -> String {
    if user.is_empty() {
        String::new()
    } else {
        format!(" by {user}")
    }
}

fn secrets(names: &[SecretName]) -> String {
    let list: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    match names.len() {
        1 => format!("the secret {} is", list.join(", ")),
        _ => format!("the secrets {} are", list.join(", ")),
    }
}

fn ambiguous(creates: &[AmbiguousCreate]) -> String {
    let list: Vec<&str> = creates
        .iter()
        .map(|create| create.resource.as_str())
        .collect();
    match creates.len() {
        1 => format!("{} was", list.join(", ")),
        _ => format!("{} were", list.join(", ")),
    }
}
