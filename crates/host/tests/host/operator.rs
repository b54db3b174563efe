//! What whoever runs the host sees, and the limits that protect it.

use crate::bench::*;
use notation_host::HostConfig;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn serve(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

/// Reads a page of the operator with its key.
async fn looked_at(base: &str, path: &str) -> String {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = http.get(format!("{base}{path}")).bearer_auth("key");
    let answer = page.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn the_status_page_says_what_is_there_and_why_it_is_not_ready() {
    let bench = Bench::start().await;
    let base = serve(bench.host.status_router("key")).await;
    assert!(
        looked_at(&base, "/")
            .await
            .contains("Nothing is deployed yet")
    );
    let client = bench.t1();
    client.serving("api", &["fetch"]).await;
    client.worker("idle").await;
    client
        .create("WorkerEndpoint", "e", endpoint_spec("api"))
        .await
        .created();
    crate::operations::accept_delete(&client, "WorkerEndpoint", "e").await;
    let html = looked_at(&base, "/").await;
    for wanted in [
        "api",
        "100 %",
        "api-v1",
        ".endpoints.localhost",
        "Provisioning",
        "worker idle has no deployment",
        "delete WorkerEndpoint e",
        "pending",
        "2 workers, 6 resources, ",
        "1 operation pending",
    ] {
        assert!(html.contains(wanted), "{wanted} in {html}");
    }
    let metrics = looked_at(&base, "/metrics").await;
    for wanted in [
        "notation_host_resources{tenant=\"t1\",kind=\"ModuleWorker\",ready=\"false\"} 1",
        "notation_host_requests_total{method=\"PUT\",status=\"201\"} 6",
        "notation_host_operations_pending{tenant=\"t1\"} 1",
        "notation_host_requests_in_flight 0",
        "notation_host_store_failed 0",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in {metrics}");
    }
}

#[tokio::test]
async fn the_page_of_one_tenant_has_nothing_of_another_and_no_page_has_a_secret() {
    let bench = Bench::plain().await;
    let base = serve(bench.host.status_router("key")).await;
    let (one, two) = (bench.t1(), bench.t2());
    one.serving("mine", &["fetch"]).await;
    two.worker("theirs").await;
    let path = format!("/sealed/v1/spaces/{SPACE}/workers/mine/values/API_KEY");
    one.send("PUT", &path, &[], "swordfish").await.is(204);
    let all = looked_at(&base, "/").await;
    assert!(all.contains("mine") && all.contains("theirs"));
    let page = looked_at(&base, "/tenants/t1").await;
    assert!(page.contains("mine") && !page.contains("theirs") && !page.contains("t2"));
    for text in [all, page, looked_at(&base, "/metrics").await] {
        assert!(!text.contains("swordfish"));
    }
}

#[tokio::test]
async fn markup_in_names_is_text_on_the_status_page() {
    let bench = Bench::plain().await;
    let base = serve(bench.host.status_router("key")).await;
    let space = "<script>alert(1)</script>".replace('/', "\u{2215}");
    let client = bench.t1().in_space(Box::leak(space.into_boxed_str()));
    client.worker("w").await;
    let html = looked_at(&base, "/").await;
    assert!(
        html.contains("&lt;script&gt;") && !html.contains("<script"),
        "{html}"
    );
}

#[tokio::test]
async fn the_operators_pages_answer_to_their_key_only() {
    let bench = Bench::plain().await;
    let base = serve(bench.host.status_router("key")).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for path in ["/", "/tenants/t1", "/metrics", "/nowhere"] {
        let target = format!("{base}{path}");
        let bare = http.get(&target).send().await.unwrap();
        assert_eq!(bare.status(), 401, "{path}");
        assert!(
            bare.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Basic")
        );
        // A token of the API is no key.
        for wrong in ["", "wrong", "t1p1", "keykey"] {
            let refused = http.get(&target).bearer_auth(wrong).send().await.unwrap();
            assert_eq!(refused.status(), 401, "{path} {wrong}");
            let refused = http.get(&target).basic_auth("status", Some(wrong));
            assert_eq!(
                refused.send().await.unwrap().status(),
                401,
                "{path} {wrong}"
            );
        }
    }
    let page = http.get(&base).basic_auth("anybody", Some("key"));
    let page = page.send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()["cache-control"], "no-store");
    assert!(page.headers().contains_key("content-security-policy"));
    let unknown = http
        .get(format!("{base}/tenants/nobody"))
        .bearer_auth("key");
    assert_eq!(unknown.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn too_many_requests_at_once_are_told_to_come_again() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        max_requests: 0,
        ..config(&temp.path().join("data"))
    })
    .await;
    let answer = bench
        .t1()
        .get("/apis/forms.takoform.com/v1beta1/forms")
        .await;
    answer.refused("rate_limited");
    assert!(answer.retry_after.is_some());
    // Strangers and probes take no place, so they wait for none.
    let stranger = bench.t1().anonymous();
    let asked = stranger.get("/apis/forms.takoform.com/v1beta1/forms").await;
    asked.refused("unauthenticated");
    assert_eq!(stranger.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn slow_senders_do_not_hold_the_host() {
    let temp = tempfile::tempdir().unwrap();
    let patience = Duration::from_millis(150);
    let bench = Bench::open(HostConfig {
        read_timeout: patience,
        ..config(&temp.path().join("data"))
    })
    .await;
    let address = bench.base.strip_prefix("http://").unwrap().to_owned();
    let mut head = tokio::net::TcpStream::connect(&address).await.unwrap();
    head.write_all(b"GET /healthz HTTP/1.1\r\nHost:")
        .await
        .unwrap();
    let mut text = String::new();
    head.read_to_string(&mut text).await.unwrap();
    assert!(!text.contains("200"));

    let mut body = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST {API}/resources/validate HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t1p1\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{"
    );
    body.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    body.read_to_string(&mut text).await.unwrap();
    assert!(
        text.starts_with("HTTP/1.1 504") && text.contains("deadline_exceeded"),
        "{text}"
    );
}

/// Everything a host answers on one connection.
async fn answered(address: &str, request: &[u8]) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    // A host that closed already answered or refused to.
    stream.write_all(request).await.ok();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.ok();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn what_is_too_large_is_refused_in_the_envelope() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        max_body_bytes: 1000,
        max_head_bytes: 9000,
        ..config(&temp.path().join("data"))
    })
    .await;
    let client = bench.t1();
    let target = format!("{API}/resources/validate");
    let large = "x".repeat(1001);
    let refusal = client.send("POST", &target, &[], large).await;
    let message = refusal.refused("invalid_argument").message;
    assert!(message.contains("1000 bytes"), "{message}");
    let long = "x".repeat(9000);
    let refusal = client
        .send("GET", "/healthz", &[("x-long", &long)], "")
        .await;
    let message = refusal.refused("invalid_argument").message;
    assert!(message.contains("9000 bytes"), "{message}");
    client.get("/healthz").await.is(200);
    // Beyond twice the limit there is no reading to the end of it.
    let address = bench.base.strip_prefix("http://").unwrap();
    let endless = format!("GET /healthz HTTP/1.1\r\nx: {}", "x".repeat(40_000));
    let text = answered(address, endless.as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    assert!(text.contains("larger than 9000 bytes"), "{text}");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_to_come_again() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        max_connections: 1,
        ..config(&temp.path().join("data"))
    })
    .await;
    let address = bench.base.strip_prefix("http://").unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut first = tokio::net::TcpStream::connect(address).await.unwrap();
    first.write_all(request).await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let second = answered(address, request).await;
    assert!(second.starts_with("HTTP/1.1 503"), "{second}");
    for wanted in ["backend_unavailable", "retry-after: 1", "connection: close"] {
        assert!(second.contains(wanted), "{wanted} in {second}");
    }
    // The one that was let in goes on being served.
    first.write_all(request).await.unwrap();
    let mut rest = [0; 64];
    assert!(first.read(&mut rest).await.unwrap() > 0);
    drop(first);
    let closing = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    while !answered(address, closing).await.starts_with("HTTP/1.1 200") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_body_that_trickles_in_ends_at_its_time() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        read_timeout: Duration::from_secs(20),
        body_timeout: Duration::from_millis(300),
        ..config(&temp.path().join("data"))
    })
    .await;
    let address = bench.base.strip_prefix("http://").unwrap().to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST {API}/resources/validate HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t1p1\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let trickle = tokio::spawn(async move {
        // Every part comes in time; it ends with the connection.
        while to.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut text = Vec::new();
    from.read_to_end(&mut text).await.ok();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.starts_with("HTTP/1.1 504") && text.contains("deadline_exceeded"),
        "{text}"
    );
    trickle.abort();
}

