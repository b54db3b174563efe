//! Programs and states for which there is no plan, and what people are told.

mod world;

use notation_model::{DesiredGraph, Expr, Map, OutputRef, SecretValue, Segment, Value};
use notation_planner::{PlanOptions, PlanProblem, judge};
use world::program::{self, program};
use world::{World, check::check_detail as check};

#[test]
fn a_program_is_judged_whatever_exists_already() {
    check!(plan "x W; a S >b; b S >a", @r#"
plan::unbreakable_loop: a and b depend on each other and none of them can start first
  a needs b (contribution to `bindings`, infra/app.ts:2:1): `bindings` is required by sim/StrictWorker and only given by contribution
  b needs a (contribution to `bindings`, infra/app.ts:3:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
"#);
    let lived = World::of("x W; a S >x; b S >a");
    let text = "x W; a S >b; b S >a";
    assert_eq!(lived.detail(text), World::default().detail(text));
}

#[test]
fn a_member_that_could_be_bare_but_is_on_the_loop_by_config_alone() {
    check!(plan "b S >a; a W =b", @r#"
plan::unbreakable_loop: b and a depend on each other and none of them can start first
  b needs a (contribution to `bindings`, infra/app.ts:1:1): `bindings` is required by sim/StrictWorker and only given by contribution
  a needs b (config `bindings[0].service`, infra/app.ts:2:1): `bindings[0].service` is part of its config, which it cannot be created without
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own; or contribute `bindings` to a after construction instead of giving it in the config
"#);
}

#[test]
fn a_secret_is_no_name() {
    check!(plan "a W Name=$KEY; b W secret=$KEY", @"
plan::secret_key: `Name` names a and is made of a secret, secret(KEY)
  help: give `Name` in clear, or leave it out to have a name generated
");
}

#[test]
fn what_refers_to_a_secret_is_no_name() {
    // A field that is sensitive by its type, given or not; and parameters made of a secret, at
    // any distance.
    check!(plan "a W Name<b.secret; b W; c W Name<d.value; d T value<e.value; e T value=$KEY", @"
plan::secret_key: `Name` names a and is made of a secret, b.secret
  help: give `Name` in clear, or leave it out to have a name generated
plan::secret_key: `Name` names c and is made of a secret, d.value
  help: give `Name` in clear, or leave it out to have a name generated
");
    for fine in [
        "a W Name<b.arn; b W secret=$KEY",
        "a W Name<b.code; b W secret<c.secret; c W",
    ] {
        assert!(World::default().plan(fine).is_ok(), "{fine}");
    }
}

#[test]
fn of_a_map_with_a_secret_only_that_is_no_name() {
    let value = |text: &str| Expr::Known(Value::text(text));
    let hidden = Value::Secret(SecretValue::new(Value::text("geheim")));
    let members = [
        ("K", Expr::Secret("KEY".parse().unwrap())),
        ("L", value("x")),
    ];
    let named = |member: &str| {
        let mut graph = program("a W; b T");
        let members = members.iter().cloned();
        let map = Map::from_iter(members);
        graph.resources[1].config.insert("value", Expr::Map(map));
        let path = ["value", member].map(|name| Segment::Key(name.into()));
        let path = path
            .into_iter()
            .filter(|part| *part != Segment::Key("".into()));
        let resource = program::id("b");
        let reference = Expr::Output(OutputRef {
            resource,
            path: path.collect(),
        });
        let name = Expr::Join(vec![value("n-"), reference]);
        graph.resources[0].config.insert("Name", name);
        graph
    };
    let refused = |graph: &DesiredGraph| judge(graph, &world::types()).err().map(told);
    assert_eq!(refused(&named("L")), None);
    for (member, made_of) in [("K", "b.value.K"), ("", "b.value")] {
        let told = refused(&named(member)).unwrap();
        assert_eq!(
            told,
            format!("`Name` names a and is made of a secret, {made_of}")
        );
    }
    let mut given = program("a W; b W");
    let known = Expr::Known(hidden);
    given.resources[0].config.insert("Name", known.clone());
    let contribution = notation_model::Contribution {
        field: "Name".into(),
        value: known,
        origin: given.resources[1].origin.clone(),
    };
    given.resources[1].contributions.push(contribution);
    assert_eq!(
        refused(&given).unwrap(),
        "`Name` names a and is made of a secret, (secret)\n\
         `Name` names b and is made of a secret, (secret)"
    );
}

#[test]
fn references_that_lead_in_a_circle_are_followed_once() {
    let mut graph = program("a T; b T; c W Name<a.value");
    for (from, to) in [(0, "b"), (1, "a")] {
        let path = ["value", "deeper"].map(|name| Segment::Key(name.into()));
        let resource = program::id(to);
        let path = path.into_iter().collect();
        let reference = Expr::Output(OutputRef { resource, path });
        graph.resources[from].config.insert("value", reference);
    }
    let problems = judge(&graph, &world::types()).unwrap_err();
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code()).collect();
    assert_eq!(codes, ["plan::unbreakable_loop"]);
}

#[test]
fn a_name_found_to_be_a_secret_is_not_shown() {
    let mut world = World::of("b W fixed");
    let hidden = Value::Secret(SecretValue::new(Value::text("geheim")));
    for record in world.records.values_mut() {
        record.outputs.insert("arn", hidden.clone());
    }
    for object in world.cloud.objects.values_mut() {
        object.outputs.insert("arn", hidden.clone());
    }
    let told = world.detail("b W fixed; a W Name<b.arn; c W Name=geheim");
    insta::assert_snapshot!(told, @"
plan::secret_key: `Name` names a and is made of a secret, b.arn
  help: give `Name` in clear, or leave it out to have a name generated
");
}

fn told(problems: Vec<PlanProblem>) -> String {
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    told.join("\n")
}

#[test]
fn every_loop_is_reported_and_members_of_reported_ones_are_taken_out() {
    check!(plan "a S >b; b S >a >c; c S >d; d S >c; e S >e", @r#"
plan::unbreakable_loop: a and b depend on each other and none of them can start first
  a needs b (contribution to `bindings`, infra/app.ts:1:1): `bindings` is required by sim/StrictWorker and only given by contribution
  b needs a (contribution to `bindings`, infra/app.ts:2:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
plan::unbreakable_loop: c and d depend on each other and none of them can start first
  c needs d (contribution to `bindings`, infra/app.ts:3:1): `bindings` is required by sim/StrictWorker and only given by contribution
  d needs c (contribution to `bindings`, infra/app.ts:4:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
plan::unbreakable_loop: e depends on itself and cannot start
  e needs e (contribution to `bindings`, infra/app.ts:5:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
"#);
}

#[test]
fn who_cannot_start_bare_says_why() {
    check!(plan "a W never >a; b G >b; c P >c; d S >d", @r#"
plan::unbreakable_loop: a depends on itself and cannot start
  a needs a (contribution to `bindings`, infra/app.ts:1:1): a is marked placeholder: "never"
  help: take placeholder: "never" off a
plan::unbreakable_loop: b depends on itself and cannot start
  b needs b (contribution to `bindings`, infra/app.ts:2:1): type sim/GuardedWorker must never be live without its contributions
  help: move one reference out of the sim/GuardedWorker into a resource of its own
plan::unbreakable_loop: c depends on itself and cannot start
  c needs c (contribution to `bindings`, infra/app.ts:3:1): `bindings` of sim/PinnedWorker cannot be changed after creation
  help: contribute to a field of sim/PinnedWorker that can change, not `bindings`, or move one reference into a resource of its own
plan::unbreakable_loop: d depends on itself and cannot start
  d needs d (contribution to `bindings`, infra/app.ts:4:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
"#);
}

#[test]
fn an_order_that_nobody_can_begin() {
    check!(plan "a W never @b; b W never @a", @r#"
plan::unbreakable_loop: a and b depend on each other and none of them can start first
  a needs b (dependOn, infra/app.ts:1:1): a is marked placeholder: "never"
  b needs a (dependOn, infra/app.ts:2:1): b is marked placeholder: "never"
  help: take placeholder: "never" off a; or take placeholder: "never" off b
"#);
    check!(plan "a W @b; b W never @a", @r#"
create a (placeholder) [OpensLoop]
  Name: unset -> "shop-dev-a"
create b [New]
  Name: unset -> "shop-dev-b"
nothing a [New]
settle [Settles]
cycle:a: b a, at most 3 passes, may write []
"#);
}

#[test]
fn one_identity_claimed_twice() {
    check!(plan "a W Name=x; b T Name=x", @r#"
plan::duplicate_identity: a (sim/Worker) and b (sim/Thing) both claim the name "x", which their types share
  help: give b another name, or leave its name out to have one generated
"#);
}

#[test]
fn a_second_value_for_a_field_that_takes_one() {
    let mut graph = program("a W code=1; b W");
    let contribution = notation_model::Contribution {
        field: "code".into(),
        value: "2".into(),
        origin: graph.resources[1].origin.clone(),
    };
    graph.resources[0].contributions.push(contribution);
    let error = World::default()
        .plan_graph(&graph, &PlanOptions::default())
        .expect_err("code is given twice");
    insta::assert_snapshot!(error, @"`code` of a takes one value and is given another one");
}

#[test]
fn everything_wrong_is_said_at_once() {
    check!(plan "a S; b S >b; c S >c", @r#"
plan::missing_field: `bindings` of a is required and not given
  help: give `bindings` in the config or contribute it
plan::unbreakable_loop: b depends on itself and cannot start
  b needs b (contribution to `bindings`, infra/app.ts:2:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
plan::unbreakable_loop: c depends on itself and cannot start
  c needs c (contribution to `bindings`, infra/app.ts:3:1): `bindings` is required by sim/StrictWorker and only given by contribution
  help: give `bindings` a value in the config, make it optional in the schema of sim/StrictWorker, or move one reference into a resource of its own
"#);
}

#[test]
fn what_is_protected_is_not_deleted_replaced_or_reverted() {
    check!(["a W protect"] plan "", @r#"
plan::protected: a is protected and would be deleted: nothing is asked for
  help: deploy a program that declares a without `protect` first, then run this again
"#);
    check!(["a W protect region=1"] plan "a W protect region=2", @r#"
plan::protected: a is protected and would be replaced: region
  help: deploy a program that declares a without `protect` first, then run this again
"#);
    check!(["a W fixed region=1 >b; b W protect >a"]
        plan "a W fixed region=2 >b; b W protect >a", @r#"
plan::protected: b is protected and would be reverted: what it refers to is removed before it can be completed
  help: deploy a program that declares b without `protect` first, then run this again
"#);
    // The program lifts the mark itself.
    check!(["a W protect region=1"] plan "a W region=2", @r#"
create a' [Replaces { because: ["region"] }]
  Name: unset -> "shop-dev-a-9467"
  region: unset -> "2"
delete a [Replaced]
"#);
    // Other changes are fine.
    check!(["a W protect code=1"] plan "a W protect code=2", @r#"
update a [Changed]
  code: "1" -> "2"
"#);
}

#[test]
fn an_unknown_target() {
    let options = PlanOptions {
        target: [program::id("nobody")].into(),
        replace: [program::id("b")].into(),
        ..PlanOptions::default()
    };
    let world = World::of("b W");
    insta::assert_snapshot!(world.line_with("a W", &options), @r#"
refused: --replace b: it is not declared, so it is removed and nothing takes its place
--target nobody: there is no such resource
"#);
}

#[test]
fn an_earlier_id_claimed_twice() {
    check!(["old W"] plan "a W was:old; b W was:old", @r#"
plan::claimed_twice: a and b both claim the id old
  help: name old in one `formerly` only, and in no declaration
"#);
    check!(["old W"] plan "old W; b W was:old", @r#"
plan::claimed_twice: old and b both claim the id old
  help: name old in one `formerly` only, and in no declaration
"#);
    check!(["old W"] plan "a W was:a; b W was:old; c W was:old; d W was:old", @r#"
plan::claimed_twice: a names its own id in its `formerly`
  help: leave a out of it: `formerly` takes ids that it had before
plan::claimed_twice: b, c and d all claim the id old
  help: name old in one `formerly` only, and in no declaration
"#);
}
