//! What is written before the first step of a run and after its last one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use notation_model::{DEEPEST_VALUE, Incarnation, Record, Value};
use notation_planner::{Recorded, Subject};
use notation_state::{Change, StoreError};

use crate::{StepError, run::Run};

/// What changes without any call, in one commit before the first step: records under new ids or
/// with new edges, those found gone, intents that nobody takes over.
pub(crate) async fn open_books(run: &Run) -> Result<(), StepError> {
    let mut entries = Vec::new();
    let mut changes = Vec::new();
    {
        let mut world = run.world();
        for incarnation in &run.plan.forgotten {
            world.live.remove(incarnation);
            world.gone.remove(incarnation);
            changes.push(Change::Remove(incarnation.clone()));
        }
        for record in &run.plan.restated {
            let known = world
                .live
                .get(&record.incarnation)
                .or_else(|| world.gone.get(&record.incarnation));
            let before = known.map_or(record.version, |known| known.version);
            let record = Record {
                version: before + 1,
                ..record.clone()
            };
            changes.push(Change::put(record.clone()));
            world.live.remove(&record.incarnation);
            world.gone.remove(&record.incarnation);
            let into = match record.gone {
                true => &mut world.gone,
                false => &mut world.live,
            };
            into.insert(record.incarnation.clone(), record);
        }
        world.open_cycles(&run.plan);
        let subjects: BTreeSet<&Incarnation> = run
            .plan
            .steps
            .iter()
            .filter_map(|step| match &step.key.subject {
                Subject::Incarnation(incarnation) => Some(incarnation),
                Subject::Cycle(_) => None,
            })
            .chain(run.plan.cycles.iter().flat_map(|cycle| &cycle.members))
            .collect();
        world.open.retain(|incarnation, open| {
            let wanted = subjects.contains(incarnation)
                || run
                    .before
                    .failed
                    .contains_key(&Subject::Incarnation(incarnation.clone()));
            if !wanted {
                entries.extend(open.iter().map(|open| run.line.closed(open)));
            }
            wanted
        });
    }
    if entries.is_empty() && changes.is_empty() {
        return Ok(());
    }
    run.line.append(entries, changes).await
}

/// Of what the plan was to record of ids and marks, what is recorded by now: marks of what is
/// written come with its write, which may have failed.
pub(crate) fn recorded_by_now(run: &Run) -> Vec<Recorded> {
    let world = run.world();
    let announced = run.plan.recorded.iter().cloned();
    let as_recorded = announced.map(|one| {
        let first = Incarnation {
            resource: one.resource.clone(),
            generation: 0,
        };
        let last = world
            .live
            .range(first..)
            .take_while(|(incarnation, _)| incarnation.resource == one.resource)
            .last();
        let marks = last.map(|(_, record)| record.marks).unwrap_or_default();
        Recorded {
            protect: one.protect.filter(|now| *now == marks.protect),
            never_bare: one.never_bare.filter(|now| *now == marks.never_bare),
            ..one
        }
    });
    as_recorded.filter(|one| !one.is_nothing()).collect()
}

/// After a run that did everything: the exports, and intents of earlier runs that no step had to
/// take over.
pub(crate) async fn close_books(
    run: &Run,
    before: &BTreeMap<String, Value>,
    exports: &BTreeMap<String, Value>,
) -> Result<(), StepError> {
    let line = &run.line;
    if let Some(error) = too_deep(exports) {
        return Err(StepError::Store(Arc::new(error)));
    }
    let open = std::mem::take(&mut run.world().open);
    let entries: Vec<_> = open
        .values()
        .flatten()
        .map(|open| line.closed(open))
        .collect();
    let mut changes = Vec::new();
    if exports != before {
        changes.push(Change::Exports(exports.clone()));
    }
    if entries.is_empty() && changes.is_empty() {
        return Ok(());
    }
    line.append(entries, changes).await
}

/// An export that turned out to nest deeper than a value may; none of them is stored then.
fn too_deep(exports: &BTreeMap<String, Value>) -> Option<StoreError> {
    let depths = exports.iter().map(|(name, value)| (name, value.depth()));
    let mut deep = depths.filter(|(_, levels)| *levels > DEEPEST_VALUE);
    let (name, levels) = deep.next()?;
    Some(StoreError::TooDeep {
        what: format!("the export `{name}`"),
        levels,
        most: DEEPEST_VALUE,
    })
}
