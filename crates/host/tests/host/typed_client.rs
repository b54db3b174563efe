//! The typed client against a real host.

use crate::bench::*;
use notation_edge_api as wire;
use notation_edge_api::client::{Client, Fence, FormQuery, Outcome};

fn body(form: &wire::FormRef, name: &str, spec: serde_json::Value) -> wire::ResourceBody {
    wire::ResourceBody::of(form, name, SPACE, Some(spec))
}

#[tokio::test]
async fn the_typed_client_drives_a_whole_life() {
    let bench = Bench::plain().await;
    let client = Client::new(&bench.base, "t1p1").unwrap();
    assert_eq!(
        client.discovery().await.unwrap(),
        wire::Discovery::at(&bench.base)
    );
    let forms = client.form_support().await.unwrap();
    let form = |kind: &str| {
        forms
            .iter()
            .find(|it| it.form_ref.kind == kind)
            .unwrap()
            .form_ref
            .clone()
    };
    let queue = form("AtLeastOnceQueue");
    let query = FormQuery {
        space: SPACE,
        form: &queue,
    };
    assert_eq!(client.form(&query).await.unwrap().forms.len(), 1);
    assert_eq!(
        client
            .form_definition(&query)
            .await
            .unwrap()
            .identity
            .form_ref,
        queue
    );
    let mut document = body(&queue, "q", queue_spec(600));
    assert!(client.validate(&document).await.unwrap().valid);
    let prepared = client.prepare(&document, &Fence::Create).await.unwrap();
    document.review = Some(wire::Review {
        prepare_digest: prepared.review.prepare_digest,
    });
    let Outcome::Done(created) = client.apply(&document, &Fence::Create, "k1").await.unwrap()
    else {
        panic!("not done")
    };
    assert!(created.created);
    let read = client.read(&query, "q").await.unwrap();
    assert_eq!(
        (read.resource, read.etag.as_str()),
        (created.resource, "\"1\"")
    );
    assert_eq!(
        client
            .observe(&query, "q", "1", "k2")
            .await
            .unwrap()
            .metadata
            .generation,
        "1"
    );
    let error = client
        .delete(&query, "q", "9", None, "k3")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(wire::ErrorCode::GenerationConflict));
    assert_eq!(
        client
            .delete(&query, "q", "1", Some("\"1\""), "k4")
            .await
            .unwrap(),
        Outcome::Done(())
    );
    assert_eq!(
        client.read(&query, "q").await.unwrap_err().code(),
        Some(wire::ErrorCode::ResourceNotFound)
    );
    let mut import = body(&queue, "q", queue_spec(600));
    import.native_id = Some("native".to_owned());
    assert!(
        matches!(client.import(&import, &Fence::Create, "k5").await.unwrap(), Outcome::Done(applied) if applied.created)
    );
    assert_eq!(
        client.operation("op_x").await.unwrap_err().code(),
        Some(wire::ErrorCode::OperationNotFound)
    );
    assert_eq!(
        client.cancel("op_x", "k6").await.unwrap_err().code(),
        Some(wire::ErrorCode::OperationNotFound)
    );
}

#[tokio::test]
async fn the_typed_client_uploads_and_seals() {
    let bench = Bench::plain().await;
    let client = Client::new(&bench.base, "t1p1").unwrap();
    let source = FETCH_ONLY.as_bytes();
    let manifest = wire::Manifest::worker_bundle(
        "index.js",
        vec![wire::ManifestModule::of(
            "index.js",
            "application/javascript+module",
            source,
        )],
    );
    let digest = client
        .upload(&manifest, "u1", |_| Some(source.into()))
        .await
        .unwrap();
    assert_eq!(client.manifest(&digest).await.unwrap(), manifest);
    assert_eq!(
        client
            .upload(&manifest, "u2", |_| panic!("nothing is missing"))
            .await
            .unwrap(),
        digest
    );
    assert!(client.holds_blob(&wire::blob_digest(source)).await.unwrap());
    assert!(
        !client
            .holds_blob(&wire::blob_digest(b"other"))
            .await
            .unwrap()
    );
    let started = client.start_upload(&manifest, "u3").await.unwrap();
    client
        .abandon_upload(&started.upload_id, "u4")
        .await
        .unwrap();
    bench.t1().worker("w").await;
    client
        .seal(SPACE, "w", "API_KEY", "x".into())
        .await
        .unwrap();
    assert_eq!(
        client.sealed_names(SPACE, "w").await.unwrap().names,
        ["API_KEY"]
    );
    client.unseal(SPACE, "w", "API_KEY").await.unwrap();
    client.unseal(SPACE, "w", "API_KEY").await.unwrap();
}

#[tokio::test]
async fn a_host_that_is_not_there_is_told_apart() {
    let client = Client::new("http://127.0.0.1:1", "t").unwrap();
    let error = client.discovery().await.unwrap_err();
    assert!(error.is_connect() && error.code().is_none());
    assert!(!format!("{client:?}").contains("\"t\""));
}
