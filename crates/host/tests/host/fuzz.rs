//! Bad input: whatever is sent, the answer is a document of the contract and never a 5xx.
//! `NOTATION_FUZZ` sets how many requests are sent.

use crate::bench::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

const METHODS: [&str; 6] = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"];

fn targets(client: &Client) -> Vec<String> {
    let form = client.form("ModuleWorker");
    let query = client.query(&form);
    let resource = format!("{API}/resources/{EDGE}/ModuleWorker/w");
    let mut targets: Vec<String> = notation_host::API_ROUTES
        .iter()
        .map(|(_, _, template)| {
            template
                .replace("{api}", API)
                .replace("{group}/{version}", EDGE)
                .replace("{kind}", "ModuleWorker")
                .replace("{name}", "w")
                .replace("{definitionVersion}", "0.1.0")
                .replace("{space}", SPACE)
                .replace("{worker}", "w")
                .replace("{key}", "API_KEY")
                .replace(['{', '}'], "")
        })
        .collect();
    targets.extend([
        format!("{resource}?{query}"),
        format!("{resource}/observe?{query}"),
        format!("{API}/forms?{query}"),
        format!("{API}/form-definitions/{EDGE}/ModuleWorker?{query}"),
        format!("{API}/artifacts/{}", form.schema_digest),
        "/.well-known/takoform/v1beta1".to_owned(),
    ]);
    targets
}

fn bodies(client: &Client) -> Vec<Value> {
    vec![
        client.document("ModuleWorker", "w", json!({})),
        with(
            client.document("ModuleWorker", "w", json!({})),
            "review",
            json!({"prepareDigest": format!("sha256:{}", "0".repeat(64))}),
        ),
        with(
            client.document("EdgeKVNamespace", "kv", json!({})),
            "nativeId",
            json!("n"),
        ),
        client.document("WorkerVersion", "v", version_spec("w", "b", &["fetch"])),
        client.document(
            "WorkerDeployment",
            "d",
            deployment_spec("w", &[("v", 10_000)]),
        ),
        client.document("WorkerCronTrigger", "t", cron_spec("w", "*/5 * * * *")),
        json!({"manifest": module_manifest("index.js", FETCH_ONLY)}),
        json!({"manifest": files_manifest("StaticAssetBundle", "text/html", &[("a.html", "x")])}),
    ]
}

/// Breaks a text at a place the dice choose.
fn broken(text: &str, dice: &[u8; 6]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = (usize::from(dice[0]) * 256 + usize::from(dice[1])) % bytes.len().max(1);
    match dice[2] % 12 {
        0 => bytes.truncate(at),
        1 => bytes[at] = dice[3],
        2 => bytes.insert(at, dice[3]),
        3 => bytes = "[".repeat(300).into_bytes(),
        4 => bytes = text.replace(":{", ":1e999,\"x\":{").into_bytes(),
        5 => bytes = text.replacen('{', "{\"kind\":1,", 1).into_bytes(),
        6 => {
            bytes = text
                .replace("10000", "99999999999999999999999999")
                .into_bytes()
        }
        7 => bytes = text.replace('"', "\\u0022").into_bytes(),
        8 => bytes = text.replace("\"w\"", "\"\\ud800\"").into_bytes(),
        9 => bytes = text.replace("{}", "{\"deep\":[[[[{}]]]]}").into_bytes(),
        10 => {
            bytes = text
                .replace("null", "-0")
                .replace("true", "-0.0")
                .into_bytes()
        }
        _ => {}
    }
    bytes
}

#[tokio::test]
async fn bad_input_never_makes_a_5xx() {
    let count: usize = std::env::var("NOTATION_FUZZ")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1500);
    let bench = Bench::plain().await;
    let client = bench.t1();
    client.worker("w").await;
    let (targets, bodies) = (targets(&client), bodies(&client));
    let mut runner = TestRunner::deterministic();
    for _ in 0..count {
        let dice = any::<[u8; 16]>().new_tree(&mut runner).unwrap().current();
        let mut target = targets[usize::from(dice[0]) % targets.len()].clone();
        if dice[1].is_multiple_of(6) {
            let at = usize::from(dice[2]) % target.len();
            target.insert_str(
                at,
                ["%", "%2F", "%00", "//", "?", "&space=x", "%C3"][usize::from(dice[3]) % 7],
            );
        }
        if !target.starts_with('/') {
            target.insert(0, '/');
        }
        let route = notation_host::API_ROUTES.get(usize::from(dice[0]) % targets.len());
        let method = match route {
            Some((_, method, _)) if !dice[4].is_multiple_of(5) => method,
            _ => METHODS[usize::from(dice[4]) % METHODS.len()],
        };
        let fence = ["", "1", "01", "2", "99999999999999999999", "x"][usize::from(dice[5]) % 6];
        let key = format!("k{}", dice[6] % 32);
        let mut headers = vec![("Idempotency-Key", key.as_str())];
        if dice[7].is_multiple_of(2) {
            headers.push(("Takoform-Expected-Generation", fence));
        }
        if dice[7].is_multiple_of(3) {
            headers.push((
                "If-None-Match",
                ["*", "\"1\"", ""][usize::from(dice[8]) % 3],
            ));
        }
        if dice[7].is_multiple_of(5) {
            headers.push(("If-Match", "\"1\""));
        }
        let text = bodies[usize::from(dice[9]) % bodies.len()].to_string();
        let body = match dice[10] % 4 {
            0 => Vec::new(),
            1 => text.into_bytes(),
            _ => broken(
                &text,
                &[dice[11], dice[12], dice[13], dice[14], dice[15], 0],
            ),
        };
        let answer = client.send(method, &target, &headers, body).await;
        assert!(
            answer.status < 500,
            "{method} {target}: {} {}",
            answer.status,
            answer.text()
        );
        if answer.status >= 400 && method != "HEAD" {
            let code = answer.json()["error"]["code"].as_str().unwrap().to_owned();
            answer.refused(&code);
        }
    }
    client.get("/readyz").await.is(200);
}
