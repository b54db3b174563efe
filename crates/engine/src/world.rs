//! What a run knows of the records while it goes on, and what a step sees of it.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::{
    Expr, Incarnation, OutputRef, Params, Record, ResourceType, Scope, SecretName, Standing,
    TypeName, Unknown, Value,
};
use notation_planner::{CycleKey, Intended, Plan};
use notation_state::{Call, Change, OpenIntent};

use crate::DoneStep;

/// Records as of the last commit, and the outputs that peers of a cycle see.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Live records: those found gone are not among them.
    pub live: BTreeMap<Incarnation, Record>,
    /// Records found gone whose incarnation may be made again.
    pub gone: BTreeMap<Incarnation, Record>,
    /// Outputs of cycle members before the run.
    before: BTreeMap<Incarnation, Params>,
    /// Outputs after the first step of this plan, of what it creates or reverts.
    first: BTreeMap<Incarnation, Params>,
    /// Intents of earlier runs that a step may take over.
    pub open: BTreeMap<Incarnation, Vec<OpenIntent>>,
    /// Who was written in this run.
    pub written: BTreeSet<Incarnation>,
    /// What was done, in order.
    pub done: Vec<DoneStep>,
}

impl World {
    /// The world as it was found.
    pub(crate) fn new(
        live: BTreeMap<Incarnation, Record>,
        gone: BTreeMap<Incarnation, Record>,
        open: Vec<OpenIntent>,
    ) -> World {
        let mut by_incarnation: BTreeMap<Incarnation, Vec<OpenIntent>> = BTreeMap::new();
        for open in open {
            let of = by_incarnation.entry(open.incarnation().clone());
            of.or_default().push(open);
        }
        World {
            before: BTreeMap::new(),
            first: BTreeMap::new(),
            open: by_incarnation,
            written: BTreeSet::new(),
            done: Vec::new(),
            live,
            gone,
        }
    }

    /// Remembers what peers of a cycle see of each other until its first step: called once the
    /// records stand under the ids of the plan, before any step.
    pub(crate) fn open_cycles(&mut self, plan: &Plan) {
        let in_cycles = plan
            .intended
            .iter()
            .filter(|(_, intended)| intended.cycle.is_some());
        let before = in_cycles.filter_map(|(incarnation, _)| {
            let record = self.live.get(incarnation)?;
            Some((incarnation.clone(), record.outputs.clone()))
        });
        self.before = before.collect();
    }

    /// Takes what earlier runs left open for this incarnation: the intent that the same call
    /// with the same parameters repeats, and those that nobody takes over.
    pub(crate) fn take_over(&mut self, call: Call, draft: &Record) -> TakenOver {
        let mut taken = TakenOver::default();
        for open in self.open.remove(&draft.incarnation).unwrap_or_default() {
            let same = open.intent.call == call
                && (call == Call::Delete || open.intent.draft.applied == draft.applied);
            if same && taken.same.is_none() {
                taken.same = Some(open);
            } else {
                taken.stale.push(open);
            }
        }
        taken
    }

    /// The changes that record an incarnation (see [`changes_for`]).
    pub(crate) fn changes_for(&self, record: Record) -> Vec<Record> {
        let gone = self.gone.get(&record.incarnation);
        changes_for(&self.live, gone.map(|gone| gone.version), record)
    }

    /// The record of what turned out to be gone, one version on.
    pub(crate) fn as_gone(&self, incarnation: &Incarnation) -> Option<Record> {
        let record = self.live.get(incarnation)?;
        Some(Record {
            gone: true,
            version: record.version + 1,
            ..record.clone()
        })
    }

    /// Takes over that something is gone.
    pub(crate) fn lost(&mut self, record: Option<Record>) {
        if let Some(record) = record {
            self.live.remove(&record.incarnation);
            self.gone.insert(record.incarnation.clone(), record);
        }
    }

    /// Takes durable records over.
    pub(crate) fn recorded(&mut self, records: Vec<Record>) {
        for record in records {
            self.gone.remove(&record.incarnation);
            self.live.insert(record.incarnation.clone(), record);
        }
    }

    /// Remembers what peers see of an incarnation after its first step.
    pub(crate) fn first_step_done(&mut self, incarnation: &Incarnation) {
        if let Some(record) = self.live.get(incarnation) {
            let outputs = record.outputs.clone();
            self.first.entry(incarnation.clone()).or_insert(outputs);
        }
    }
}

