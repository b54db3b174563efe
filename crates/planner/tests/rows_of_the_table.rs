//! Every row of the table in `engine.md` §3, one test each: state, program, and the steps that
//! come out. a and b are bound to each other.

mod world;

use notation_planner::PlanOptions;
use world::{World, check::check_line as check};

/// Runs the plan; afterwards there is nothing to do.
fn settles(mut world: World, text: &str) {
    world.deploy(text);
    assert_eq!(world.line(text), "nothing", "{text}");
}

const PAIR: &str = "a W >b; b W >a";

#[test]
fn both_new() {
    check!(plan "a W >b; b W >a", @"create a (placeholder), create b, update a, settle");
}

#[test]
fn then_nothing_changed() {
    check!(["a W >b; b W >a"] plan "a W >b; b W >a", @"nothing");
}

#[test]
fn destroyed_or_both_removed_from_code() {
    check!(["a W >b; b W >a"] plan "", @"revert a, revert b, delete a, delete b");
    check!(["a W >b; b W >a; c T"] plan "c T", @"revert a, revert b, delete a, delete b");
}

#[test]
fn one_replaced_with_a_generated_name() {
    check!(["a W region=1 >b; b W >a"] plan "a W region=2 >b; b W >a", @"create a', update b, settle, delete a");
}

#[test]
fn one_replaced_with_a_fixed_name() {
    check!(["a W fixed region=1 >b; b W >a"] plan "a W fixed region=2 >b; b W >a", @"revert b, delete a, create a', update b, settle");
}

#[test]
fn both_replaced_with_generated_names() {
    check!(["a W region=1 >b; b W region=1 >a"] plan "a W region=2 >b; b W region=2 >a", @"create a' (placeholder), create b', update a', settle, revert a, revert b, delete a, delete b");
}

#[test]
fn both_replaced_with_fixed_names() {
    check!(["a W fixed region=1 >b; b W fixed region=1 >a"]
        plan "a W fixed region=2 >b; b W fixed region=2 >a", @"revert a, revert b, delete a, create a' (placeholder), delete b, create b', update a', settle");
}

#[test]
fn both_replaced_one_with_a_generated_and_one_with_a_fixed_name() {
    check!(["a W region=1 >b; b W fixed region=1 >a"]
        plan "a W region=2 >b; b W fixed region=2 >a", @"create a' (placeholder), revert a, revert b, delete b, create b', update a', settle, delete a");
}

/// Stopped after the first call of the pair.
fn after_the_placeholder() -> World {
    let mut world = World::default();
    world.deploy_with(PAIR, &PlanOptions::default(), 1);
    world
}

#[test]
fn stopped_after_the_placeholder_and_deployed_again() {
    let world = after_the_placeholder();
    insta::assert_snapshot!(world.line(PAIR), @"create b, update a, settle");
    settles(world, PAIR);
}

#[test]
fn stopped_after_the_placeholder_and_destroyed() {
    let world = after_the_placeholder();
    insta::assert_snapshot!(world.line(""), @"delete a");
    settles(world, "");
}

const REPLACED: &str = "a W region=2 >b; b W >a";

/// Stopped after the successor of a was created beside it.
fn after_the_successor() -> World {
    let mut world = World::of("a W region=1 >b; b W >a");
    world.deploy_with(REPLACED, &PlanOptions::default(), 1);
    world
}

#[test]
fn stopped_after_the_successor_was_created_and_deployed_again() {
    let world = after_the_successor();
    insta::assert_snapshot!(world.line(REPLACED), @"update b, settle, delete a");
    settles(world, REPLACED);
}

#[test]
fn stopped_after_the_successor_was_created_and_destroyed() {
    let world = after_the_successor();
    insta::assert_snapshot!(world.line(""), @"revert a, delete a', revert b, delete a, delete b");
    settles(world, "");
}

#[test]
fn a_member_found_gone() {
    let mut world = World::of(PAIR);
    world.delete_by_hand("a");
    insta::assert_snapshot!(world.line(PAIR), @"create a, settle");
    settles(world, PAIR);
}

#[test]
fn only_one_removed_from_code() {
    check!(["a W >b; b W >a"] plan "b W", @"update b, delete a");
}

#[test]
fn an_outsider_refers_to_a_member_and_all_are_new() {
    check!(plan "a W >b; b W >a; c W >a", @"create a (placeholder), create b, update a, settle, create c");
}

#[test]
fn an_outsider_refers_to_a_member_that_is_replaced_with_a_generated_name() {
    check!(["a W region=1 >b; b W >a; c W >a"] plan "a W region=2 >b; b W >a; c W >a", @"create a', update b, settle, update c, delete a");
}

#[test]
fn an_outsider_refers_by_contribution_to_a_member_that_is_replaced_with_a_fixed_name() {
    check!(["a W fixed region=1 >b; b W >a; c W >a"]
        plan "a W fixed region=2 >b; b W >a; c W >a", @"revert b, revert c, delete a, create a', update b, settle, update c");
}

#[test]
fn an_outsider_holds_by_config_a_member_that_is_replaced_with_a_fixed_name() {
    check!(["a W fixed region=1 >b; b W >a; c W =a"]
        plan "a W fixed region=2 >b; b W >a; c W =a", @"revert b, delete c, delete a, create a', update b, settle, create c'");
}

#[test]
fn one_refers_in_config_and_gets_the_other_by_contribution() {
    check!(plan "a W =b; b W >a", @"create b (placeholder), create a, update b, settle");
}

#[test]
fn a_member_joins() {
    check!(["a W >b; b W >a"] plan "a W >b; b W >c; c W >a", @"create c, update b, settle");
}

#[test]
fn a_member_leaves() {
    check!(["a W >b; b W >c; c W >a"] plan "a W >b; b W >a", @"update b, settle, delete c");
}

#[test]
fn a_figure_eight_has_one_placeholder_the_shared_member() {
    check!(plan "b W >a; a W >b >c; c W >a", @"create a (placeholder), create b, create c, update a, settle");
}

#[test]
fn a_resource_bound_to_itself_is_new() {
    check!(plan "a W >a", @"create a (placeholder), update a, settle");
}

#[test]
fn a_resource_bound_to_itself_is_destroyed() {
    check!(["a W >a"] plan "", @"revert a, delete a");
}
