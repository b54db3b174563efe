//! Runs a plan in a world: the executor's rules without its journal.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{
    Incarnation, OutputRef, Params, Record, Scope, SecretName, Shape, Standing, TypeSet, Value, Via,
};
use notation_planner::{
    Act, Goal, Intended, Plan, Step, StepKey, Subject, contributions_of, decide, params_of,
};

use super::{World, name, program::types};

/// What a run did.
#[derive(Debug, Default)]
pub struct Ran {
    /// Writes in the order of calling, e.g. `create a{b}`.
    pub calls: Vec<String>,
    /// Steps that were done.
    pub done: BTreeSet<StepKey>,
    /// Resources that turned out to be replaced, with the field.
    pub replace: Vec<(Incarnation, String)>,
    /// A cycle had a difference in its last pass.
    pub unsettled: Vec<Incarnation>,
    pub stopped: bool,
}

struct Run<'w, 'p> {
    world: &'w mut World,
    plan: &'p Plan,
    types: TypeSet,
    /// Outputs of each incarnation before its settling: recorded, or after its first step.
    first: BTreeMap<Incarnation, Params>,
    ran: Ran,
    calls_left: usize,
    fails: &'p dyn Fn(&str) -> bool,
}

/// Runs ready steps, chosen by `pick` among so many, until none is left or so many calls are made.
///
/// Errors: what the cloud refused.
pub fn run(
    world: &mut World,
    plan: &Plan,
    pick: &mut dyn FnMut(usize) -> usize,
    calls: usize,
) -> Result<Ran, String> {
    run_failing(world, plan, pick, calls, &|_| false)
}

/// The same; calls for which `fails` is true fail for good, and what depends on them is blocked.
pub fn run_failing(
    world: &mut World,
    plan: &Plan,
    pick: &mut dyn FnMut(usize) -> usize,
    calls: usize,
    fails: &dyn Fn(&str) -> bool,
) -> Result<Ran, String> {
    for forgotten in &plan.forgotten {
        world.records.remove(forgotten);
    }
    for record in &plan.restated {
        world
            .records
            .insert(record.incarnation.clone(), record.clone());
    }
    let first = world
        .records
        .iter()
        .filter(|(_, record)| !record.gone)
        .map(|(incarnation, record)| (incarnation.clone(), record.outputs.clone()))
        .collect();
    let mut run = Run {
        world,
        plan,
        types: types(),
        first,
        ran: Ran::default(),
        calls_left: calls,
        fails,
    };
    let mut open: Vec<&Step> = plan.steps.iter().collect();
    loop {
        let ready: Vec<usize> = (0..open.len())
            .filter(|index| {
                open[*index]
                    .after
                    .iter()
                    .all(|key| run.ran.done.contains(key))
            })
            .collect();
        if ready.is_empty() {
            break;
        }
        let step = open.remove(ready[pick(ready.len())]);
        match run.step(step) {
            Ok(()) => {
                run.ran.done.insert(step.key.clone());
            }
            Err(Halt::Refused(message)) => return Err(format!("{}: {message}", step.key)),
            Err(Halt::Failed) => {}
            Err(Halt::Stopped) => {
                run.ran.stopped = true;
                break;
            }
        }
    }
    Ok(run.ran)
}

enum Halt {
    /// The cloud refused a call.
    Refused(String),
    /// The call was scripted to fail, or the step turned out to be a replacement.
    Failed,
    /// No calls left.
    Stopped,
}

struct Seen<'r> {
    run: &'r Run<'r, 'r>,
    intended: &'r Intended,
    newest: bool,
}

