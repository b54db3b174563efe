//! Replacing and removing beyond the table: what is dragged along, what waits, what is named how.

mod world;

use notation_planner::{PlanOptions, Why};
use world::{World, check::check_line as check, detail, line, program::id, run};

#[test]
fn a_binding_is_dropped_before_its_target_is_deleted() {
    check!(["a W; b W >a"] plan "b W", @"update b, delete a");
}

#[test]
fn a_holder_by_config_is_dragged_along_and_says_because_of_what() {
    let world = World::of("a W fixed region=1 >b; b W fixed >a; c T parent<a");
    insta::assert_snapshot!(world.detail("a W fixed region=2 >b; b W fixed >a; c T parent<a"), @r#"
revert b [LetsGo]
  bindings: [{"service":"a"}] -> unset
  without bindings
delete c [Replaced]
delete a [Replaced]
create a' [Replaces { because: ["region"] }]
  Name: unset -> "a"
  region: unset -> "2"
  bindings: unset -> [{"service":"b"}]
update b [LetsGo]
  bindings: unset -> [{"service":{"unknown":"a.Name"}}]
settle [Settles]
create c' [Replaces { because: ["`parent` holds a, which is replaced"] }]
  Name: unset -> "shop-dev-c-44f7"
  parent: unset -> {"unknown":"a.Name"}
cycle:a: a' b, at most 3 passes, may write []
note unavailable_while_replaced: a is deleted before it is made again and unavailable meanwhile; b is reverted to a placeholder until then. A generated name behind a stable route, alias or CNAME avoids this
note unavailable_while_replaced: c is deleted before it is made again and unavailable meanwhile
"#);
}

#[test]
fn a_holder_that_does_not_hold_lets_the_delete_go_ahead() {
    check!(["a W fixed region=1; c T value<a.arn"] plan "a W fixed region=2; c T value<a.arn", @"delete a, create a', update c?");
}

#[test]
fn nothing_is_taken_down_when_what_the_new_one_needs_fails() {
    let mut world = World::of("a W fixed region=1 code=1 >b; b W fixed >a");
    let text = "t T; a W fixed region=2 code<t.id >b; b W fixed >a";
    let plan = world.plan(text).expect("it can be planned");
    let ran = run::run_failing(&mut world, &plan, &mut |_| 0, usize::MAX, &|call| {
        call.starts_with("create t")
    })
    .expect("no call is refused");
    assert_eq!(ran.calls, Vec::<String>::new(), "{}", line(&plan));
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn a_type_without_update_is_replaced() {
    check!(["f F value=1"] plan "f F value=2", @"create f', delete f");
    check!(["f F fixed value=1"] plan "f F fixed value=2", @"delete f, create f'");
}

#[test]
fn another_type_under_the_same_id_is_a_replacement() {
    check!(["a W >b; b W >a"] plan "a T; b W >a", @"create a', update b, delete a");
    check!(["a W fixed"] plan "a T fixed", @"delete a, create a'");
}

#[test]
fn names_that_are_swapped_make_room_for_each_other() {
    check!(["a T Name=x; b T Name=y"] plan "a T Name=y; b T Name=z", @"create b', delete b, create a', delete a");
    let world = World::of("a T Name=x; b T Name=y");
    insta::assert_snapshot!(world.line("a T Name=y; b T Name=x"), @"delete a, create b', delete b, create a'");
}

#[test]
fn a_name_that_changes_replaces_the_next_holder_in_turn() {
    check!(["a W code=x; b W Name<a.code >a"] plan "a W code=y; b W Name<a.code >a", @"update a, create b', delete b");
    check!(["a T Name=x; b F value<a"] plan "a T Name=y; b F value<a", @"create a', create b', delete b, delete a");
}

#[test]
fn an_update_in_doubt_is_written_in_full() {
    let mut world = World::of("a W >b; b W");
    for record in world.records.values_mut() {
        record.in_doubt = record.incarnation.resource == id("a");
    }
    insta::assert_snapshot!(world.line("a W >b; b W"), @"update a");
    // Also when it is to be let go of.
    insta::assert_snapshot!(world.line("a W"), @"update a, delete b");
}

#[test]
fn what_an_update_in_doubt_wrote_is_no_drift_and_its_step_says_why_it_is_there() {
    let mut world = World::of("a W code=1");
    let text = "a W code=2";
    let why = |world: &World, text: &str| {
        let plan = world.plan(text).unwrap();
        let drift = plan.notes.iter().any(|note| note.code == "drift");
        (plan.steps[0].why.clone(), drift)
    };
    assert_eq!(why(&world, text), (Why::Changed, false));
    // The update reached the cloud, and its answer nobody.
    let object = world.cloud.objects.get_mut("shop-dev-a").unwrap();
    object.params.insert("code".to_owned(), "2".into());
    assert_eq!(why(&world, "a W code=1"), (Why::Drift, true));
    for record in world.records.values_mut() {
        record.in_doubt = true;
    }
    assert_eq!(why(&world, text), (Why::InDoubt, false));
    // What the program changes is said first.
    assert_eq!(why(&world, "a W code=3"), (Why::Changed, false));
    // Somebody changed it since: that is neither drift nor anybody letting go.
    for record in world.records.values_mut() {
        record.applied.insert("code", "2".into());
    }
    let object = world.cloud.objects.get_mut("shop-dev-a").unwrap();
    object.params.insert("code".to_owned(), "hand".into());
    assert_eq!(why(&world, text), (Why::InDoubt, false));
}

#[test]
fn a_renamed_resource_goes_on_under_its_new_id_without_a_call() {
    let mut world = World::of("old W >b; b W >old");
    let text = "new W was:old >b; b W >new";
    // b names it otherwise from now on, which nobody wrote.
    assert_eq!(world.line(text), "record new");
    world.deploy(text);
    let ids: Vec<&str> = world
        .records
        .keys()
        .map(|incarnation| incarnation.resource.as_str())
        .collect();
    assert_eq!(ids, ["b", "new"]);
    assert_eq!(world.line(text), "nothing");
    // It can be taken down under its new id.
    insta::assert_snapshot!(world.line(""), @"revert b, revert new, delete b, delete new");
    world.deploy("");
    assert!(world.cloud.objects.is_empty());
}

#[test]
fn marks_that_change_are_part_of_a_plan() {
    let mut world = World::of("a W >b; b W >a; c T; d T");
    let text = "a W protect >b; b W never >a; c T value=1; d T";
    let plan = world.plan(text).expect("it can be planned");
    insta::assert_snapshot!(line(&plan), @"update c");
    let told: Vec<_> = plan
        .recorded
        .iter()
        .map(|one| (one.resource.as_str(), one.protect, one.never_bare))
        .collect();
    assert_eq!(told, [("a", Some(true), None), ("b", None, Some(true))]);
    assert_eq!((plan.unchanged, plan.summary().recorded), (1, 2));
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
    // Taken off again, and with an update of the same resource.
    let text = "a W code=2 >b; b W >a; c T value=1; d T";
    let plan = world.plan(text).expect("it can be planned");
    let told: Vec<_> = plan
        .recorded
        .iter()
        .map(|one| (one.resource.as_str(), one.protect, one.never_bare))
        .collect();
    assert_eq!(told, [("a", Some(false), None), ("b", None, Some(false))]);
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
    // What is not part of the plan keeps its marks.
    let options = PlanOptions {
        target: [id("c")].into(),
        ..PlanOptions::default()
    };
    assert_eq!(
        world.line_with("a W protect >b; b W >a; c T value=1; d T", &options),
        "nothing"
    );
}

#[test]
fn a_name_is_kept_for_life() {
    let mut world = World::of("a W fixed");
    assert_eq!(
        world.line("a W"),
        "nothing",
        "a written name that is left out stays"
    );
    world.deploy("a W");
    assert!(world.cloud.objects.contains_key("a"));
}

#[test]
fn what_was_made_again_has_its_old_name() {
    let mut world = World::of("a T; b T parent<a");
    let before: Vec<String> = world.cloud.objects.keys().cloned().collect();
    world.delete_by_hand("a");
    insta::assert_snapshot!(world.line("a T; b T parent<a"), @"create a");
    world.deploy("a T; b T parent<a");
    let after: Vec<String> = world.cloud.objects.keys().cloned().collect();
    assert_eq!(before, after);
}

#[test]
fn a_generation_whose_name_is_taken_by_a_recorded_one_is_skipped() {
    let mut world = World::of("a W region=1");
    world.deploy("a W region=2");
    let (incarnation, record) = world.records.iter().next().expect("one record");
    let (mut older, name) = (record.clone(), record.key.clone());
    let generation = incarnation.generation;
    // The same name under an older generation, as an import might leave it.
    older.incarnation.generation = 0;
    world.records.clear();
    world.records.insert(older.incarnation.clone(), older);
    let plan = world.plan("a W region=3").expect("it can be planned");
    let made: Vec<u32> = plan
        .intended
        .keys()
        .map(|incarnation| incarnation.generation)
        .collect();
    assert_eq!(made, [generation + 1], "{name} is taken");
}

#[test]
fn what_is_gone_and_not_wanted_is_forgotten() {
    let mut world = World::of("a W; b W");
    world.delete_by_hand("a");
    let plan = world.plan("b W").expect("it can be planned");
    assert!(plan.steps.is_empty());
    assert_eq!(plan.forgotten.len(), 1);
    world.deploy("b W");
    assert_eq!(world.records.len(), 1);
}

#[test]
fn a_target_brings_its_cycle_what_it_needs_and_what_must_let_go() {
    let options = |target: &str| PlanOptions {
        target: [id(target)].into(),
        ..PlanOptions::default()
    };
    let world = World::default();
    let text = "n T; a W >b code<n; b W >a; c W >a; d W";
    insta::assert_snapshot!(world.line_with(text, &options("a")), @"create n, create a (placeholder), create b, update a, settle");
    let world = World::of("a W fixed region=1; c W >a; d W >c; e T");
    insta::assert_snapshot!(
        world.line_with("a W fixed region=2; c W >a; d W >c; e T value=1", &options("a")), @"revert c, delete a, create a', update c");
    // Removed from the program, and only that.
    let world = World::of("a W; c W >a; d T");
    insta::assert_snapshot!(world.line_with("c W", &options("a")), @"update c, delete a");
}

#[test]
fn the_search_says_when_it_took_the_first_choice() {
    let options = PlanOptions {
        search_budget: 3,
        ..PlanOptions::default()
    };
    let world = World::default();
    let text = "a W >b >c >d; b W >a >c >d; c W >a >b >d; d W >a >b >c";
    let plan = world.plan_with(text, &options).expect("it can be planned");
    let notes: Vec<&str> = plan.notes.iter().map(|note| note.code).collect();
    assert!(notes.contains(&"greedy_choice"), "{notes:?}");
    assert_eq!(
        line(&plan),
        world.line(text),
        "greedy and exact agree on a complete graph"
    );
}

#[test]
fn a_type_that_nobody_knows_is_left_in_place() {
    let mut world = World::of("a W");
    for record in world.records.values_mut() {
        record.ty = "other/Thing".parse().expect("a good type");
    }
    let plan = world.plan("").expect("it can be planned");
    assert!(plan.steps.is_empty());
    insta::assert_snapshot!(detail(&plan), @"note unknown_type: a is recorded with the unknown type other/Thing and left in place");
}

#[test]
fn what_a_type_that_nobody_knows_holds_is_left_in_place_too() {
    let mut world = World::of("a W; b W >a; c W >b; d W; e W @c");
    for record in world.records.values_mut() {
        if record.incarnation.resource.as_str() == "c" {
            record.ty = "other/Thing".parse().expect("a good type");
        }
    }
    let plan = world.plan("").expect("it can be planned");
    insta::assert_snapshot!(detail(&plan), @r"
    delete d [Removed]
    delete e [Removed]
    note unknown_type: c is recorded with the unknown type other/Thing and left in place
    note left_in_place: a is left in place, since b is and refers to it
    note left_in_place: b is left in place, since c is and refers to it
    ");
    // What somebody is to have the name of cannot stay.
    let mut world = World::of("a W fixed; b W >a");
    for record in world.records.values_mut() {
        if record.incarnation.resource.as_str() == "b" {
            record.ty = "other/Thing".parse().expect("a good type");
        }
    }
    let refused = world.plan("a W fixed region=2").expect_err("b holds it");
    insta::assert_snapshot!(refused, @"a would be deleted to make room, and b, which is recorded with the unknown type other/Thing, would not let go of it");
}

#[test]
fn who_holds_what_is_left_in_place_is_not_taken_into_the_target() {
    let mut world = World::of("a W; b W >a; h W =a");
    for record in world.records.values_mut() {
        if record.incarnation.resource.as_str() == "b" {
            record.ty = "other/Thing".parse().expect("a good type");
        }
    }
    let options = PlanOptions {
        target: [id("a")].into(),
        ..PlanOptions::default()
    };
    assert_eq!(world.line_with("", &options), "nothing");
}

#[test]
fn edges_are_refreshed_without_a_write() {
    let mut world = World::of("a W; b W @a; c W >a");
    assert_eq!(world.line("a W; b W; c W >a"), "nothing");
    world.deploy("a W; b W; c W >a");
    let edges = |world: &World, of: &str| -> usize {
        world
            .records
            .values()
            .find(|record| record.incarnation.resource.as_str() == of)
            .map_or(0, |record| record.edges.len())
    };
    assert_eq!((edges(&world, "b"), edges(&world, "c")), (0, 1));
    // Two removals are ordered by what is recorded.
    let world = World::of("b W; a W @b");
    assert_eq!(world.line(""), "delete a, delete b");
    let world = World::of("a W; b W @a");
    assert_eq!(world.line(""), "delete b, delete a");
}

#[test]
fn a_rename_outside_the_target_is_not_lost() {
    let mut world = World::of("old W; t T");
    let options = PlanOptions {
        target: [id("t")].into(),
        ..PlanOptions::default()
    };
    world.deploy_with("new W was:old; t T value=1", &options, usize::MAX);
    assert_eq!(world.line("new W was:old; t T value=1"), "nothing");
    assert_eq!(world.records.len(), 2);
}

#[test]
fn a_written_name_is_replaced_also_when_something_beside_it_was_found_gone() {
    let mut world = World::of("b W fixed region=1; z W =b; a W =b; s W =z =a");
    world.delete_by_hand("a");
    let text = "b W fixed region=2; z W =b; a W =b; s W =z =a";
    insta::assert_snapshot!(world.line(text), @"delete s, delete z, delete b, create b', create z', create a, create s'");
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn a_target_takes_in_who_has_its_name_and_says_so() {
    let mut world = World::of("m T Name=front; h T parent<m");
    let options = PlanOptions {
        target: [id("api")].into(),
        ..PlanOptions::default()
    };
    let text = "api T Name=front; other T";
    let plan = world.plan_with(text, &options).expect("it can be planned");
    insta::assert_snapshot!(detail(&plan), @r#"
delete h [Removed]
delete m [Removed]
create api [New]
  Name: unset -> "front"
note target_expanded: the target is expanded by h and m: whole cycles, what they need and what must let go of them or of their names
"#);
    world.deploy_with(text, &options, usize::MAX);
    // One that stays under another name makes room as well.
    let mut world = World::of("m T Name=front");
    let text = "api T Name=front; m T Name=back";
    insta::assert_snapshot!(world.line_with(text, &options), @"create m', delete m, create api");
    world.deploy_with(text, &options, usize::MAX);
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn a_record_whose_object_is_gone_or_another_s_is_dropped_with_a_note() {
    let mut world = World::of("a W; b W; c W");
    world.delete_by_hand("a");
    world.foreign.insert("shop-dev-b".to_owned());
    insta::assert_snapshot!(world.detail("c W"), @"
note drift: a (shop-dev-a) is gone at the provider; its record is dropped
note drift: b (shop-dev-b) is there, but belongs to other:dev:main (resource x) by now: it is left alone, and its record is dropped
");
    insta::assert_snapshot!(world.detail("a W; b W; c W"), @r#"
create a [Gone]
  Name: unset -> "shop-dev-a"
create b [Gone]
  Name: unset -> "shop-dev-b"
note drift: a (shop-dev-a) is gone at the provider and is made again
note drift: b (shop-dev-b) is there, but belongs to other:dev:main (resource x) by now: ours is gone and made again
"#);
    assert_eq!(world.deploy(""), ["delete c"]);
    assert!(world.records.is_empty());
    assert!(
        world.cloud.objects.contains_key("shop-dev-b"),
        "it is left alone"
    );
}

#[test]
fn a_renamed_record_remembers_the_ids_that_tags_may_name() {
    let mut world = World::of("a W");
    world.deploy("b W was:a");
    world.deploy("c W was:b");
    let record = world.records.values().next().expect("it is recorded");
    assert_eq!(record.former, [id("a"), id("b")]);
}
