//! Need, release and slot: who waits for whom, and for what no rule makes anybody wait
//! (`engine.md` §3).

mod world;

use std::collections::BTreeSet;

use notation_planner::{Plan, StepKey};
use world::{World, line};

/// Steps as `line` says them, each with its key.
fn steps(plan: &Plan) -> Vec<(String, StepKey)> {
    let words = line(plan);
    let keys = plan.steps.iter().map(|step| step.key.clone());
    words.split(", ").map(str::to_owned).zip(keys).collect()
}

fn key(plan: &Plan, step: &str) -> StepKey {
    let found = steps(plan).into_iter().find(|(words, _)| words == step);
    found
        .unwrap_or_else(|| panic!("no step {step:?} in {}", line(plan)))
        .1
}

/// Whether one step waits for another, directly or not.
fn waits(plan: &Plan, step: &str, before: &str) -> bool {
    let (from, to) = (key(plan, step), key(plan, before));
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(at) = open.pop() {
        let step = plan.steps.iter().find(|step| step.key == at);
        for after in &step.expect("a step waits for steps").after {
            if seen.insert(after.clone()) {
                open.push(after.clone());
            }
        }
    }
    seen.contains(&to)
}

#[track_caller]
fn waits_for(plan: &Plan, step: &str, before: &[&str]) {
    for other in before {
        assert!(
            waits(plan, step, other),
            "{step} does not wait for {other}: {}",
            line(plan)
        );
    }
}

#[track_caller]
fn does_not_wait_for(plan: &Plan, step: &str, others: &[&str]) {
    for other in others {
        assert!(
            !waits(plan, step, other),
            "{step} waits for {other}: {}",
            line(plan)
        );
    }
}

fn plan(before: &[&str], text: &str) -> Plan {
    let mut world = World::default();
    for text in before {
        world.deploy(text);
    }
    world.plan(text).expect("the plan is accepted")
}

#[test]
fn inside_a_cycle_a_need_waits_until_the_target_exists() {
    let plan = plan(&[], "a W >b >c; b W >a; c W >a");
    waits_for(&plan, "create b", &["create a (placeholder)"]);
    does_not_wait_for(&plan, "create b", &["update a", "create c", "settle"]);
    does_not_wait_for(&plan, "create c", &["update a", "create b", "settle"]);
    waits_for(&plan, "update a", &["create b", "create c"]);
}

#[test]
fn from_outside_a_need_waits_until_the_whole_cycle_has_settled() {
    let plan = plan(&[], "a W >b; b W >a; c W >a; d T parent<b");
    waits_for(&plan, "create c", &["update a", "create b", "settle"]);
    waits_for(&plan, "create d", &["settle"]);
}

#[test]
fn a_member_waits_until_what_it_needs_outside_is_final() {
    let plan = plan(&[], "x W >y; y W >x; a W code<x >b; b W >a");
    let settles: Vec<usize> = (0..plan.steps.len())
        .filter(|at| steps(&plan)[*at].0 == "settle")
        .collect();
    assert_eq!(settles.len(), 2);
    let first = &plan.steps[settles[0]];
    let placeholder = key(&plan, "create a (placeholder)");
    let step = plan.steps.iter().find(|step| step.key == placeholder);
    assert!(step.expect("it is there").after.contains(&first.key));
}

#[test]
fn a_revert_waits_for_nothing() {
    let plan = plan(&["x T; a W code<x >b; b W >a"], "x T");
    for step in ["revert a", "revert b"] {
        let key = key(&plan, step);
        let found = plan.steps.iter().find(|step| step.key == key);
        assert!(found.expect("it is there").after.is_empty(), "{step}");
    }
}

#[test]
fn a_revert_whose_config_names_what_is_gone_waits_until_that_is_made_again() {
    let mut world = World::of("x W; a W =x >b; b W >a");
    world.delete_by_hand("x");
    let plan = world.plan("x W").expect("it can be planned");
    waits_for(&plan, "revert a", &["create x"]);
    does_not_wait_for(&plan, "revert b", &["create x"]);
    // It does not come back: whoever needs it cannot be bare, and its peer opens the loop.
    insta::assert_snapshot!(world.line(""), @"revert b, delete a, delete b");
    world.deploy("");
    assert!(world.cloud.objects.is_empty());
}