impl Scope for Seen<'_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        let target = &self.intended.refers[&source.resource];
        let same_cycle = self.intended.cycle.is_some()
            && self
                .run
                .plan
                .intended
                .get(target)
                .is_some_and(|peer| peer.cycle == self.intended.cycle);
        let outputs = if same_cycle && !self.newest {
            self.run.first.get(target)
        } else {
            self.run
                .world
                .records
                .get(target)
                .filter(|record| !record.gone)
                .map(|record| &record.outputs)
        };
        let outputs = outputs.unwrap_or_else(|| panic!("{target} has no outputs yet"));
        source.read(outputs)
    }
    fn name(&self) -> Option<Value> {
        None
    }
    fn secret(&self, _: &SecretName) -> Option<Value> {
        None
    }
}

impl Run<'_, '_> {
    fn step(&mut self, step: &Step) -> Result<(), Halt> {
        match (&step.key.subject, step.goal) {
            (Subject::Cycle(key), _) => {
                let cycle = self
                    .plan
                    .cycles
                    .iter()
                    .find(|cycle| cycle.key == *key)
                    .expect("the cycle of a settle step is in the plan");
                let members = cycle.members.clone();
                self.settle(&members, cycle.passes)
            }
            (Subject::Incarnation(who), Goal::Absent) => {
                let record = self.world.records[who].clone();
                self.call(format!("delete {}", name(who)))?;
                self.world
                    .cloud
                    .delete(&record.key)
                    .map_err(Halt::Refused)?;
                self.world.records.remove(who);
                Ok(())
            }
            (Subject::Incarnation(who), goal) => {
                let who = who.clone();
                let live = self.live(&who).is_some();
                let revert = goal == Goal::Placeholder && live;
                self.reach(&who, goal, revert, false)?;
                let outputs = self.world.records[&who].outputs.clone();
                let first = goal == Goal::Placeholder || !self.placeholder_in_plan(&who);
                if first && (!live || revert) {
                    self.first.insert(who, outputs);
                }
                Ok(())
            }
        }
    }

    fn placeholder_in_plan(&self, who: &Incarnation) -> bool {
        self.plan.steps.iter().any(|step| {
            step.goal == Goal::Placeholder && step.key.subject == Subject::Incarnation(who.clone())
        })
    }

    fn live(&self, who: &Incarnation) -> Option<&Record> {
        self.world.records.get(who).filter(|record| !record.gone)
    }

    fn call(&mut self, text: String) -> Result<(), Halt> {
        if self.calls_left == 0 {
            return Err(Halt::Stopped);
        }
        if (self.fails)(&text) {
            return Err(Halt::Failed);
        }
        self.calls_left -= 1;
        self.ran.calls.push(text);
        Ok(())
    }

    /// Brings one incarnation to a goal. True when it was written.
    fn reach(
        &mut self,
        who: &Incarnation,
        goal: Goal,
        revert: bool,
        newest: bool,
    ) -> Result<bool, Halt> {
        if revert {
            let record = self.world.records[who].clone();
            let ty = self.types.get(&record.ty).expect("a known type").clone();
            let params = record.config.clone();
            let written = self.write(who, &ty, goal, &params, "revert")?;
            let record = self.world.records.get_mut(who).expect("it was there");
            record.shape = Shape::Placeholder;
            record.contributions = Vec::new();
            record
                .edges
                .retain(|edge| matches!(edge.via, Via::Config(_)));
            return Ok(written);
        }
        let intended = self.plan.intended[who].clone();
        let ty = self.types.get(&intended.ty).expect("a known type").clone();
        let shape = match goal {
            Goal::Placeholder => Shape::Placeholder,
            Goal::Complete | Goal::Settled | Goal::Absent => Shape::Complete,
        };
        let (params, config, contributions) = {
            let seen = Seen {
                run: self,
                intended: &intended,
                newest,
            };
            (
                params_of(&ty, &intended, shape, &seen).expect("contributions fit"),
                params_of(&ty, &intended, Shape::Placeholder, &seen).expect("config fits"),
                match shape {
                    Shape::Placeholder => Vec::new(),
                    Shape::Complete => contributions_of(&ty, &intended, &seen),
                },
            )
        };
        let written = self.write(who, &ty, goal, &params, "update")?;
        let record = self.world.records.get_mut(who).expect("it is there now");
        record.shape = shape;
        record.config = config;
        record.contributions = contributions;
        record.marks = intended.marks;
        record.can_be_bare = intended.can_be_bare;
        record.edges = intended
            .edges
            .iter()
            .filter(|edge| shape == Shape::Complete || matches!(edge.via, Via::Config(_)))
            .cloned()
            .collect();
        Ok(written)
    }

