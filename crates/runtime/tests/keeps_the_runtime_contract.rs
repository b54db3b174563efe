//! The rest of what a conformance run observes through a worker: globals, the context,
//! tasks after the response.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use http_body_util::Full;
use hyper::Request;
use notation_runtime::Capability;
use serde_json::json;
use support::{Host, SCRIPT, bundle, until};

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
async fn a_context_ends_with_its_invocation_and_its_tasks() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "const wait = (ms) => new Promise((r) => setTimeout(r, ms));
         const asked = (ctx) => { try { ctx.waitUntil(wait(1)); return 'taken' } catch (e) { return e.name + ' ' + (e instanceof Error) } };
         let plain, busy, streaming, body = [], event;
         export default {
           async scheduled(e, env, ctx) { event = ctx },
           async fetch(request, env, ctx) {
             switch (new URL(request.url).pathname) {
               case '/plain': plain = ctx; return new Response(asked(ctx));
               case '/busy': busy = ctx; ctx.waitUntil(new Promise((r) => { globalThis.finish = r }).then(() => wait(1))); return new Response('x');
               case '/stream': {
                 streaming = ctx;
                 let n = 0;
                 return new Response(new ReadableStream({ async pull(c) {
                   await wait(50);
                   body.push(asked(ctx));
                   c.enqueue(new Uint8Array(1));
                   if (++n === 3) c.close();
                 } }));
               }
               case '/event': return new Response(event ? asked(event) : 'none');
               case '/saved': return Response.json([plain, busy, streaming].map((saved) => saved && asked(saved)).concat(body));
               case '/empty': plain = ctx; return new Response(null);
             }
             globalThis.finish(); return new Response('ok') } }",
    );
    host.converge().await;
    assert_eq!(host.get("api", "/plain").await.1, "taken");
    assert_eq!(host.get("api", "/busy").await.0, 200);
    let saved = async |host: &Host| -> serde_json::Value {
        serde_json::from_str(&host.get("api", "/saved").await.1).unwrap()
    };
    let expired = "context_expired true";
    until("the first context to end", async || {
        let saved = saved(&host).await;
        assert_eq!(saved[1], "taken", "a task of it has not settled");
        (saved[0] == expired).then_some(())
    })
    .await;
    // What streams a response is still the invocation.
    assert_eq!(host.get("api", "/stream").await.0, 200);
    until("the stream's context to end", async || {
        let saved = saved(&host).await;
        assert_eq!(saved[3], "taken");
        (saved[2] == expired && saved.as_array().unwrap().len() == 6).then_some(saved)
    })
    .await;
    host.get("api", "/empty").await;
    until("the context without a body to end", async || {
        (saved(&host).await[0] == expired).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_finds_no_module_but_its_bundles() {
    let mut host = Host::start().await;
    const OWN: [&str; 5] = ["entry", "prelude", "bindings", "manifest", "main"];
    for own in OWN {
        for import in [
            format!("import * as own from '~edge:{own}'; export default {{ fetch() {{}} }};"),
            format!(
                "const own = await import('\\u007eedge:{own}'); export default {{ fetch() {{}} }};"
            ),
        ] {
            let bundle = bundle("index.js", &[("index.js", SCRIPT, import.as_bytes())]);
            let error = host.runtime.inspect(&bundle).await.unwrap_err().to_string();
            assert!(error.contains("No such module"), "{import}: {error}");
        }
    }
    host.worker(
        "api",
        "export default { async fetch(request) {
           const found = [];
           for (const own of await request.json()) {
             try { await import(own); found.push(own) } catch (e) { found.push('none') }
           }
           return Response.json([found, new Error('x').stack]) } }",
    );
    host.converge().await;
    let asked: Vec<String> = OWN.iter().map(|own| format!("~edge:{own}")).collect();
    let body = serde_json::to_vec(&asked).unwrap();
    let request = Request::post("/").body(Full::from(body)).unwrap();
    let (status, text) = host.send("api", request).await.unwrap();
    assert_eq!(status, 200, "{text}");
    let seen: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(seen[0], json!(["none", "none", "none", "none", "none"]));
    // Where the host's own code is on the stack, its name there leads nowhere.
    let stack = seen[1].as_str().unwrap();
    let hidden = stack.split("~edge:").skip(1);
    for shown in hidden {
        assert!(OWN.iter().any(|own| shown.starts_with(own)), "{stack}");
    }
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
