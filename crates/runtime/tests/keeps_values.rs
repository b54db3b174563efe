//! `edge.kv` through a worker's binding.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use notation_runtime::Capability;
use serde_json::json;
use support::{DRIVER, Host, b64};

async fn host() -> Host {
    let mut host = Host::start().await;
    host.worker("driver", DRIVER).environment = [
        (
            "KV".into(),
            Capability::Kv {
                namespace: "ns-1".into(),
            },
        ),
        (
            "SAME".into(),
            Capability::Kv {
                namespace: "ns-1".into(),
            },
        ),
        (
            "OTHER".into(),
            Capability::Kv {
                namespace: "ns-2".into(),
            },
        ),
    ]
    .into();
    host.converge().await;
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_and_metadata_come_back_as_they_were_put() {
    let mut host = host().await;
    let bytes = b64(&[0, 255, 1, 128, b'a']);
    assert_eq!(host.call("KV", "get", json!(["absent"])).await, json!(null));
    assert_eq!(
        host.call("KV", "getWithMetadata", json!(["absent"])).await,
        json!(null)
    );
    host.call(
        "KV",
        "put",
        json!(["k/ü💥", bytes, { "metadata": { "a": "1" } }]),
    )
    .await;
    assert_eq!(host.call("SAME", "get", json!(["k/ü💥"])).await, bytes);
    let with = host.call("KV", "getWithMetadata", json!(["k/ü💥"])).await;
    assert_eq!(with, json!({ "value": bytes, "metadata": { "a": "1" } }));
    host.call("KV", "put", json!(["k/ü💥", "text"])).await;
    let replaced = host.call("KV", "getWithMetadata", json!(["k/ü💥"])).await;
    assert_eq!(
        replaced,
        json!({ "value": b64(b"text") }),
        "metadata is replaced, too"
    );
    host.call("KV", "put", json!(["bare", "text", { "metadata": {} }]))
        .await;
    assert_eq!(
        host.call("KV", "getWithMetadata", json!(["bare"])).await,
        json!({ "value": b64(b"text") }),
        "metadata without an entry is none"
    );
    assert_eq!(
        host.call("OTHER", "get", json!(["k/ü💥"])).await,
        json!(null)
    );
    host.call("KV", "put", json!(["empty", ""])).await;
    // What was put is there after a restart.
    let (plan, directory) = (host.plan.clone(), host.directory.take().unwrap());
    host.runtime.shutdown().await;
    let mut host = Host::start_in(directory).await;
    host.blob("script:driver-1", DRIVER);
    host.plan = plan;
    host.converge().await;
    assert_eq!(host.call("KV", "get", json!(["empty"])).await, b64(b""));
    host.call("KV", "delete", json!(["empty"])).await;
    host.call("KV", "delete", json!(["never there"])).await;
    assert_eq!(host.call("KV", "get", json!(["empty"])).await, json!(null));
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_in_byte_order_and_paged_by_cursors_of_their_own() {
    let host = host().await;
    let empty = host.call("OTHER", "list", json!([])).await;
    assert_eq!(empty, json!({ "keys": [], "listComplete": true }));
    for key in ["b", "a/2", "a/1", "a/é", "a0", "a/10"] {
        host.call("KV", "put", json!([key, "x"])).await;
    }
    let names = |page: &serde_json::Value| {
        page["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = host
        .call("KV", "list", json!([{ "prefix": "a/", "limit": 2 }]))
        .await;
    assert_eq!(
        (names(&first), &first["listComplete"]),
        (vec!["a/1".into(), "a/10".into()], &json!(false))
    );
    let cursor = &first["cursor"];
    let second = host
        .call(
            "KV",
            "list",
            json!([{ "prefix": "a/", "limit": 2, "cursor": cursor }]),
        )
        .await;
    assert_eq!(names(&second), ["a/2", "a/é"]);
    assert_eq!(
        (&second["listComplete"], &second["cursor"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(
        names(&host.call("KV", "list", json!([{}])).await),
        ["a/1", "a/10", "a/2", "a/é", "a0", "b"]
    );
    for wrong in [
        json!({ "cursor": "made up" }),
        json!({ "cursor": cursor }),
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
    ] {
        assert_eq!(
            host.refusal("KV", "list", json!([wrong])).await,
            "invalid_cursor",
            "{wrong}"
        );
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_refused_by_code_and_their_neighbours_accepted() {
    let host = host().await;
    let long = "🙂".repeat(116) + "abc"; // 467 bytes
    host.call("KV", "put", json!([long, "x"])).await;
    let metadata = |bytes: usize| json!({ "metadata": { "m": "x".repeat(bytes - 8) } });
    host.call("KV", "put", json!(["k", "x", metadata(1024)]))
        .await;
    host.call(
        "KV",
        "put",
        json!(["k", "x", { "expirationTtlSeconds": 60 }]),
    )
    .await;
    for (code, args) in [
        ("invalid_key", json!([long.clone() + "d", "x"])),
        ("invalid_key", json!(["", "x"])),
        ("invalid_key", json!(["k".repeat(1_000_000), "x"])),
        ("metadata_too_large", json!(["k", "x", metadata(1_000_000)])),
        ("invalid_key", json!([7, "x"])),
        ("invalid_value", json!(["k", 7])),
        (
            "invalid_value",
            json!(["k", "x", { "expirationTtlSeconds": 59 }]),
        ),
        (
            "invalid_value",
            json!(["k", "x", { "expirationTtlSeconds": { "$nan": 1 } }]),
        ),
        (
            "invalid_value",
            json!(["k", "x", { "metadata": { "a": 1 } }]),
        ),
        ("metadata_too_large", json!(["k", "x", metadata(1025)])),
        ("value_too_large", json!(["k", "x".repeat(26_214_401)])),
    ] {
        assert_eq!(host.refusal("KV", "put", args).await, code);
    }
    host.runtime.shutdown().await;
}
