//! What is untrue in a world, and the one table that makes an answer of it.

use crate::{Dependent, Key};
use std::fmt;

/// Something untrue about one claim in one world.
#[derive(Debug, Clone, PartialEq, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(BreachKind),
    derive(PartialOrd, Ord, strum::EnumIter),
    doc = "Which breach, for lists that must cover all of them.",
    allow(missing_docs)
)]
pub enum Breach {
    /// The weights of a `WorkerDeployment` do not sum to 10 000 (decision 0016 rule 2).
    WeightSum(u64),
    /// A weighted version belongs to another worker (rule 2).
    ForeignVersion {
        /// Where.
        pointer: String,
        /// The version.
        version: Key,
    },
    /// One version is weighted twice (rule 2).
    RepeatedVersion(Key),
    /// A weighted version is not Ready (rule 2).
    UnreadyVersion {
        /// The version.
        version: Key,
        /// Why.
        reason: String,
    },
    /// A weighted version is about to be deleted (rule 2).
    LeavingVersion(Key),
    /// The worker has an active deployment already (rule 1).
    SecondDeployment {
        /// The worker.
        worker: Key,
        /// The deployment it has.
        other: Key,
    },
    /// Something relies on a handler that the active deployment does not serve (rules 3, 4, 5, 8).
    Unserved {
        /// Who relies on it.
        dependent: Dependent,
        /// What is missing.
        missing: Missing,
    },
    /// One environment name is declared twice (rule 7).
    NameClash(String),
    /// A declared handler is not exported by the main module.
    NotExported(String),
    /// The main module cannot be loaded.
    BrokenModule(String),
    /// The manifest is not held by the tenant.
    ManifestMissing,
    /// The manifest is of another kind.
    ManifestKind {
        /// Needed.
        needed: &'static str,
        /// Found.
        found: &'static str,
    },
    /// Single-page mode without `index.html`.
    NoIndexHtml,
    /// Applied migrations are not a prefix of the declared list.
    HistoryChanged,
    /// Another custom domain of the tenant has the hostname.
    HostnameTaken {
        /// The hostname.
        hostname: String,
        /// Who has it.
        holder: Key,
    },
    /// The queue has a consumer already.
    SecondConsumer(Key),
    /// Dead letters would come back.
    DeadLetterLoop(Vec<Key>),
    /// The worker has an endpoint already.
    SecondEndpoint(Key),
    /// Others hold a relation to what should be deleted.
    Held(Vec<Key>),
}

/// Why a handler is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The worker has no active deployment with a live version.
    Deployment,
    /// A weighted version does not declare the handler.
    Handler(Key),
}

/// A refused change: nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which kind of refusal.
    pub why: Why,
    /// A sentence for people.
    pub message: String,
}

/// Kinds of refusal; each is one wire code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// `invalid_argument`
    InvalidArgument,
    /// `form_unknown`
    FormUnknown,
    /// `resource_not_found`
    NotFound,
    /// `artifact_missing`
    ArtifactMissing,
    /// `artifact_invalid`
    ArtifactInvalid,
    /// `import_conflict`
    ImportConflict,
    /// `dependency_in_use`
    DependencyInUse,
    /// `migration_required`
    MigrationRequired,
    /// `uid_mismatch`
    UidMismatch,
    /// `generation_conflict`
    GenerationConflict,
    /// `revision_conflict`
    RevisionConflict,
    /// `unsupported_capability`
    UnsupportedCapability,
}

/// What was being done when a breach showed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Putting,
    Deleting,
}

impl Refusal {
    pub(crate) fn new(why: Why, message: impl Into<String>) -> Refusal {
        Refusal {
            why,
            message: message.into(),
        }
    }

    /// The refusal of a change because of its breaches; the first decides the code, all of one
    /// kind are named.
    pub(crate) fn of(doing: Doing, breaches: &[Breach]) -> Option<Refusal> {
        let first = breaches.first()?;
        let why = why(doing, first);
        let message = match first {
            Breach::Unserved { .. } => unserved(doing, breaches),
            other => other.to_string(),
        };
        Some(Refusal { why, message })
    }
}

