//! The road of the README with the real worker runtime: two Workers that call each other, from
//! TypeScript to answered requests.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where it fails and says what it measured"
)]

mod support;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value as Json;
use support::{Project, Ran, cache, is_alive};

/// The pair of `examples/pair`, in a folder of its own, with a host of its own.
struct Pair {
    project: Project,
}

impl Pair {
    fn new() -> Pair {
        let mut project = Project::new();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pair");
        for file in [
            "notation.config.ts",
            "infra/app.ts",
            "src/api.ts",
            "src/auth.ts",
        ] {
            project.write(file, &fs::read_to_string(example.join(file)).unwrap());
        }
        project.app = "pair";
        project.entry = "pair";
        project.set("NOTATION_CACHE_DIR", &cache());
        Pair { project }
    }

    fn notation(&self, arguments: &[&str]) -> Ran {
        self.project.run(arguments)
    }

    fn url(&self, stage: &str) -> String {
        let ran = self
            .notation(&["--json", "outputs", "pair", "--stage", stage])
            .exits(0);
        ran.event("outputs")["outputs"]["url"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn host_status(&self) -> Json {
        self.notation(&["--json", "host", "status"])
            .exits(0)
            .events()
            .remove(0)
    }

    /// Process ids of workers, from the host's own report.
    fn worker_pids(&self) -> Vec<i32> {
        let status = self.host_status();
        let workers = status["workers"].as_array().cloned().unwrap_or_default();
        workers
            .iter()
            .filter_map(|worker| worker["pid"].as_i64())
            .map(|pid| pid as i32)
            .collect()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.notation(&["host", "stop"]);
    }
}

/// One GET over a connection of its own: status and body.
fn get(url: &str) -> std::io::Result<(u16, String)> {
    let rest = url.strip_prefix("http://").expect("an http address");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    match (status, body) {
        (Some(status), Some(body)) => Ok((status, body)),
        _ => Err(std::io::Error::other(format!("cut answer: {answer:?}"))),
    }
}

const HOPS: [&str; 3] = [
    "api: asking auth",
    "auth: who is calling?",
    "api: I am the one who asked",
];

#[track_caller]
fn answers_with_three_hops(url: &str) {
    let (status, body) = get(url).unwrap();
    assert_eq!(status, 200, "{body}");
    let places: Vec<_> = HOPS
        .iter()
        .map(|hop| {
            body.find(hop)
                .unwrap_or_else(|| panic!("{hop} is not in {body}"))
        })
        .collect();
    assert!(places.is_sorted(), "{body}");
}

/// Waits until the condition holds; ends the test after the deadline.
#[track_caller]
fn eventually(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within {seconds} s"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

fn kill(pid: i32) {
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Asks all the time until told to stop; counts answers and failures.
struct Hammer {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    client: thread::JoinHandle<Vec<String>>,
}

impl Hammer {
    fn start(url: &str) -> Hammer {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let (url, stopped, counted) = (url.to_owned(), stop.clone(), answered.clone());
        let client = thread::spawn(move || {
            let mut failures = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                match get(&url) {
                    Ok((200, _)) => drop(counted.fetch_add(1, Ordering::Relaxed)),
                    other => failures.push(format!("{other:?}")),
                }
            }
            failures
        });
        Hammer {
            stop,
            answered,
            client,
        }
    }

    /// Failures seen, after at least this many answers.
    fn finish(self, at_least: usize) -> Vec<String> {
        eventually("enough answers", 30, || {
            self.answered.load(Ordering::Relaxed) >= at_least || self.client.is_finished()
        });
        self.stop.store(true, Ordering::Relaxed);
        self.client.join().unwrap()
    }
}

#[test]
fn the_readme_shows_the_example_and_what_is_planned_for_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let program = fs::read_to_string(root.join("examples/pair/infra/app.ts")).unwrap();
    assert!(readme.contains(&format!("```ts\n{program}```\n")));
    let planned = Pair::new().project.plan().exits(0).said();
    let lines = planned.lines().map(|line| format!("{}\n", line.trim_end()));
    let planned: String = lines.collect();
    assert!(
        readme.contains(&format!("```\n{planned}```\n")),
        "{planned}"
    );
}

#[test]
fn a_pair_is_deployed_changed_doubled_and_destroyed() {
    let pair = Pair::new();

    // The plan of the first deploy (nothing is started for it).
    let plan = pair
        .notation(&["--json", "plan", "pair", "--stage", "dev", "--no-refresh"])
        .exits(0)
        .event("plan");
    let steps: Vec<(String, String, String)> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["resource"].is_string())
        .map(|step| {
            let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
            (text("resource"), text("goal"), text("transition"))
        })
        .collect();
    let wanted = [
        ("api", "placeholder", "create"),
        ("auth", "complete", "create"),
        ("api", "complete", "update"),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string()))
        .collect();
    assert_eq!(steps, wanted);
    assert_eq!(plan["cycles"][0]["passes"], 3);

    // 1: one command, an address, three hops.
    let deployed = pair
        .notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    let url = pair.url("dev");
    assert!(deployed.said().contains(&url), "{}", deployed.said());
    answers_with_three_hops(&url);

