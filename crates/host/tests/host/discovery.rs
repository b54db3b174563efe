//! Discovery, credentials, the envelope, transport.

use crate::bench::*;
use notation_edge_api as wire;
use serde_json::json;

#[tokio::test]
async fn discovery_exact() {
    let bench = Bench::start().await;
    let answer = bench
        .t1()
        .anonymous()
        .get("/.well-known/takoform/v1beta1")
        .await
        .is(200);
    let discovery: wire::Discovery = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(discovery, wire::Discovery::at(&bench.base));
    assert_eq!(discovery.api_versions, ["forms.takoform.com/v1beta1"]);
    assert_eq!(discovery.endpoints.api, format!("{}{API}", bench.base));
    assert!(discovery.features.other.is_empty());
}

#[tokio::test]
async fn unauthenticated_request_refused() {
    let bench = Bench::start().await;
    let good = bench.t1();
    let forms = format!("{API}/forms?{}", good.query(&good.form("ModuleWorker")));
    let create = good
        .reviewed(&good.document("ModuleWorker", "w", json!({})), None)
        .await;
    for bad in [good.anonymous(), good.with_token("nobody")] {
        bad.get(&forms).await.refused("unauthenticated");
        bad.put(
            &create,
            &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
        )
        .await
        .refused("unauthenticated");
        bad.get("/no/such/route").await.refused("unauthenticated");
        good.absent("ModuleWorker", "w").await;
    }
    good.get(&forms).await.is(200);
    good.put(
        &create,
        &[("Idempotency-Key", &key()), ("If-None-Match", "*")],
    )
    .await
    .created();
}

#[tokio::test]
async fn error_envelope_taxonomy() {
    let bench = Bench::start().await;
    let client = bench.t1();
    for code in wire::ErrorCode::ALL {
        let probe = format!("error:{code}");
        let headers = [("Takoform-Conformance-Probe", probe.as_str())];
        let answer = client
            .send("GET", &format!("{API}/forms"), &headers, "")
            .await;
        answer.refused(code.as_str());
        assert_eq!(answer.retry_after.is_some(), code.retryable());
    }
    for unknown in ["error:nothing", "other"] {
        let headers = [("Takoform-Conformance-Probe", unknown)];
        client
            .send("GET", &format!("{API}/forms"), &headers, "")
            .await
            .refused("invalid_argument");
    }
}

#[tokio::test]
async fn a_production_host_ignores_the_probe() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    let target = format!("{API}/forms?{}", client.query(&client.form("ModuleWorker")));
    let headers = [("Takoform-Conformance-Probe", "error:internal_error")];
    client.send("GET", &target, &headers, "").await.is(200);
}

#[tokio::test]
async fn namespaced_group_travels_as_two_path_segments() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let form = client.form("EdgeKVNamespace");
    let read = client.read("EdgeKVNamespace", "kv").await.updated();
    assert_eq!(read.api_version, EDGE);
    let query = client.query(&form);
    client
        .get(&format!(
            "{API}/form-definitions/edge.forms.takoform.com/v1beta1/EdgeKVNamespace?{query}"
        ))
        .await
        .is(200);
    client
        .get(&format!(
            "{API}/support/forms/edge.forms.takoform.com/v1beta1/EdgeKVNamespace/0.1.0"
        ))
        .await
        .is(200);
    client
        .get(&format!(
            "{API}/form-definitions/edge.forms.takoform.com%2Fv1beta1/EdgeKVNamespace?{query}"
        ))
        .await
        .refused("resource_not_found");
}

