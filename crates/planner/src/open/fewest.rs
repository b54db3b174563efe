//! Brute force: no smaller set of waypoints opens all loops (`engine.md` §2, *Fewest
//! placeholders win*).

use std::collections::BTreeMap;

use notation_model::SecretName;

use super::{leaving_loops, open};
use crate::{
    PlanInput, PlanOptions, Prior, judge,
    loops::shortest_loop,
    order::Rules,
    past, planning, program,
    world::{
        Dice, World,
        random::{Sketch, edit, sketch},
    },
};

#[test]
fn brute_force_finds_no_smaller_set_of_waypoints() {
    let mut compared = 0;
    for seed in 0..400 {
        let dice = &mut Dice::new(seed);
        let mut world = World::default();
        let mut program = Sketch::default();
        for _ in 0..4 {
            program = if dice.one_in(3) || program.pieces.is_empty() {
                sketch(dice, 6)
            } else {
                edit(dice, &program, 6)
            };
            let text = program.to_string();
            compared += usize::from(compare(&world, &text));
            if let Err(message) = world.bring_to(&text, dice) {
                panic!("{message}");
            }
        }
    }
    assert!(compared > 100, "only {compared} plans had a choice");
}

/// True when there was something to choose.
fn compare(world: &World, text: &str) -> bool {
    let desired = crate::world::program(text);
    let types = crate::world::types();
    let deployment = "shop:dev:main".parse().expect("a good id");
    let prior = Prior {
        records: world.records.clone(),
    };
    let observed = world.observe();
    let secrets: BTreeMap<SecretName, notation_model::Value> = BTreeMap::new();
    let options = PlanOptions::default();
    let input = PlanInput {
        deployment: &deployment,
        types: &types,
        desired: &desired,
        prior: &prior,
        observed: &observed,
        secrets: &secrets,
        options: &options,
    };
    if !judge::problems(input.desired, input.types).is_empty() {
        return false;
    }
    let history = past::history(&input);
    let program = program::program(&input, None);
    let Ok(paired) = planning::paired(&input, &history, &program, &|_| true) else {
        return false;
    };
    let rules = Rules {
        play: &paired.play,
        waived: paired.waived,
    };
    let given = leaving_loops(&rules);
    let opened = open(&rules, options.search_budget)
        .unwrap_or_else(|_| panic!("step 4 let a loop pass: {text}"));
    let chosen: Vec<usize> = added(&given, &opened.waypoints);
    let candidates: Vec<usize> = (0..given.len())
        .filter(|life| paired.play.lives[*life].can_be_bare && !given[*life])
        .collect();
    for bits in 0_u32..1 << candidates.len() {
        if bits.count_ones() as usize >= chosen.len() {
            continue;
        }
        let mut waypoints = given.clone();
        for (at, life) in candidates.iter().enumerate() {
            waypoints[*life] |= bits & (1 << at) != 0;
        }
        assert!(
            shortest_loop(&rules.graph(&waypoints)).is_some(),
            "{:?} is enough, {chosen:?} was chosen: {text}",
            added(&given, &waypoints),
        );
    }
    !chosen.is_empty()
}

fn added(given: &[bool], waypoints: &[bool]) -> Vec<usize> {
    (0..given.len())
        .filter(|life| waypoints[*life] && !given[*life])
        .collect()
}
