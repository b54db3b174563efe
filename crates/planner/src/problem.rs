//! What keeps a plan from being made, one by one.

use std::fmt;

use notation_model::{
    DEEPEST_VALUE, Incarnation, NoOutput, Origin, OutputRef, ResourceId, TypeName, Via,
};

use crate::{ParamsError, Unfit};

/// A loop that no placeholder opens, walked in order from its first declared member
/// (`engine.md` §2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnbreakableLoop {
    /// Each refers to the next, the last to the first.
    pub members: Vec<LoopMember>,
}

/// One member of an unbreakable loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopMember {
    /// Who.
    pub resource: ResourceId,
    /// Its type.
    pub ty: TypeName,
    /// Whom it refers to: the next member.
    pub refers_to: ResourceId,
    /// By which edge.
    pub via: Via,
    /// Where the reference was written.
    pub origin: Origin,
    /// Why it cannot start without this reference.
    pub why: String,
    /// What would let it.
    pub repair: String,
}

impl UnbreakableLoop {
    /// The member ids in loop order.
    pub fn ids(&self) -> Vec<&ResourceId> {
        self.members.iter().map(|member| &member.resource).collect()
    }
}

impl fmt::Display for UnbreakableLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.members.as_slice() {
            [alone] => write!(f, "{} depends on itself and cannot start", alone.resource)?,
            members => {
                let ids: Vec<&ResourceId> = members.iter().map(|member| &member.resource).collect();
                write!(
                    f,
                    "{} depend on each other and none of them can start first",
                    list(&ids)
                )?;
            }
        }
        for member in &self.members {
            write!(f, "\n  {}", member)?;
        }
        Ok(())
    }
}

impl fmt::Display for LoopMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} needs {} (", self.resource, self.refers_to)?;
        match &self.via {
            Via::Config(path) => write!(f, "config `{path}`")?,
            Via::Contribution(field) => write!(f, "contribution to `{field}`")?,
            Via::DependOn => f.write_str("dependOn")?,
        }
        if !self.origin.file.is_empty() {
            write!(f, ", {}", self.origin)?;
        }
        write!(f, "): {}", self.why)
    }
}

/// A resource that has an id, or names it in its `formerly`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Which resource.
    pub resource: ResourceId,
    /// Where it was constructed.
    pub origin: Origin,
}

/// Who refers to an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    /// A resource.
    Resource(ResourceId),
    /// An export of the entry.
    Export(String),
}

impl fmt::Display for Referrer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Referrer::Resource(id) => write!(f, "{id}"),
            Referrer::Export(name) => write!(f, "the export `{name}`"),
        }
    }
}

