//! A tour through everything the command line has: every command, every flag, every exit status
//! and every JSON event, held against the generated reference and the published schema.
//!
//! A new flag without a stop here fails the test, as does an event that no stop shows.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod seen;

use std::{fs, io::Write as _, process::Stdio};

use seen::Tour;
use serde_json::json;
use support::{PAIR_WITH_A_SECRET, Ran};

const ONE: &str =
    "import { Worker } from \"@notation/sim\";\nnew Worker({ id: \"a\", config: {} });\n";

#[test]
fn every_command_flag_event_and_exit_status_is_exercised() {
    let tour = Tour::new();
    a_project(&tour);
    deploying(&tour);
    records(&tour);
    marks(&tour);
    by_hand(&tour);
    failing(&tour);
    holds(&tour);
    hosts(&tour);
    a_bug_of_ours(&tour);
    tour.is_complete();
}

fn a_project(tour: &Tour) {
    tour.go("--json init made --app orders", 0);
    tour.go("--project made check app", 0);
    tour.go("--json --project made types", 0);
    tour.go("--json init made", 1);
    tour.go("--json version", 0);
    tour.go("--json help deploy", 0);
    tour.go("--json help usage::wrong", 0);
    tour.go("--json completions bash", 0);
    tour.go("--json deploy --help", 0);
    tour.go("nosuch", 2);
    tour.go("--json deploy main --nosuch", 2);
    // Quiet says problems and what was asked for, verbose says values in full.
    tour.fresh(&format!(
        "import {{ Thing }} from \"@notation/sim\";\nnew Thing({{ id: \"a\", config: {{ value: \"{}\" }} }});\n",
        "long ".repeat(60)
    ));
    let plain = tour.go("plan main --stage dev --no-color", 0);
    let quiet = tour.go("--quiet plan main --stage dev", 0);
    let verbose = tour.go("--verbose plan main --stage dev", 0);
    assert!(quiet.stdout.len() < plain.stdout.len() && plain.stdout.len() < verbose.stdout.len());
    tour.go("-q deploy main --stage dev --yes", 0);
    tour.go("-v plan main --stage dev", 0);
}

fn deploying(tour: &Tour) {
    tour.fresh(PAIR_WITH_A_SECRET);
    let checked = tour.go("--json check main --stage dev", 0);
    assert_eq!(checked.event("check")["secrets"], json!(["KEY"]));
    tour.go("check main", 0)
        .says("notation secret set main KEY --stage STAGE");
    tour.go("plan main --stage dev", 1)
        .says("notation secret set main KEY --stage dev")
        .says("infra/main.ts:4:51");
    tour.go_with("secret set main KEY --stage dev", "hunter2\n", 0);
    tour.go("--json secret list main --stage dev", 0);
    tour.go("plan main --stage dev --fail-on-changes", 5);
    tour.go("--json deploy main --stage dev", 2)
        .says("usage::needs_yes");
    let refused = tour.go("--json deploy main --stage dev", 2);
    assert_eq!(
        refused.events().len(),
        2,
        "the plan and the refusal: {}",
        refused.stdout
    );
    tour.go("--json plan main --stage dev --out plan.json --parallelism 3 --max-attempts 5 --fail-fast --no-wait", 0);
    tour.go("deploy main --stage dev --yes --plan plan.json", 0);
    tour.go("deploy main --stage dev --yes --plan plan.json", 1)
        .says("plan_file::moved");
    tour.go("--json deploy main --stage dev --yes --no-refresh --parallelism 2 --fail-fast --max-attempts 9 --no-wait", 0);
    tour.go("plan main --stage dev --fail-on-changes --no-refresh", 0);
    let plan = tour
        .go(
            "--json plan main --stage dev --replace a --target a --adopt a",
            0,
        )
        .event("plan");
    assert_eq!(plan["summary"]["replace"], 1, "{plan}");
    tour.go(
        "--json deploy main --stage dev --yes --replace a --target a",
        0,
    );
    tour.go("deploy main --stage dev --yes --adopt b", 0);
    tour.go("--json outputs main --stage dev", 0);
    tour.go("outputs main --stage dev --show-secrets --app shop", 0);
    tour.go("--json graph main --format svg --stage dev", 0);
    tour.go("--json stages", 0);
    tour.go("--json sim dump", 0);
    tour.go("--json refresh main --stage dev --no-wait --app shop", 0);
    tour.go("destroy main --stage dev --yes --target a --replace b", 1)
        .says("plan::not_declared");
    tour.go("destroy main --stage dev --yes --target nobody", 1)
        .says("plan::unknown_id")
        .says("notation state list main --stage dev");
    tour.go("destroy main --stage dev --yes --no-refresh --parallelism 1 --fail-fast --max-attempts 3 --no-wait --adopt a --app shop", 0);
    tour.go("secret rm main KEY --stage dev --app shop", 0);
    tour.go("secret rm main KEY --stage dev", 1);
    tour.go("secret list main --stage dev --app shop", 0);
    tour.go("--json sim reset", 0);
}

