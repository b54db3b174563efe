//! Requests that cannot be read, as raw bytes: every answer carries the envelope, and what was
//! asked before on the same connection is answered as ever.

use crate::bench::*;
use notation_edge_api as wire;
use notation_host::{Host, HostConfig, NoDataPlane, Tls};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};

const GOOD: &str = "GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n";

/// Heads that no service ever sees.
fn unreadable() -> Vec<(&'static str, String)> {
    let fields: String = (0..300).map(|n| format!("x-{n}: y\r\n")).collect();
    vec![
        (
            "a long target",
            format!("GET /{} HTTP/1.1\r\nhost: h\r\n\r\n", "a".repeat(300_000)),
        ),
        (
            "a long field",
            format!(
                "GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n",
                "a".repeat(600_000)
            ),
        ),
        (
            "many fields",
            format!("GET / HTTP/1.1\r\nhost: h\r\n{fields}\r\n"),
        ),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".into(),
        ),
        (
            "a negative length",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n".into(),
        ),
        (
            "another version",
            "GET / HTTP/2.0\r\nhost: h\r\n\r\n".into(),
        ),
        (
            "a preface of HTTP/2",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        ),
        ("no request", "GARBAGE\r\n\r\n".into()),
        (
            "a name with a space",
            "GET / HTTP/1.1\r\nhost: h\r\na b: c\r\n\r\n".into(),
        ),
        ("no target", "GET\r\n\r\n".into()),
    ]
}

/// One answer: status line, head and body.
#[derive(Debug)]
struct Told {
    status: u16,
    head: String,
    body: Vec<u8>,
}

