//! Bodies flow while both sides are still at work, through the ingress and through a
//! service binding.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use std::time::Duration;

use support::{Host, service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ECHO: &str = "const lines = (body, who) => new ReadableStream({ async start(c) {
    const say = (value) => c.enqueue(new TextEncoder().encode(JSON.stringify(value) + '\\n'));
    let read = 0;
    try { for await (const chunk of body) say({ who, read: read++, bytes: chunk.byteLength }); say({ end: true }); c.close(); }
    catch (e) { console.log('broken: ' + e.message); c.error(e); } } });
  export default { async fetch(request, env) {
    const path = new URL(request.url).pathname;
    if (path === '/through') {
      const answer = await env.PEER.fetch('http://peer/echo', { method: 'POST', body: request.body, duplex: 'half' });
      return new Response(answer.body, { status: answer.status }); }
    if (path === '/early') return new Response('enough', { status: 413 });
    if (path === '/early-through') return env.PEER.fetch('http://peer/early', { method: 'POST', body: request.body, duplex: 'half' });
    if (path === '/fail') return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([97])); },
      async pull(c) { await new Promise((r) => setTimeout(r, 50)); c.error(new Error('midway')); } }));
    if (path === '/forever') return new Response(new ReadableStream({
      async pull(c) { await new Promise((r) => setTimeout(r, 20)); c.enqueue(new Uint8Array(10)); }, cancel() { console.log('cancelled'); } }));
    return new Response(lines(request.body, 'NAME')) } }";

async fn hosts() -> Host {
    let mut host = Host::start().await;
    host.worker("peer", &ECHO.replace("NAME", "peer"));
    host.worker("api", &ECHO.replace("NAME", "api")).environment =
        [("PEER".into(), service("peer"))].into();
    host.converge().await;
    host
}

struct Raw(TcpStream, String);

impl Raw {
    async fn open(host: &Host, head: &str) -> Raw {
        let address = host.address("api");
        let authority = address.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(authority).await.unwrap();
        let head = head.replace("HOST", authority).replace('\n', "\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        Raw(stream, String::new())
    }

    async fn chunk(&mut self, bytes: usize) {
        let chunk = format!("{bytes:x}\r\n{}\r\n", "x".repeat(bytes));
        self.0.write_all(chunk.as_bytes()).await.unwrap();
    }

    /// Reads until `done` likes what arrived so far, or the end of the connection.
    async fn read(&mut self, done: impl Fn(&str) -> bool) -> bool {
        while !done(&self.1) {
            let mut buffer = [0; 4096];
            let read = tokio::time::timeout(Duration::from_secs(20), self.0.read(&mut buffer));
            match read.await.expect("more bytes").unwrap_or(0) {
                0 => return false,
                count => self.1.push_str(&String::from_utf8_lossy(&buffer[..count])),
            }
        }
        true
    }

    /// Bytes the echo has accounted for.
    fn accounted(text: &str) -> u64 {
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|line| line["bytes"].as_u64())
            .sum()
    }
}

const POST: &str = "POST PATH HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\n\n";

#[tokio::test(flavor = "multi_thread")]
async fn request_and_response_flow_at_the_same_time() {
    let host = hosts().await;
    for (path, who) in [("/echo", "api"), ("/through", "peer")] {
        let mut raw = Raw::open(&host, &POST.replace("PATH", path)).await;
        raw.chunk(4096).await;
        assert!(
            raw.read(|text| Raw::accounted(text) == 4096).await,
            "{path}: {}",
            raw.1
        );
        assert!(raw.1.starts_with("HTTP/1.1 200"), "{}", raw.1);
        raw.chunk(8192).await;
        assert!(
            raw.read(|text| Raw::accounted(text) == 12_288).await,
            "{path}: {}",
            raw.1
        );
        raw.0.write_all(b"0\r\n\r\n").await.unwrap();
        assert!(
            raw.read(|text| text.ends_with("\r\n0\r\n\r\n")).await,
            "{path}: {}",
            raw.1
        );
        assert!(raw.1.contains("\"end\":true") && raw.1.contains(&format!("\"who\":\"{who}\"")));
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_the_end_of_the_request_arrives() {
    let host = hosts().await;
    for path in ["/early", "/early-through"] {
        let mut raw = Raw::open(&host, &POST.replace("PATH", path)).await;
        for _ in 0..16 {
            raw.chunk(32_768).await;
        }
        assert!(
            raw.read(|text| text.contains("enough")).await,
            "{path}: {}",
            raw.1
        );
        assert!(raw.1.starts_with("HTTP/1.1 413"), "{path}: {}", raw.1);
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies_are_not_mistaken_for_ended_ones() {
    let host = hosts().await;
    let mut raw = Raw::open(&host, "GET /fail HTTP/1.1\nHost: HOST\n\n").await;
    raw.read(|_| false).await;
    assert!(
        raw.1.starts_with("HTTP/1.1 200") && !raw.1.ends_with("0\r\n\r\n"),
        "{}",
        raw.1
    );
    for path in ["/echo", "/through"] {
        let before = host.log().matches("broken: ").count();
        let mut raw = Raw::open(&host, &POST.replace("PATH", path)).await;
        raw.chunk(100).await;
        assert!(raw.read(|text| Raw::accounted(text) == 100).await);
        drop(raw);
        support::until("the handler to notice", async || {
            (host.log().matches("broken: ").count() > before
                || host
                    .runtime
                    .status()
                    .versions
                    .iter()
                    .all(|version| version.in_flight == 0))
            .then_some(())
        })
        .await;
        assert!(!host.log().contains("\"end\":true"));
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_ends_the_invocation() {
    let host = hosts().await;
    let mut raw = Raw::open(&host, "GET /forever HTTP/1.1\nHost: HOST\n\n").await;
    assert!(raw.read(|text| text.len() > 300).await);
    assert_eq!(
        host.runtime
            .status()
            .versions
            .iter()
            .map(|version| version.in_flight)
            .sum::<usize>(),
        1
    );
    drop(raw);
    support::until("the invocation to end", async || {
        host.runtime
            .status()
            .versions
            .iter()
            .all(|version| version.in_flight == 0)
            .then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}
