//! Support profiles.

use crate::bench::*;
use serde_json::{Value, json};

#[tokio::test]
async fn support_profiles_present() {
    let bench = Bench::start().await;
    let client = bench.t1();
    let list = client.get(&format!("{API}/support/forms")).await.is(200);
    let parsed: notation_edge_api::FormSupportList = serde_json::from_value(list.json()).unwrap();
    assert_eq!(parsed.profiles.len(), 17);
    let of = |kind: &str| {
        let list = list.json();
        let found = list["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["formRef"]["kind"] == kind)
            .cloned();
        found.unwrap()
    };
    let version = client
        .get(&format!("{API}/support/forms/{EDGE}/WorkerVersion/0.1.0"))
        .await
        .is(200);
    assert_eq!(version.json(), of("WorkerVersion"));
    assert_eq!(
        version.json()["supportedEnums"],
        json!({"handlers": ["fetch", "scheduled", "queue"]})
    );
    assert_eq!(
        version.json()["limits"],
        json!({"maximumBundleBytes": 10_485_760})
    );
    assert_eq!(
        of("WorkerBundle")["limits"],
        json!({"maximumBundleBytes": 10_485_760, "maximumBundleFiles": 4096})
    );
    for kind in ["StaticAssetBundle", "SQLiteMigrationSet"] {
        assert_eq!(
            of(kind)["limits"],
            json!({"maximumBundleBytes": 10_485_760, "maximumBundleFiles": 16_384})
        );
    }
    assert!(version.json().get("supportedRanges").is_none());
    for profile in list.json()["profiles"].as_array().unwrap() {
        if profile["formRef"]["kind"] == "ModuleWorker" {
            assert_eq!(profile.as_object().unwrap().len(), 4, "{profile}");
        }
    }
    let interface = client
        .get(&format!("{API}/support/interfaces/edge.kv/1.0.0"))
        .await
        .is(200);
    let binding = client
        .get(&format!(
            "{API}/support/bindings/module-worker.edge-kv/1.0.0"
        ))
        .await
        .is(200);
    for answer in [&list, &version, &interface, &binding] {
        let text = answer.text().to_lowercase();
        for word in [
            "\"price\"",
            "\"sku\"",
            "\"region\"",
            "\"quota\"",
            "\"billing\"",
        ] {
            assert!(!text.contains(word));
        }
        let _: Value = answer.json();
    }
    for binding in [
        "edge-kv",
        "object-bucket",
        "sqlite",
        "queue-producer",
        "service",
    ] {
        client
            .get(&format!(
                "{API}/support/bindings/module-worker.{binding}/1.0.0"
            ))
            .await
            .is(200);
    }
    client
        .get(&format!("{API}/support/bindings/other/1.0.0"))
        .await
        .refused("resource_not_found");
    client
        .get(&format!("{API}/support/forms/{EDGE}/ModuleWorker/9.9.9"))
        .await
        .refused("form_unknown");
    client
        .get(&format!("{API}/support/forms/{EDGE}/ModuleWorker/0.2.0"))
        .await
        .is(200);
}