#[tokio::test]
async fn space_id_grammar_enforced() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let form = client.form("EdgeKVNamespace");
    let rest = client.query(&form).split_once('&').unwrap().1.to_owned();
    let long = "x".repeat(256);
    for (bad, escaped) in [
        ("", ""),
        (" a", "+a"),
        ("a ", "a+"),
        ("\u{feff}a", "%EF%BB%BFa"),
        ("a\u{feff}", "a%EF%BB%BF"),
        ("\u{a0}a", "%C2%A0a"),
        ("a/b", "a%2Fb"),
        ("a\u{1}b", "a%01b"),
        ("a\u{7f}b", "a%7Fb"),
        (&long, &long),
    ] {
        let target = format!("{API}/resources/{EDGE}/EdgeKVNamespace/kv?space={escaped}&{rest}");
        client.get(&target).await.refused("invalid_argument");
        let mut document = client.document("EdgeKVNamespace", "kv", json!({}));
        document["metadata"]["space"] = bad.into();
        client.validate(&document).await.refused("invalid_argument");
    }
    client.read("EdgeKVNamespace", "kv").await.updated();
}

#[tokio::test]
async fn unknown_paths_and_methods_do_not_exist() {
    let bench = Bench::start().await;
    let client = bench.t1();
    client.kv("kv").await;
    let path = format!("{API}/resources/{EDGE}/EdgeKVNamespace/kv");
    for (method, target) in [
        ("GET", "/".to_owned()),
        ("GET", format!("{API}/forms/")),
        ("POST", format!("{API}/forms")),
        ("POST", format!("{path}/refresh")),
        ("PATCH", path.clone()),
        ("GET", format!("{API}/resources")),
        ("GET", format!("{path}/")),
        ("GET", format!("{API}/operations/")),
        ("GET", format!("{API}/artifacts/")),
        ("GET", format!("{API}/operations%2Fx")),
        ("POST", format!("{API}/support/forms")),
    ] {
        client
            .send(method, &target, &[], "")
            .await
            .refused("resource_not_found");
    }
    client
        .get(&format!("{API}/operations/%zz"))
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn discovery_is_found_by_its_decoded_path_at_an_authority_that_is_one() {
    let bench = Bench::start().await;
    let anonymous = bench.t1().anonymous();
    let escaped = anonymous.get("/.well-known/takoform/v1%62eta1").await;
    let discovery: wire::Discovery = serde_json::from_value(escaped.is(200).json()).unwrap();
    assert_eq!(discovery, wire::Discovery::at(&bench.base));
    anonymous
        .get("/.well-known%2Ftakoform/v1beta1")
        .await
        .refused("unauthenticated");
    let discover = async |host: &str| {
        let headers = [("Host", host)];
        let target = wire::DISCOVERY_PATH;
        anonymous.send("GET", target, &headers, "").await
    };
    for host in ["edge.example", "edge.example:8443", "[::1]:80"] {
        let answer = discover(host).await.is(200).json();
        assert_eq!(answer["endpoints"]["api"], format!("http://{host}{API}"));
    }
    for host in [
        "user@h",
        "h?x",
        "a/b",
        "evil\"host",
        "a%62c",
        ":80",
        "h:",
        "h:port",
        "h:99999",
        "h#x",
    ] {
        discover(host).await.refused("invalid_argument");
    }
}

#[tokio::test]
async fn a_public_origin_is_what_discovery_tells_whoever_asks() {
    let temp = tempfile::tempdir().unwrap();
    let config = notation_host::HostConfig {
        public_origin: Some("https://edge.example/".parse().unwrap()),
        ..config(&temp.path().join("data"))
    };
    let bench = Bench::open(config).await;
    let answer = bench.t1().anonymous().get(wire::DISCOVERY_PATH).await;
    let discovery: wire::Discovery = serde_json::from_value(answer.is(200).json()).unwrap();
    assert_eq!(discovery, wire::Discovery::at("https://edge.example"));
}

#[tokio::test]
async fn what_no_client_could_read_back_is_not_stored() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let padded = |bytes: usize| {
        let mut document = client.document("EdgeKVNamespace", "kv", json!({}));
        document["spec"]["padding"] = "x".repeat(bytes).into();
        document
    };
    let answer = client.validate(&padded(8_388_608 - 65_536)).await;
    let message = answer.refused("invalid_argument").message;
    assert!(message.contains("larger than 8323072 bytes"), "{message}");
    // Below it, only the field itself is wrong.
    let answer = client.validate(&padded(8_388_608 - 66_000)).await.is(200);
    assert_eq!(answer.json()["valid"], false);
}