/// What was left open for an incarnation.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    /// The intent that is repeated.
    pub same: Option<OpenIntent>,
    /// Intents that nobody takes over.
    pub stale: Vec<OpenIntent>,
}

/// The changes that record an incarnation, one version on: a new current one calls the one before
/// it superseded, in the same commit (`engine.md` §6), and one that is known keeps its standing.
/// `gone` is the version it had when it was found gone.
pub(crate) fn changes_for(
    records: &BTreeMap<Incarnation, Record>,
    gone: Option<u64>,
    mut record: Record,
) -> Vec<Record> {
    let recorded = records.get(&record.incarnation);
    let version = recorded.map(|recorded| recorded.version).or(gone);
    record.version = version.map_or(1, |version| version + 1);
    let known = recorded.filter(|recorded| !recorded.gone);
    if let Some(known) = known {
        record.standing = known.standing;
    }
    let first = Incarnation {
        resource: record.incarnation.resource.clone(),
        generation: 0,
    };
    let mut changes = vec![];
    if known.is_none() && record.standing == Standing::Current {
        let others = records
            .range(first..)
            .take_while(|(other, _)| other.resource == record.incarnation.resource)
            .filter(|(other, before)| {
                **other != record.incarnation && before.standing == Standing::Current
            });
        changes.extend(others.map(|(_, before)| Record {
            standing: Standing::Superseded,
            version: before.version + 1,
            ..before.clone()
        }));
    }
    changes.insert(0, record);
    changes
}

/// The record of the object of a type that has this key. An object has one record.
pub(crate) fn recorded_as<'r>(
    records: &'r BTreeMap<Incarnation, Record>,
    ty: &TypeName,
    key: &str,
) -> Option<&'r Record> {
    let mut live = records.values().filter(|record| !record.gone);
    live.find(|record| record.ty == *ty && record.key == *key)
}

/// Records as changes.
pub(crate) fn puts(records: &[Record]) -> Vec<Change> {
    records.iter().cloned().map(Change::put).collect()
}

/// Which outputs are seen (`engine.md` §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Peers of the cycle as after their first step of this plan, or as before the run.
    Step,
    /// Everything at its newest.
    Settling,
}

/// What one staying incarnation sees.
pub(crate) struct Seen<'a> {
    pub world: &'a World,
    pub plan: &'a Plan,
    pub secrets: &'a BTreeMap<SecretName, Value>,
    pub ty: &'a ResourceType,
    pub reader: &'a Intended,
    pub moment: Moment,
}

impl Seen<'_> {
    fn is_peer(&self, cycle: Option<&CycleKey>) -> bool {
        cycle.is_some() && cycle == self.reader.cycle.as_ref()
    }
}

impl Scope for Seen<'_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        let unknown = || Some(Unknown::output(source.clone()).into());
        let Some(target) = self.reader.refers.get(&source.resource) else {
            return unknown();
        };
        let cycle = self
            .plan
            .intended
            .get(target)
            .and_then(|intended| intended.cycle.as_ref());
        let seen = match self.moment {
            Moment::Step if self.is_peer(cycle) => {
                let world = self.world;
                world.first.get(target).or_else(|| world.before.get(target))
            }
            Moment::Step | Moment::Settling => {
                self.world.live.get(target).map(|record| &record.outputs)
            }
        };
        match seen {
            Some(outputs) => source.read(outputs),
            None => unknown(),
        }
    }

    fn name(&self) -> Option<Value> {
        let (field, _) = self.ty.key_field()?;
        match self.reader.config.get(field) {
            Some(Expr::Known(name)) => Some(name.clone()),
            _ => None,
        }
    }

    fn secret(&self, name: &SecretName) -> Option<Value> {
        self.secrets.get(name).cloned()
    }
}

/// What the exports of the entry see: the current incarnation of everything.
pub(crate) struct Exported<'a> {
    pub world: &'a World,
    pub secrets: &'a BTreeMap<SecretName, Value>,
}

impl Scope for Exported<'_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        let first = Incarnation {
            resource: source.resource.clone(),
            generation: 0,
        };
        let current = self
            .world
            .live
            .range(first..)
            .take_while(|(incarnation, _)| incarnation.resource == source.resource)
            .filter(|(_, record)| record.standing == Standing::Current)
            .last();
        match current {
            Some((_, record)) => source.read(&record.outputs),
            None => Some(Unknown::output(source.clone()).into()),
        }
    }

    fn name(&self) -> Option<Value> {
        None
    }

    fn secret(&self, name: &SecretName) -> Option<Value> {
        self.secrets.get(name).cloned()
    }
}
