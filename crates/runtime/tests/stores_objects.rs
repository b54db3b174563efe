//! `edge.objects` through a worker's binding.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use notation_runtime::Capability;
use serde_json::{Value, json};
use support::{DRIVER, Host, b64};

async fn host() -> Host {
    let mut host = Host::start().await;
    host.worker("driver", DRIVER).environment = [(
        "B".into(),
        Capability::Objects {
            bucket: "bucket".into(),
        },
    )]
    .into();
    host.converge().await;
    host
}

fn files(host: &Host) -> usize {
    let directory = host
        .directory
        .as_ref()
        .unwrap()
        .path()
        .join("data/objects/bucket.bytes");
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_whole_and_in_ranges_under_conditions() {
    let host = host().await;
    assert_eq!(host.call("B", "head", json!(["k"])).await, json!(null));
    assert_eq!(host.call("B", "get", json!(["k"])).await, json!(null));
    let bytes: Vec<u8> = (0..1024).map(|n| (n % 256) as u8).collect();
    let put = host
        .call(
            "B",
            "put",
            json!(["k", b64(&bytes), { "contentType": "x/y" }]),
        )
        .await;
    let etag = put["etag"].as_str().unwrap();
    assert_eq!(put["size"], 1024);
    let mut head = host.call("B", "head", json!(["k"])).await;
    assert!(
        head.as_object_mut()
            .unwrap()
            .remove("uploadedAtMillis")
            .unwrap()
            .is_i64()
    );
    assert_eq!(
        head,
        json!({ "etag": etag, "size": 1024, "contentType": "x/y" })
    );
    let got = host
        .call("B", "get", json!(["k", { "ifMatch": etag }]))
        .await;
    assert_eq!(
        got,
        json!({ "etag": etag, "size": 1024, "contentType": "x/y", "partial": false, "body": b64(&bytes) })
    );
    let part = host
        .call(
            "B",
            "get",
            json!(["k", { "range": { "offset": 512, "length": 256 } }]),
        )
        .await;
    assert_eq!(
        (&part["partial"], &part["size"], &part["body"]),
        (&json!(true), &json!(1024), &b64(&bytes[512..768]))
    );
    let tail = host
        .call(
            "B",
            "get",
            json!(["k", { "range": { "offset": 1000, "length": 99 } }]),
        )
        .await;
    assert_eq!(
        (&tail["range"], &tail["body"]),
        (
            &json!({ "offset": 1000, "length": 24 }),
            &b64(&bytes[1000..])
        )
    );
    let rest = host
        .call("B", "get", json!(["k", { "range": { "offset": 1020 } }]))
        .await;
    assert_eq!(rest["body"], b64(&bytes[1020..]));
    for (code, method, args) in [
        (
            "range_not_satisfiable",
            "get",
            json!(["k", { "range": { "offset": 1024 } }]),
        ),
        (
            "precondition_failed",
            "get",
            json!(["k", { "ifMatch": "other" }]),
        ),
        (
            "precondition_failed",
            "get",
            json!(["k", { "ifNoneMatch": etag }]),
        ),
        (
            "precondition_failed",
            "put",
            json!(["k", "x", { "ifNoneMatch": "*" }]),
        ),
        (
            "precondition_failed",
            "put",
            json!(["k", "x", { "ifMatch": "other" }]),
        ),
        (
            "precondition_failed",
            "put",
            json!(["new", "x", { "ifMatch": etag }]),
        ),
        ("invalid_key", "put", json!(["", "x"])),
        ("invalid_key", "get", json!(["k".repeat(980)])),
        ("invalid_body", "put", json!(["k", 7])),
    ] {
        assert_eq!(
            host.refusal("B", method, args.clone()).await,
            code,
            "{method} {args}"
        );
    }
    assert_eq!(files(&host), 1, "refused writes leave nothing");
    host.call("B", "put", json!(["k", "second", { "ifMatch": etag }]))
        .await;
    host.call(
        "B",
        "put",
        json!(["n".repeat(979), "", { "ifNoneMatch": "*" }]),
    )
    .await;
    assert_eq!(
        host.call("B", "get", json!(["k"])).await["body"],
        b64(b"second")
    );
    assert_eq!(files(&host), 2, "replaced bytes are removed");
    host.call("B", "delete", json!(["k"])).await;
    host.call("B", "delete", json!(["k"])).await;
    assert_eq!(
        (host.call("B", "head", json!(["k"])).await, files(&host)),
        (json!(null), 1)
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_fails_stores_nothing() {
    let host = host().await;
    let stream = json!(["s", { "$stream": ["one ", "two"] }]);
    host.call("B", "put", stream).await;
    assert_eq!(
        host.call("B", "get", json!(["s"])).await["body"],
        b64(b"one two")
    );
    let failing = json!(["f", { "$stream": ["one ", "two"], "fail": true }]);
    assert_eq!(host.refusal("B", "put", failing).await, "invalid_body");
    assert_eq!(host.call("B", "head", json!(["f"])).await, json!(null));
    support::until("the spooled bytes to be removed", async || {
        (files(&host) == 1).then_some(())
    })
    .await;
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_the_runtime_are_stored_and_one_that_falls_short_is_not() {
    let host = host().await;
    for stream in [
        json!({ "$measured": "nine byte", "length": 9 }),
        json!({ "$measured": "nine byte", "identity": true }),
    ] {
        host.call("B", "put", json!(["m", stream])).await;
        assert_eq!(
            host.call("B", "get", json!(["m"])).await["body"],
            b64(b"nine byte")
        );
        host.call("B", "delete", json!(["m"])).await;
    }
    let short = json!(["m", { "$measured": "nine byte", "length": 10 }]);
    assert_eq!(host.refusal("B", "put", short).await, "invalid_body");
    assert_eq!(host.call("B", "head", json!(["m"])).await, json!(null));
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_roll_up_at_the_delimiter_and_continue() {
    let host = host().await;
    for key in ["a", "page/1", "page/2", "page/sub/x", "page/sub/y", "z"] {
        host.call("B", "put", json!([key, key])).await;
    }
    let keys = |page: &Value| {
        page["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|object| object["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let all = host.call("B", "list", json!([])).await;
    assert_eq!(
        (keys(&all).len(), &all["truncated"], &all["cursor"]),
        (6, &json!(false), &json!(null))
    );
    let top = host.call("B", "list", json!([{ "delimiter": "/" }])).await;
    assert_eq!(
        (keys(&top), &top["prefixes"]),
        (vec!["a".into(), "z".into()], &json!(["page/"]))
    );
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut input = json!({ "prefix": "page/", "delimiter": "/", "limit": 1 });
        if !cursor.is_null() {
            input["cursor"] = cursor;
        }
        let page = host.call("B", "list", json!([input])).await;
        seen.push((keys(&page), page["prefixes"].clone()));
        cursor = page["cursor"].clone();
        if page["truncated"] == false {
            break;
        }
    }
    let expected = [
        (vec!["page/1".into()], Value::Null),
        (vec!["page/2".into()], Value::Null),
        (vec![], json!(["page/sub/"])),
    ];
    assert_eq!(seen, expected);
    assert_eq!(
        host.refusal("B", "list", json!([{ "cursor": "x" }])).await,
        "invalid_cursor"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_become_one_object_at_once() {
    let host = host().await;
    let upload = host
        .call(
            "B",
            "createMultipartUpload",
            json!(["m", { "contentType": "t/t" }]),
        )
        .await;
    let id = upload["uploadId"].as_str().unwrap();
    let long = "a".repeat(5_242_880);
    let first = host
        .call("B", "uploadPart", json!(["m", id, 2, long]))
        .await;
    host.call("B", "uploadPart", json!(["m", id, 7, "replaced"]))
        .await;
    let last = host
        .call("B", "uploadPart", json!(["m", id, 7, "end"]))
        .await;
    let spare = host
        .call("B", "uploadPart", json!(["m", id, 9, "spare"]))
        .await;
    assert_eq!(
        host.call("B", "head", json!(["m"])).await,
        json!(null),
        "an open upload is no object"
    );
    let other = json!({ "partNumber": 7, "etag": "other" });
    for parts in [
        json!([]),
        json!([last, first]),
        json!([first, other]),
        json!([last, spare]),
        json!([first, { "partNumber": 3, "etag": "x" }]),
    ] {
        assert_eq!(
            host.refusal("B", "completeMultipartUpload", json!(["m", id, parts]))
                .await,
            "invalid_part",
            "{parts}"
        );
    }
    assert_eq!(
        host.refusal("B", "uploadPart", json!(["m", id, 0, "x"]))
            .await,
        "invalid_part"
    );
    assert_eq!(
        host.refusal("B", "uploadPart", json!(["other", id, 1, "x"]))
            .await,
        "upload_not_found"
    );
    let done = host
        .call(
            "B",
            "completeMultipartUpload",
            json!(["m", id, [first, last]]),
        )
        .await;
    assert_eq!(done["size"], 5_242_883);
    let across = json!(["m", { "range": { "offset": 5_242_878 } }]);
    let got = host.call("B", "get", across).await;
    assert_eq!(
        (&got["body"], &got["contentType"], &got["etag"]),
        (&b64(b"aaend"), &json!("t/t"), &done["etag"])
    );
    assert_eq!(files(&host), 2, "parts that were not named are removed");
    assert_eq!(
        host.refusal("B", "abortMultipartUpload", json!(["m", id]))
            .await,
        "upload_not_found"
    );
    let upload = host.call("B", "createMultipartUpload", json!(["m"])).await["uploadId"].clone();
    host.call("B", "uploadPart", json!(["m", upload, 1, "x"]))
        .await;
    host.call("B", "abortMultipartUpload", json!(["m", upload]))
        .await;
    assert_eq!(files(&host), 2);
    host.runtime.shutdown().await;
}
