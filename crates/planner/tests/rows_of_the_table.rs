//! Every row of the table in `engine.md` §3: state, program, and the steps that come out.

mod world;

use notation_planner::PlanOptions;
use world::World;

/// Programs deployed one after another, then the plan of the last one.
macro_rules! check {
    ($([$($before:literal),*])? plan $text:literal, @$line:literal) => {{
        #[allow(unused_mut, reason = "a row may start from nothing")]
        let mut world = World::default();
        $($(world.deploy($before);)*)?
        insta::assert_snapshot!(world.line($text), @$line);
        settles(world, $text);
    }};
}

/// Runs the plan; afterwards there is nothing to do.
fn settles(mut world: World, text: &str) {
    world.deploy(text);
    assert_eq!(world.line(text), "nothing", "{text}");
}

const PAIR: &str = "a W >b; b W >a";

#[test]
fn both_new() {
    check!(plan "a W >b; b W >a", @"");
}

#[test]
fn nothing_changed() {
    check!(["a W >b; b W >a"] plan "a W >b; b W >a", @"");
}

#[test]
fn destroy_and_both_removed() {
    check!(["a W >b; b W >a"] plan "", @"");
}

#[test]
fn one_replaced_with_a_generated_name() {
    check!(["a W region=1 >b; b W >a"] plan "a W region=2 >b; b W >a", @"");
}

#[test]
fn one_replaced_with_a_fixed_name() {
    check!(["a W fixed region=1 >b; b W >a"] plan "a W fixed region=2 >b; b W >a", @"");
}

#[test]
fn both_replaced_with_generated_names() {
    check!(["a W region=1 >b; b W region=1 >a"] plan "a W region=2 >b; b W region=2 >a", @"");
}

#[test]
fn both_replaced_with_fixed_names() {
    check!(["a W fixed region=1 >b; b W fixed region=1 >a"]
        plan "a W fixed region=2 >b; b W fixed region=2 >a", @"");
}

#[test]
fn both_replaced_one_generated_one_fixed() {
    check!(["a W region=1 >b; b W fixed region=1 >a"]
        plan "a W region=2 >b; b W fixed region=2 >a", @"");
}

#[test]
fn stopped_after_the_placeholder() {
    let mut world = World::default();
    world.deploy_with(PAIR, &PlanOptions::default(), 1);
    insta::assert_snapshot!(world.line(PAIR), @"");
    insta::assert_snapshot!(world.line(""), @"");
    settles(world.clone(), PAIR);
    settles(world, "");
}

#[test]
fn stopped_after_the_successor_was_created_beside_the_old_one() {
    let mut world = World::of("a W region=1 >b; b W >a");
    let text = "a W region=2 >b; b W >a";
    world.deploy_with(text, &PlanOptions::default(), 1);
    insta::assert_snapshot!(world.line(text), @"");
    insta::assert_snapshot!(world.line(""), @"");
    settles(world.clone(), text);
    settles(world, "");
}

#[test]
fn a_member_found_gone() {
    let mut world = World::of(PAIR);
    world.delete_by_hand("a");
    insta::assert_snapshot!(world.line(PAIR), @"");
    settles(world, PAIR);
}

#[test]
fn only_one_removed_from_code() {
    check!(["a W >b; b W >a"] plan "b W", @"");
}

#[test]
fn an_outsider_that_refers_to_a_member() {
    check!(plan "a W >b; b W >a; c W >a", @"");
    check!(["a W region=1 >b; b W >a; c W >a"] plan "a W region=2 >b; b W >a; c W >a", @"");
    check!(["a W fixed region=1 >b; b W >a; c W >a"]
        plan "a W fixed region=2 >b; b W >a; c W >a", @"");
    check!(["a W fixed region=1 >b; b W >a; c W =a"]
        plan "a W fixed region=2 >b; b W >a; c W =a", @"");
}

#[test]
fn one_refers_in_config_the_other_by_contribution() {
    check!(plan "a W =b; b W >a", @"");
}

#[test]
fn a_member_joins_and_leaves() {
    check!(["a W >b; b W >a"] plan "a W >b; b W >c; c W >a", @"");
    check!(["a W >b; b W >c; c W >a"] plan "a W >b; b W >a", @"");
}

#[test]
fn a_figure_eight_has_one_placeholder() {
    check!(plan "b W >a; a W >b >c; c W >a", @"");
}

#[test]
fn a_resource_bound_to_itself() {
    check!(plan "a W >a", @"");
    check!(["a W >a"] plan "", @"");
}
