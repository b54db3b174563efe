//! What a program is, who can start bare, and who of several does (`engine.md` §1, §2).

mod world;

use notation_model::{Collector, Params, Presence, Value};
use notation_planner::{PlanOptions, PlanProblem};
use world::{
    World,
    program::{id, program, types},
};

fn refused(text: &str) -> Vec<&'static str> {
    let error = World::default().plan(text).expect_err("it is refused");
    error.problems.iter().map(PlanProblem::code).collect()
}

fn applied(world: &World, resource: &str) -> Params {
    let mut records = world.records.values();
    let record = records.find(|record| record.incarnation.resource.as_str() == resource);
    record.expect("it is recorded").applied.clone()
}

fn bound(value: Option<&Value>) -> Vec<String> {
    let Some(Value::List(items)) = value else {
        return Vec::new();
    };
    let services = items.iter().filter_map(|item| match item {
        Value::Map(members) => members.get("service")?.as_text(),
        _ => None,
    });
    services
        .map(|name| name.trim_start_matches("shop-dev-").to_owned())
        .collect()
}

#[test]
fn a_loop_of_config_alone_is_refused() {
    // No program in TypeScript can write it; one in Rust can.
    assert_eq!(refused("a W =b; b W =a"), ["plan::unbreakable_loop"]);
    assert_eq!(refused("a W code<a.arn"), ["plan::unbreakable_loop"]);
}

#[test]
fn a_collected_field_is_the_config_then_contributions_in_the_order_of_calls() {
    let world = World::of("c W; d W; e W; a W =c >e >d");
    assert_eq!(bound(applied(&world, "a").get("bindings")), ["c", "e", "d"]);
    let record = world
        .records
        .values()
        .find(|it| it.incarnation.resource == id("a"));
    let config = &record.expect("it is recorded").config;
    assert_eq!(bound(config.get("bindings")), ["c"], "the placeholder");
}

#[test]
fn a_collected_field_without_any_value_is_left_out() {
    let world = World::of("a W");
    assert!(!applied(&world, "a").contains_key("bindings"));
    let world = World::of("a W >b; b W >a");
    let record = world
        .records
        .values()
        .find(|it| it.incarnation.resource == id("a"));
    assert!(
        !record
            .expect("it is recorded")
            .config
            .contains_key("bindings")
    );
}

#[test]
fn collectors_put_lists_end_to_end_and_lay_maps_over_each_other() {
    let list = |items: &[&str]| Value::List(items.iter().map(|item| Value::text(*item)).collect());
    let flat = Collector::Flatten.collect(vec![list(&["a", "b"]), Value::text("c"), list(&[])]);
    assert_eq!(flat, Ok(list(&["a", "b", "c"])));
    let map = |pairs: &[(&str, &str)]| {
        let members = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::text(*value)));
        Value::Map(members.collect())
    };
    let merged = Collector::Merge.collect(vec![map(&[("a", "1"), ("b", "1")]), map(&[("b", "2")])]);
    assert_eq!(merged, Ok(map(&[("a", "1"), ("b", "2")])));
    assert!(Collector::Merge.collect(vec![list(&[])]).is_err());
}

#[test]
fn a_required_field_may_be_given_by_config_or_by_a_contribution() {
    World::of("x W; a S =x; b S >x");
    assert_eq!(refused("a S"), ["plan::missing_field"]);
}

#[test]
fn a_required_field_with_a_value_in_the_config_lets_its_resource_start_bare() {
    let world = World::default();
    insta::assert_snapshot!(world.line("x W; a S =x >b; b W never >a"), @"create x, create a (placeholder), create b, update a, settle");
}

