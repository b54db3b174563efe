//! Never two writers: real processes that want the same deployment (`engine.md` §7, *Hold*).

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};

use crate::support::{Project, Ran, ran};

const WITHIN: Duration = Duration::from_secs(60);

fn things(value: u32) -> String {
    format!(
        "import {{ Thing }} from \"@notation/sim\";\nfor (let i = 0; i < 30; i++) new Thing({{ id: `t${{i}}`, config: {{ value: {value} }} }});\n"
    )
}

fn start(shop: &Project, machine: &str) -> Child {
    let mut command = shop.command();
    command
        .args(["deploy", "main", "--stage", "dev", "--yes"])
        .env("NOTATION_MACHINE", machine)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn end(child: Child) -> Ran {
    ran(child.wait_with_output().unwrap())
}

fn holder(shop: &Project) -> Json {
    let shown = shop
        .run(&["--json", "hold", "show", "main", "--stage", "dev"])
        .exits(0);
    shown.event("hold")["hold"].clone()
}

/// Waits until the deployment is held, and its first call is under way.
fn until_held(shop: &Project) {
    let started = Instant::now();
    while holder(shop).is_null() || shop.calls().is_empty() {
        assert!(started.elapsed() < WITHIN, "nobody took the hold");
        thread::sleep(Duration::from_millis(20));
    }
}

fn no_wait(shop: &Project) -> Ran {
    shop.run(&["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
}

/// The first create asks to come again in an hour.
fn endless_wait(shop: &Project) {
    shop.faults(
        json!([{ "op": "create", "name": "*", "do": "wait", "times": 1, "delay_ms": 3_600_000 }]),
    );
}

#[test]
fn of_two_deploys_at_once_the_second_waits_and_they_never_mix() {
    let shop = Project::new();
    shop.program(&things(1));
    shop.faults(json!({ "latency_ms": 40, "faults": [] }));
    let first = start(&shop, "here");
    until_held(&shop);
    shop.program(&things(2));
    let second = start(&shop, "here");
    end(first).exits(0);
    let second = end(second).exits(0);
    assert!(!second.said().contains("taken over"), "{}", second.said());
    let writes = shop.writes();
    let creates = writes.iter().filter(|w| w.starts_with("create")).count();
    let first_update = writes.iter().position(|w| w.starts_with("update"));
    assert_eq!((creates, first_update), (30, Some(30)), "{writes:?}");
    assert_eq!(writes.len(), 60, "{writes:?}");
    for (name, object) in shop.objects() {
        assert_eq!(object["params"]["value"], 2, "{name}");
    }
    assert!(holder(&shop).is_null());
    shop.is_quiet();
}

#[test]
fn deploys_that_start_in_the_same_instant_make_everything_once() {
    let shop = Project::new();
    shop.program(&things(1));
    shop.faults(json!({ "latency_ms": 5, "faults": [] }));
    let all: Vec<Child> = (0..4).map(|_| start(&shop, "here")).collect();
    for one in all {
        end(one).exits(0);
    }
    let calls = shop.calls();
    let creates = calls.iter().filter(|call| call["op"] == "create").count();
    assert_eq!(
        creates, 30,
        "not one create too many, not even a refused one"
    );
    shop.is_quiet();
}

#[test]
fn a_killed_holder_is_taken_over_at_once_on_its_own_machine() {
    let shop = Project::new();
    shop.program(&things(1));
    endless_wait(&shop);
    let mut first = start(&shop, "here");
    until_held(&shop);
    let refused = no_wait(&shop).exits(4);
    assert!(refused.said().contains("here"), "{}", refused.said());
    first.kill().unwrap();
    first.wait().unwrap();
    shop.faults(json!([]));
    // Its wait is not over either: what comes in an hour need not come before an end is asked for.
    let mut next = shop.command();
    next.args(["refresh", "main", "--stage", "dev", "--no-wait"])
        .env("NOTATION_MACHINE", "here");
    ran(next.output().unwrap()).exits(0).says("taken over");
    assert!(holder(&shop).is_null());
}

#[test]
fn a_holder_on_another_machine_is_waited_for_until_its_lease_ends_or_somebody_clears_it() {
    let shop = Project::new();
    shop.program(&things(1));
    shop.faults(json!([{ "op": "create", "name": "shop-dev-t7-*", "do": "kill_before" }]));
    assert_eq!(end(start(&shop, "there")).status, None);
    let mut elsewhere = shop.command();
    elsewhere
        .args(["deploy", "main", "--stage", "dev", "--yes", "--no-wait"])
        .env("NOTATION_MACHINE", "here");
    let refused = ran(elsewhere.output().unwrap()).exits(4);
    for text in ["there", "since", "hold clear"] {
        assert!(refused.said().contains(text), "{text}: {}", refused.said());
    }
    let calls = shop.calls().len();
    let mut waiting = start(&shop, "here");
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let told = said.find(|line| line.as_ref().unwrap().contains("waiting: held by"));
    assert!(told.unwrap().unwrap().contains("there"));
    assert_eq!(holder(&shop)["machine"], "there");
    assert_eq!(shop.calls().len(), calls, "nobody called meanwhile");
    shop.run(&["hold", "clear", "main", "--stage", "dev", "--yes"])
        .exits(0);
    said.for_each(drop);
    assert!(waiting.wait().unwrap().success());
    assert_eq!(shop.objects().len(), 30);
    shop.is_quiet();
}

#[test]
fn a_run_whose_hold_was_cleared_is_refused_by_the_fence_and_stops() {
    let shop = Project::new();
    shop.program(&things(1));
    // Every call of the first run is under way for a while.
    shop.faults(json!({ "latency_ms": 1500, "faults": [] }));
    let older = start(&shop, "there");
    let started = Instant::now();
    while holder(&shop).is_null() {
        assert!(started.elapsed() < WITHIN, "nobody took the hold");
        thread::sleep(Duration::from_millis(20));
    }
    shop.run(&["hold", "clear", "main", "--stage", "dev", "--yes"])
        .exits(0);
    shop.faults(json!([]));
    let newer = end(start(&shop, "here")).exits(0);
    assert!(!newer.said().contains("taken over"), "{}", newer.said());
    let older = end(older);
    assert!(
        older.status != Some(0) && older.said().contains("state::taken_over"),
        "{older:?}"
    );
    assert_eq!(shop.objects().len(), 30);
    shop.is_quiet();
}

#[test]
fn a_run_that_failed_holds_nothing() {
    let shop = Project::new();
    shop.program(&things(1));
    shop.faults(json!([{ "op": "create", "name": "shop-dev-t7-*", "do": "fail" }]));
    no_wait(&shop).exits(3);
    assert!(holder(&shop).is_null());
    shop.program("import { StrictWorker } from \"@notation/sim\";\nconst a = new StrictWorker({ id: \"a\", config: {} });\na.contribute({ bindings: [{ type: \"service\", service: a.Name }] });\n");
    no_wait(&shop).exits(1);
    assert!(holder(&shop).is_null());
    shop.program(&things(2));
    // Nobody can be asked in a pipe.
    shop.run(&["deploy", "main", "--stage", "dev"]).exits(2);
    assert!(holder(&shop).is_null());
}
