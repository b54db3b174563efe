//! Four times the resources are four times the work (`engine.md` §10): counted in allocations and
//! their bytes, which do not depend on the machine. Every set, loop or step found makes some, and
//! every visit of a graph asks for bytes by the node.

mod world;

use notation_planner::PlanOptions;
use world::{World, program::id};

const FEW: usize = 60;
const TIMES: usize = 4;

/// What one plan costs.
struct Cost {
    allocations: u64,
    bytes: u64,
    /// How many steps its steps name that come before them.
    waits: u64,
}

/// What the plan of a change from one program to another costs.
fn cost(count: usize, program: &dyn Fn(usize, &str) -> String, options: &PlanOptions) -> Cost {
    let (before, after) = (program(count, "here"), program(count, "there"));
    let world = World::of(&before);
    let mut planned = None;
    let cost = allocation_counter::measure(|| planned = Some(world.plan_with(&after, options)));
    let plan = planned.expect("planned").expect("the plan is accepted");
    assert!(!plan.is_quiet(), "there is something to do");
    let gave_up = plan.notes.iter().any(|note| note.code == "greedy_choice");
    assert!(!gave_up, "nothing is left to a greedy choice");
    Cost {
        allocations: cost.count_total,
        bytes: cost.bytes_total,
        waits: plan.steps.iter().map(|step| step.after.len() as u64).sum(),
    }
}

#[track_caller]
fn grows_no_faster(program: impl Fn(usize, &str) -> String) {
    grows_no_faster_with(program, |_| PlanOptions::default());
}

#[track_caller]
fn grows_no_faster_with(
    program: impl Fn(usize, &str) -> String,
    options: impl Fn(usize) -> PlanOptions,
) {
    grows_no_faster_from(FEW, program, options);
}

#[track_caller]
fn grows_no_faster_from(
    few: usize,
    program: impl Fn(usize, &str) -> String,
    options: impl Fn(usize) -> PlanOptions,
) {
    let many = TIMES * few;
    let few = cost(few, &program, &options(few));
    let many = cost(many, &program, &options(many));
    for (what, few, many) in [
        ("allocations", few.allocations, many.allocations),
        ("bytes", few.bytes, many.bytes),
        ("waits", few.waits, many.waits),
    ] {
        let most = few * TIMES as u64 * 5 / 4;
        assert!(many <= most, "{few} {what} became {many}");
    }
}

/// One part per resource: `first` of the first, `other` of the others.
fn each(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join("; ")
}

/// The first one is changed in its place; the others stay as they are.
fn shared(count: usize, region: &str, other: impl Fn(usize) -> String) -> String {
    each(count, |number| match number {
        0 => format!("r0 W fixed region={region}"),
        _ => other(number),
    })
}

fn replace_all(count: usize) -> PlanOptions {
    PlanOptions {
        replace: (0..count).map(|number| id(&format!("r{number}"))).collect(),
        ..PlanOptions::default()
    }
}

#[test]
fn a_chain_replaced_in_place() {
    grows_no_faster(|count, region| {
        each(count, |number| match number {
            0 => format!("r0 W fixed region={region}"),
            _ => format!("r{number} W fixed region={region} code<r{}.arn", number - 1),
        })
    });
}

#[test]
fn everything_that_depends_on_one_replaced_in_place_with_it() {
    grows_no_faster(|count, region| {
        shared(count, region, |number| {
            format!("r{number} W fixed region={region} @r0")
        })
    });
}

#[test]
fn one_that_all_others_bind_replaced_in_place() {
    grows_no_faster_with(
        |count, region| shared(count, region, |number| format!("r{number} W >r0")),
        // Each of the others is reverted, and nobody searches for that.
        |_| PlanOptions {
            search_budget: 1,
            ..PlanOptions::default()
        },
    );
}

#[test]
fn one_that_all_others_read_replaced_in_place() {
    grows_no_faster(|count, region| {
        shared(count, region, |number| format!("r{number} W code<r0.Name"))
    });
}

#[test]
fn one_that_all_others_hold_replaced_in_place() {
    grows_no_faster(|count, region| {
        shared(count, region, |number| {
            format!("r{number} T parent<r0.Name")
        })
    });
}