#[test]
fn a_field_with_a_default_lets_its_resource_start_bare_and_one_that_is_immutable_does_not() {
    let graph = program("a W >b; b W >a");
    let set = types();
    let ty = set.get(&graph.resources[0].ty).expect("a known type");
    let with = |presence: Presence, immutable: bool| {
        let mut ty = ty.clone();
        let field = ty.fields.get_mut("bindings").expect("it has bindings");
        field.presence = presence;
        field.immutable = immutable;
        graph.resources[0].cannot_be_bare(&ty)
    };
    assert_eq!(
        with(Presence::Default(Value::List(Vec::new())), false),
        None
    );
    assert!(with(Presence::Required, false).is_some());
    assert!(with(Presence::Optional, true).is_some());
    let mut without_update = ty.clone();
    without_update.updates = false;
    assert!(graph.resources[0].cannot_be_bare(&without_update).is_some());
    let alone = program("a W");
    assert_eq!(alone.resources[0].cannot_be_bare(&without_update), None);
}

#[test]
fn the_same_program_evaluated_again_plans_to_nothing() {
    let text = "c W; a W =c >b >c code=1; b W >a @c";
    let world = World::of(text);
    assert_eq!(world.line(text), "nothing");
    // Another order of calls is another list, but these are compared as multisets.
    assert_eq!(world.line("c W; a W =c >c >b code=1; b W >a @c"), "nothing");
}

#[test]
fn ties_go_to_the_resource_declared_first() {
    let world = World::default();
    insta::assert_snapshot!(world.line("b W >a; a W >b"), @"create b (placeholder), create a, update b, settle");
    insta::assert_snapshot!(world.line("c W >a; a W >b; b W >c"), @"create c (placeholder), create b, create a, update c, settle");
}

#[test]
fn what_exists_needs_no_placeholder() {
    let world = World::of("a W");
    insta::assert_snapshot!(world.line("a W >b; b W >a"), @"create b, update a, settle");
}

#[test]
fn an_interrupted_run_chooses_the_same_placeholder_again() {
    let text = "a W >b >c; b W >a >c; c W >a >b";
    for calls in 0..6 {
        let mut world = World::default();
        world.deploy_with(text, &PlanOptions::default(), calls);
        let mut all: Vec<String> = world.cloud.objects.keys().cloned().collect();
        world.deploy(text);
        all.retain(|name| !world.cloud.objects.contains_key(name));
        assert_eq!(all, Vec::<String>::new(), "what was made stays");
        let created: usize = world.cloud.objects.len();
        assert_eq!(created, 3);
        assert_eq!(world.line(text), "nothing");
    }
}

#[test]
fn the_search_is_exact_up_to_5000_searches() {
    assert_eq!(PlanOptions::default().search_budget, 5000);
    // The complete graph of ten stays below: nothing is said of a choice.
    let ids: Vec<char> = ('a'..='j').collect();
    let mut parts = Vec::new();
    for id in &ids {
        let others = ids.iter().filter(|other| *other != id);
        let bound: Vec<String> = others.map(|other| format!(">{other}")).collect();
        parts.push(format!("{id} W {}", bound.join(" ")));
    }
    let text = parts.join("; ");
    let plan = World::default().plan(&text).expect("it can be planned");
    assert!(plan.notes.iter().all(|note| note.code != "greedy_choice"));
    assert_eq!(plan.cycles[0].placeholders.len(), 9);
    assert_eq!(plan.cycles[0].passes, 11, "members and one more");
}

#[test]
fn an_edge_to_what_is_not_recorded_any_more_counts_for_the_current_incarnation() {
    let mut world = World::of("a W; b W >a");
    for record in world.records.values_mut() {
        for edge in &mut record.edges {
            edge.to.generation = 7;
        }
    }
    insta::assert_snapshot!(world.line(""), @"delete b, delete a");
}

#[test]
fn edges_are_recorded_to_the_incarnation_they_were_made_to() {
    let mut world = World::of("a W region=1; b W >a");
    world.deploy_with("a W region=2; b W >a", &PlanOptions::default(), 1);
    let of_b = |world: &World| -> Vec<u32> {
        let records = world.records.values();
        let b = records
            .clone()
            .find(|it| it.incarnation.resource == id("b"));
        let edges = &b.expect("it is recorded").edges;
        edges.iter().map(|edge| edge.to.generation).collect()
    };
    assert_eq!(of_b(&world), [0], "a' is there, and b still names a");
    world.deploy("a W region=2; b W >a");
    assert_eq!(of_b(&world), [1]);
}
