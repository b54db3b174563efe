//! What a target takes in at once is what planning would ask for one round after the other.

use std::collections::BTreeSet;

use notation_model::ResourceId;

use super::{Scope, left_out, unknown_ids};
use crate::{
    Plan, PlanInput, PlanOptions,
    declared::declared,
    judge,
    past::{self, History},
    planning::{NoPlan, expanded, plan, plan_scope},
    program::Program,
    refusal::fail_on,
    world::{
        Dice, World,
        program::id,
        random::{Sketch, next},
    },
};

#[test]
fn a_target_takes_in_what_one_round_after_the_other_asks_for() {
    let mut widened = 0;
    for seed in 0..300 {
        let dice = &mut Dice::new(seed);
        let mut world = World::default();
        let mut program = Sketch::default();
        for _ in 0..4 {
            program = next(dice, &program, 6);
            let text = match dice.one_in(4) {
                true => String::new(),
                false => program.to_string(),
            };
            let mut seen = world.clone();
            if dice.one_in(4) {
                let at = dice.roll(seen.records.len().max(1));
                if let Some(record) = seen.records.values_mut().nth(at) {
                    record.ty = "other/Thing".parse().expect("a good type");
                }
            }
            for target in ["a", "b", "c", "d", "e", "f"] {
                let replace = dice.one_in(4).then(|| id(target));
                let options = PlanOptions {
                    target: [id(target)].into(),
                    replace: replace.into_iter().collect(),
                    ..PlanOptions::default()
                };
                widened += usize::from(compare(&seen, &text, &options));
            }
            if dice.one_in(4) {
                world.delete_by_hand(["a", "b", "c"][dice.roll(3)]);
            }
            if dice.one_in(4) {
                // Stopped on its way: what was replaced is still there.
                if let Ok(plan) = world.plan(&text) {
                    let calls = dice.roll(plan.steps.len() + 1);
                    world.deploy_with(&text, &PlanOptions::default(), calls);
                }
            } else if let Err(message) = world.bring_to(&text, dice) {
                panic!("{message}");
            }
        }
    }
    assert!(widened > 300, "only {widened} targets took in more");
}

/// True when it took more than one round.
fn compare(world: &World, text: &str, options: &PlanOptions) -> bool {
    world.asked(&crate::world::program(text), options, |input| {
        compare_plan(input, text)
    })
}

fn compare_plan(input: &PlanInput<'_>, text: &str) -> bool {
    let declared = declared(input.desired, input.types);
    if !judge::problems(input.desired, input.types, &declared).is_empty() {
        return false;
    }
    let mut history = past::history(input);
    let whole = Program::whole(input.desired, &declared);
    if !unknown_ids(input, &whole, &history).is_empty() {
        return false;
    }
    let found = plan(input).map_err(|error| error.to_string());
    let mut rounds = 0;
    let asked = loop {
        match by_rounds(input, &history, &whole, &mut rounds) {
            Ok(asked) => break Ok(asked),
            Err(NoPlan::Problems(error)) => break Err(error.to_string()),
            Err(NoPlan::FallBack(records)) => {
                for (past, record) in records {
                    history.restate(past, record);
                }
            }
        }
    };
    let said = format!("{text}: {:?}", input.options);
    assert_eq!(format!("{found:#?}"), format!("{asked:#?}"), "{said}");
    rounds > 1
}

fn by_rounds(
    input: &PlanInput<'_>,
    history: &History<'_>,
    whole: &Program<'_>,
    rounds: &mut usize,
) -> Result<Plan, NoPlan> {
    let mut scope = Scope::of_targets(input, whole, history);
    scope.ids = closed(whole, input.options.target.clone());
    loop {
        *rounds += 1;
        let part = whole.part(&scope.ids);
        let mut plan = plan_scope(input, history, &part, Some(&scope.ids))?;
        let more = scope.asked_by(&plan);
        if more.is_empty() {
            fail_on(left_out(input, &scope.ids))?;
            plan.notes.extend(expanded(input, &scope.ids));
            return Ok(plan);
        }
        scope.ids.extend(more);
        scope.ids = closed(whole, scope.ids);
    }
}

/// With whole cycles and what they need.
fn closed(whole: &Program<'_>, mut ids: BTreeSet<ResourceId>) -> BTreeSet<ResourceId> {
    loop {
        let members = ids.iter().filter_map(|id| whole.get(id));
        let more: Vec<ResourceId> = members
            .map(|number| &whole.wanted[number])
            .flat_map(|wanted| {
                let mates = whole.components[wanted.component].iter();
                mates.chain(wanted.edges.iter().map(|(to, _)| to))
            })
            .map(|number| whole.wanted[*number].desired.id.clone())
            .collect();
        let before = ids.len();
        ids.extend(more);
        if ids.len() == before {
            return ids;
        }
    }
}
