//! The rest of what a conformance run observes through a worker: globals, the context,
//! tasks after the response.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use http_body_util::Full;
use hyper::Request;
use notation_runtime::Capability;
use serde_json::json;
use support::{Host, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_floor_of_globals_is_present_and_the_raw_environment_is_not() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "import * as raw from 'cloudflare:workers';
         export default { async fetch(request, env, ctx) {
           const names = await request.json();
           const missing = names.filter((name) => name.split('.').reduce((at, part) => at?.[part], globalThis) === undefined);
           return Response.json({ missing, raw: Object.keys(raw.env ?? {}), this: this.marker, proto: env.__proto__,
             own: Object.keys(env), request: request instanceof Request }) }, marker: 'mine' }",
    )
    .environment = [
        ("__proto__".into(), Capability::Var(json!("legal"))),
        ("constructor".into(), Capability::Var(json!(1))),
        ("KV".into(), Capability::Kv { namespace: "n".into() }),
    ]
    .into();
    host.converge().await;
    let floor = json!([
        "AbortController",
        "AbortSignal",
        "Headers",
        "ReadableStream",
        "Request",
        "Response",
        "TextDecoder",
        "TextEncoder",
        "URL",
        "URLSearchParams",
        "WritableStream",
        "clearInterval",
        "clearTimeout",
        "setInterval",
        "setTimeout",
        "crypto.getRandomValues",
        "crypto.subtle.digest",
        "fetch",
        "structuredClone",
    ]);
    let request = Request::post("/")
        .body(Full::from(floor.to_string()))
        .unwrap();
    let (status, body) = host.send("api", request).await.unwrap();
    assert_eq!(status, 200, "{body}{}", host.log());
    let seen: serde_json::Value = serde_json::from_str(&body).unwrap();
    let expected = json!({ "missing": [], "raw": [], "this": "mine", "proto": "legal",
        "own": ["KV", "__proto__", "constructor"], "request": true });
    assert_eq!(seen, expected);
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_go_on_after_the_response_and_a_rejected_one_changes_nothing() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { async fetch(request, env, ctx) {
           if (request.method === 'GET') { const v = await env.KV.get('settled'); return new Response(v === null ? 'no' : 'yes') }
           ctx.waitUntil(Promise.reject(new Error('rejected task')));
           ctx.waitUntil('no promise');
           for (let n = 0; n < 30; n++) ctx.waitUntil(new Promise((r) => setTimeout(r, 10)));
           ctx.waitUntil((async () => { await new Promise((r) => setTimeout(r, 600)); await env.KV.put('settled', 'x') })());
           return new Response('registered') } }",
    )
    .environment = [("KV".into(), Capability::Kv { namespace: "n".into() })].into();
    host.converge().await;
    let request = Request::post("/").body(Full::default()).unwrap();
    assert_eq!(
        host.send("api", request).await.unwrap(),
        (200, "registered".into())
    );
    assert_eq!(host.get("api", "/").await.1, "no");
    until("the task to settle", async || {
        (host.get("api", "/").await.1 == "yes").then_some(())
    })
    .await;
    assert!(
        host.log()
            .contains("uncaught in waitUntil: Error: rejected task"),
        "{}",
        host.log()
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_cannot_be_reached_from_code() {
    let mut host = Host::start().await;
    host.worker(
        "inside",
        "export default { fetch: () => new Response('inside') }",
    );
    host.worker(
        "api",
        "export default { async fetch(request) {
           try { return await fetch(await request.text()) } catch (e) { return new Response('refused', { status: 502 }) } } }",
    );
    host.converge().await;
    let local = host.address("inside");
    for url in [
        local.clone(),
        local.replace("127.0.0.1", "localhost"),
        "http://169.254.169.254/".into(),
    ] {
        let request = Request::post("/").body(Full::from(url.clone())).unwrap();
        assert_eq!(
            host.send("api", request).await.unwrap(),
            (502, "refused".into()),
            "{url}"
        );
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_of_calls_end_in_an_error_and_the_host_goes_on() {
    let mut host = Host::start().await;
    host.worker(
        "loop",
        "export default { async fetch(request, env) {
           if (request.url.endsWith('/ok')) return new Response('ok');
           try { return await env.SELF.fetch(request.url) } catch (e) { return new Response(e.name) } } }",
    )
    .environment = [("SELF".into(), support::service("loop"))].into();
    host.converge().await;
    assert_eq!(
        host.get("loop", "/").await,
        (200, "backend_unavailable".into())
    );
    assert_eq!(host.get("loop", "/ok").await, (200, "ok".into()));
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_past_the_limit_are_refused_with_413() {
    let mut host = Host::start().await;
    host.worker("api", "export default { async fetch(r) { return new Response((await r.arrayBuffer()).byteLength) } }");
    host.converge().await;
    let big = vec![0; 104_857_601];
    let request = Request::post("/").body(Full::from(big)).unwrap();
    let answer = host.send("api", request).await;
    // The host answers without reading, so a client may also see its upload cut off.
    assert!(
        answer.as_ref().map_or(true, |(status, _)| *status == 413),
        "{answer:?}"
    );
    let request = Request::post("/")
        .body(Full::from(vec![0; 3_000_000]))
        .unwrap();
    assert_eq!(
        host.send("api", request).await.unwrap(),
        (200, "3000000".into())
    );
    host.runtime.shutdown().await;
}