#[test]
fn a_delete_waits_for_every_recorded_holder_also_outside_of_cycles() {
    let plan = plan(&["a W; b W >a; c T parent<a; d W @a"], "d W @d");
    waits_for(&plan, "delete a", &["delete b", "delete c"]);
    let plan = self::plan(&["a W; b W >a; c W >a"], "b W; c W");
    waits_for(&plan, "delete a", &["update b", "update c"]);
    does_not_wait_for(&plan, "update b", &["update c"]);
}

#[test]
fn a_delete_waits_for_the_revert_of_a_holder_that_has_one() {
    let plan = plan(&["a W >b; b W >a"], "");
    waits_for(&plan, "delete a", &["revert b"]);
    does_not_wait_for(&plan, "delete a", &["delete b"]);
}

#[test]
fn a_depend_on_of_what_stays_holds_nothing_and_orders_two_removals() {
    let plan = plan(&["a W; b W @a; c W @b"], "c W");
    waits_for(&plan, "delete a", &["delete b"]);
    insta::assert_snapshot!(line(&plan), @"delete b, delete a");
}

#[test]
fn removals_that_nothing_staying_waits_for_come_after_what_replaces_them_has_settled() {
    let plan = plan(
        &["a W region=1 >b; b W region=1 >a; c W >a"],
        "a W region=2 >b; b W region=2 >a; c W >a",
    );
    for late in ["revert a", "revert b", "delete a", "delete b"] {
        waits_for(&plan, late, &["settle", "update a'", "create b'"]);
    }
    // Who refers to the old one from outside has moved on first.
    waits_for(&plan, "delete a", &["update c"]);
}

#[test]
fn a_new_incarnation_waits_for_the_delete_of_what_has_its_name() {
    let plan = plan(&["a W fixed region=1"], "a W fixed region=2");
    waits_for(&plan, "create a'", &["delete a"]);
    let plan = self::plan(&["a T Name=x; b T"], "b T Name=x");
    waits_for(&plan, "create b'", &["delete a"]);
    let plan = self::plan(&["a W region=1"], "a W region=2");
    waits_for(&plan, "delete a", &["create a'"]);
}

#[test]
fn room_is_made_after_everything_else_that_the_new_one_needs() {
    let plan = plan(
        &["a W fixed region=1 >b; b W fixed >a"],
        "t T; a W fixed region=2 code<t.id >b; b W fixed >a",
    );
    for step in ["revert b", "delete a"] {
        waits_for(&plan, step, &["create t"]);
    }
}

#[test]
fn what_is_independent_waits_for_nobody() {
    let plan = plan(&["x W; y W >x"], "y W; a W >b; b W >a; t T; f F");
    for step in ["create t", "create f"] {
        let key = key(&plan, step);
        let found = plan.steps.iter().find(|step| step.key == key);
        assert!(found.expect("it is there").after.is_empty(), "{step}");
    }
    does_not_wait_for(&plan, "delete x", &["settle", "create t"]);
}

#[test]
fn a_step_key_names_resource_generation_role_and_pass() {
    let plan = plan(&["a W region=1 >b; b W >a"], "a W region=2 >b; b W >a; c T");
    let keys: BTreeSet<String> = plan.steps.iter().map(|step| step.key.to_string()).collect();
    let wanted = [
        "a:0:absent",
        "a:1:complete",
        "b:0:complete",
        "c:0:complete",
        "cycle:a:settle",
    ];
    assert_eq!(keys, wanted.map(str::to_owned).into());
    let pass = StepKey {
        role: notation_planner::Role::Settle { pass: 2 },
        ..key(&plan, "update b")
    };
    assert_eq!(pass.to_string(), "b:0:settle:2");
}
