//! What a plan shows of values: known, known later, kept, and what may happen.

mod world;

use notation_planner::{PlanOptions, Summary};
use world::{World, check::check_detail as check};

#[test]
fn a_fresh_pair() {
    check!(plan "a W >b; b W >a", @r#"
create a (placeholder) [OpensLoop]
  Name: unset -> "shop-dev-a"
  without bindings
create b [New]
  Name: unset -> "shop-dev-b"
  bindings: unset -> [{"service":{"unknown":"a.Name"}}]
update a [New]
  bindings: unset -> [{"service":{"unknown":"b.Name"}}]
settle [Settles]
cycle:a: b a, at most 3 passes, may write []
note placeholder_live: a is live without bindings until what it refers to exists
"#);
}

#[test]
fn a_name_written_by_hand_is_still_shown_by_reference() {
    check!(plan "a W fixed; b T parent<a", @r#"
create a [New]
  Name: unset -> "a"
create b [New]
  Name: unset -> "shop-dev-b-568c"
  parent: unset -> {"unknown":"a.Name"}
"#);
}

#[test]
fn a_peer_that_is_updated_keeps_what_is_stable() {
    // `arn` stays, `versionId` moves.
    check!(["a W code=1; b T value<a.arn; c T value<a.versionId"]
        plan "a W code=2; b T value<a.arn; c T value<a.versionId", @r#"
update a [Changed]
  code: "1" -> "2"
update c? [Changed]
  value: "v1" -> {"unknown":"a.versionId"}
"#);
}

#[test]
fn a_parameter_that_changes_is_known_to_those_that_read_it() {
    check!(["a W code=1; b T value<a.code"] plan "a W code=2; b T value<a.code", @r#"
update a [Changed]
  code: "1" -> "2"
update b [Changed]
  value: "1" -> "2"
"#);
}

#[test]
fn a_reader_of_a_reader_may_be_updated() {
    check!(["a W code=1; b W code<a.versionId; c T value<b.versionId"]
        plan "a W code=2; b W code<a.versionId; c T value<b.versionId", @r#"
update a [Changed]
  code: "1" -> "2"
update b? [Changed]
  code: "v1" -> {"unknown":"a.versionId"}
update c? [Changed]
  value: "v1" -> {"unknown":"b.versionId"}
"#);
}

#[test]
fn an_immutable_field_with_an_unknown_value_may_replace() {
    check!(["a W code=1; b W region<a.versionId"]
        plan "a W code=2; b W region<a.versionId", @r#"
update a [Changed]
  code: "1" -> "2"
update b? [Changed]
  region: "v1" -> {"unknown":"a.versionId"}
note may_replace: b is replaced if region turns out to change
"#);
    check!(["a W code=1; b F value<a.versionId"]
        plan "a W code=2; b F value<a.versionId", @r#"
update a [Changed]
  code: "1" -> "2"
update b? [Changed]
  value: "v1" -> {"unknown":"a.versionId"}
note may_replace: b is replaced if value turns out to change
"#);
}

#[test]
fn the_settle_step_lists_who_may_be_written_again() {
    check!(["a W >b.versionId; b W >a.versionId code=1; c W >a"]
        plan "a W >b.versionId; b W >a.versionId code=2; c W >a", @r#"
update b [Changed]
  code: "1" -> "2"
  bindings: [{"service":"shop-dev-a","version":"v3"}] -> [{"service":"shop-dev-a","version":"v4"}]
settle [Settles]
create c [New]
  Name: unset -> "shop-dev-c"
  bindings: unset -> [{"service":"shop-dev-a"}]
cycle:a: a b, at most 3 passes, may write ["a", "b"]
"#);
    check!(plan "a W >b; b W >a.versionId", @r#"
create a (placeholder) [OpensLoop]
  Name: unset -> "shop-dev-a"
  without bindings
create b [New]
  Name: unset -> "shop-dev-b"
  bindings: unset -> [{"service":{"unknown":"a.Name"},"version":{"unknown":"a.versionId"}}]
update a [New]
  bindings: unset -> [{"service":{"unknown":"b.Name"}}]
settle [Settles]
cycle:a: b a, at most 3 passes, may write ["b"]
note placeholder_live: a is live without bindings until what it refers to exists
"#);
}

#[test]
fn a_fixed_name_replacement_warns() {
    check!(["a W fixed region=1 >b; b W >a"] plan "a W fixed region=2 >b; b W >a", @r#"
revert b [LetsGo]
  bindings: [{"service":"a"}] -> unset
  without bindings
delete a [Replaced]
create a' [Replaces { because: ["region"] }]
  Name: unset -> "a"
  region: unset -> "2"
  bindings: unset -> [{"service":"shop-dev-b"}]
update b [LetsGo]
  bindings: unset -> [{"service":{"unknown":"a.Name"}}]
settle [Settles]
cycle:a: a' b, at most 3 passes, may write []
note unavailable_while_replaced: a is deleted before it is made again and unavailable meanwhile; b is reverted to a placeholder until then. A generated name behind a stable route, alias or CNAME avoids this
"#);
}

#[test]
fn drift_is_shown_with_values_and_put_back() {
    let text = "a W code=1 >b; b W";
    let mut world = World::of(text);
    let object = world
        .cloud
        .objects
        .get_mut("shop-dev-a")
        .expect("it is deployed");
    object.params.insert("code".to_owned(), "changed".into());
    object.params.remove("bindings");
    object.params.insert("tier".to_owned(), "free".into());
    insta::assert_snapshot!(world.detail(text), @r#"
update a [Drift]
  code: "changed" -> "1"
  bindings: unset -> [{"service":"shop-dev-b"}]
note drift: a differs at the provider: bindings is nothing instead of [{"service":"shop-dev-b"}], code is "changed" instead of "1"
"#);
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn the_order_of_bindings_and_what_the_provider_adds_are_no_drift() {
    let text = "a W >b >c; b W; c W";
    let mut world = World::of(text);
    let object = world
        .cloud
        .objects
        .get_mut("shop-dev-a")
        .expect("it is deployed");
    if let Some(notation_model::Value::List(items)) = object.params.get_mut("bindings") {
        items.reverse();
    }
    object.params.insert("tier".to_owned(), "free".into());
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn a_parameter_that_the_program_no_longer_sets_is_unset() {
    check!(["a W code=1"] plan "a W", @r#"
update a [Changed]
  code: "1" -> unset
"#);
}

#[test]
fn a_new_output_at_the_provider_reaches_those_that_read_it() {
    let text = "a W; b T value<a.versionId";
    let mut world = World::of(text);
    let object = world
        .cloud
        .objects
        .get_mut("shop-dev-a")
        .expect("it is deployed");
    object.outputs.insert("versionId".to_owned(), "v7".into());
    insta::assert_snapshot!(world.detail(text), @r#"
update b [Changed]
  value: "v1" -> "v7"
"#);
    world.deploy(text);
    assert_eq!(world.line(text), "nothing");
}

#[test]
fn the_summary_counts_each_write_once() {
    let world = World::of("a W region=1 >b; b W >a; c T; d T");
    let plan = world
        .plan("a W region=2 >b; b W >a; d T; e T")
        .expect("it can be planned");
    assert_eq!(
        plan.summary(),
        Summary {
            create: 1,
            update: 1,
            revert: 0,
            replace: 1,
            delete: 1,
            unchanged: 1,
            unknown: 0,
            recorded: 0,
        }
    );
}

#[test]
fn asking_for_a_replacement_gives_one() {
    let mut world = World::of("a W >b; b W >a");
    let options = PlanOptions {
        replace: [world::program::id("a")].into(),
        ..PlanOptions::default()
    };
    insta::assert_snapshot!(world.line_with("a W >b; b W >a", &options), @"create a', update b, settle, delete a");
    world.deploy_with("a W >b; b W >a", &options, usize::MAX);
    assert_eq!(world.line("a W >b; b W >a"), "nothing");
}

#[test]
fn a_sensitive_value_counts_and_is_never_shown() {
    check!(["a W secret=hunter1"] plan "a W secret=hunter2", @r#"
update a [Changed]
  secret: {"secret":true} -> {"secret":true}
"#);
    let world = World::of("a W secret=hunter1");
    let plan = world.plan("a W secret=hunter2").expect("it can be planned");
    let shown = format!("{plan:?}");
    assert!(!shown.contains("hunter"), "{shown}");
}

#[test]
fn a_sensitive_value_that_the_provider_keeps_to_itself_is_no_drift() {
    let text = "a W secret=one";
    let mut world = World::of(text);
    let object = world
        .cloud
        .objects
        .get_mut("shop-dev-a")
        .expect("it is deployed");
    object.params.remove("secret");
    assert_eq!(world.line(text), "nothing");
    let object = world
        .cloud
        .objects
        .get_mut("shop-dev-a")
        .expect("it is deployed");
    object.params.insert("secret".to_owned(), "other".into());
    insta::assert_snapshot!(world.detail(text), @r#"
update a [Drift]
  secret: {"secret":true} -> {"secret":true}
note drift: a differs at the provider: secret is another secret value
"#);
}

#[test]
fn a_volatile_field_is_no_difference() {
    let text = "t T note=1";
    let mut world = World::of(text);
    for object in world.cloud.objects.values_mut() {
        object.params.insert("note".to_owned(), "9".into());
    }
    assert_eq!(world.line(text), "nothing");
    assert_eq!(world.line("t T note=2"), "nothing");
}

#[test]
fn a_member_found_gone_leaves_its_peer_alone_unless_that_reads_more_than_its_name() {
    let text = "a W >b; b W >a";
    let mut world = World::of(text);
    world.delete_by_hand("a");
    assert_eq!(world.line(text), "create a, settle");
    let text = "a W >b; b W >a.arn";
    let mut world = World::of(text);
    world.delete_by_hand("a");
    insta::assert_snapshot!(world.detail(text), @r#"
create a [Gone]
  Name: unset -> "shop-dev-a"
  bindings: unset -> [{"service":"shop-dev-b"}]
update b? [Changed]
  bindings: [{"service":"shop-dev-a","version":"arn:shop-dev-a:1"}] -> [{"service":{"unknown":"a.Name"},"version":{"unknown":"a.arn"}}]
settle [Settles]
cycle:a: a b, at most 3 passes, may write []
note drift: a (shop-dev-a) is gone at the provider and is made again
"#);
    let calls = world.deploy(text);
    assert_eq!(calls, ["create a{b}", "update b{a}"]);
}
