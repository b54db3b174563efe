//! Requests, environments, service calls and weights, with the real runtime.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use http_body_util::Full;
use hyper::Request;
use notation_runtime::{Capability, ModuleSource, Scheme, Secret};
use serde_json::json;
use support::{Host, service};

#[tokio::test(flavor = "multi_thread")]
async fn handler_sees_the_url_the_client_used_and_exactly_the_declared_environment() {
    let mut host = Host::start().await;
    let spec = host.worker(
        "api",
        "export default { fetch(request, env, ctx) {
           return Response.json({
             url: request.url, method: request.method, marker: request.headers.get('x-edge-proto'),
             forged: request.headers.get('x-edge-body'), body: request.body === null,
             names: Object.keys(env), level: env.LOG_LEVEL, deep: env['a.b'].c[0], secret: env.TOKEN,
             args: arguments.length, wait: typeof ctx.waitUntil }) } }",
    );
    spec.environment = [
        (
            "TOKEN".into(),
            Capability::Secret(Secret::new("s\"e\\c\nret\u{0}é")),
        ),
        ("LOG_LEVEL".into(), Capability::Var(json!("debug"))),
        ("a.b".into(), Capability::Var(json!({"c": [1.5]}))),
        ("SELF".into(), service("api")),
    ]
    .into();
    host.converge().await;
    let request = Request::get("/a%20b/?q=%2F").header("x-edge-body", "absent");
    let (status, body) = host
        .send("api", request.body(Full::default()).unwrap())
        .await
        .unwrap();
    assert_eq!(status, 200, "{body}{}", host.log());
    let seen: serde_json::Value = serde_json::from_str(&body).unwrap();
    let expected = json!({
        "url": format!("{}a%20b/?q=%2F", host.address("api")), "method": "GET", "marker": null,
        "forged": null, "body": true, "names": ["LOG_LEVEL", "SELF", "TOKEN", "a.b"],
        "level": "debug", "deep": 1.5, "secret": "s\"e\\c\nret\u{0}é", "args": 3, "wait": "function",
    });
    assert_eq!(seen, expected);
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_call_each_other_within_one_request() {
    let mut host = Host::start().await;
    let api = host.worker(
        "api",
        "export default { async fetch(request, env) {
           if (new URL(request.url).pathname === '/whoami') return new Response('api again');
           const answer = await env.AUTH.fetch('https://auth.internal/check');
           return new Response('api, ' + await answer.text()) } }",
    );
    api.environment = [("AUTH".into(), service("auth"))].into();
    let auth = host.worker(
        "auth",
        "export default { async fetch(request, env) {
           const answer = await env.API.fetch(new Request('https://api.internal/whoami'));
           return new Response('auth for ' + new URL(request.url).host + ', ' + await answer.text()) } }",
    );
    auth.environment = [("API".into(), service("api"))].into();
    host.converge().await;
    let answer = host.get("api", "/").await;
    assert_eq!(
        answer,
        (200, "api, auth for auth.internal, api again".into()),
        "{}",
        host.log()
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_call_keeps_status_headers_and_the_four_states_of_a_body() {
    let mut host = Host::start().await;
    host.worker(
        "callee",
        "export default { async fetch(request) {
           const path = new URL(request.url).pathname;
           if (path === '/throw') throw new TypeError('boom');
           if (path === '/none') return new Response(null, { status: 204, headers: { 'x-edge-error': 'forged', 'x-own': '1' } });
           const state = request.body === null ? 'none' : 'length ' + request.headers.get('content-length');
           const text = request.body === null ? '' : await request.text();
           return new Response(request.method + ' ' + state + ' ' + text, { status: 418 }) } }",
    );
    let caller = host.worker(
        "caller",
        "const stream = () => { const t = new TransformStream(); const w = t.writable.getWriter();
             (async () => { await w.write(new TextEncoder().encode('ab')); await w.close(); })(); return t.readable; };
         export default { async fetch(request, env) {
           const call = async (path, init) => {
             const r = await env.CALLEE.fetch('http://c' + path, init);
             return [r.status, r.headers.get('x-own'), r.body === null ? null : await r.text()] };
           const failing = new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); }, pull(c) { c.error(new Error('source')); } });
           let broken; try { broken = await call('/', { method: 'POST', body: failing, duplex: 'half' }); } catch (e) { broken = [e.name, e.cause?.message]; }
           const fixed = new FixedLengthStream(4), writer = fixed.writable.getWriter();
           writer.write(new TextEncoder().encode('four')); writer.close();
           const known = await call('/', { method: 'POST', body: fixed.readable, duplex: 'half' });
           const chunk = new Uint8Array(1 << 20); let sent = 0;
           const long = new ReadableStream({ pull(c) { if (++sent > 102) c.close(); else c.enqueue(chunk); } });
           let cut; try { cut = await call('/', { method: 'POST', body: long, duplex: 'half' }); } catch (e) { cut = e.name; }
           let absent; try { await env.NOBODY.fetch('http://n/'); } catch (e) { absent = e.name; }
           return Response.json([
             await call('/', {}), await call('/', { method: 'POST' }), await call('/', { method: 'PUT', body: '' }),
             await call('/', { method: 'POST', body: 'xyz' }),
             await call('/', { method: 'POST', body: stream() }), await call('/throw'), await call('/none'),
             broken, absent, known, cut]) } }",
    );
    caller.environment = [
        ("CALLEE".into(), service("callee")),
        ("NOBODY".into(), service("nobody")),
    ]
    .into();
    host.converge().await;
    let (status, body) = host.get("caller", "/").await;
    assert_eq!(status, 200, "{body}\n{}", host.log());
    let seen: serde_json::Value = serde_json::from_str(&body).unwrap();
    let expected = json!([
        [418, null, "GET none "],
        [418, null, "POST none "],
        [418, null, "PUT length 0 "],
        [418, null, "POST length 3 xyz"],
        [418, null, "POST length null ab"],
        [500, null, "Internal Server Error"],
        [204, "1", null],
        ["request_aborted", "source"],
        "backend_unavailable",
        [418, null, "POST length 4 four"],
        "request_too_large",
    ]);
    assert_eq!(seen, expected, "{}", host.log());
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uncaught_exceptions_become_a_complete_500_and_a_log_line() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch(request) {
           console.log('seen', new URL(request.url).pathname);
           if (request.url.endsWith('/late')) return new Response(new ReadableStream({ pull(c) { c.error(new Error('late')) } }));
           if (request.url.endsWith('/nothing')) return undefined;
           throw new RangeError('secret detail') } }",
    );
    host.converge().await;
    for path in ["/throw", "/late", "/nothing"] {
        let (status, body) = host.get("api", path).await;
        assert_eq!(
            (status, body.contains("secret detail")),
            (500, false),
            "{path}: {body}"
        );
    }
    let told = support::until("the log line", async || {
        Some(host.log()).filter(|log| log.contains("uncaught in fetch: RangeError: secret detail"))
    })
    .await;
    assert!(told.contains("Code Info seen /throw"), "{told}");
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_in_the_log_are_those_of_the_source() {
    let mut host = Host::start().await;
    let version = host.worker(
        "api",
        "export default { fetch(request) {\nconst error = new RangeError('broken');\nconsole.error(error.stack);\nthrow error; } }",
    );
    version.modules.push(ModuleSource {
        name: "index.js.map".into(),
        media_type: "application/source-map+json".into(),
        digest: "map".into(),
    });
    host.blob(
        "map",
        r#"{"version":3,"sources":["src/api.ts"],"names":[],"mappings":";AAEI"}"#,
    );
    host.converge().await;
    let (status, _) = host.get("api", "/").await;
    assert_eq!(status, 500);
    let told = support::until("both lines", async || {
        Some(host.log()).filter(|log| log.matches("src/api.ts:3:5").count() == 2)
    })
    .await;
    let uncaught = told.split("Uncaught").nth(1).unwrap();
    assert!(!uncaught.contains("~edge:"), "{told}");
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_decide_how_often_each_version_answers() {
    let mut host = Host::start().await;
    host.version(
        "api",
        "one",
        "export default { fetch: () => new Response('1') }",
    );
    host.version(
        "api",
        "two",
        "export default { fetch: () => new Response('2') }",
    );
    host.weigh("api", &[("one", 2_000), ("two", 8_000)]);
    host.converge().await;
    let mut ones = 0;
    for _ in 0..1_000 {
        let (status, body) = host.get("api", "/").await;
        assert_eq!(status, 200);
        ones += u32::from(body == "1");
    }
    assert!((140..=260).contains(&ones), "200 expected, {ones} seen"); // 4.7 sigma
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_with_tls_workers_see_https() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = Host::start_behind(directory, Scheme::Https).await;
    host.worker(
        "api",
        "export default { fetch: (r) => new Response(r.url) }",
    );
    host.converge().await;
    let ingress = format!("http://{}", host.runtime.listen());
    // What a client claims about it changes nothing.
    let request = Request::get("/x")
        .header("host", "api.test")
        .header("x-edge-proto", "http")
        .header("x-forwarded-proto", "http")
        .body(Full::default())
        .unwrap();
    let answer = support::request_to(&host.client, &ingress, request).await;
    assert_eq!(answer.unwrap(), (200, "https://api.test/x".into()));
    // No proxy is in front of the address of the endpoint itself.
    let (_, url) = host.get("api", "/x").await;
    assert!(url.starts_with("http://"), "{url}");
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ingress_routes_by_host_and_tells_addresses() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: (r) => new Response(r.url) }",
    );
    host.converge().await;
    let ingress = format!("http://{}", host.runtime.listen());
    let get = async |name: &str, path: &str| {
        let request = Request::get(path)
            .header("host", name)
            .body(Full::default())
            .unwrap();
        support::request_to(&host.client, &ingress, request)
            .await
            .unwrap()
    };
    assert_eq!(
        get("API.test.:80", "/x").await,
        (200, "http://API.test.:80/x".into())
    );
    assert_eq!(get("other.test", "/x").await.0, 404);
    let two = Request::get("/x")
        .header("host", "api.test")
        .header("host", "other.test")
        .body(Full::default())
        .unwrap();
    let answer = support::request_to(&host.client, &ingress, two).await;
    assert_eq!(answer.unwrap().0, 400);
    let told = get("127.0.0.1", "/.well-known/notation/addresses/api.test").await;
    assert_eq!(
        told,
        (200, format!("{{\"url\":\"{}\"}}\n", host.address("api")))
    );
    assert_eq!(
        get("127.0.0.1", "/.well-known/notation/addresses/none.test")
            .await
            .0,
        404
    );
    let asked = get("api.test", "/.well-known/notation/addresses/api.test").await;
    assert!(
        asked.1.ends_with("addresses/api.test"),
        "an endpoint's paths are its worker's: {asked:?}"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_long_urls_and_many_headers_arrive_as_sent() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch(request) {
           const long = [...request.headers].filter(([name]) => name.startsWith('x-h')).map(([, value]) => value.length);
           return new Response(request.method + ' ' + request.url.length + ' ' + long.length + ' ' + Math.max(0, ...long),
             { headers: { 'x-method': request.method, 'x-edge-secret': 'no', connection: 'x-drop', 'x-drop': 'no' } }) } }",
    );
    host.converge().await;
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let url = host.address("api");
        let request = Request::builder()
            .method(method)
            .uri(url)
            .body(Full::default())
            .unwrap();
        let response = host.client.request(request).await.unwrap();
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(
            (response.status().as_u16(), header("x-method").as_deref()),
            (200, Some(method))
        );
        assert_eq!(
            (header("x-edge-secret"), header("x-edge-body")),
            (None, None)
        );
    }
    let trace = Request::builder()
        .method("TRACE")
        .uri("/")
        .body(Full::default())
        .unwrap();
    assert_eq!(host.send("api", trace).await.unwrap().0, 501);
    let path = format!("/{}", "p".repeat(8191));
    let mut request = Request::post(&path);
    for index in 0..120 {
        request = request.header(
            format!("x-h{index}"),
            "v".repeat(if index == 0 { 8192 } else { 600 }),
        );
    }
    let (status, body) = host
        .send("api", request.body(Full::default()).unwrap())
        .await
        .unwrap();
    let expected = format!(
        "POST {} 120 8192",
        host.address("api").len() - 1 + path.len()
    );
    assert_eq!((status, body), (200, expected));
    // What the runtime takes of a head in all, and what it says beyond.
    let large = |fields: usize| {
        let request = (0..fields).fold(Request::get("/"), |request, index| {
            request.header(format!("x-h{index}"), "v".repeat(8192))
        });
        request.body(Full::default()).unwrap()
    };
    let (status, body) = host.send("api", large(48)).await.unwrap();
    assert!(
        status == 200 && body.ends_with(" 48 8192"),
        "{status} {body}"
    );
    let fields = (0..255).fold(Request::get("/"), |request, index| {
        request.header(format!("x-h{index}"), "v")
    });
    let fields = fields.body(Full::default()).unwrap();
    let (status, body) = host.send("api", fields).await.unwrap();
    assert!(status == 200 && body.ends_with(" 255 1"), "{status} {body}");
    assert_eq!(host.send("api", large(128)).await.unwrap().0, 431);
    let target = Request::get(format!("/{}", "p".repeat(60_000)));
    let target = target.body(Full::default()).unwrap();
    assert_eq!(host.send("api", target).await.unwrap().0, 200);
    assert_eq!(host.get("api", "/").await.0, 200);
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_the_host_as_a_whole_reaches_no_worker() {
    let mut host = Host::start().await;
    host.worker(
        "api",
        "export default { fetch: (r) => new Response('worker saw ' + r.url) }",
    );
    host.converge().await;
    let ingress = host.runtime.listen();
    for (method, wanted) in [("OPTIONS", "HTTP/1.1 200"), ("GET", "HTTP/1.1 400")] {
        let mut stream = tokio::net::TcpStream::connect(ingress).await.unwrap();
        let request = format!("{method} * HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer)
            .await
            .unwrap();
        assert!(answer.starts_with(wanted), "{answer}");
        assert!(!answer.contains("worker saw"), "{answer}");
    }
    host.runtime.shutdown().await;
}