fn records(tour: &Tour) {
    tour.fresh(ONE);
    tour.go("deploy main --stage dev --yes", 0);
    tour.go("--json state list main --stage dev --app shop", 0);
    tour.go("--json state show main a --stage dev --app shop", 0);
    tour.go("state rm main a --stage dev", 2);
    tour.go("--json state rm main a --stage dev --yes --app shop", 0);
    tour.go(
        "--json import main a shop-dev-a --stage dev --adopt a --no-wait",
        0,
    );
    tour.go("import main a shop-dev-a --stage dev", 1);
}

/// The job of the guide: whatever a deploy would record is something to do.
fn marks(tour: &Tour) {
    tour.fresh(ONE);
    tour.go("deploy main --stage dev --yes", 0);
    let marked = ONE.replace("id: \"a\"", "id: \"b\", formerly: [\"a\"], protect: true");
    tour.shop.borrow().program(&marked);
    tour.go("plan main --stage dev --fail-on-changes --out plan.json", 5)
        .says("b   is a under its new name; becomes protected");
    tour.go("deploy main --stage dev --yes --plan plan.json", 0)
        .says("Done: 1 recorded in ");
    tour.go("plan main --stage dev --fail-on-changes", 0);
    tour.go("destroy main --stage dev --yes", 1)
        .says("plan::protected");
}

fn by_hand(tour: &Tour) {
    tour.fresh("import { Blind } from \"@notation/sim\";\nnew Blind({ id: \"dark\", config: { value: 1 } });\n");
    for answer in ["--absent", "--created KEY"] {
        tour.faults(json!([{ "op": "create", "name": "*", "do": "kill_after" }]));
        let ran = tour.shop.borrow().deploy();
        assert_eq!(ran.status, None, "{}", ran.said());
        tour.go("deploy main --stage dev --yes", 1)
            .says("notation resolve main dark");
        let key = tour
            .shop
            .borrow()
            .objects()
            .keys()
            .next_back()
            .unwrap()
            .clone();
        let answer = answer.replace("KEY", &key);
        tour.go(
            &format!("--json resolve main dark {answer} --stage dev --app shop"),
            0,
        );
    }
}

fn failing(tour: &Tour) {
    tour.fresh(&PAIR_WITH_A_SECRET.replace("secret: secret(\"KEY\")", ""));
    tour.faults(json!([
        { "op": "create", "name": "shop-dev-a", "do": "wait", "times": 2, "delay_ms": 1 },
        { "op": "create", "name": "shop-dev-b", "do": "fail" },
    ]));
    let failed = tour.go("--json deploy main --stage dev --yes", 3);
    assert_eq!(failed.event("report")["status"], "failed");
    tour.faults(json!([]));
    tour.go("--json deploy main --stage dev --yes", 0);

    // Interrupted while a call waits.
    tour.fresh(ONE);
    tour.faults(json!([{ "op": "create", "name": "*", "do": "wait", "times": 0, "delay_ms": 20 }]));
    let words = [
        "--json",
        "deploy",
        "main",
        "--stage",
        "dev",
        "--yes",
        "--max-attempts",
        "10000",
    ];
    let mut command = tour.shop.borrow().command();
    command
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut told = String::new();
    while !told.contains("step_waiting") {
        told.push_str(&lines.next().unwrap().unwrap());
        told.push('\n');
    }
    let pid = child.id().to_string();
    let interrupt = || {
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
    };
    interrupt();
    // A second one while it still runs stops the waiting; it may have ended by itself before.
    interrupt();
    for line in lines {
        told.push_str(&line.unwrap());
        told.push('\n');
    }
    let status = child.wait().unwrap().code();
    let interrupted = Ran {
        status,
        stdout: told,
        stderr: String::new(),
    };
    let interrupted = tour.took(&words, interrupted).exits(130);
    assert_eq!(interrupted.event("report")["status"], "interrupted");
}