/// One reason why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// The program has a loop that nobody can open.
    #[error("{0}")]
    Loop(UnbreakableLoop),
    /// A resource's type is not registered.
    #[error("{resource} has the unknown type {ty}")]
    UnknownType {
        /// Which resource.
        resource: ResourceId,
        /// Its type.
        ty: TypeName,
        /// Where it was constructed.
        origin: Origin,
    },
    /// A reference to a resource that the program does not have.
    #[error("{by} refers to {target}, which the program does not have")]
    UnknownReference {
        /// Who refers.
        by: Referrer,
        /// To whom.
        target: ResourceId,
        /// Where.
        origin: Origin,
    },
    /// A reference to an output that its resource's type does not declare.
    #[error("{by} refers to `{output}` (a {ty}): {why}")]
    UnknownOutput {
        /// Who refers.
        by: Referrer,
        /// To what.
        output: OutputRef,
        /// The type of that resource.
        ty: TypeName,
        /// What is wrong with it.
        why: NoOutput,
        /// Where; nowhere for an export.
        origin: Origin,
    },
    /// A field that the type does not take: it has none of that name, or its provider sets it.
    #[error("{resource} is given `{field}`, {}", untaken(.ty, *.is_output))]
    UnknownField {
        /// Which resource.
        resource: ResourceId,
        /// Its type.
        ty: TypeName,
        /// Which field.
        field: String,
        /// The type has it as an output.
        is_output: bool,
        /// Where it was given.
        origin: Origin,
    },
    /// A field that takes one value was given two (`engine.md` §1).
    #[error("`{field}` of {resource} takes one value and is given another one")]
    SecondValue {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// Where the first was given.
        first: Origin,
        /// Where the second was given.
        second: Origin,
    },
    /// A required parameter is given neither by config nor by a contribution.
    #[error("`{field}` of {resource} is required and not given")]
    MissingField {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// Where the resource was constructed.
        origin: Origin,
    },
    /// A name made of a secret: names are shown, stored in clear and sent in addresses.
    #[error("`{field}` names {resource} and is made of a secret, {made_of}")]
    SecretKey {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// The part that is, as the program has it: `secret(KEY)`, `b.token`.
        made_of: String,
        /// Where the resource was constructed.
        origin: Origin,
    },
    /// A contribution that its field cannot take.
    #[error("`{field}` of {resource}: {message}")]
    BadContribution {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// What is wrong.
        message: String,
        /// Where the resource was constructed.
        origin: Origin,
    },
    /// A value that nests too deep by what it reads of others.
    #[error("{what} nests {levels} levels deep; {DEEPEST_VALUE} are the most{read_from}")]
    TooDeep {
        /// `` `code` of w `` or `` the export `q` ``.
        what: String,
        /// How deep.
        levels: usize,
        /// ` (read from b.code)`, or empty.
        read_from: String,
        /// Where the resource was constructed; of an export nobody knows.
        origin: Origin,
    },
    /// A name that is read from another resource and is no text.
    #[error("`{field}` of {resource} takes a text, not {found}{read_from}")]
    WrongKind {
        /// Which resource.
        resource: ResourceId,
        /// Which field.
        field: String,
        /// What it is, with its article: `a number`.
        found: &'static str,
        /// ` (read from b.code)`, or empty.
        read_from: String,
        /// Where the resource was constructed.
        origin: Origin,
    },
    /// Two resources claim the same identity (`engine.md` §1).
    #[error("{}", both_claim((.first, .first_ty), (.second, .ty), .key))]
    DuplicateIdentity {
        /// Declared first.
        first: ResourceId,
        /// Type of the first; types may share one space of names.
        first_ty: TypeName,
        /// Declared second.
        second: ResourceId,
        /// Type of the second.
        ty: TypeName,
        /// The key both claim.
        key: String,
        /// The one that got it generated from its id, when leaving a name out is no way out.
        generated_for: Option<ResourceId>,
        /// Where the first was constructed.
        first_origin: Origin,
        /// Where the second was constructed.
        second_origin: Origin,
    },
    /// An earlier id that two resources claim, or that is itself in the program.
    #[error("{}", claimed(.former, .by))]
    ClaimedTwice {
        /// The id.
        former: ResourceId,
        /// Who claims it; the resource that has it first. One alone claims its own.
        by: Vec<Claimant>,
    },
    /// A plan that deletes, replaces or reverts what is protected (`engine.md` §5).
    #[error("{resource} is protected and would be {fate}: {because}")]
    Protected {
        /// Which resource.
        resource: ResourceId,
        /// `deleted`, `replaced` or `reverted`.
        fate: &'static str,
        /// Why the plan would do that.
        because: String,
    },
    /// A plan that deletes what an object of an unknown type holds, directly or by others, to make
    /// room for something new.
    #[error(
        "{resource} would be deleted to make room, and {holder}, which is recorded with the unknown \
         type {ty}, would not let go of it"
    )]
    HeldByUnknown {
        /// Which resource.
        resource: ResourceId,
        /// What holds it.
        holder: ResourceId,
        /// The type of that one.
        ty: TypeName,
    },
    /// Recorded references of two programs form a loop in which nobody can be bare.
    #[error(
        "{} are recorded to refer to each other and none of them can let go first",
        list(.members)
    )]
    MixedState {
        /// In loop order.
        members: Vec<Incarnation>,
    },
    /// `--target`, `--replace` or `--adopt` names nothing that is declared or recorded.
    #[error("{flag} {resource}: there is no such resource")]
    UnknownId {
        /// The flag.
        flag: &'static str,
        /// The id that was given.
        resource: ResourceId,
    },
    /// `--replace` names what is recorded, but not declared: it is removed, not replaced.
    #[error("{flag} {resource}: it is not declared, so it is removed and nothing takes its place")]
    NotDeclared {
        /// The flag.
        flag: &'static str,
        /// The id that was given.
        resource: ResourceId,
    },
    /// `--replace` or `--adopt` names what `--target`, also when expanded, leaves out.
    #[error("{flag} {resource}: `--target {}` leaves it out", targets(.target))]
    LeftOut {
        /// The flag.
        flag: &'static str,
        /// The id that was given.
        resource: ResourceId,
        /// What `--target` names.
        target: Vec<ResourceId>,
    },
}

