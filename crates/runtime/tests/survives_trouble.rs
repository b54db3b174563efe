//! Promotion, draining, crashes and restarts, with real processes really killed.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::Request;
use notation_runtime::{Capability, Secret, State};
use serde_json::json;
use support::{Host, until};

const TASK: &str = "export default { fetch(request, env, ctx) {
  if (request.url.endsWith('/task')) {
    ctx.waitUntil((async () => { await new Promise((r) => setTimeout(r, 700)); console.log('task of VERSION done'); })());
    return new Response('registered') }
  if (request.url.endsWith('/slow')) return new Response(new ReadableStream({ async start(c) {
    for (const text of ['a', 'b', 'c']) { c.enqueue(new TextEncoder().encode(text)); await new Promise((r) => setTimeout(r, 200)); }
    c.close(); } }));
  return new Response('VERSION') } }";

fn script(version: &str) -> String {
    TASK.replace("VERSION", version)
}

#[tokio::test(flavor = "multi_thread")]
async fn promotion_under_load_fails_no_request() {
    let mut host = Host::start().await;
    host.version("api", "v0", &script("v0"));
    host.weigh("api", &[("v0", 10_000)]);
    host.converge().await;
    let stop = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (stop, sent) = (stop.clone(), sent.clone());
            let (client, address) = (host.client.clone(), host.address("api"));
            tokio::spawn(async move {
                let mut failed = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let request = Request::post("/").body(Full::from("body")).unwrap();
                    let answer = support::request_to(&client, &address, request).await;
                    if !matches!(&answer, Ok((200, _))) {
                        failed.push(answer);
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                failed
            })
        })
        .collect();
    for round in 1..=6 {
        let (before, after) = (format!("v{}", round - 1), format!("v{round}"));
        host.version("api", &after, &script(&after));
        if round % 2 == 0 {
            host.weigh("api", &[(&before, 5_000), (&after, 5_000)]);
            host.converge().await;
        }
        host.weigh("api", &[(&after, 10_000)]);
        host.converge().await;
        assert_eq!(
            host.get("api", "/").await,
            (200, after),
            "served right after the switch"
        );
        until("a hundred requests in each round", async || {
            (sent.load(Ordering::Relaxed) > 100 * round).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let failed = client.await.unwrap();
        assert!(failed.is_empty(), "{failed:?}");
    }
    assert!(sent.load(Ordering::Relaxed) > 500, "{sent:?} requests");
    until("old processes to end", async || {
        (host.runtime.status().versions.len() == 1).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_left_finishes_its_streams_and_tasks_before_it_ends() {
    let mut host = Host::start().await;
    host.version("api", "old", &script("old"));
    host.version("api", "new", &script("new"));
    host.weigh("api", &[("old", 10_000)]);
    host.converge().await;
    let pid = host.pid("api").unwrap();
    assert_eq!(host.get("api", "/task").await.1, "registered");
    let (client, address) = (host.client.clone(), host.address("api"));
    let slow = tokio::spawn(async move {
        let request = Request::get("/slow").body(Full::default()).unwrap();
        support::request_to(&client, &address, request).await
    });
    until("the slow request to be in flight", async || {
        (host.runtime.status().versions[0].in_flight == 1).then_some(())
    })
    .await;
    host.weigh("api", &[("new", 10_000)]);
    host.converge().await;
    assert_eq!(host.get("api", "/").await.1, "new");
    assert!(support::alive(pid), "the old process still has work");
    assert_eq!(slow.await.unwrap(), Ok((200, "abc".into())));
    until("the old process to end", async || {
        (!support::alive(pid)).then_some(())
    })
    .await;
    assert!(host.log().contains("task of old done"), "{}", host.log());
    assert!(!host.log().contains("cut off"), "{}", host.log());
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_process_is_replaced_and_requests_wait_or_get_503() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: (r) => new Response('here') }",
    );
    host.converge().await;
    assert_eq!(host.get("api", "/").await.0, 200);
    let first = host.pid("api").unwrap();
    support::kill(first);
    let killed = Instant::now();
    let mut seen = Vec::new();
    until("a 200 after the kill", async || {
        let (status, _) = host.get("api", "/").await;
        seen.push(status);
        (status == 200 && host.pid("api").is_some_and(|pid| pid != first)).then_some(())
    })
    .await;
    println!("answered again after {:?}", killed.elapsed());
    assert!(
        seen.iter().all(|status| matches!(status, 200 | 503)),
        "{seen:?}"
    );
    // The second end in a short time is followed by a delay, and that ends, too.
    support::kill(host.pid("api").unwrap());
    until("the state after the second kill", async || {
        let state = host.runtime.status().versions[0].state;
        matches!(state, State::BackOff { .. }).then_some(())
    })
    .await;
    let (status, body) = host.get("api", "/").await;
    assert!(matches!(status, 200 | 503), "{status} {body}");
    until("another 200", async || {
        (host.get("api", "/").await.0 == 200).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_are_seen_as_503_and_as_nothing_else() {
    let mut host = Host::start().await;
    host.worker(
        "back",
        "export default { fetch: (r) => new Response('back') }",
    );
    host.worker(
        "front",
        "export default { async fetch(r, env) {
           try { return await env.BACK.fetch(r.url) } catch (e) { return new Response(e.name, { status: 503 }) } } }",
    )
    .environment = [("BACK".into(), support::service("back"))].into();
    host.converge().await;
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..6)
        .map(|_| {
            let (client, address, stop) =
                (host.client.clone(), host.address("front"), stop.clone());
            tokio::spawn(async move {
                let mut seen = std::collections::BTreeMap::new();
                while !stop.load(Ordering::Relaxed) {
                    let request = Request::get("/").body(Full::default()).unwrap();
                    let answer = support::request_to(&client, &address, request).await;
                    *seen.entry(answer).or_insert(0) += 1;
                }
                seen
            })
        })
        .collect();
    for worker in ["front", "back", "back", "front"] {
        let pid = until("a process to kill", async || host.pid(worker)).await;
        support::kill(pid);
        until("its successor", async || {
            host.pid(worker).filter(|next| *next != pid)
        })
        .await;
        until("an answer", async || {
            (host.get("front", "/").await == (200, "back".into())).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let seen = client.await.unwrap();
        let good = |answer: &Result<(u16, String), String>| {
            matches!(answer, Ok((200, body)) if body == "back") || matches!(answer, Ok((503, _)))
        };
        assert!(seen.keys().all(good), "{seen:?}");
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_loses_its_process_gets_503() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { async fetch() { console.log('entered'); await new Promise((r) => setTimeout(r, 60000)); } }",
    );
    host.converge().await;
    let (client, address) = (host.client.clone(), host.address("api"));
    let waiting = tokio::spawn(async move {
        let request = Request::get("/").body(Full::default()).unwrap();
        support::request_to(&client, &address, request).await
    });
    until("the handler to run", async || {
        host.log().contains("entered").then_some(())
    })
    .await;
    support::kill(host.pid("api").unwrap());
    assert_eq!(waiting.await.unwrap().unwrap().0, 503);
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_spins_is_ended_and_the_other_worker_does_not_notice() {
    let mut host = Host::start().await;
    host.worker("spins", "export default { fetch(r) { if (r.url.endsWith('/spin')) while (true); return new Response('ok') } }");
    host.worker(
        "calm",
        "export default { fetch: () => new Response('calm') }",
    );
    host.converge().await;
    let pid = host.pid("spins").unwrap();
    let (client, address) = (host.client.clone(), host.address("spins"));
    let spinning = tokio::spawn(async move {
        let request = Request::get("/spin").body(Full::default()).unwrap();
        support::request_to(&client, &address, request).await
    });
    until("the process to be ended", async || {
        assert_eq!(host.get("calm", "/").await.0, 200);
        (!support::alive(pid)).then_some(())
    })
    .await;
    assert_eq!(spinning.await.unwrap().unwrap().0, 503);
    until("it to answer again", async || {
        (host.get("spins", "/").await.0 == 200).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_had_the_traffic_before_never_answers_for_a_version_that_does_not_serve() {
    let mut host = Host::start().await;
    host.version("api", "good", &script("good"));
    host.version("api", "bad", "export default { fetch() { ");
    host.worker(
        "other",
        "export default { fetch: () => new Response('other') }",
    );
    host.weigh("api", &[("good", 10_000)]);
    host.converge().await;
    host.weigh("api", &[("bad", 10_000)]);
    let error = host.runtime.converge(host.plan.clone()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("version bad of api does not start: SyntaxError"),
        "{error}"
    );
    assert_eq!(host.get("api", "/").await.0, 503);
    assert_eq!(host.get("other", "/").await.0, 200);
    // What it lacks arrives later: the runtime goes on trying.
    host.blob("script:bad", script("repaired"));
    let mut seen = Vec::new();
    until("the repaired version to answer", async || {
        seen.push(host.get("api", "/").await);
        (seen.last()?.1 == "repaired").then_some(())
    })
    .await;
    assert!(!seen.iter().any(|(_, body)| body == "good"), "{seen:?}");
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_be_promoted_runs_before_it_has_traffic_or_goes_again() {
    let mut host = Host::start().await;
    host.version("api", "old", &script("old"));
    host.version("api", "bad", "export default { fetch() { ");
    host.version("api", "new", &script("new"));
    host.weigh("api", &[("old", 10_000)]);
    host.converge().await;
    let names = || {
        let status = host.runtime.status();
        let versions = status.versions.into_iter();
        let names = versions.map(|version| version.version.to_string());
        names.collect::<Vec<_>>()
    };

    let mut next = host.plan.clone();
    next.workers.get_mut("api").unwrap().weights = vec![("bad".into(), 10_000)];
    let refused = host.runtime.start_ahead(&next).await;
    let error = refused.err().unwrap().to_string();
    assert!(
        error.contains("version bad of api does not start"),
        "{error}"
    );
    assert_eq!(host.get("api", "/").await, (200, "old".into()));
    until("the bad one to be let go of", async || {
        (names() == ["old"]).then_some(())
    })
    .await;

    next.workers.get_mut("api").unwrap().weights = vec![("new".into(), 10_000)];
    // Nobody takes it over.
    drop(host.runtime.start_ahead(&next).await.unwrap());
    until("the new one to be let go of", async || {
        (names() == ["old"]).then_some(())
    })
    .await;
    let ahead = host.runtime.start_ahead(&next).await.unwrap();
    let pid = |name: &str| {
        let status = host.runtime.status();
        let version = status
            .versions
            .into_iter()
            .find(|it| it.version.as_str() == name);
        version.and_then(|version| version.pid)
    };
    let started = pid("new");
    assert!(started.is_some());
    assert_eq!(host.get("api", "/").await, (200, "old".into()));
    host.runtime.converge(next).await.unwrap();
    drop(ahead);
    assert_eq!(host.get("api", "/").await, (200, "new".into()));
    assert_eq!(pid("new"), started, "it was taken over");
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_sensitive_value_reaches_the_worker_through_a_new_process() {
    let mut host = Host::start().await;
    let script = "export default { fetch: (r, env) => new Response(env.TOKEN) }";
    host.worker("api", script).environment =
        [("TOKEN".into(), Capability::Secret(Secret::new("first")))].into();
    host.converge().await;
    let pid = host.pid("api").unwrap();
    host.converge().await;
    assert_eq!(host.pid("api"), Some(pid), "the same plan starts nothing");
    host.plan.versions.get_mut("api-1").unwrap().environment =
        [("TOKEN".into(), Capability::Secret(Secret::new("second")))].into();
    host.converge().await;
    assert_eq!(host.get("api", "/").await, (200, "second".into()));
    until("the first process to end", async || {
        (!support::alive(pid)).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_the_arguments_environment_or_files_of_a_process() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: (r, env) => new Response(env.TOKEN) }",
    )
    .environment = [(
        "TOKEN".into(),
        Capability::Secret(Secret::new("hunter2hunter2")),
    )]
    .into();
    host.converge().await;
    let pid = host.pid("api").unwrap();
    for file in ["cmdline", "environ"] {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("hunter2"),
            "{file}"
        );
    }
    let directory = host.directory.as_ref().unwrap().path();
    let found = std::process::Command::new("grep")
        .args(["-rs", "hunter2"])
        .arg(directory)
        .output();
    assert!(found.unwrap().stdout.is_empty());
    assert!(!format!("{:?}", host.plan).contains("hunter2"));
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_stay_the_same_after_a_restart_and_wait_for_a_taken_port() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: () => new Response('here') }",
    );
    host.worker(
        "auth",
        "export default { fetch: () => new Response('auth') }",
    );
    host.converge().await;
    let (api, auth) = (host.address("api"), host.address("auth"));
    assert_ne!(api, auth);
    let (plan, directory) = (host.plan.clone(), host.directory.take().unwrap());
    host.runtime.shutdown().await;
    // Somebody else takes the port of one endpoint meanwhile.
    let port = api.trim_end_matches('/').rsplit(':').next().unwrap();
    let squatter = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let mut again = Host::start_in(directory).await;
    for (uid, script) in [("api-1", "here"), ("auth-1", "auth")] {
        again.blob(
            &format!("script:{uid}"),
            format!("export default {{ fetch: () => new Response('{script}') }}"),
        );
    }
    again.plan = plan;
    again.converge().await;
    assert_eq!((again.address("api"), again.address("auth")), (api, auth));
    assert_eq!(again.get("auth", "/").await, (200, "auth".into()));
    let problem = again.runtime.status().addresses["api.test"]
        .problem
        .clone()
        .unwrap();
    assert!(problem.contains("taken by another program"), "{problem}");
    drop(squatter);
    until("the address to answer", async || {
        let request = Request::get("/").body(Full::default()).unwrap();
        again
            .send("api", request)
            .await
            .ok()
            .filter(|answer| *answer == (200, "here".into()))
    })
    .await;
    assert_eq!(again.runtime.status().addresses["api.test"].problem, None);
    again.plan.endpoints.remove("api.test");
    again.converge().await;
    assert_eq!(again.runtime.address("api.test"), None);
    again.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_answers_what_is_running_and_leaves_no_process() {
    let mut host = Host::start().await;
    host.worker("api", &script("v"));
    host.converge().await;
    let pid = host.pid("api").unwrap();
    let (client, address) = (host.client.clone(), host.address("api"));
    let slow = tokio::spawn(async move {
        let request = Request::get("/slow").body(Full::default()).unwrap();
        support::request_to(&client, &address, request).await
    });
    until("the slow request to be in flight", async || {
        (host.runtime.status().versions[0].in_flight == 1).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
    assert!(!support::alive(pid));
    assert_eq!(slow.await.unwrap(), Ok((200, "abc".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_ends_cuts_off_what_takes_longer_than_its_grace() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { async fetch() { console.log('entered'); await new Promise((r) => setTimeout(r, 60000)); } }",
    );
    host.converge().await;
    let pid = host.pid("api").unwrap();
    let (client, address) = (host.client.clone(), host.address("api"));
    let waiting = tokio::spawn(async move {
        let request = Request::get("/").body(Full::default()).unwrap();
        support::request_to(&client, &address, request).await
    });
    until("the handler to run", async || {
        host.log().contains("entered").then_some(())
    })
    .await;
    let lines = host.lines.clone();
    host.runtime.shutdown_within(Duration::ZERO).await;
    assert!(!support::alive(pid));
    assert_eq!(waiting.await.unwrap().unwrap().0, 503);
    let lines = lines.0.lock().unwrap();
    let cut = "cut off 1 invocations and 0 tasks after 0s";
    assert!(lines.iter().any(|line| line.message == cut), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_loopback_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let refused = notation_runtime::Runtime::start(notation_runtime::RuntimeConfig {
        run_dir: directory.path().join("run"),
        data_dir: directory.path().join("data"),
        workerd: "/nowhere".into(),
        listen: "0.0.0.0:0".parse().unwrap(),
        scheme: notation_runtime::Scheme::Http,
        connections: 1,
        patience: Duration::from_secs(30),
        drain_deadline: Duration::from_secs(1),
        blobs: Arc::new(support::MemoryBlobs::default()),
        log: Arc::new(support::Lines::default()),
    })
    .await;
    let error = refused.err().map(|error| error.to_string());
    assert_eq!(json!(error), json!("0.0.0.0:0 is not a loopback address"));
}
