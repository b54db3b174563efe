//! A cycle that does not settle names what keeps it going.

mod world;

use std::collections::BTreeMap;

use notation_model::{Incarnation, Params, Value};
use notation_planner::{SettleHistory, SettleWrite, culprits};
use world::{World, program::id, types};

fn who(resource: &str) -> Incarnation {
    Incarnation {
        resource: id(resource),
        generation: 0,
    }
}

fn outputs(version: &str) -> Params {
    Params::from([("versionId".to_owned(), Value::text(version))])
}

fn write(pass: u32, member: &str, version: &str) -> SettleWrite {
    SettleWrite {
        pass,
        member: who(member),
        changed: vec!["bindings".to_owned()],
        outputs: outputs(version),
    }
}

fn said(text: &str, before: &[(&str, &str)], writes: &[SettleWrite], pending: &[&str]) -> String {
    let plan = World::default().plan(text).expect("it can be planned");
    let before: BTreeMap<Incarnation, Params> = before
        .iter()
        .map(|(member, version)| (who(member), outputs(version)))
        .collect();
    let pending: Vec<(Incarnation, Vec<String>)> = pending
        .iter()
        .map(|member| (who(member), vec!["bindings".to_owned()]))
        .collect();
    let found = culprits(
        &SettleHistory {
            cycle: &plan.cycles[0],
            intended: &plan.intended,
            before: &before,
            writes,
            pending: &pending,
        },
        &|member| types().get(&plan.intended[member].ty).cloned(),
    );
    format!("{found}\n{}", found.help())
}

#[test]
fn versions_that_chase_each_other() {
    let writes = [
        write(1, "b", "v2"),
        write(1, "a", "v3"),
        write(2, "b", "v3"),
        write(2, "a", "v4"),
    ];
    insta::assert_snapshot!(
        said("a W >b.versionId; b W >a.versionId", &[("a", "v2"), ("b", "v1")], &writes, &["b"]),
        @r#"
a.versionId changed on every update (v2, v3, v4), read by b.bindings[0].version; b.versionId changed on every update (v1, v2, v3), read by a.bindings[0].version
refer to an output that stays the same through updates, such as a name or an ARN
"#
    );
}

#[test]
fn what_only_took_too_long_is_not_called_endless() {
    let mut writes = vec![write(1, "b", "v2"), write(2, "a", "v2")];
    writes.push(write(2, "a", "v2"));
    insta::assert_snapshot!(
        said("a W >b.versionId; b W >a.versionId", &[("a", "v1"), ("b", "v2")], &writes, &["b"]),
        @r#"
3 passes were not enough: a.versionId changed (v1, v2), read by b.bindings[0].version
deploy again to go on from here, or refer to an output that stays the same through updates
"#
    );
}

#[test]
fn the_place_of_a_reader_counts_the_items_before_it() {
    let writes = [write(1, "a", "v2"), write(2, "a", "v3")];
    insta::assert_snapshot!(
        said("x W; a W >a.versionId; b W =x >a", &[("a", "v1")], &writes, &["a"]),
        @r#"
a.versionId changed on every update (v1, v2, v3), read by a.bindings[0].version
refer to an output that stays the same through updates, such as a name or an ARN
"#
    );
    insta::assert_snapshot!(
        said("x W; a W =x >x >a.versionId", &[("a", "v1")], &writes, &["a"]),
        @r#"
a.versionId changed on every update (v1, v2, v3), read by a.bindings[2].version
refer to an output that stays the same through updates, such as a name or an ARN
"#
    );
}