fn untaken(ty: &TypeName, is_output: bool) -> String {
    if is_output {
        format!("which the provider of {ty} sets")
    } else {
        format!("which {ty} does not have")
    }
}

fn both_claim(
    (first, first_ty): (&ResourceId, &TypeName),
    (second, ty): (&ResourceId, &TypeName),
    key: &str,
) -> String {
    if first_ty == ty {
        format!("{first} and {second} both claim {ty} {key:?}")
    } else {
        format!(
            "{first} ({first_ty}) and {second} ({ty}) both claim the name {key:?}, which their \
             types share"
        )
    }
}

fn claimed(former: &ResourceId, by: &[Claimant]) -> String {
    let ids: Vec<&ResourceId> = by.iter().map(|claimant| &claimant.resource).collect();
    match ids.as_slice() {
        [own] => format!("{own} names its own id in its `formerly`"),
        [_, _] => format!("{} both claim the id {former}", list(&ids)),
        _ => format!("{} all claim the id {former}", list(&ids)),
    }
}

fn targets(ids: &[ResourceId]) -> String {
    let ids: Vec<&str> = ids.iter().map(ResourceId::as_str).collect();
    ids.join(" --target ")
}

impl PlanProblem {
    /// A value that its field cannot take.
    pub(crate) fn unfit(resource: ResourceId, error: ParamsError, origin: Origin) -> PlanProblem {
        let field = error.field;
        match error.source {
            Unfit::Collect(error) => PlanProblem::BadContribution {
                resource,
                field,
                message: error.to_string(),
                origin,
            },
            Unfit::TooDeep { levels, read_from } => PlanProblem::TooDeep {
                what: format!("`{field}` of {resource}"),
                levels,
                read_from,
                origin,
            },
            Unfit::NoText { found, read_from } => PlanProblem::WrongKind {
                resource,
                field,
                found,
                read_from,
                origin,
            },
        }
    }

    /// Stable code; the page `docs/errors/<code>.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            PlanProblem::Loop(_) => "plan::unbreakable_loop",
            PlanProblem::UnknownType { .. } => "plan::unknown_type",
            PlanProblem::UnknownReference { .. } => "plan::unknown_reference",
            PlanProblem::UnknownOutput { .. } => "plan::unknown_output",
            PlanProblem::UnknownField { .. } => "plan::unknown_field",
            PlanProblem::SecondValue { .. } => "plan::second_value",
            PlanProblem::MissingField { .. } => "plan::missing_field",
            PlanProblem::SecretKey { .. } => "plan::secret_key",
            PlanProblem::BadContribution { .. } => "plan::bad_contribution",
            PlanProblem::TooDeep { .. } => "plan::too_deep",
            PlanProblem::WrongKind { .. } => "plan::wrong_kind",
            PlanProblem::DuplicateIdentity { .. } => "plan::duplicate_identity",
            PlanProblem::ClaimedTwice { .. } => "plan::claimed_twice",
            PlanProblem::Protected { .. } => "plan::protected",
            PlanProblem::HeldByUnknown { .. } => "plan::held_by_unknown",
            PlanProblem::MixedState { .. } => "plan::mixed_state",
            PlanProblem::UnknownId { .. } => "plan::unknown_id",
            PlanProblem::NotDeclared { .. } => "plan::not_declared",
            PlanProblem::LeftOut { .. } => "plan::left_out",
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: fmt::Display>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.to_string(),
        [start @ .., last] => {
            let start: Vec<String> = start.iter().map(T::to_string).collect();
            format!("{} and {last}", start.join(", "))
        }
    }
}
