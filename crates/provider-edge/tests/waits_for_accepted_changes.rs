//! A host that accepts changes and finishes them later.
#![allow(clippy::unwrap_used, reason = "words for tests")]

mod common;

use common::*;
use notation_model::Params;
use notation_provider::{OpError, Progress, Provider as _};

/// Calls until it is done, each time with the data of the last answer, as the engine does.
/// Every call comes from a provider of its own, as after a crash.
async fn until_done<T>(
    lab: &Lab,
    worker: &Worker,
    call: impl AsyncFn(
        &notation_provider_edge::EdgeProvider,
        &notation_provider::OpContext<'_>,
    ) -> Result<Progress<T>, OpError>,
) -> (T, usize) {
    let mut ctx = ctx(worker, &fresh());
    for waits in 0..60 {
        let edge = notation_provider_edge::EdgeProvider::new(lab.config.clone());
        match call(&edge, &ctx).await.unwrap() {
            Progress::Done(done) => return (done, waits),
            Progress::Waiting { resume, .. } => ctx.resume = Some(resume),
        }
    }
    panic!("it does not end");
}

#[tokio::test]
async fn accepted_changes_are_waited_for_one_after_the_other() {
    let lab = Lab::new().await;
    lab.accept_first();
    let api = worker("api");
    let params = api.params();
    let (made, waits) = until_done(&lab, &api, async |edge, ctx| {
        edge.create(ctx, &ty(), &params).await
    })
    .await;
    assert_eq!(made.key, api.script);
    assert_eq!(
        waits,
        1 + 2 * 6,
        "announced, then six resources, each asked about twice"
    );
    assert_eq!(lab.everything().len(), 6);
    let ((), waits) = until_done(&lab, &api, async |edge, ctx| {
        edge.delete(ctx, &ty(), &api.script, &Params::new()).await
    })
    .await;
    assert_eq!(waits, 2 * 6);
    assert!(lab.everything().is_empty());
}
