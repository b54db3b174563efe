//! Every route with a request it refuses and the neighbouring one it accepts.

use crate::bench::*;
use crate::operations::{accept_create, accept_delete};
use notation_edge_api as wire;
use notation_host::{API_ROUTES, RouteName};
use serde_json::{Value, json};

/// One request without its method, which the route has.
struct Ask {
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Ask {
    fn of(target: impl Into<String>) -> Ask {
        Ask {
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.headers.push((name, value.into()));
        self
    }

    fn keyed(self) -> Ask {
        self.with("Idempotency-Key", key())
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Ask {
        self.body = body.into();
        self
    }

    async fn send(&self, client: &Client, method: &str) -> Answer {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        client
            .send(method, &self.target, &headers, self.body.clone())
            .await
    }
}

/// A refused request with its code, and an accepted one with its status.
struct Pair {
    refused: Ask,
    code: &'static str,
    accepted: Ask,
    status: u16,
}

fn fenced(ask: Ask, generation: &str) -> Ask {
    ask.keyed().with("Takoform-Expected-Generation", generation)
}

async fn upload(client: &Client, source: &str) -> String {
    let started = client
        .start_upload(&module_manifest("index.js", source))
        .await;
    started.is(201).json()["uploadId"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The pair of a route. `kv` exists at generation 1, `w` is a worker.
async fn pair(client: &Client, route: RouteName) -> Pair {
    let form = client.form("EdgeKVNamespace");
    let query = client.query(&form);
    let other = wire::FormRef {
        definition_version: "9.9.9".to_owned(),
        ..form.clone()
    };
    let kv = client.resource_target(&form, "kv", "");
    let plain = |name: &str| format!("{API}/resources/{EDGE}/EdgeKVNamespace/{name}");
    let document = |name: &str| client.document("EdgeKVNamespace", name, json!({}));
    let post = |action: &str, document: &Value| {
        Ask::of(format!("{API}/resources/{action}")).body(document.to_string())
    };
    let values = format!("/sealed/v1/spaces/{SPACE}/workers/w/values");
    let digest = wire::digest(&module_manifest("index.js", FETCH_ONLY));
    let blob = wire::blob_digest(FETCH_ONLY.as_bytes());
    let support = |of: &str| Ask::of(format!("{API}/support/{of}"));
    let (refused, code, accepted, status) = match route {
        RouteName::Forms => (
            Ask::of(format!("{API}/forms?{}", client.query(&other))),
            "form_unknown",
            Ask::of(format!("{API}/forms?{query}")),
            200,
        ),
        RouteName::FormDefinition => (
            Ask::of(format!(
                "{API}/form-definitions/{EDGE}/ModuleWorker?{query}"
            )),
            "invalid_argument",
            Ask::of(format!(
                "{API}/form-definitions/{EDGE}/EdgeKVNamespace?{query}"
            )),
            200,
        ),
        RouteName::Validate => (
            post("validate", &with(document("n"), "extra", json!(1))),
            "invalid_argument",
            post("validate", &document("n")),
            200,
        ),
        RouteName::Prepare => (
            post("prepare", &document("kv")),
            "invalid_argument",
            post("prepare", &document("kv")).with("Takoform-Expected-Generation", "1"),
            200,
        ),
        RouteName::Apply => {
            let reviewed = client.reviewed(&document("applied"), None).await;
            let ask = |document: &Value| {
                Ask::of(plain("applied"))
                    .keyed()
                    .with("If-None-Match", "*")
                    .body(document.to_string())
            };
            let foreign = with(reviewed.clone(), "review", json!({"prepareDigest": digest}));
            (ask(&foreign), "invalid_argument", ask(&reviewed), 201)
        }
        RouteName::Read => (
            Ask::of(client.resource_target(&form, "absent", "")),
            "resource_not_found",
            Ask::of(kv),
            200,
        ),
        RouteName::Import => {
            let ask = |native: &str| {
                let document = with(document("adopted"), "nativeId", json!(native));
                Ask::of(format!("{}/import", plain("adopted")))
                    .keyed()
                    .with("If-None-Match", "*")
                    .body(document.to_string())
            };
            (ask(" "), "invalid_argument", ask("native"), 201)
        }
        RouteName::Observe => {
            let target = client.resource_target(&form, "kv", "/observe");
            let ask = |generation| fenced(Ask::of(target.clone()), generation);
            (ask("2"), "generation_conflict", ask("1"), 200)
        }
        RouteName::Delete => {
            client.kv("going").await;
            let target = client.resource_target(&form, "going", "");
            let ask = |generation| fenced(Ask::of(target.clone()), generation);
            (ask("2"), "generation_conflict", ask("1"), 204)
        }
        RouteName::Operation => {
            let id = accept_create(client, "EdgeKVNamespace", "later", json!({})).await;
            let ask = |id: &str| Ask::of(format!("{API}/operations/{id}"));
            (ask("op_0"), "operation_not_found", ask(&id), 200)
        }
        RouteName::Cancel => {
            let id = accept_delete(client, "EdgeKVNamespace", "kv").await;
            let target = format!("{API}/operations/{id}/cancel");
            (
                Ask::of(target.clone()),
                "invalid_argument",
                Ask::of(target).keyed(),
                200,
            )
        }
        RouteName::StartUpload => {
            let ask = |main: &str| {
                let manifest = with(
                    module_manifest("index.js", FETCH_ONLY),
                    "mainModule",
                    json!(main),
                );
                Ask::of(format!("{API}/artifacts/uploads"))
                    .keyed()
                    .body(json!({"manifest": manifest}).to_string())
            };
            (ask("other.js"), "artifact_invalid", ask("index.js"), 201)
        }
        RouteName::PutBlob => {
            let target = format!(
                "{API}/artifacts/uploads/{}/blobs/{blob}",
                upload(client, FETCH_ONLY).await
            );
            (
                Ask::of(target.clone()).body("other bytes"),
                "artifact_invalid",
                Ask::of(target).body(FETCH_ONLY),
                204,
            )
        }
        RouteName::CommitUpload => {
            let open = upload(client, ALL_HANDLERS).await;
            let held = upload(client, FETCH_ONLY).await;
            client
                .put_blob(&held, &blob, FETCH_ONLY.as_bytes())
                .await
                .is(204);
            let ask =
                |upload: &str| Ask::of(format!("{API}/artifacts/uploads/{upload}/commit")).keyed();
            (ask(&open), "artifact_missing", ask(&held), 201)
        }
        RouteName::AbandonUpload => {
            let open = upload(client, ALL_HANDLERS).await;
            let ask = |upload: &str| Ask::of(format!("{API}/artifacts/uploads/{upload}")).keyed();
            (ask("up_0"), "artifact_missing", ask(&open), 204)
        }
        RouteName::ReadManifest => {
            client
                .upload(
                    &module_manifest("index.js", FETCH_ONLY),
                    &[FETCH_ONLY.as_bytes()],
                )
                .await;
            let ask = |digest: &str| Ask::of(format!("{API}/artifacts/{digest}"));
            (ask(&blob), "artifact_missing", ask(&digest), 200)
        }
        RouteName::HeadBlob => {
            client
                .upload(
                    &module_manifest("index.js", FETCH_ONLY),
                    &[FETCH_ONLY.as_bytes()],
                )
                .await;
            let ask = |digest: &str| Ask::of(format!("{API}/artifacts/blobs/{digest}"));
            (ask(&digest), "", ask(&blob), 200)
        }
        RouteName::SupportForms => (
            support("forms/"),
            "resource_not_found",
            support("forms"),
            200,
        ),
        RouteName::SupportForm => (
            support(&format!("forms/{EDGE}/EdgeKVNamespace/9.9.9")),
            "form_unknown",
            support(&format!("forms/{EDGE}/EdgeKVNamespace/0.1.0")),
            200,
        ),
        RouteName::SupportInterface => (
            support("interfaces/edge.kv/9.9.9"),
            "resource_not_found",
            support("interfaces/edge.kv/1.0.0"),
            200,
        ),
        RouteName::SupportBinding => (
            support("bindings/module-worker.other/1.0.0"),
            "resource_not_found",
            support("bindings/module-worker.edge-kv/1.0.0"),
            200,
        ),
        RouteName::SealedNames => (
            Ask::of(values.replace("/w/", "/absent/")),
            "resource_not_found",
            Ask::of(values),
            200,
        ),
        RouteName::Seal => (
            Ask::of(format!("{values}/not-a-name")).body("value"),
            "invalid_argument",
            Ask::of(format!("{values}/NAME")).body("value"),
            204,
        ),
        RouteName::Unseal => (
            Ask::of(format!("{}/NAME", values.replace("/w/", "/absent/"))),
            "resource_not_found",
            Ask::of(format!("{values}/NAME")),
            204,
        ),
    };
    Pair {
        refused,
        code,
        accepted,
        status,
    }
}

/// Whether a target is one of a template's.
fn fits(template: &str, target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let template = template.replace("{api}", API);
    let (wanted, found): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    wanted.len() == found.len()
        && wanted
            .iter()
            .zip(&found)
            .all(|(wanted, found)| wanted.starts_with('{') || wanted == found)
}

#[tokio::test]
async fn every_route_refuses_and_accepts() {
    for (route, method, template) in API_ROUTES {
        let bench = Bench::start().await;
        let client = bench.t1();
        client.kv("kv").await;
        client.worker("w").await;
        let pair = pair(&client, *route).await;
        assert!(fits(template, &pair.accepted.target), "{route:?}");
        let before = bench.rows();
        let refused = pair.refused.send(&client, method).await;
        if *method == "HEAD" {
            assert_eq!(refused.status, 404);
        } else {
            refused.refused(pair.code);
        }
        assert_eq!(bench.rows(), before, "{route:?}: a refusal left a trace");
        pair.accepted.send(&client, method).await.is(pair.status);
        let nobody = pair.accepted.send(&client.anonymous(), method).await;
        assert_eq!(nobody.status, 401, "{route:?}");
    }
}

/// The routes without a credential, which the table does not have.
#[tokio::test]
async fn open_routes_answer_reads_and_nothing_else() {
    let bench = Bench::plain().await;
    let client = bench.t1().anonymous();
    for path in [
        "/.well-known/takoform/v1beta1",
        "/openapi.json",
        "/healthz",
        "/readyz",
    ] {
        client.get(path).await.is(200);
        client
            .send("POST", path, &[], "")
            .await
            .refused("unauthenticated");
        bench
            .t1()
            .send("POST", path, &[], "")
            .await
            .refused("resource_not_found");
    }
}