/// The table: change and breach to code (host API Appendix B).
fn why(doing: Doing, breach: &Breach) -> Why {
    match (doing, breach) {
        (Doing::Deleting, Breach::Unserved { .. }) | (_, Breach::Held(_)) => Why::DependencyInUse,
        (Doing::Putting, Breach::Unserved { .. }) => Why::UnsupportedCapability,
        (_, Breach::ManifestMissing) => Why::ArtifactMissing,
        (_, Breach::ManifestKind { .. }) => Why::ArtifactInvalid,
        (_, Breach::HistoryChanged) => Why::MigrationRequired,
        (
            _,
            Breach::WeightSum(_)
            | Breach::ForeignVersion { .. }
            | Breach::RepeatedVersion(_)
            | Breach::UnreadyVersion { .. }
            | Breach::LeavingVersion(_)
            | Breach::SecondDeployment { .. }
            | Breach::NameClash(_)
            | Breach::NotExported(_)
            | Breach::BrokenModule(_)
            | Breach::NoIndexHtml
            | Breach::HostnameTaken { .. }
            | Breach::SecondConsumer(_)
            | Breach::DeadLetterLoop(_)
            | Breach::SecondEndpoint(_),
        ) => Why::InvalidArgument,
    }
}

/// Names every dependent, so that the order of repair can be read from the refusal.
fn unserved(doing: Doing, breaches: &[Breach]) -> String {
    let sentences: Vec<String> = breaches
        .iter()
        .filter_map(|breach| match breach {
            Breach::Unserved { dependent, missing } => Some(match doing {
                Doing::Deleting => {
                    format!(
                        "{} relies on {} for handler {}",
                        dependent.source, dependent.worker, dependent.handler
                    )
                }
                Doing::Putting => format!(
                    "{} needs handler {} of {}, and {}",
                    dependent.source,
                    dependent.handler,
                    dependent.worker,
                    match missing {
                        Missing::Deployment => "no deployment of it takes traffic".to_owned(),
                        Missing::Handler(version) => format!("{version} does not have it"),
                    }
                ),
            }),
            _ => None,
        })
        .collect();
    sentences.join("; ")
}

fn list(keys: &[Key]) -> String {
    keys.iter()
        .map(Key::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::WeightSum(sum) => write!(f, "the weights sum to {sum} and must sum to 10000"),
            Breach::ForeignVersion { pointer, version } => {
                write!(f, "relation {pointer}: {version} belongs to another worker")
            }
            Breach::RepeatedVersion(version) => write!(f, "{version} is weighted twice"),
            Breach::UnreadyVersion { version, reason } => {
                write!(f, "{version} cannot take traffic: {reason}")
            }
            Breach::LeavingVersion(version) => write!(f, "{version} is being deleted"),
            Breach::SecondDeployment { worker, other } => {
                write!(f, "{worker} has an active deployment already: {other}")
            }
            Breach::Unserved { dependent, .. } => write!(
                f,
                "{} needs handler {} of {}, which does not serve it",
                dependent.source, dependent.handler, dependent.worker
            ),
            Breach::NameClash(name) => write!(f, "environment name {name} is declared twice"),
            Breach::NotExported(handler) => {
                write!(
                    f,
                    "the main module of the bundle does not export handler {handler}"
                )
            }
            Breach::BrokenModule(reason) => {
                write!(
                    f,
                    "the main module of the bundle cannot be loaded: {reason}"
                )
            }
            Breach::ManifestMissing => write!(f, "no committed manifest has this digest"),
            Breach::ManifestKind { needed, found } => {
                write!(
                    f,
                    "a manifest of kind {needed} is needed, this is a {found}"
                )
            }
            Breach::NoIndexHtml => {
                write!(
                    f,
                    "single_page_application needs index.html in the asset bundle"
                )
            }
            Breach::HistoryChanged => write!(
                f,
                "the database has applied migrations that are not the beginning of this list"
            ),
            Breach::HostnameTaken { hostname, holder } => {
                write!(f, "hostname {hostname} is held by {holder}")
            }
            Breach::SecondConsumer(holder) => {
                write!(f, "the queue has a consumer already: {holder}")
            }
            Breach::DeadLetterLoop(queues) => {
                write!(f, "dead letters would circulate: {}", list(queues))
            }
            Breach::SecondEndpoint(holder) => {
                write!(f, "the worker has an endpoint already: {holder}")
            }
            Breach::Held(holders) => write!(f, "still referenced by {}", list(holders)),
        }
    }
}