fn holds(tour: &Tour) {
    tour.fresh(ONE);
    let killed = |tour: &Tour| {
        tour.faults(json!([{ "op": "create", "name": "*", "do": "kill_before" }]));
        let mut shop = tour.shop.borrow_mut();
        shop.set("NOTATION_MACHINE", "elsewhere");
        assert_eq!(shop.deploy().status, None);
        shop.set("NOTATION_MACHINE", "here");
    };
    killed(tour);
    tour.go("deploy main --stage dev --yes --no-wait", 4)
        .says("elsewhere")
        .says("notation hold clear main --stage dev");
    for line in [
        "refresh main --stage dev --no-wait",
        "destroy main --stage dev --yes --no-wait",
        "import main a x --stage dev --no-wait",
    ] {
        tour.go(line, 4);
    }
    // A plan needs no hold.
    tour.go("plan main --stage dev --no-wait", 0);
    tour.go("--json hold show main --stage dev --app shop", 0);
    tour.go("hold clear main --stage dev", 2);
    tour.go("--json hold clear main --stage dev --yes --app shop", 0);
    tour.go("--json hold show main --stage dev", 0);

    // Who waits says for whom.
    killed(tour);
    let words = ["--json", "deploy", "main", "--stage", "dev", "--yes"];
    let mut command = tour.shop.borrow().command();
    command
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut told = lines.next().unwrap().unwrap();
    assert!(told.contains("hold_waiting"), "{told}");
    tour.go("hold clear main --stage dev --yes", 0);
    for line in lines {
        told.push('\n');
        told.push_str(&line.unwrap());
    }
    let status = child.wait().unwrap().code();
    let waited = Ran {
        status,
        stdout: told,
        stderr: String::new(),
    };
    tour.took(&words, waited).exits(0);

    // On the machine of the dead run it is taken over.
    tour.fresh(ONE);
    tour.faults(json!([{ "op": "create", "name": "*", "do": "kill_before" }]));
    assert_eq!(tour.shop.borrow().deploy().status, None);
    tour.go("--json deploy main --stage dev --yes --no-wait", 0)
        .event("hold_taken_over");

    // The records are gone, the objects are not.
    let state = tour.shop.borrow().path().join(".notation/state.db");
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", state.display()));
    }
    tour.go("--json deploy main --stage dev --yes", 0)
        .event("objects_found");
}

fn hosts(tour: &Tour) {
    tour.fresh(ONE);
    let cache = support::cache();
    tour.shop.borrow_mut().set("NOTATION_CACHE_DIR", &cache);
    let folder = tour
        .shop
        .borrow()
        .path()
        .join(".notation/host")
        .display()
        .to_string();
    tour.go("host logs", 1).says("host::no_log");
    tour.go("--json host token list", 1)
        .says("host::not_running");
    tour.go("--json host start", 0);
    tour.go("--json host status", 0);
    tour.go("--json host logs --lines 5", 0);
    let made = tour.go(
        "--json host token create --tenant t --principal p --scope api --label l",
        0,
    );
    let id = made.event("host")["token"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    tour.go(&format!("host token list --data {folder}"), 0);
    tour.go(&format!("host token create --data {folder}"), 0);
    tour.go(&format!("host token revoke {id} --data {folder}"), 0);
    tour.go(
        "host serve --listen 127.0.0.1:0 --ingress 127.0.0.1:0 --endpoint-domain x.localhost --ingress-scheme https --workerd nosuch",
        1,
    );
    tour.go("host serve --data elsewhere --contracts nosuch", 1);
    // Everything at once, refused for where it listens; `host_serve.rs` has what each flag does.
    tour.go(
        "host serve --data elsewhere --listen 0.0.0.0:0 --status 127.0.0.1:0 --tls-cert c --tls-key k \
         --public-origin https://x --artifacts s3://b/p --conformance d --log-format json \
         --max-requests 1 --max-connections 1 --max-body-bytes 1 --max-head-bytes 1 \
         --read-timeout 1 --body-timeout 1 --grace 1 --collect-every 1 --keep-days 1",
        2,
    )
    .says("loopback only");
    tour.go("--json host tenants", 0);
    tour.go(&format!("host tenants --data {folder}"), 0);
    tour.go("--json host collect", 0);
    tour.go(&format!("host collect --data {folder}"), 0);
    let nobody = format!("nobody KEY --tenant t --space s --data {folder}");
    tour.go_with(&format!("host secret set {nobody}"), "hunter2\n", 1)
        .says("host::refused");
    tour.go(&format!("host secret rm {nobody}"), 1)
        .says("host::refused");
    tour.go(
        &format!("host secret list nobody --tenant t --space s --data {folder}"),
        1,
    )
    .says("host::refused");

    // Following prints what is there, then what is added, until it is ended.
    let words = ["--json", "host", "logs", "--follow"];
    let mut command = tour.shop.borrow().command();
    command.args(words).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let first = lines.next().unwrap().unwrap();
    let log = tour.shop.borrow().path().join(".notation/host/host.log");
    fs::OpenOptions::new()
        .append(true)
        .open(log)
        .unwrap()
        .write_all(b"added meanwhile\n")
        .unwrap();
    assert!(lines.any(|line| line.unwrap().contains("added meanwhile")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    // The usual way out.
    let status = child.wait().unwrap().code();
    assert_eq!(status, Some(0));
    tour.took(
        &words,
        Ran {
            status,
            stdout: first,
            stderr: String::new(),
        },
    );
    tour.go("--json host stop", 0);
}

/// A journal that breaks its own law is nothing a person can repair.
fn a_bug_of_ours(tour: &Tour) {
    tour.fresh(ONE);
    tour.go("deploy main --stage dev --yes", 0);
    let state = tour.shop.borrow().path().join(".notation/state.db");
    let state = rusqlite::Connection::open(state).unwrap();
    state
        .execute_batch(
            "UPDATE deployment SET open_from = 0;
             DELETE FROM journal_1 WHERE seq = (SELECT min(seq) FROM journal_1);",
        )
        .unwrap();
    drop(state);
    tour.go("--json plan main --stage dev", 70)
        .says("state::bug");
}
