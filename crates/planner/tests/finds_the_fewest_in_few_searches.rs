//! How much searching the fewest placeholders take (`engine.md` §10): counted in searches, which
//! do not depend on the machine.

mod world;

use notation_planner::PlanOptions;
use world::World;

/// Placeholders of a plan that may search so often per part, and whether it gave up.
fn planned(program: &str, search_budget: u32) -> (usize, bool) {
    let options = PlanOptions {
        search_budget,
        ..PlanOptions::default()
    };
    let plan = World::default()
        .plan_with(program, &options)
        .expect("the program can be deployed");
    let placeholders = plan.cycles.iter().map(|cycle| cycle.placeholders.len());
    let gave_up = plan.notes.iter().any(|note| note.code == "greedy_choice");
    (placeholders.sum(), gave_up)
}

fn bound(count: usize, to: impl Fn(usize) -> Vec<usize>) -> String {
    let workers = (0..count).map(|number| {
        let binds: Vec<String> = to(number).iter().map(|peer| format!(">r{peer}")).collect();
        format!("r{number} W {}", binds.join(" "))
    });
    workers.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_ring_takes_two_searches_however_long() {
    for count in [3, 30, 300] {
        let ring = bound(count, |number| vec![(number + 1) % count]);
        assert_eq!(planned(&ring, 2), (1, false), "{count}");
        assert!(planned(&ring, 1).1, "{count}");
    }
}

#[test]
fn the_complete_graph_of_ten_takes_at_most_214_searches() {
    let complete = bound(10, |number| {
        (0..10).filter(|other| *other != number).collect()
    });
    assert_eq!(planned(&complete, 214), (9, false));
}

#[test]
fn every_pair_is_searched_by_itself() {
    let pairs = bound(100, |number| vec![number ^ 1]);
    assert_eq!(planned(&pairs, 2), (50, false));
}

#[test]
fn a_program_without_loops_is_not_searched() {
    let chain = bound(50, |number| number.checked_sub(1).into_iter().collect());
    assert_eq!(planned(&chain, 0), (0, false));
}
