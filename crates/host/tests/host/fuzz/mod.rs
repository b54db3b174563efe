//! Bad input: whatever is sent, the answer is a document of the contract and never a 5xx, no
//! request hangs, and the host does not grow. `NOTATION_HOST_FUZZ` sets how many requests are
//! sent.

mod mutations;
mod requests;

use crate::bench::*;
use fastrand::Rng;
use notation_edge_api as wire;
use requests::{Crafted, Workshop};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Senders at once.
const SENDERS: usize = 8;
/// No answer takes this long; whatever does is taken for a hang.
const HANG: Duration = Duration::from_secs(60);
/// What a host may grow by between a fifth of the requests and all of them: caches that fill.
const GROWTH: u64 = 48 * 1024 * 1024;

/// How many answers of each status there were.
type Tally = BTreeMap<u16, usize>;

async fn send(base: &str, http: &reqwest::Client, crafted: &Crafted) -> Option<(u16, Vec<u8>)> {
    let method = reqwest::Method::from_bytes(crafted.method.as_bytes()).unwrap();
    let mut request = http.request(method, format!("{base}{}", crafted.target));
    for (name, value) in &crafted.headers {
        let value = reqwest::header::HeaderValue::from_bytes(value).ok()?;
        request = request.header(*name, value);
    }
    let exchange = async {
        let response = request.body(crafted.body.clone()).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.bytes().await.ok()?.to_vec()))
    };
    let answer = tokio::time::timeout(HANG, exchange).await;
    answer.unwrap_or_else(|_| panic!("no answer: {crafted:?}"))
}

#[track_caller]
fn judge(crafted: &Crafted, status: u16, body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    assert!(status < 500, "{status} {text}: {crafted:?}");
    if crafted.method == "HEAD" || status == 204 {
        assert!(body.is_empty(), "{status} with a body: {crafted:?}");
    } else if status >= 400 {
        let envelope: wire::ErrorEnvelope = serde_json::from_slice(body)
            .unwrap_or_else(|error| panic!("{error} in {status} {text}: {crafted:?}"));
        assert_eq!(envelope.error.code.status(), status);
    } else {
        wire::parse(body).unwrap_or_else(|error| panic!("{error} in {text}: {crafted:?}"));
    }
}

/// One sender's share.
async fn sender(base: String, seed: u64, count: usize, tally: Arc<Mutex<Tally>>) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut workshop = Workshop::new(Rng::with_seed(seed));
    for _ in 0..count {
        let crafted = workshop.craft();
        let Some((status, body)) = send(&base, &http, &crafted).await else {
            // The client itself could not write it down, or the host closed a connection whose
            // framing was wrong.
            *tally.lock().unwrap().entry(0).or_default() += 1;
            continue;
        };
        judge(&crafted, status, &body);
        *tally.lock().unwrap().entry(status).or_default() += 1;
        workshop.learn(&crafted, status, &body);
    }
}

/// Bytes that are no request at all: the connection ends or an answer below 500 comes.
async fn noise(address: &str, dice: &mut Rng) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let bytes = mutations::noise(dice);
    // A host that has seen enough may close before everything is written.
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let end = tokio::time::timeout(HANG, stream.read_to_end(&mut answer)).await;
    assert!(end.is_ok(), "no end: {:?}", String::from_utf8_lossy(&bytes));
    let head = String::from_utf8_lossy(&answer);
    assert!(
        !head.starts_with("HTTP/1.1 5"),
        "{head}: {:?}",
        String::from_utf8_lossy(&bytes)
    );
}

async fn batch(address: &str, seed: u64, count: usize, tally: &Arc<Mutex<Tally>>) {
    let senders: Vec<_> = (0..SENDERS)
        .map(|at| {
            let share = count / SENDERS + usize::from(at < count % SENDERS);
            let seed = seed * SENDERS as u64 + at as u64;
            tokio::spawn(sender(
                format!("http://{address}"),
                seed,
                share,
                tally.clone(),
            ))
        })
        .collect();
    let mut dice = Rng::with_seed(seed);
    for _ in 0..count / 50 {
        noise(address, &mut dice).await;
    }
    for sender in senders {
        sender.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_makes_no_5xx_no_hang_and_no_growth() {
    let count = rounds("NOTATION_HOST_FUZZ", 5000);
    let temp = tempfile::tempdir().unwrap();
    let mut process = Process::launch(temp.path(), Manner::Production);
    let address = process.address().await;
    let tally = Arc::new(Mutex::new(Tally::new()));
    batch(&address, 1, count / 5, &tally).await;
    let early = process.resident_bytes();
    batch(&address, 2, count - count / 5, &tally).await;
    let late = process.resident_bytes();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ready = http
        .get(format!("http://{address}/readyz"))
        .send()
        .await
        .unwrap();
    assert_eq!(ready.status(), 200);
    let tally = tally.lock().unwrap();
    eprintln!("{count} requests: {tally:?}; resident {early:?}, then {late:?} bytes");
    assert_eq!(tally.values().sum::<usize>(), count);
    // The rarer ones come too, with luck; these show that requests get through every gate.
    for status in [200, 201, 204, 400, 401, 404] {
        assert!(
            tally.contains_key(&status),
            "nothing was answered with {status}"
        );
    }
    assert!(tally.get(&0).copied().unwrap_or_default() < count / 20);
    if let (Some(early), Some(late)) = (early, late) {
        assert!(
            late < early + GROWTH,
            "the host grew from {early} to {late} bytes"
        );
    }
}
