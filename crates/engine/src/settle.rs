//! Settling a cycle: a bounded repetition of the same step over its members (`engine.md` §4).

use std::collections::BTreeMap;

use notation_model::{Incarnation, Params};
use notation_planner::{
    Cycle, CycleKey, Goal, Role, SettleHistory, SettleWrite, StepKey, Subject, Transition,
    culprits, differing,
};

use crate::{
    EngineEvent, StepError,
    aim::{self, Write},
    run::Run,
    step,
    step_end::StepEnd,
    world::Moment,
};

/// Runs passes until one finds no difference. The last pass only looks.
pub(crate) async fn settle(run: &Run, key: &StepKey, cycle: &CycleKey) -> StepEnd {
    let Some(cycle) = run.cycle(cycle) else {
        return StepEnd::Done(None);
    };
    let started_ms = run.line.session.clock.now_ms();
    let untouched = {
        let world = run.world();
        !cycle
            .members
            .iter()
            .any(|member| world.written.contains(member))
    };
    if untouched {
        return StepEnd::Done(None);
    }
    let before = outputs(run, cycle);
    let mut writes: Vec<SettleWrite> = Vec::new();
    for pass in 1..=cycle.passes {
        let last = pass == cycle.passes;
        let mut written = Vec::new();
        let mut pending = Vec::new();
        for member in &cycle.members {
            let write = settling(member, pass);
            let changed = match differences(run, &write) {
                Ok(changed) => changed,
                Err(end) => return end.of_write(write.key),
            };
            if changed.is_empty() {
                continue;
            }
            if last {
                pending.push((member.clone(), changed));
                continue;
            }
            let write_started_ms = run.line.session.clock.now_ms();
            match step::reach(run, &write).await {
                StepEnd::Done(done) => {
                    let resource = &member.resource;
                    step::tell_done(run, &write.key, resource, done, write_started_ms);
                }
                other => return other.of_write(write.key),
            }
            writes.push(SettleWrite {
                pass,
                member: member.clone(),
                changed,
                outputs: outputs_of(run, member),
            });
            written.push(member.resource.clone());
        }
        let quiet = written.is_empty();
        run.line.session.sink.event(&EngineEvent::SettlePass {
            cycle: cycle.key.clone(),
            pass,
            of: cycle.passes,
            written,
        });
        if !pending.is_empty() {
            return unsettled(run, cycle, &before, &writes, &pending);
        }
        if quiet {
            break;
        }
    }
    let done = (!writes.is_empty()).then_some((Transition::Settle, 1));
    step::tell_done(run, key, &cycle.key.0, done, started_ms);
    StepEnd::Done(done)
}

/// The write of a member in a pass.
fn settling(member: &Incarnation, pass: u32) -> Write<'_> {
    Write {
        key: StepKey {
            subject: Subject::Incarnation(member.clone()),
            role: Role::Settle { pass },
        },
        incarnation: member,
        goal: Goal::Settled,
        moment: Moment::Settling,
    }
}

/// Fields in which a member differs from what the newest outputs ask for.
fn differences(run: &Run, write: &Write<'_>) -> Result<Vec<String>, StepEnd> {
    let world = run.world();
    let Some(record) = world.live.get(write.incarnation) else {
        return Ok(Vec::new());
    };
    let (ty, params) = aim::wanted(run, &world, write)?;
    Ok(differing(ty, &record.applied, &params))
}

fn outputs(run: &Run, cycle: &Cycle) -> BTreeMap<Incarnation, Params> {
    let members = cycle.members.iter();
    members
        .map(|member| (member.clone(), outputs_of(run, member)))
        .collect()
}

fn outputs_of(run: &Run, member: &Incarnation) -> Params {
    let world = run.world();
    let record = world.live.get(member);
    record
        .map(|record| record.outputs.clone())
        .unwrap_or_default()
}

fn unsettled(
    run: &Run,
    cycle: &Cycle,
    before: &BTreeMap<Incarnation, Params>,
    writes: &[SettleWrite],
    pending: &[(Incarnation, Vec<String>)],
) -> StepEnd {
    let history = SettleHistory {
        cycle,
        intended: &run.plan.intended,
        before,
        writes,
        pending,
    };
    let found = culprits(&history, &|member| {
        let intended = run.plan.intended.get(member)?;
        let types = run.line.session.registry.types();
        types.get(&intended.ty).cloned()
    });
    StepEnd::Failed {
        error: StepError::Unsettled(Box::new(found)),
        transition: Transition::Settle,
        attempt: 0,
    }
}
