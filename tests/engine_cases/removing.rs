//! What is destroyed, or leaves the program.

use crate::{NOTHING, PAIR, support::Project};

/// T7.
#[test]
fn a_pair_is_destroyed_through_placeholders() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.forget_calls();
    shop.destroy().exits(0);
    shop.wrote(&[&["update a{}", "update b{}"], &["delete a", "delete b"]]);
    assert!(shop.objects().is_empty());
    shop.run(&["state", "list", "main", "--stage", "dev"])
        .exits(0);
    shop.destroy().exits(0);
    shop.wrote(&[]);
}

/// T8.
#[test]
fn removing_a_pair_from_the_program_makes_the_same_calls_as_destroying_it() {
    let shop = Project::new();
    shop.program(PAIR).deploy().exits(0);
    shop.forget_calls();
    shop.program(NOTHING).deploy().exits(0);
    shop.wrote(&[&["update a{}", "update b{}"], &["delete a", "delete b"]]);
}

/// T9.
#[test]
fn a_dropped_binding_is_written_before_its_target_is_deleted() {
    let shop = Project::new();
    let bound = r#"
import { Worker } from "@notation/sim";
const a = new Worker({ id: "a", config: {} });
const b = new Worker({ id: "b", config: { bindings: [{ type: "service", service: a.Name }] } });
"#;
    shop.program(bound).deploy().exits(0);
    shop.forget_calls();
    shop.program(
        "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"b\", config: {} });\n",
    )
    .deploy()
    .exits(0);
    shop.wrote(&[&["update b{}"], &["delete a"]]);
}

#[test]
fn an_imported_member_and_one_that_holds_nothing_of_it_are_removed_in_order() {
    let shop = Project::new();
    let bound = r#"
import { GuardedWorker, Worker } from "@notation/sim";
const t = new Worker({ id: "t", config: {} });
const q = new GuardedWorker({ id: "q", config: { code: t.Name } });
t.contribute({ bindings: [{ type: "service", service: q.Name }] });
"#;
    let replaced = "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"t\", config: { region: \"us\" } });\n";
    for destroyed in [false, true] {
        shop.program(bound).deploy().exits(0);
        shop.program(replaced);
        for arguments in [
            &["state", "rm", "main", "t", "--stage", "dev", "--yes"][..],
            &["import", "main", "t", "shop-dev-t", "--stage", "dev"][..],
        ] {
            shop.run(arguments).exits(0);
        }
        shop.forget_calls();
        if destroyed {
            shop.destroy().exits(0);
            shop.wrote(&[&["delete t"], &["delete q"]]);
        } else {
            shop.deploy().exits(0);
            assert_eq!(shop.objects().len(), 1);
            shop.is_quiet();
            shop.destroy().exits(0);
        }
        assert!(shop.objects().is_empty());
    }
}
