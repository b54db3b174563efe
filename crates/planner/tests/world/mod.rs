//! An executable model for tests of the planner: programs as one line of text, a strict cloud
//! with records beside it, and a runner that takes the ready steps in any order.
//!
//! The cloud is stricter than real ones: it refuses names that are taken, references to what is
//! not there, deletes of what is referred to, and changes of what cannot change.

#![allow(dead_code, reason = "each test file uses its own part of the model")]

pub mod check;
pub mod cloud;
pub mod program;
pub mod random;
pub mod run;

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{Incarnation, Record, SecretName, Value};
use notation_planner::{
    Observation, Observed, Plan, PlanError, PlanInput, PlanOptions, Prior, Role, Subject,
    Transition,
};

pub use cloud::Cloud;
pub use program::{program, types};

/// State and cloud of one deployment.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub records: BTreeMap<Incarnation, Record>,
    pub cloud: Cloud,
    /// Names of objects whose tags name somebody else.
    pub foreign: BTreeSet<String>,
}

/// How bringing a world to a program ended.
pub enum Outcome {
    /// All calls, sorted.
    Done(Vec<String>),
    Refused(PlanError),
}

impl World {
    /// A world in which this program was deployed.
    pub fn of(text: &str) -> World {
        let mut world = World::default();
        world.deploy(text);
        world
    }

    /// Plans and runs everything; panics when a call is refused.
    pub fn deploy(&mut self, text: &str) -> Vec<String> {
        self.deploy_with(text, &PlanOptions::default(), usize::MAX)
    }

    /// Stops after so many calls.
    pub fn deploy_with(&mut self, text: &str, options: &PlanOptions, calls: usize) -> Vec<String> {
        let plan = self.plan_with(text, options).expect("the plan is accepted");
        run::run(self, &plan, &mut |_| 0, calls)
            .expect("the cloud accepts every call")
            .calls
    }

