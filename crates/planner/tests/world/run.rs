//! Runs a plan in a world: the executor's rules without its journal.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{
    Incarnation, OutputRef, Params, Record, RecordedEdge, Scope, SecretName, Shape, Standing,
    TypeSet, Value, Via,
};
use notation_planner::{
    Act, Goal, Intended, Plan, Step, StepKey, Subject, contributions_of, decide, params_of,
    reverted,
};

use super::{World, name, program::types};

/// What a run did.
#[derive(Debug, Default)]
pub struct Ran {
    /// Writes in the order of calling, e.g. `create a{b}`.
    pub calls: Vec<String>,
    /// Steps that were done.
    pub done: BTreeSet<StepKey>,
    /// The same in order.
    pub order: Vec<StepKey>,
    /// Steps that were tried in vain.
    pub failed: Vec<StepKey>,
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
    end: End,
}

/// What becomes of the call for which no more are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is never made.
    Between,
    /// Its change happens, and nobody hears of it.
    Unheard,
    /// It was started and nothing happens.
    Lost,
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
    start(world, plan, pick, calls, &|_| false, End::Between)
}

/// The same, ending in the middle of a call.
pub fn run_until(
    world: &mut World,
    plan: &Plan,
    pick: &mut dyn FnMut(usize) -> usize,
    calls: usize,
    end: End,
) -> Result<Ran, String> {
    start(world, plan, pick, calls, &|_| false, end)
}

/// The same; calls for which `fails` is true fail for good, and what depends on them is blocked.
pub fn run_failing(
    world: &mut World,
    plan: &Plan,
    pick: &mut dyn FnMut(usize) -> usize,
    calls: usize,
    fails: &dyn Fn(&str) -> bool,
) -> Result<Ran, String> {
    start(world, plan, pick, calls, fails, End::Between)
}

fn start(
    world: &mut World,
    plan: &Plan,
    pick: &mut dyn FnMut(usize) -> usize,
    calls: usize,
    fails: &dyn Fn(&str) -> bool,
    end: End,
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
        end,
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
                run.ran.order.push(step.key.clone());
            }
            Err(Halt::Refused(message)) => return Err(format!("{}: {message}", step.key)),
            Err(Halt::Failed) => run.ran.failed.push(step.key.clone()),
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

fn stop_after(last: Option<End>) -> Result<(), Halt> {
    match last {
        Some(_) => Err(Halt::Stopped),
        None => Ok(()),
    }
}

fn shape_of(goal: Goal) -> Shape {
    match goal {
        Goal::Placeholder => Shape::Placeholder,
        Goal::Complete | Goal::Settled | Goal::Absent => Shape::Complete,
    }
}

fn edges_of(intended: &Intended, shape: Shape) -> Vec<RecordedEdge> {
    intended
        .edges
        .iter()
        .filter(|edge| shape == Shape::Complete || matches!(edge.via, Via::Config(_)))
        .cloned()
        .collect()
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
                let last = self.call(format!("delete {}", name(who)))?;
                if last != Some(End::Lost) {
                    self.world
                        .cloud
                        .delete(&record.key)
                        .map_err(Halt::Refused)?;
                    // Recovery reads: absent is gone, there is as recorded.
                    self.world.records.remove(who);
                }
                stop_after(last)
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

    /// Notes a call. The answer tells how it ends when it is the last one.
    fn call(&mut self, text: String) -> Result<Option<End>, Halt> {
        if self.calls_left == 0 {
            if self.end == End::Between {
                return Err(Halt::Stopped);
            }
            self.ran.calls.push(format!("{text} ({:?})", self.end));
            return Ok(Some(self.end));
        }
        if (self.fails)(&text) {
            return Err(Halt::Failed);
        }
        self.calls_left -= 1;
        self.ran.calls.push(text);
        Ok(None)
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
            let params = reverted(&ty, &record);
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
        let shape = shape_of(goal);
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
        let existed = self.live(who).is_some();
        let written = self.write(who, &ty, goal, &params, "update");
        // An update in doubt keeps the config of before.
        if (written.is_ok() || !existed)
            && let Some(record) = self.world.records.get_mut(who)
        {
            record.config = config;
            record.contributions = contributions;
        }
        if written.is_ok() {
            self.record(who, goal);
        }
        written
    }

    /// Records shape, marks and edges of what was written.
    fn record(&mut self, who: &Incarnation, goal: Goal) {
        let intended = &self.plan.intended[who];
        let record = self.world.records.get_mut(who).expect("it is there now");
        record.shape = shape_of(goal);
        record.marks = intended.marks;
        record.can_be_bare = intended.can_be_bare;
        record.edges = edges_of(intended, record.shape);
    }

    /// An update without an answer: edges of before and after.
    fn doubt(&mut self, who: &Incarnation, goal: Goal) {
        let record = self.world.records.get_mut(who).expect("it is recorded");
        record.in_doubt = true;
        // A revert only lets go.
        if let (Some(intended), Goal::Complete | Goal::Settled) =
            (self.plan.intended.get(who), goal)
        {
            record.can_be_bare &= intended.can_be_bare;
            for edge in edges_of(intended, Shape::Complete) {
                if !record.edges.contains(&edge) {
                    record.edges.push(edge);
                }
            }
        }
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
                let last = self.call(format!("create {}{}", name(who), self.shown(&params)))?;
                if last == Some(End::Lost) {
                    return Err(Halt::Stopped);
                }
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
                        key: key.into(),
                        applied: params,
                        config: Params::new(),
                        contributions: Vec::new(),
                        outputs,
                        edges: Vec::new(),
                        marks: Default::default(),
                        can_be_bare: true,
                        gone: false,
                        in_doubt: false,
                        former: Vec::new(),
                        taken_from: None,
                        version: 1,
                    },
                );
                if last.is_some() {
                    // Recovery finds it and records it as it was meant to be.
                    self.record(who, goal);
                }
                stop_after(last).map(|()| true)
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
                let last = self.call(format!("{verb} {}{}", name(who), self.shown(&params)))?;
                let key = self.world.records[who].key.clone();
                if last == Some(End::Lost) {
                    self.doubt(who, goal);
                    return Err(Halt::Stopped);
                }
                let outputs = self
                    .world
                    .cloud
                    .update(ty, &key, &params)
                    .map_err(Halt::Refused)?;
                if last.is_some() {
                    self.doubt(who, goal);
                    return Err(Halt::Stopped);
                }
                let record = self.world.records.get_mut(who).expect("it is recorded");
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
