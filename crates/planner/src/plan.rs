//! Plans as data (`engine.md` §3).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use notation_model::{
    Contribution, DeploymentId, DesiredGraph, Expr, Incarnation, Map, Marks, OutputRef, Params,
    Record, RecordedEdge, ResourceId, SecretName, TypeName, TypeSet, Value,
};

/// Everything a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// Which deployment; names depend on it.
    pub deployment: &'a DeploymentId,
    /// Every registered type.
    pub types: &'a TypeSet,
    /// What the program asks for; empty to destroy.
    pub desired: &'a DesiredGraph,
    /// What state knows.
    pub prior: &'a Prior,
    /// What the providers said; empty when nobody was asked.
    pub observed: &'a Observed,
    /// Secrets of the deployment in clear; planning compares them and never shows them.
    pub secrets: &'a BTreeMap<SecretName, Value>,
    /// What the person asked for besides.
    pub options: &'a PlanOptions,
}

/// Records by incarnation, superseded ones included, and what recovery left.
#[derive(Debug, Clone, Default)]
pub struct Prior {
    /// All records.
    pub records: BTreeMap<Incarnation, Record>,
}

/// What was found at the providers.
#[derive(Debug, Clone, Default)]
pub struct Observed(pub BTreeMap<Incarnation, Observation>);

/// What one read found.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// There is no such object any more.
    Gone,
    /// There is one under its key, and its tags name somebody else: ours is gone.
    Foreign {
        /// Whom they name, for people.
        owner: String,
    },
    /// It is there, with these parameters and outputs.
    There {
        /// Parameters as the provider has them.
        params: Params,
        /// Outputs as the provider has them.
        outputs: Params,
    },
}

/// What the person asked for besides the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptions {
    /// Resources whose objects are replaced whether anything of them changed or not (`--replace`).
    /// Each must be declared and recorded.
    pub replace: BTreeSet<ResourceId>,
    /// What running found to need a replacement, and the fields that turned out different
    /// (`engine.md` §6, *Found while running*).
    pub turned_out: BTreeMap<ResourceId, Vec<String>>,
    /// Resources whose objects this run leaves alone: what replaces one by its values is told as
    /// *may replace*, and nothing makes room for it.
    pub left: BTreeSet<ResourceId>,
    /// Resources whose objects may be taken from whoever owns them (`--adopt`). The planner only
    /// sees to it that they are known and part of this plan.
    pub adopt: BTreeSet<ResourceId>,
    /// The plan is about these resources, what they refer to, and what cannot stay as it is
    /// without being part of it; everything else is left alone (`--target`). Empty means
    /// everything.
    pub target: BTreeSet<ResourceId>,
    /// How long to look for the fewest placeholders of a cycle: search steps per strongly
    /// connected part, after which a good choice is taken in place of the best (5000).
    pub search_budget: u32,
}

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions {
            replace: BTreeSet::new(),
            turned_out: BTreeMap::new(),
            left: BTreeSet::new(),
            adopt: BTreeSet::new(),
            target: BTreeSet::new(),
            search_budget: 5000,
        }
    }
}

/// An ordered set of steps. Steps stand in an order that is allowed; `after` has the whole truth.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which deployment.
    pub deployment: DeploymentId,
    /// Steps in forecast order (a topological order, ties by declaration).
    pub steps: Vec<Step>,
    /// Cycles of the program that have something to settle.
    pub cycles: Vec<Cycle>,
    /// Remarks for people.
    pub notes: Vec<Note>,
    /// What each staying incarnation shall be that has a step or belongs to a settling cycle:
    /// the executor resolves and records from this.
    pub intended: BTreeMap<Incarnation, Intended>,
    /// Records whose edges, marks, standing or id change without any provider call. Applied in
    /// one commit at the start of the run.
    pub restated: Vec<Record>,
    /// Records to drop in the commit of `restated`: found gone and not made again, or renamed
    /// (`formerly`; the record under its new id is in `restated`).
    pub forgotten: Vec<Incarnation>,
    /// What people wrote that is recorded otherwise: ids and marks, with a call of the resource or
    /// without one. By id.
    pub recorded: Vec<Recorded>,
    /// Resources that are as they should be: no step of theirs writes or may write, and nothing of
    /// theirs is in `recorded`.
    pub unchanged: usize,
    /// Exports of the program, resolved after the run.
    pub exports: BTreeMap<String, Expr>,
}

/// What will be recorded otherwise of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Which one, by its id of today.
    pub resource: ResourceId,
    /// The id under which it is recorded, when that is another one.
    pub formerly: Option<ResourceId>,
    /// Whether it is protected from now on, when that changes.
    pub protect: Option<bool>,
    /// Whether it must never be a placeholder from now on, when that changes.
    pub never_bare: Option<bool>,
}

impl Recorded {
    pub(crate) fn of(resource: &ResourceId) -> Recorded {
        Recorded {
            resource: resource.clone(),
            formerly: None,
            protect: None,
            never_bare: None,
        }
    }

    /// Whether there is nothing.
    pub fn is_nothing(&self) -> bool {
        self.formerly.is_none() && self.protect.is_none() && self.never_bare.is_none()
    }
}

