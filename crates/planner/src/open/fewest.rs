//! Brute force: no smaller set of waypoints opens all loops (`engine.md` §2, *Fewest
//! placeholders win*).

use super::{leaving_loops, open};
use crate::{
    PlanInput, PlanOptions,
    declared::declared,
    judge,
    loops::shortest_loop,
    order::Rules,
    past, planning,
    program::Program,
    world::{
        Dice, World,
        random::{Sketch, next},
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
            program = next(dice, &program, 6);
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
    let options = PlanOptions::default();
    world.asked(&crate::world::program(text), &options, |input| {
        compare_plan(input, text)
    })
}

fn compare_plan(input: &PlanInput<'_>, text: &str) -> bool {
    let declared = declared(input.desired, input.types);
    if !judge::problems(input.desired, input.types, &declared).is_empty() {
        return false;
    }
    let history = past::history(input);
    let program = Program::whole(input.desired, &declared);
    let Ok(paired) = planning::paired(input, &history, &program, &|_| true) else {
        return false;
    };
    let rules = Rules {
        play: &paired.play,
        waived: paired.waived,
    };
    let given = leaving_loops(&rules);
    let opened = open(&rules, paired.loopless, input.options.search_budget)
        .unwrap_or_else(|_| panic!("step 4 let a loop pass: {text}"));
    let left_out = (0..given.len()).find(|life| given[*life] && !opened.waypoints[*life]);
    assert_eq!(
        left_out, None,
        "all that hold each other are reverted: {text}"
    );
    assert!(
        !rules.graph(&opened.waypoints).has_loops(),
        "a loop is left: {text}"
    );
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
