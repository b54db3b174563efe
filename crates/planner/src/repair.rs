//! What a person can do about a problem.

use crate::PlanProblem;

impl PlanProblem {
    /// What a person can do.
    pub fn help(&self) -> String {
        match self {
            PlanProblem::Loop(found) => {
                let mut repairs: Vec<&str> = Vec::new();
                for member in &found.members {
                    if !repairs.contains(&member.repair.as_str()) {
                        repairs.push(&member.repair);
                    }
                }
                repairs.join("; or ")
            }
            PlanProblem::UnknownType { .. } => {
                "use a type of a provider that this binary has".to_owned()
            }
            PlanProblem::UnknownReference { target, .. } => {
                format!("declare {target} in the program, or drop the reference")
            }
            PlanProblem::UnknownOutput { ty, .. } => {
                format!("refer to a parameter or an output that {ty} declares")
            }
            PlanProblem::UnknownField {
                field, is_output, ..
            } => match is_output {
                true => format!("leave `{field}` out; other resources can refer to it"),
                false => "give a parameter that the type declares".to_owned(),
            },
            PlanProblem::SecondValue { field, .. } => {
                format!("give `{field}` once: in the config or by one contribution")
            }
            PlanProblem::MissingField { field, .. } => {
                format!("give `{field}` in the config or contribute it")
            }
            PlanProblem::SecretKey { field, .. } => {
                format!("give `{field}` in clear, or leave it out to have a name generated")
            }
            PlanProblem::BadContribution { .. } => "contribute a map".to_owned(),
            PlanProblem::TooDeep { .. } => {
                "read a part of what is named, or a text of it, instead of wrapping all of it"
                    .to_owned()
            }
            PlanProblem::WrongKind { field, .. } => {
                format!("read what is a text, or write `{field}` yourself")
            }
            PlanProblem::DuplicateIdentity {
                generated_for: Some(resource),
                ..
            } => format!(
                "write a name for {resource} in the program, or give it another id: the name \
                 generated for it is taken"
            ),
            PlanProblem::DuplicateIdentity { second, .. } => {
                format!("give {second} another name, or leave its name out to have one generated")
            }
            PlanProblem::ClaimedTwice { former, by } if by.len() == 1 => {
                format!("leave {former} out of it: `formerly` takes ids that it had before")
            }
            PlanProblem::ClaimedTwice { former, .. } => {
                format!("name {former} in one `formerly` only, and in no declaration")
            }
            PlanProblem::Protected { resource, .. } => format!(
                "deploy a program that declares {resource} without `protect` first, then run this \
                 again"
            ),
            PlanProblem::HeldByUnknown { holder, ty, .. } => format!(
                "use the version of Notation that has {ty}, or take {holder} away at its provider \
                 and then `notation state rm ENTRY {holder}`"
            ),
            PlanProblem::MixedState { .. } => {
                "deploy a program that keeps one of them, without its references to the others and \
                 with nothing that replaces it, and make this change then; after a run that was \
                 stopped, deploying its program again does that"
                    .to_owned()
            }
            PlanProblem::UnknownId { .. } => {
                "`notation state list ENTRY` and `notation graph ENTRY` show the ids".to_owned()
            }
            PlanProblem::NotDeclared { flag, resource } => {
                format!("leave out {flag} {resource}, or declare {resource} in the program")
            }
            PlanProblem::LeftOut { flag, resource, .. } => {
                format!("add --target {resource}, or leave out {flag} {resource}")
            }
        }
    }
}
