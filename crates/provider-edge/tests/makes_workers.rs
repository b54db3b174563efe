//! Workers at a real host: made, changed, read, removed.
#![allow(clippy::unwrap_used, reason = "words for tests")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use notation_model::Value;
use notation_provider::{HeldBy, LookFor, OpError, Provider as _};
use notation_provider_edge::{Connect, ConnectError, EdgeConfig, EdgeProvider};

#[tokio::test]
async fn a_worker_is_five_resources_and_its_claim() {
    let lab = Lab::new().await;
    let api = worker("api");
    let made = done(lab.create(&api).await);
    assert_eq!(made.key, "shop-dev-api");
    assert!(text(&made, "url").starts_with("https://"), "{made:?}");
    let expected = [
        "ModuleWorker shop-dev-api",
        "WorkerBundle shop-dev-api-a",
        "WorkerBundle shop-dev-api-owner",
        "WorkerDeployment shop-dev-api",
        "WorkerEndpoint shop-dev-api",
        "WorkerVersion shop-dev-api-a",
    ];
    assert_eq!(lab.everything(), expected);
    done(lab.delete(&api).await);
    assert_eq!(lab.everything(), Vec::<String>::new());
    assert_eq!(lab.delete(&api).await, Err(OpError::NotFound));
    assert_eq!(lab.read(&api).await, None);
}

#[tokio::test]
async fn two_workers_that_call_each_other_come_and_go_through_placeholders() {
    let lab = Lab::new().await;
    let (api, auth) = (worker("api"), worker("auth").without_endpoint());
    let early = lab.create(&api.clone().binding(&[&auth])).await;
    assert!(matches!(early, Err(OpError::Refused { .. })), "{early:?}");
    assert!(
        lab.everything().is_empty(),
        "a refused create leaves nothing"
    );
    done(lab.create(&api).await);
    done(lab.create(&auth.clone().binding(&[&api])).await);
    let whole = done(lab.update(&api.clone().binding(&[&auth])).await);
    assert_eq!(text(&whole, "ScriptName"), "shop-dev-api");

    let held = lab.delete(&auth).await.unwrap_err();
    let holder = HeldBy(vec!["WorkerVersion shop-dev-api-b".into()]);
    assert_eq!(held, OpError::InUse { held_by: holder });

    done(lab.update(&api).await);
    done(lab.update(&auth).await);
    done(lab.delete(&auth).await);
    done(lab.delete(&api).await);
    assert_eq!(lab.everything(), Vec::<String>::new());
}