    // 2: nothing to do; a changed line is one update; no request fails meanwhile.
    pair.notation(&["plan", "pair", "--stage", "dev", "--fail-on-changes"])
        .exits(0);
    let auth = fs::read_to_string(pair.project.path().join("src/auth.ts")).unwrap();
    pair.project.write(
        "src/auth.ts",
        &auth.replace("who is calling?", "who is calling me?"),
    );
    let plan = pair
        .notation(&["--json", "plan", "pair", "--stage", "dev"])
        .exits(0)
        .event("plan");
    assert_eq!(plan["summary"]["update"], 1);
    assert_eq!(plan["summary"]["create"], 0);
    assert_eq!(plan["summary"]["delete"], 0);
    let writes: Vec<_> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["transition"] == "update")
        .collect();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0]["resource"], "auth");
    let hammer = Hammer::start(&url);
    pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    assert!(get(&url).unwrap().1.contains("who is calling me?"));
    assert_eq!(hammer.finish(50), Vec::<String>::new());
    pair.project.write("src/auth.ts", &auth);
    pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);

    // 3: a second stage beside it.
    pair.notation(&["deploy", "pair", "--stage", "staging", "--yes"])
        .exits(0);
    let staging = pair.url("staging");
    assert_ne!(url, staging);
    answers_with_three_hops(&staging);
    answers_with_three_hops(&url);
    pair.notation(&["destroy", "pair", "--stage", "staging", "--yes"])
        .exits(0);
    answers_with_three_hops(&url);

    // 4: nothing is left.
    let workers = pair.worker_pids();
    assert!(!workers.is_empty());
    pair.notation(&["destroy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    assert_eq!(pair.worker_pids(), Vec::<i32>::new());
    for pid in workers {
        eventually("the end of a worker process", 10, || !is_alive(pid));
    }
    let state = pair
        .notation(&["--json", "state", "list", "pair", "--stage", "dev"])
        .exits(0)
        .event("state");
    assert_eq!(
        state["resources"].as_array().map(Vec::len),
        Some(0),
        "{state}"
    );
    let again = pair
        .notation(&["destroy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    assert!(!again.said().contains("delete "), "{}", again.said());
}

#[test]
fn killed_processes_come_back_with_the_same_address() {
    let pair = Pair::new();
    pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    let url = pair.url("dev");

    // A killed worker process is replaced; meanwhile requests wait or get 503.
    for pid in pair.worker_pids() {
        kill(pid);
    }
    let started = Instant::now();
    eventually("an answer after a worker was killed", 10, || {
        match get(&url) {
            Ok((200, body)) => HOPS.iter().all(|hop| body.contains(hop)),
            Ok((status, _)) => {
                assert!(status == 503 || status == 200, "{status}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    });
    println!("answered again after {:?}", started.elapsed());

    // A killed host takes its workers with it; the next command brings it back.
    let host = pair.host_status()["pid"].as_i64().unwrap() as i32;
    let workers = pair.worker_pids();
    kill(host);
    for pid in workers {
        eventually("the end of a worker process", 10, || !is_alive(pid));
    }
    pair.notation(&["host", "start"]).exits(0);
    assert_eq!(pair.url("dev"), url);
    eventually("an answer after the host was killed", 10, || {
        get(&url).is_ok_and(|(status, _)| status == 200)
    });
    answers_with_three_hops(&url);
    pair.notation(&["plan", "pair", "--stage", "dev", "--fail-on-changes"])
        .exits(0);

    let host = pair.host_status()["pid"].as_i64().unwrap() as i32;
    kill(host);
    pair.notation(&["plan", "pair", "--stage", "dev", "--fail-on-changes"])
        .exits(0);
    answers_with_three_hops(&url);

    // The same after an orderly stop, which leaves no process.
    let host = pair.host_status()["pid"].as_i64().unwrap() as i32;
    pair.notation(&["host", "stop"]).exits(0);
    assert!(!is_alive(host));
    pair.notation(&["host", "start"]).exits(0);
    answers_with_three_hops(&url);
}

#[test]
fn a_deploy_killed_at_any_instant_ends_in_the_same_world() {
    let pair = Pair::new();
    pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    let started = Instant::now();
    pair.notation(&["destroy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
        .exits(0);
    let whole = started.elapsed();
    let world = |pair: &Pair| {
        let status = pair.host_status();
        let mut kinds: Vec<String> = status["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["kind"].as_str().unwrap().to_owned())
            .collect();
        kinds.sort();
        kinds
    };
    let wanted = world(&pair);
    let rounds: u32 = std::env::var("NOTATION_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(6);
    for round in 0..rounds {
        // Spread over a deploy from nothing and over a deploy of a change.
        if round % 2 == 0 {
            pair.notation(&["destroy", "pair", "--stage", "dev", "--yes"])
                .exits(0);
        } else {
            let text = fs::read_to_string(pair.project.path().join("src/auth.ts")).unwrap();
            pair.project.write(
                "src/auth.ts",
                &format!("{text}\n// {round}\nexport const round{round} = {round};\n"),
            );
        }
        let mut child = pair
            .project
            .command()
            .args(["deploy", "pair", "--stage", "dev", "--yes"])
            .spawn()
            .unwrap();
        // The instant is what is tested here, so it is a stretch of time.
        thread::sleep(whole.mul_f64(f64::from(round + 1) / f64::from(rounds + 1) / 2.0));
        child.kill().unwrap();
        child.wait().unwrap();
        pair.notation(&["deploy", "pair", "--stage", "dev", "--yes"])
            .exits(0);
        assert_eq!(world(&pair), wanted, "after kill {round}");
        answers_with_three_hops(&pair.url("dev"));
        pair.notation(&["plan", "pair", "--stage", "dev", "--fail-on-changes"])
            .exits(0);
    }
}