#[tokio::test]
async fn a_client_that_says_nothing_is_let_go() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        read_timeout: Duration::from_millis(150),
        ..config(&temp.path().join("data"))
    })
    .await;
    let address = bench.base.strip_prefix("http://").unwrap();
    // "P" could become the preface of HTTP/2, "GET" not.
    for start in ["", "P", "PRI * HTTP", "GET"] {
        let text = answered(address, start.as_bytes()).await;
        assert!(!text.contains("200"), "{start}: {text}");
    }
}

#[tokio::test]
async fn a_host_ends_with_what_is_in_flight() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    let dir = bench.dir.clone();
    let (created, bench) = tokio::join!(client.create("ModuleWorker", "w", json!({})), async {
        tokio::task::yield_now().await;
        bench
    });
    let bench = {
        created.created();
        bench.restart(config(&dir)).await
    };
    bench.t1().read("ModuleWorker", "w").await.updated();
}

#[tokio::test]
async fn the_openapi_document_lists_every_route() {
    let bench = Bench::plain().await;
    let document = bench
        .t1()
        .anonymous()
        .get("/openapi.json")
        .await
        .is(200)
        .json();
    for (route, method, template) in notation_host::API_ROUTES {
        let operation = &document["paths"][template.replace("{api}", API)][method.to_lowercase()];
        assert_eq!(operation["operationId"], format!("{route:?}"));
        assert!(operation["responses"]["401"].is_object());
    }
    let client = bench.t1().anonymous();
    for (path, name) in notation_host::OPEN_ROUTES {
        let operation = &document["paths"][path]["get"];
        assert_eq!(operation["operationId"], *name);
        assert_eq!(
            operation["security"],
            json!([]),
            "{path} needs no credential"
        );
        client.get(path).await.is(200);
    }
    let listed: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    let known = notation_host::API_ROUTES.len() + notation_host::OPEN_ROUTES.len();
    assert_eq!(listed, known, "nothing is described that is not there");
}

#[tokio::test]
async fn tls_is_served_with_a_given_certificate() {
    let temp = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = notation_host::Tls {
        certificate: temp.path().join("cert.pem"),
        key: temp.path().join("key.pem"),
    };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    let open = |name: &str, tls: notation_host::Tls| {
        let config = HostConfig {
            tls: Some(tls),
            ..config(&temp.path().join(name))
        };
        notation_host::Host::open(config, std::sync::Arc::new(notation_host::NoDataPlane))
    };
    let host = open("good", tls.clone()).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { host.serve(listener, std::future::pending()).await });
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([trusted])
        .build()
        .unwrap();
    let target = format!("https://localhost:{port}/.well-known/takoform/v1beta1");
    let discovery: Value = serde_json::from_slice(
        &http
            .get(target)
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
    )
    .unwrap();
    assert_eq!(
        discovery["endpoints"]["api"],
        format!("https://localhost:{port}{API}")
    );

    let refused = open(
        "bad",
        notation_host::Tls {
            key: temp.path().join("absent.pem"),
            ..tls
        },
    )
    .await
    .err()
    .unwrap();
    assert!(refused.to_string().contains("absent.pem"));
}
