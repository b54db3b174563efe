//! Errors of every room as failures: they are mapped here and nowhere else.

use std::path::Path;

use notation_engine::EngineError;
use notation_model::{DeploymentId, Origin};
use notation_planner::{PlanError, PlanProblem};
use notation_state::{Hold, StoreError};

use super::{Failure, Plain, Problem, Spot};
use crate::{
    advice::{spelled, typed},
    exit::Exit,
    render::hold,
};

impl From<Vec<notation_program::Problem>> for Failure {
    fn from(problems: Vec<notation_program::Problem>) -> Failure {
        Failure {
            exit: Exit::Fixable,
            problems: problems
                .into_iter()
                .map(|problem| Problem::Project(Box::new(problem)))
                .collect(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::from(&error)
    }
}

impl From<&StoreError> for Failure {
    /// State that cannot be used before a run; inside a run the engine reports it.
    fn from(error: &StoreError) -> Failure {
        let exit = match error {
            StoreError::CannotOpen { .. }
            | StoreError::CannotRead { .. }
            | StoreError::CannotWrite { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Newer { .. }
            | StoreError::TooDeep { .. }
            | StoreError::Key { .. }
            | StoreError::WrongKey { .. } => Exit::Fixable,
            StoreError::Fenced { .. } => Exit::Stopped,
            StoreError::Illegal { .. } | StoreError::Unknown { .. } => Exit::Bug,
        };
        Failure::new(exit, error.code(), error.to_string()).help(error.help())
    }
}

impl Failure {
    /// An engine error, with places in the project's files.
    pub fn of_engine(root: &Path, deployment: &DeploymentId, error: EngineError) -> Failure {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::NotRecorded(error) => error.as_ref().into(),
            EngineError::Plan(error) => Failure::refused(root, &error).spelled_for(deployment),
            EngineError::Held(hold) => Failure::held(&hold, deployment),
            EngineError::Interrupted => {
                Failure::new(Exit::Interrupted, "run::interrupted", error.to_string())
                    .help("nothing was written")
            }
            // A call of a provider was made.
            EngineError::Unfinished { .. } => {
                let help = spelled(&error.help(), deployment);
                Failure::new(Exit::Stopped, error.code(), error.to_string()).help(help)
            }
            EngineError::MissingSecrets(_)
            | EngineError::Ambiguous(_)
            | EngineError::Observe(_)
            | EngineError::Look(_)
            | EngineError::NotReadable { .. }
            | EngineError::LostTags(_)
            | EngineError::NoSuchResource { .. }
            | EngineError::AlreadyRecorded { .. }
            | EngineError::NoSuchObject { .. }
            | EngineError::Foreign { .. }
            | EngineError::NothingToResolve { .. } => {
                let help = spelled(&error.help(), deployment);
                Failure::new(Exit::Fixable, error.code(), error.to_string()).help(help)
            }
        }
    }

    /// Another run holds the deployment.
    pub fn held(hold: &Hold, deployment: &DeploymentId) -> Failure {
        Failure::new(Exit::Held, "run::held", hold::to_text(hold)).help(spelled(
            "wait for that run to end; if it is known to be over:\nnotation hold clear ENTRY",
            deployment,
        ))
    }

    /// A command that asks was started where nobody can answer.
    pub fn needs_yes(command: &str) -> Failure {
        Failure::new(
            Exit::Usage,
            "usage::needs_yes",
            format!(
                "{command} asks before it changes something, and there is no terminal to ask on"
            ),
        )
        .help(format!(
            "look at what it would do, then type: {} --yes",
            typed(std::env::args().skip(1))
        ))
    }

    /// A program or a plan that is refused, with places in the project's files.
    pub fn refused(root: &Path, error: &PlanError) -> Failure {
        Failure {
            exit: Exit::Fixable,
            problems: error
                .problems
                .iter()
                .map(|problem| {
                    Problem::Plain(Plain {
                        code: problem.code(),
                        message: problem.to_string(),
                        help: Some(problem.help()),
                        related: Vec::new(),
                        place: spot(root, problem),
                    })
                })
                .collect(),
        }
    }
}

fn spot(root: &Path, problem: &PlanProblem) -> Option<Box<Spot>> {
    let one = |origin: &Origin| Spot::of(root, &[(origin, "here".to_owned())]);
    match problem {
        PlanProblem::Loop(found) => {
            let places: Vec<_> = found
                .members
                .iter()
                .map(|member| {
                    let label = format!("{} refers to {}", member.resource, member.refers_to);
                    (&member.origin, label)
                })
                .collect();
            Spot::of(root, &places)
        }
        PlanProblem::UnknownType { origin, .. }
        | PlanProblem::UnknownReference { origin, .. }
        | PlanProblem::UnknownOutput { origin, .. }
        | PlanProblem::UnknownField { origin, .. }
        | PlanProblem::MissingField { origin, .. }
        | PlanProblem::SecretKey { origin, .. }
        | PlanProblem::BadContribution { origin, .. }
        | PlanProblem::WrongKind { origin, .. } => one(origin),
        PlanProblem::TooDeep { origin, .. } if origin.file.is_empty() => None,
        PlanProblem::TooDeep { origin, .. } => one(origin),
        PlanProblem::SecondValue { first, second, .. } => Spot::of(
            root,
            &[
                (second, "given again".to_owned()),
                (first, "given first".to_owned()),
            ],
        ),
        PlanProblem::DuplicateIdentity {
            first_origin,
            second_origin,
            ..
        } => Spot::of(
            root,
            &[
                (second_origin, "claimed again".to_owned()),
                (first_origin, "claimed first".to_owned()),
            ],
        ),
        PlanProblem::ClaimedTwice { former, by } => {
            let places: Vec<_> = by
                .iter()
                .rev()
                .map(|claimant| {
                    let label = if claimant.resource == *former && by.len() > 1 {
                        format!("has the id {former}")
                    } else {
                        format!("claims the id {former}")
                    };
                    (&claimant.origin, label)
                })
                .collect();
            Spot::of(root, &places)
        }
        PlanProblem::Protected { .. }
        | PlanProblem::HeldByUnknown { .. }
        | PlanProblem::MixedState { .. }
        | PlanProblem::UnknownId { .. }
        | PlanProblem::NotDeclared { .. }
        | PlanProblem::LeftOut { .. } => None,
    }
}