/// The answers that bytes hold, each with the length it declares.
fn answers(mut bytes: &[u8]) -> Vec<Told> {
    let mut told = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n");
        let end =
            end.unwrap_or_else(|| panic!("no head in {}", String::from_utf8_lossy(bytes))) + 4;
        let head = String::from_utf8(bytes[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        told.push(Told {
            status: head["http/1.1 ".len()..][..3].parse().unwrap(),
            body: bytes[end..end + length].to_vec(),
            head,
        });
        bytes = &bytes[end + length..];
    }
    told
}

fn is_refusal(told: &Told, case: &str) {
    assert_eq!(told.status, 400, "{case}: {told:?}");
    let envelope: wire::ErrorEnvelope = serde_json::from_slice(&told.body)
        .unwrap_or_else(|error| panic!("{case}: {error} in {told:?}"));
    assert_eq!(envelope.error.code.as_str(), "invalid_argument", "{case}");
    assert!(!envelope.error.retryable && envelope.error.request_id.starts_with("req-"));
    for wanted in [
        "content-type: application/json",
        "connection: close",
        "date: ",
    ] {
        assert!(
            told.head.contains(wanted),
            "{case}: {wanted} in {}",
            told.head
        );
    }
}

/// Everything that is answered to bytes, sent in parts of `part` bytes.
async fn ask(stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8], part: usize) -> Vec<Told> {
    let (mut from, mut to) = tokio::io::split(stream);
    let reading = async {
        let mut all = Vec::new();
        from.read_to_end(&mut all).await.map(|_| all)
    };
    let writing = async {
        for part in bytes.chunks(part) {
            // Whoever was refused may be cut off in the middle of what it sends.
            if to.write_all(part).await.is_err() || to.flush().await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let (all, ()) = tokio::join!(reading, writing);
    answers(&all.unwrap())
}

async fn connect(bench: &Bench) -> TcpStream {
    let address = bench.base.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_the_envelope() {
    let bench = Bench::plain().await;
    for (case, bytes) in unreadable() {
        for part in [bytes.len(), 4_096, 7] {
            if part == 7 && bytes.len() > 1_000 {
                continue;
            }
            let told = ask(connect(&bench).await, bytes.as_bytes(), part).await;
            assert_eq!(told.len(), 1, "{case}: {told:?}");
            is_refusal(&told[0], case);
        }
    }
}

#[tokio::test]
async fn what_was_asked_before_is_answered_first() {
    let bench = Bench::plain().await;
    for (case, bytes) in unreadable() {
        // Both in one piece, as pipelining clients do, and one after the other.
        let both = format!("{GOOD}{GOOD}{bytes}");
        let told = ask(connect(&bench).await, both.as_bytes(), both.len()).await;
        let seen: Vec<u16> = told.iter().map(|told| told.status).collect();
        if case == "a preface of HTTP/2" {
            assert_eq!(seen[..2], [200, 200], "{case}");
        } else {
            assert_eq!(seen, [200, 200, 400], "{case}");
            is_refusal(&told[2], case);
        }
        let mut stream = connect(&bench).await;
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert!(first.starts_with(b"HTTP/1.1 200"));
        let mut rest = Vec::new();
        stream.write_all(bytes.as_bytes()).await.ok();
        stream.read_to_end(&mut rest).await.unwrap();
        let at = rest.windows(12).position(|part| part == b"HTTP/1.1 400");
        is_refusal(&answers(&rest[at.unwrap()..])[0], case);
    }
}

#[tokio::test]
async fn bodies_that_look_like_a_refusal_are_answers_like_any_other() {
    // Nothing that a host sends ends like this, so it is tried on the layer through a request
    // whose answer is empty and has one of the three statuses.
    let bench = Bench::plain().await;
    let mut stream = connect(&bench).await;
    for _ in 0..3 {
        let request = format!(
            "HEAD {API}/artifacts/blobs/%zz HTTP/1.1\r\nhost: h\r\nauthorization: Bearer t1p1\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            head.extend(byte);
        }
        assert!(
            head.starts_with(b"HTTP/1.1 400"),
            "{}",
            String::from_utf8_lossy(&head)
        );
    }
}

fn trusting(certificate: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// A host with TLS; its port, its files and the certificate in them.
async fn secure(dir: &std::path::Path) -> (u16, Tls, String) {
    let tls = Tls {
        certificate: dir.join("cert.pem"),
        key: dir.join("key.pem"),
    };
    let (certificate, key) = issued();
    std::fs::write(&tls.certificate, &certificate).unwrap();
    std::fs::write(&tls.key, key).unwrap();
    let config = HostConfig {
        tls: Some(tls.clone()),
        ..config(&dir.join("data"))
    };
    let host = Host::open(config, Arc::new(NoDataPlane)).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { host.serve(listener, std::future::pending()).await });
    (port, tls, certificate)
}

/// Certificate and key.
fn issued() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

async fn handshake(
    port: u16,
    certificate: &str,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    trusting(certificate).connect(name, stream).await
}

#[tokio::test]
async fn what_cannot_be_read_over_tls_is_refused_in_the_envelope() {
    let temp = tempfile::tempdir().unwrap();
    let (port, _, certificate) = secure(temp.path()).await;
    for (case, bytes) in unreadable() {
        let stream = handshake(port, &certificate).await.unwrap();
        let told = ask(stream, format!("{GOOD}{bytes}").as_bytes(), 4_096).await;
        assert_eq!(told[0].status, 200, "{case}");
        if case != "a preface of HTTP/2" {
            is_refusal(&told[1], case);
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let temp = tempfile::tempdir().unwrap();
    let (port, tls, first) = secure(temp.path()).await;
    let mut kept = handshake(port, &first).await.unwrap();
    let (second, key) = issued();
    // Between the two files the old pair serves on.
    std::fs::write(&tls.certificate, &second).unwrap();
    handshake(port, &first).await.unwrap();
    std::fs::write(&tls.key, key).unwrap();
    handshake(port, &second).await.unwrap();
    assert!(handshake(port, &first).await.is_err());
    // What is no certificate changes nothing, nor does a file that is away.
    std::fs::write(&tls.certificate, "no certificate at all").unwrap();
    handshake(port, &second).await.unwrap();
    std::fs::remove_file(&tls.key).unwrap();
    handshake(port, &second).await.unwrap();
    // Open connections stay.
    kept.write_all(GOOD.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    kept.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

#[tokio::test]
async fn clients_that_read_nothing_are_let_go() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::open(HostConfig {
        read_timeout: Duration::from_millis(300),
        max_connections: 1,
        ..config(&temp.path().join("data"))
    })
    .await;
    let mut deaf = connect(&bench).await;
    // Far more answers than the buffers of both sides take; nobody reads them.
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: h\r\n\r\n".repeat(1_000);
    let asking = tokio::spawn(async move {
        let _ = deaf.write_all(&request).await;
        // It stays open until the host ends it.
        std::future::pending::<()>().await;
    });
    // Its place is the only one: it is free again when the connection has ended.
    let mut stream;
    let mut full = 0;
    loop {
        stream = connect(&bench).await;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            .await
            .ok();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.ok();
        if all.starts_with(b"HTTP/1.1 200") && full > 0 {
            break;
        }
        full += usize::from(all.starts_with(b"HTTP/1.1 503"));
        tokio::task::yield_now().await;
    }
    asking.abort();
}