#[tokio::test]
async fn a_read_gives_back_what_the_program_gave() {
    let lab = Lab::new().await;
    let auth = worker("auth");
    done(lab.create(&auth).await);
    let mut api = worker("api").binding(&[&auth]).with_secret("KEY", "hidden");
    api.vars.insert("LEVEL".into(), Value::text("debug"));
    api.vars.insert("RATE".into(), Value::Float(0.5));
    let made = done(lab.create(&api).await);
    let found = lab.read(&api).await.unwrap();
    let mut given = api.params();
    given.remove("secrets");
    assert_eq!(found.params, given);
    assert_eq!(found.object, made);
    let tag = |key: &str| found.tags[key].clone();
    assert_eq!(
        (tag("notation:app"), tag("notation:resource")),
        ("shop".into(), "api".into())
    );
    let mine = lab
        .edge
        .read(&api.owner, &ty(), LookFor::Mine(&api.owner))
        .await
        .unwrap();
    assert_eq!(mine.map(|found| found.object), Some(made));
    let other = owner("shop:dev:main", "api", 1);
    assert_eq!(
        lab.edge
            .read(&other, &ty(), LookFor::Mine(&other))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn an_update_changes_the_version_and_nothing_else() {
    let lab = Lab::new().await;
    let api = worker("api");
    let before = done(lab.create(&api).await);
    let names = lab.everything().len();
    let after = done(lab.update(&api.clone().saying("changed")).await);
    assert_ne!(text(&before, "versionId"), text(&after, "versionId"));
    assert_eq!(text(&before, "url"), text(&after, "url"));
    assert_eq!(lab.everything().len(), names);
    let again = done(lab.update(&api.clone().saying("changed")).await);
    assert_eq!(after, again, "the same content is the same version");
}

#[tokio::test]
async fn code_the_host_has_needs_no_bytes() {
    let lab = Lab::new().await;
    let api = worker("api");
    done(lab.create(&api).await);
    let mut reverted = api.clone().with_secret("KEY", "one");
    reverted.has_bytes = false;
    done(lab.update(&reverted).await);
    let mut unknown = api.clone().saying("never uploaded");
    unknown.has_bytes = false;
    let Err(OpError::Failed { message }) = lab.update(&unknown).await else {
        panic!()
    };
    assert!(message.contains("sha256:"), "{message}");
}

#[tokio::test]
async fn a_changed_secret_is_a_new_version_and_no_value_is_left_behind() {
    let lab = Lab::new().await;
    let api = worker("api").with_secret("KEY", "one");
    let one = done(lab.create(&api).await);
    let two = done(lab.update(&api.clone().with_secret("KEY", "two")).await);
    assert_ne!(text(&one, "versionId"), text(&two, "versionId"));
    let sealed = |name: &str| {
        let worlds = lab.host.worlds();
        let snapshot = worlds.borrow();
        let tenant = snapshot.tenants.values().next().unwrap();
        let found = tenant.sealed.iter().find(|((_, key), _)| &**key == name);
        found.map(|(_, value)| String::from_utf8(value.expose().to_vec()).unwrap())
    };
    assert_eq!(sealed("KEY"), Some("two".into()));
    done(
        lab.update(&worker("api").with_secret("OTHER", "three"))
            .await,
    );
    assert_eq!(
        (sealed("KEY"), sealed("OTHER")),
        (None, Some("three".into()))
    );
    done(lab.delete(&worker("api")).await);
    assert_eq!(sealed("OTHER"), None);
}

#[tokio::test]
async fn an_endpoint_comes_and_goes() {
    let lab = Lab::new().await;
    let api = worker("api");
    done(lab.create(&api).await);
    let without = done(lab.update(&api.clone().without_endpoint()).await);
    assert_eq!(text(&without, "url"), "nothing");
    let found = lab.read(&api).await.unwrap();
    assert_eq!(found.params["endpoint"], Value::Bool(false));
    let with = done(lab.update(&api).await);
    assert_ne!(text(&with, "url"), "nothing");
}

#[tokio::test]
async fn somebody_elses_worker_is_named_and_left_alone() {
    let lab = Lab::new().await;
    let mut theirs = worker("api");
    theirs.owner = owner("other:prod:main", "web", 0);
    done(lab.create(&theirs).await);
    let before = lab.everything();
    let Err(OpError::Exists { name, tags }) = lab.create(&worker("api")).await else {
        panic!()
    };
    assert_eq!(name, "shop-dev-api");
    assert_eq!(
        (
            tags["notation:app"].as_str(),
            tags["notation:resource"].as_str()
        ),
        ("other", "web")
    );
    let refused = lab.delete(&worker("api")).await;
    assert!(
        matches!(&refused, Err(OpError::Refused { message }) if message.contains("other:prod:main")),
        "{refused:?}"
    );
    assert_eq!(lab.everything(), before);
    done(lab.update(&worker("api").saying("adopted")).await);
    assert_eq!(
        lab.read(&worker("api")).await.unwrap().tags["notation:app"],
        "shop"
    );
    done(lab.delete(&worker("api")).await);
}

#[tokio::test]
async fn our_own_worker_is_not_overwritten_by_a_create() {
    let lab = Lab::new().await;
    let token = fresh();
    let first = done(lab.create_with(&worker("api"), &token).await);
    let again = done(lab.create_with(&worker("api"), &token).await);
    assert_eq!(first, again);
    let other = lab.create(&worker("api").saying("other")).await;
    assert!(matches!(other, Err(OpError::Exists { .. })), "{other:?}");
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_made() {
    let lab = Lab::new().await;
    let mut params = worker("api").params();
    params.insert("bindings", Value::List(vec![Value::text("auth")]));
    let ctx = notation_provider::OpContext {
        token: notation_provider::Token(fresh()),
        attempt: 1,
        resume: None,
        owner: owner("shop:dev:main", "api", 0),
        earlier: Default::default(),
        assets: &notation_provider::NoAssets,
    };
    let refused = lab.edge.create(&ctx, &ty(), &params).await;
    assert!(
        matches!(&refused, Err(OpError::Refused { message }) if message.contains("bindings[0]")),
        "{refused:?}"
    );
    assert!(lab.everything().is_empty());
}

struct Late(EdgeConfig, std::sync::Arc<AtomicBool>);

#[async_trait::async_trait]
impl Connect for Late {
    async fn connect(&self) -> Result<EdgeConfig, ConnectError> {
        if self.1.load(Ordering::SeqCst) {
            Ok(self.0.clone())
        } else {
            Err(ConnectError("no host yet".into()))
        }
    }
}

#[tokio::test]
async fn the_host_is_asked_for_when_it_is_needed() {
    let lab = Lab::new().await;
    let up = std::sync::Arc::new(AtomicBool::new(false));
    let edge = EdgeProvider::new(Late(lab.config.clone(), up.clone()));
    assert_eq!(edge.types().len(), 1);
    let api = worker("api");
    let read = || edge.read(&api.owner, &TY, LookFor::Key("shop-dev-api"));
    let Err(OpError::Failed { message }) = read().await else {
        panic!()
    };
    assert_eq!(message, "no host yet");
    up.store(true, Ordering::SeqCst);
    assert_eq!(read().await, Ok(None));
}

static TY: std::sync::LazyLock<notation_model::TypeName> = std::sync::LazyLock::new(ty);

#[tokio::test]
async fn the_real_address_is_asked_for_where_names_resolve_nowhere() {
    let lab = Lab::new().await;
    let known = axum::Router::new().fallback(|uri: axum::http::Uri| async move {
        let hostname = uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        axum::Json(serde_json::json!({ "url": format!("http://127.0.0.1:1/{hostname}") }))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, known).await });
    done(lab.create(&worker("api")).await);
    let edge = EdgeProvider::new(EdgeConfig {
        addresses: Some(origin.parse().unwrap()),
        ..lab.config.clone()
    });
    let api = worker("api");
    let found = edge
        .read(&api.owner, &ty(), LookFor::Key(&api.script))
        .await
        .unwrap()
        .unwrap();
    let url = text(&found.object, "url");
    assert!(
        url.starts_with("http://127.0.0.1:1/") && url.ends_with(".localhost"),
        "{url}"
    );
}

/// Somebody at the console: changes one resource without asking us.
async fn by_hand(lab: &Lab, kind: &str, name: &str, spec: Option<serde_json::Value>) {
    use notation_edge_api::{
        ResourceBody, Review,
        client::{Client, Fence, FormQuery},
    };
    let client = Client::new(lab.config.endpoint.as_str(), TOKEN).unwrap();
    let forms = client.form_support().await.unwrap();
    let form = &forms
        .iter()
        .find(|form| form.form_ref.kind == kind)
        .unwrap()
        .form_ref;
    let query = FormQuery { space: SPACE, form };
    let Some(spec) = spec else {
        let read = client.read(&query, name).await.unwrap();
        client
            .delete(
                &query,
                name,
                &read.resource.metadata.generation,
                None,
                &fresh(),
            )
            .await
            .unwrap();
        return;
    };
    let mut body = ResourceBody::of(form, name, SPACE, Some(spec));
    let prepared = client.prepare(&body, &Fence::Create).await.unwrap();
    body.review = Some(Review {
        prepare_digest: prepared.review.prepare_digest,
    });
    client.apply(&body, &Fence::Create, &fresh()).await.unwrap();
}

fn named(kind: &str, name: &str) -> serde_json::Value {
    serde_json::json!({ "apiVersion": notation_edge_api::FAMILY, "kind": kind, "name": name })
}

#[tokio::test]
async fn a_worker_made_by_hand_is_taken_only_when_asked_and_only_without_a_deployment() {
    let lab = Lab::new().await;
    by_hand(
        &lab,
        "ModuleWorker",
        "shop-dev-api",
        Some(serde_json::json!({})),
    )
    .await;
    let Err(OpError::Exists { tags, .. }) = lab.create(&worker("api")).await else {
        panic!()
    };
    assert!(tags.is_empty());
    assert_eq!(lab.everything(), ["ModuleWorker shop-dev-api"]);
    assert!(lab.read(&worker("api")).await.unwrap().tags.is_empty());

    done(lab.update(&worker("api")).await);
    assert_eq!(
        lab.read(&worker("api")).await.unwrap().tags["notation:app"],
        "shop"
    );

    by_hand(&lab, "WorkerEndpoint", "shop-dev-api", None).await;
    by_hand(&lab, "WorkerDeployment", "shop-dev-api", None).await;
    let version = named("WorkerVersion", "shop-dev-api-a");
    let spec = serde_json::json!({
        "worker": named("ModuleWorker", "shop-dev-api"),
        "versions": [{ "workerVersion": version, "weight": 10_000 }],
    });
    by_hand(&lab, "WorkerDeployment", "hand-made", Some(spec)).await;
    let before = lab.everything();
    let refused = lab.update(&worker("api").saying("other")).await;
    assert!(
        matches!(&refused, Err(OpError::Refused { message }) if message.contains("WorkerDeployment")),
        "{refused:?}"
    );
    assert_eq!(lab.everything(), before);
}

#[tokio::test]
async fn parts_taken_away_by_hand_are_drift_and_come_back() {
    let lab = Lab::new().await;
    let api = worker("api");
    done(lab.create(&api).await);
    let whole = lab.everything();
    by_hand(&lab, "WorkerEndpoint", "shop-dev-api", None).await;
    by_hand(&lab, "WorkerDeployment", "shop-dev-api", None).await;
    let found = lab.read(&api).await.unwrap();
    assert_eq!(found.params.get("main"), None);
    assert_eq!(found.params["endpoint"], Value::Bool(false));
    done(lab.update(&api).await);
    assert_eq!(lab.everything(), whole);
}