    fn write(
        &mut self,
        who: &Incarnation,
        ty: &notation_model::ResourceType,
        goal: Goal,
        params: &Params,
        verb: &str,
    ) -> Result<bool, Halt> {
        let act = decide(self.world.records.get(who), goal, ty, params);
        match act {
            Act::Nothing => Ok(false),
            Act::Delete => unreachable!("deletes are steps of their own"),
            Act::Create(params) => {
                self.call(format!("create {}{}", name(who), self.shown(&params)))?;
                let (key, outputs) = self
                    .world
                    .cloud
                    .create(ty, &params)
                    .map_err(Halt::Refused)?;
                let supersedes = &self.plan.intended[who].supersedes;
                if let Some(old) = supersedes
                    .as_ref()
                    .and_then(|old| self.world.records.get_mut(old))
                {
                    old.standing = Standing::Superseded;
                }
                self.world.records.insert(
                    who.clone(),
                    Record {
                        incarnation: who.clone(),
                        ty: ty.name.clone(),
                        shape: Shape::Complete,
                        standing: Standing::Current,
                        key,
                        applied: params,
                        config: Params::new(),
                        contributions: Vec::new(),
                        outputs,
                        edges: Vec::new(),
                        marks: Default::default(),
                        can_be_bare: true,
                        gone: false,
                        in_doubt: false,
                        version: 1,
                    },
                );
                Ok(true)
            }
            Act::Update { params, changed } => {
                let fixed = changed.iter().find(|field| {
                    !ty.updates
                        || ty
                            .fields
                            .get(*field)
                            .is_some_and(|declared| declared.immutable || declared.key)
                });
                if let Some(field) = fixed {
                    self.ran.replace.push((who.clone(), field.clone()));
                    return Err(Halt::Failed);
                }
                self.call(format!("{verb} {}{}", name(who), self.shown(&params)))?;
                let record = self.world.records.get_mut(who).expect("it is recorded");
                let outputs = self
                    .world
                    .cloud
                    .update(ty, &record.key, &params)
                    .map_err(Halt::Refused)?;
                record.applied = params;
                record.outputs = outputs;
                record.in_doubt = false;
                Ok(true)
            }
        }
    }

    fn settle(&mut self, members: &[Incarnation], passes: u32) -> Result<(), Halt> {
        for pass in 1..=passes {
            let mut quiet = true;
            for member in members {
                if pass == passes {
                    if self.differs(member) {
                        self.ran.unsettled.push(member.clone());
                        quiet = false;
                    }
                } else {
                    quiet &= !self.reach(member, Goal::Settled, false, true)?;
                }
            }
            if quiet {
                return Ok(());
            }
        }
        Err(Halt::Failed)
    }

    fn differs(&self, who: &Incarnation) -> bool {
        let intended = &self.plan.intended[who];
        let ty = self.types.get(&intended.ty).expect("a known type");
        let seen = Seen {
            run: self,
            intended,
            newest: true,
        };
        let params = params_of(ty, intended, Shape::Complete, &seen).expect("contributions fit");
        decide(self.world.records.get(who), Goal::Settled, ty, &params) != Act::Nothing
    }

    /// `{b, c}`: the resources whose objects the bindings name.
    fn shown(&self, params: &Params) -> String {
        let mut names: Vec<String> = super::program::referred(params)
            .into_iter()
            .map(|key| {
                self.world
                    .records
                    .values()
                    .find(|record| record.key == key)
                    .map_or(key.clone(), |record| name(&record.incarnation))
            })
            .collect();
        names.sort();
        format!("{{{}}}", names.join(", "))
    }
}
