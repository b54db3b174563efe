//! The provider, on a real host, is a provider like any other.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use notation_model::{Earlier, Value, owner_tags};
use notation_provider::{
    OpError, Progress, Provider as _,
    contract::{self, Sample},
};

#[tokio::test]
async fn it_keeps_the_contract() {
    let lab = Lab::new().await;
    let auth = worker("auth");
    done(lab.create(&auth).await);
    let mut api = worker("api").binding(&[&auth]);
    api.vars.insert("GREETING".into(), Value::text("hello"));
    let changed = worker("api").saying("changed");
    // The one sets what the other leaves out.
    let mut updated = changed.params();
    updated.remove("bindings");
    updated.remove("vars");
    let assets = assets_of(&[&api, &changed]);
    let with_address = Sample {
        ty: ty(),
        created: api.params(),
        updated: Some(updated),
        owner: api.owner.clone(),
        other: owner("other:prod:main", "web", 0),
        assets: &assets,
    };
    let mut created = changed.clone().without_endpoint().params();
    created.remove("ScriptName");
    let mut updated = api
        .clone()
        .without_endpoint()
        .with_secret("KEY", "k")
        .params();
    updated.remove("ScriptName");
    let under_a_generated_name = Sample {
        created,
        updated: Some(updated),
        owner: owner("shop:dev:main", "web", 3),
        ..with_address.clone()
    };
    let sleep = |duration| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    };
    contract::run(&lab.edge, &[with_address, under_a_generated_name], &sleep).await;
    done(lab.delete(&auth).await);
    assert_eq!(lab.everything(), Vec::<String>::new());
}

#[tokio::test]
async fn a_worker_goes_under_the_tags_that_its_record_tells_of_and_under_no_others() {
    let lab = Lab::new().await;
    let delete = async |earlier: Earlier<'_>| {
        let mut ctx = ctx(&worker("gateway"), &fresh());
        ctx.earlier = earlier;
        let none = notation_model::Params::new();
        lab.edge.delete(&ctx, &ty(), "shop-dev-api", &none).await
    };
    let former = ["api".parse().unwrap(), "edge".parse().unwrap()];
    let renamed = Earlier {
        former: &former,
        taken_from: None,
    };
    done(lab.create(&worker("api")).await);
    let refused = delete(Earlier::default()).await;
    assert!(
        matches!(refused, Err(OpError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(delete(renamed).await, Ok(Progress::Done(())));

    let mut theirs = worker("api");
    theirs.owner = owner("other:prod:main", "api", 0);
    done(lab.create(&theirs).await);
    let refused = delete(renamed).await;
    assert!(
        matches!(refused, Err(OpError::Refused { .. })),
        "{refused:?}"
    );
    let tags = owner_tags(&lab.read(&theirs).await.unwrap().tags);
    let imported = Earlier {
        former: &[],
        taken_from: Some(&tags),
    };
    assert_eq!(delete(imported).await, Ok(Progress::Done(())));
    assert_eq!(lab.everything(), Vec::<String>::new());
}