    /// The plan in full, or why there is none.
    pub fn detail(&self, text: &str) -> String {
        match self.plan(text) {
            Ok(plan) => detail(&plan),
            Err(error) => error
                .problems
                .iter()
                .map(|problem| format!("{}: {problem}\n  help: {}", problem.code(), problem.help()))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    pub fn plan(&self, text: &str) -> Result<Plan, PlanError> {
        self.plan_with(text, &PlanOptions::default())
    }

    pub fn plan_with(&self, text: &str, options: &PlanOptions) -> Result<Plan, PlanError> {
        self.plan_graph(&program(text), options)
    }

    pub fn plan_graph(
        &self,
        desired: &notation_model::DesiredGraph,
        options: &PlanOptions,
    ) -> Result<Plan, PlanError> {
        self.asked(desired, options, notation_planner::plan)
    }

    /// Answers what is asked of the input that a plan of this program is made from.
    pub fn asked<T>(
        &self,
        desired: &notation_model::DesiredGraph,
        options: &PlanOptions,
        ask: impl FnOnce(&PlanInput<'_>) -> T,
    ) -> T {
        let prior = Prior {
            records: self.records.clone(),
        };
        let secrets: BTreeMap<SecretName, Value> = BTreeMap::new();
        ask(&PlanInput {
            deployment: &"shop:dev:main".parse().expect("a good id"),
            types: &types(),
            desired,
            prior: &prior,
            observed: &self.observe(),
            secrets: &secrets,
            options,
        })
    }

    /// Deploys to the end in a random order, planning once more when a value turned out to
    /// replace something. Errors: what went wrong, with the plan.
    pub fn bring_to(&mut self, text: &str, dice: &mut Dice) -> Result<Outcome, String> {
        self.bring_to_with(text, PlanOptions::default(), dice)
    }

    /// The same, with what a person asks for besides.
    pub fn bring_to_with(
        &mut self,
        text: &str,
        mut options: PlanOptions,
        dice: &mut Dice,
    ) -> Result<Outcome, String> {
        let mut calls = Vec::new();
        for _ in 0..8 {
            let plan = match self.plan_with(text, &options) {
                Ok(plan) => plan,
                Err(error) => return Ok(Outcome::Refused(error)),
            };
            let shown = line(&plan);
            let ran = run::run(self, &plan, &mut |sides| dice.roll(sides), usize::MAX)
                .map_err(|message| format!("{message}\n  plan: {shown}\n  program: {text}"))?;
            calls.extend(ran.calls);
            if !ran.unsettled.is_empty() {
                return Err(format!("unsettled {:?}\n  program: {text}", ran.unsettled));
            }
            if ran.replace.is_empty() {
                calls.sort();
                return Ok(Outcome::Done(calls));
            }
            for (incarnation, field) in ran.replace {
                let announced = plan
                    .intended
                    .get(&incarnation)
                    .is_some_and(|intended| intended.may_replace.contains(&field));
                if !announced {
                    return Err(format!(
                        "{incarnation}.{field} replaces without a word\n  plan: {shown}\n  program: {text}"
                    ));
                }
                options.replace.insert(incarnation.resource);
            }
        }
        Err(format!("replaced again and again: {text}"))
    }

    /// What reads would say of every record.
    pub fn observe(&self) -> Observed {
        let types = types();
        // Nobody can look at what has an unknown type.
        let known = |record: &Record| types.get(&record.ty).is_some();
        let records = self.records.iter().filter(|(_, record)| known(record));
        let found = records.map(|(incarnation, record)| {
            let seen = match self.cloud.objects.get(record.key.as_str()) {
                Some(_) if self.foreign.contains(record.key.as_str()) => Observation::Foreign {
                    owner: "other:dev:main (resource x)".to_owned(),
                },
                Some(object) if object.ty == record.ty => Observation::There {
                    params: object.params.clone(),
                    outputs: object.outputs.clone(),
                },
                Some(_) | None => Observation::Gone,
            };
            (incarnation.clone(), seen)
        });
        Observed(found.collect())
    }

    /// Somebody at the console deletes the object of a resource.
    pub fn delete_by_hand(&mut self, resource: &str) {
        let keys: Vec<String> = self
            .records
            .values()
            .filter(|record| record.incarnation.resource.as_str() == resource)
            .map(|record| record.key.to_string())
            .collect();
        for key in keys {
            self.cloud.objects.remove(&key);
        }
    }

    /// The plan as one line, or why there is none.
    pub fn line(&self, text: &str) -> String {
        self.line_with(text, &PlanOptions::default())
    }

    pub fn line_with(&self, text: &str, options: &PlanOptions) -> String {
        match self.plan_with(text, options) {
            Ok(plan) => line(&plan),
            Err(error) => format!("refused: {error}"),
        }
    }
}

/// `create a (placeholder), create b, update a, settle`; a step that may write has a `?`. Without
/// a step, `record a b` or `nothing`.
pub fn line(plan: &Plan) -> String {
    if plan.steps.is_empty() {
        let whose = plan.recorded.iter().map(|one| one.resource.as_str());
        return match whose.collect::<Vec<_>>().join(" ") {
            nobody if nobody.is_empty() => "nothing".to_owned(),
            somebody => format!("record {somebody}"),
        };
    }
    let words: Vec<String> = plan
        .steps
        .iter()
        .map(|step| {
            let name = match &step.key.subject {
                Subject::Incarnation(incarnation) => name(incarnation),
                Subject::Cycle(_) => return "settle".to_owned(),
            };
            match (step.forecast.transition, step.key.role) {
                (Transition::Create, Role::Placeholder) => format!("create {name} (placeholder)"),
                (Transition::Create, _) => format!("create {name}"),
                (Transition::Update, _) => format!("update {name}"),
                (Transition::Unknown, _) => format!("update {name}?"),
                (Transition::Revert, _) => format!("revert {name}"),
                (Transition::Delete, _) => format!("delete {name}"),
                (Transition::None | Transition::Settle, _) => format!("nothing {name}"),
            }
        })
        .collect();
    words.join(", ")
}

/// One line per step with its reason, changes and what it leaves out; then notes.
pub fn detail(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (step, words) in plan.steps.iter().zip(line(plan).split(", ")) {
        let mut text = format!("{words} [{:?}]", step.why);
        for change in &step.forecast.changes {
            let shown = |value: &Option<Value>| match value {
                Some(value) => value.to_display_json().to_string(),
                None => "unset".to_owned(),
            };
            text += &format!(
                "\n  {}: {} -> {}",
                change.path,
                shown(&change.before),
                shown(&change.after)
            );
        }
        if !step.forecast.leaves_out.is_empty() {
            text += &format!("\n  without {}", step.forecast.leaves_out.join(", "));
        }
        lines.push(text);
    }
    for cycle in &plan.cycles {
        let names = |members: &[Incarnation]| -> Vec<String> { members.iter().map(name).collect() };
        lines.push(format!(
            "{}: {}, at most {} passes, may write {:?}",
            cycle.key,
            names(&cycle.members).join(" "),
            cycle.passes,
            names(&cycle.may_write)
        ));
    }
    for note in &plan.notes {
        lines.push(format!("note {}: {}", note.code, note.message));
    }
    lines.join("\n")
}

/// `a`, `a'`, `a''`.
pub fn name(incarnation: &Incarnation) -> String {
    format!(
        "{}{}",
        incarnation.resource,
        "'".repeat(incarnation.generation as usize)
    )
}

/// Numbers that look random and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Below `sides`, which is at least 1.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}