/// What a staying incarnation shall be.
#[derive(Debug, Clone)]
pub struct Intended {
    /// Its type.
    pub ty: TypeName,
    /// Config, with the key filled in (`Expr::Known` generated or written name).
    pub config: Map<Expr>,
    /// Contributions in call order.
    pub contributions: Vec<Contribution>,
    /// Edges to record when it is complete, each to the incarnation that is meant.
    pub edges: Vec<RecordedEdge>,
    /// Marks to record.
    pub marks: Marks,
    /// Whether it can be bare.
    pub can_be_bare: bool,
    /// Position in the declaration order.
    pub position: usize,
    /// The cycle it belongs to.
    pub cycle: Option<CycleKey>,
    /// The incarnation that it takes over from: superseded with its creation, when it is still
    /// recorded then.
    pub supersedes: Option<Incarnation>,
    /// Fields that may turn out to replace it, when a value is known (`engine.md` §6).
    pub may_replace: Vec<String>,
    /// Which incarnation each referred resource means.
    pub refers: BTreeMap<ResourceId, Incarnation>,
}

/// Name of a cycle: its first declared member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CycleKey(pub ResourceId);

impl fmt::Display for CycleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle:{}", self.0)
    }
}

/// Who a step is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One incarnation.
    Incarnation(Incarnation),
    /// A whole cycle.
    Cycle(CycleKey),
}

/// Which of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reach the placeholder.
    Placeholder,
    /// Reach the complete shape.
    Complete,
    /// Be gone.
    Absent,
    /// Settle a cycle; the pass of a single write, from 1, or 0 for the step itself.
    Settle {
        /// From 1; 0 names the whole step.
        pass: u32,
    },
}

/// A step's name: a function of subject, role and pass, never of the order of running.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey {
    /// Who.
    pub subject: Subject,
    /// Which step.
    pub role: Role,
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Incarnation(incarnation) => {
                write!(f, "{}:{}", incarnation.resource, incarnation.generation)?
            }
            Subject::Cycle(cycle) => write!(f, "{cycle}")?,
        }
        match self.role {
            Role::Placeholder => f.write_str(":placeholder"),
            Role::Complete => f.write_str(":complete"),
            Role::Absent => f.write_str(":absent"),
            Role::Settle { pass: 0 } => f.write_str(":settle"),
            Role::Settle { pass } => write!(f, ":settle:{pass}"),
        }
    }
}

/// What a step must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Goal {
    /// Config without contributions, live.
    Placeholder,
    /// Everything, live.
    Complete,
    /// Gone.
    Absent,
    /// A cycle whose members are up to date with each other.
    Settled,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name.
    pub key: StepKey,
    /// What it must reach.
    pub goal: Goal,
    /// Steps that come before it, sorted, each once.
    pub after: Vec<StepKey>,
    /// Why it is there.
    pub why: Why,
    /// What is expected to happen.
    pub forecast: Forecast,
}

/// Why a step is in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The program asks for it and it is not there.
    New,
    /// It was found gone.
    Gone,
    /// It differs from the program.
    Changed,
    /// It differs at the provider.
    Drift,
    /// It takes over from another incarnation.
    Replaces {
        /// Fields, or what drags it along, for people.
        because: Vec<String>,
    },
    /// It was replaced by another incarnation.
    Replaced,
    /// The program does not ask for it any more.
    Removed,
    /// A loop of steps is opened here (`engine.md` §3).
    OpensLoop,
    /// It must let go of something that is removed.
    LetsGo,
    /// It looks as it should, and nobody knows whether it is: its last write was cut off, or its
    /// tags are another's or lost. It is written in full.
    InDoubt,
    /// A cycle settles.
    Settles,
    /// It is as it should be.
    Unchanged,
}

/// What is expected of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Expected transition.
    pub transition: Transition,
    /// Expected changes per field, in field order. For a placeholder create: what is written.
    pub changes: Vec<Change>,
    /// Fields a placeholder leaves out.
    pub leaves_out: Vec<String>,
}

/// Names of transitions (`spec/cli.md`, *JSON*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transition {
    /// Make it.
    Create,
    /// Change it.
    Update,
    /// Change it back to its placeholder.
    Revert,
    /// Remove it.
    Delete,
    /// Nothing to do.
    None,
    /// An update (or replacement) that only a value known later decides.
    Unknown,
    /// A settle step: members that may be written again.
    Settle,
}

/// One field that changes. Values may be unknown or secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The field.
    pub path: String,
    /// Before; `None` when it was not set.
    pub before: Option<Value>,
    /// After; `None` when it is unset.
    pub after: Option<Value>,
}

/// A cycle of the program: a strongly connected part, or a resource that refers to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// Its name.
    pub key: CycleKey,
    /// Members in the order in which the plan completes them.
    pub members: Vec<Incarnation>,
    /// Members that are created as placeholders or reverted in this plan.
    pub placeholders: Vec<Incarnation>,
    /// Members that the settle step may write (again), in completing order.
    pub may_write: Vec<Incarnation>,
    /// At most so many passes: members + 1.
    pub passes: u32,
}

/// A remark for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// e.g. `placeholder_live`, `unavailable_while_replaced`, `name_cut`, `waived_holder`,
    /// `drift`, `unknown_type`, `left_in_place`, `may_replace`, `secret_in_clear`,
    /// `greedy_choice`.
    pub code: &'static str,
    /// Whom it is about.
    pub resource: Option<ResourceId>,
    /// What is said.
    pub message: String,
    /// Outputs or fields it is about.
    pub about: Vec<OutputRef>,
}