#[test]
fn pairs_of_one_and_its_reader_replaced_in_place() {
    grows_no_faster(|count, region| {
        each(count, |number| match number % 2 {
            0 => format!("r{number} W fixed region={region}"),
            _ => format!("r{number} W code<r{}.Name", number - 1),
        })
    });
}

#[test]
fn one_that_binds_all_others_replaced_in_place_with_them() {
    grows_no_faster(|count, region| {
        each(count, |number| {
            let binds: Vec<String> = match number {
                0 => (1..count).map(|other| format!(">r{other}")).collect(),
                _ => Vec::new(),
            };
            format!("r{number} W fixed region={region} {}", binds.join(" "))
        })
    });
}

#[test]
fn a_chain_of_pairs_replaced_side_by_side() {
    grows_no_faster_with(
        |count, _| {
            each(count, |number| match (number % 2, number) {
                (0, 0) => "r0 W >r1".to_owned(),
                (0, _) => format!("r{number} W >r{} code<r{}.arn", number + 1, number - 1),
                (_, _) => format!("r{number} W >r{}", number - 1),
            })
        },
        replace_all,
    );
}

#[test]
fn a_chain_replaced_side_by_side() {
    grows_no_faster_with(
        |count, _| {
            each(count, |number| match number {
                0 => "r0 W".to_owned(),
                _ => format!("r{number} W code<r{}.arn", number - 1),
            })
        },
        replace_all,
    );
}

fn chain_removed(count: usize, when: &str) -> String {
    let link = |number: usize| match number {
        0 => "r0 W".to_owned(),
        _ => format!("r{number} W code<r{}.arn", number - 1),
    };
    match when {
        "here" => each(count, link),
        _ => String::new(),
    }
}

#[test]
fn a_chain_removed() {
    grows_no_faster(chain_removed);
}

/// Ten thousand resources do not fit into the cache next to the processor, a thousand do: what is
/// asked for by the resource decides how much longer ten times as many take.
#[test]
fn removing_asks_for_little_memory() {
    let count = TIMES * FEW;
    let cost = cost(count, &chain_removed, &PlanOptions::default());
    let each = |total: u64| total / count as u64;
    assert!(
        each(cost.allocations) <= 5,
        "{} allocations",
        cost.allocations
    );
    assert!(each(cost.bytes) <= 2600, "{} bytes", cost.bytes);
}

#[test]
fn a_chain_removed_of_which_each_was_read_by_one_that_stays() {
    grows_no_faster(|count, when| {
        let reads = |number: usize| match when {
            "here" => format!("k{number} W code<r{number}.arn"),
            _ => format!("k{number} W"),
        };
        let readers = each(count, reads);
        match chain_removed(count, when) {
            gone if gone.is_empty() => readers,
            chain => format!("{chain}; {readers}"),
        }
    });
}

fn of_the_first() -> PlanOptions {
    PlanOptions {
        target: [id("r0")].into(),
        ..PlanOptions::default()
    }
}

#[test]
fn the_first_of_a_chain_removed_with_all_that_hold_it() {
    grows_no_faster_with(chain_removed, |_| of_the_first());
}

#[test]
fn the_first_of_a_ring_removed_with_all_that_hold_it() {
    let ring = |count: usize, when: &str| match when {
        "here" => each(count, |number| {
            format!("r{number} W >r{}", (number + 1) % count)
        }),
        _ => String::new(),
    };
    grows_no_faster_with(ring, |_| of_the_first());
}

#[test]
fn the_first_of_a_ring_changed_with_the_others() {
    grows_no_faster_from(
        TIMES * FEW,
        |count, region| {
            each(count, |number| {
                format!("r{number} W region={region} >r{}", (number + 1) % count)
            })
        },
        |_| of_the_first(),
    );
}

/// The new ones wait for one delete, and that one waits for all the old ones: a look over these for
/// each of the new is little beside the rest where there are few.
#[test]
fn one_that_all_others_name_in_their_config_replaced_in_place_with_them() {
    grows_no_faster_from(
        TIMES * FEW,
        |count, region| shared(count, region, |number| format!("r{number} W =r0")),
        |_| PlanOptions::default(),
    );
}
