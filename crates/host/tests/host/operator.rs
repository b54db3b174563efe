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

#[tokio::test]
async fn the_status_page_says_what_is_there_and_why_it_is_not_ready() {
    let bench = Bench::start().await;
    let base = serve(bench.host.status_router()).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = || async { http.get(&base).send().await.unwrap().text().await.unwrap() };
    assert!(page().await.contains("Nothing is deployed yet"));
    let client = bench.t1();
    client.serving("api", &["fetch"]).await;
    client.worker("idle").await;
    client
        .create("WorkerEndpoint", "e", endpoint_spec("api"))
        .await
        .created();
    let html = page().await;
    for wanted in [
        "api",
        "100.00 % api-v1",
        ".endpoints.localhost",
        "Available",
        "worker idle has no deployment",
    ] {
        assert!(html.contains(wanted), "{wanted} in {html}");
    }
    let metrics = http
        .get(format!("{base}/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        metrics.contains("notation_host_resources{tenant=\"t1\"} 6"),
        "{metrics}"
    );
    assert!(
        metrics.contains("notation_host_requests_total{method=\"PUT\",status=\"201\"} 6"),
        "{metrics}"
    );
}

#[tokio::test]
async fn tokens_are_managed_without_being_shown_again() {
    let bench = Bench::plain().await;
    let base = serve(bench.host.admin_router()).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let wanted = json!({"tenant": "t1", "principal": "ci", "scopes": ["api"], "label": "pipeline"});
    let created = http
        .post(format!("{base}/tokens"))
        .json(&wanted)
        .send()
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    let created: Value = created.json().await.unwrap();
    let token: &'static str = Box::leak(
        created["token"]
            .as_str()
            .unwrap()
            .to_owned()
            .into_boxed_str(),
    );
    bench.as_(token).worker("w").await;
    let listed = http
        .get(format!("{base}/tokens"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(listed.contains("pipeline") && !listed.contains(token));
    let id = created["id"].as_str().unwrap();
    assert_eq!(
        http.delete(format!("{base}/tokens/{id}"))
            .send()
            .await
            .unwrap()
            .status(),
        204
    );
    assert_eq!(
        http.delete(format!("{base}/tokens/{id}"))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    bench
        .as_(token)
        .read("ModuleWorker", "w")
        .await
        .refused("unauthenticated");
    let bad = json!({"tenant": "t1", "principal": "ci", "scopes": ["root"]});
    assert_eq!(
        http.post(format!("{base}/tokens"))
            .json(&bad)
            .send()
            .await
            .unwrap()
            .status(),
        400
    );
}

#[tokio::test]
async fn too_many_requests_at_once_are_told_to_come_again() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        max_requests: 0,
        ..config(&temp.path().join("data"))
    })
    .await;
    let answer = bench.t1().get("/healthz").await;
    answer.refused("rate_limited");
    assert!(answer.retry_after.is_some());
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

    let bad = open(
        "bad",
        notation_host::Tls {
            key: temp.path().join("absent.pem"),
            ..tls
        },
    )
    .await
    .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = bad
        .serve(listener, std::future::pending())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("absent.pem"));
}
